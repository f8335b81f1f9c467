"""How accuracy moves along a contamination factor: the metrics of a curve, factor averages, verdicts, intervals.

Of a curve (x_i, a_i), i = 1..n, with A = mean(a):

- ``r_slope``: least-squares slope of a on x;
- ``gm``: sum of |a_i - A| (global magnitude; a plain sum, not an integral);
- ``wad``, ``bad``: smallest and largest of AD_i = (a_{i+1} - a_i) / (x_{i+1} - x_i);
- ``p_ad_nonneg``: share of the n - 1 intervals with AD >= 0;
- ``p_value``: two-sided one-sample t test of a_2..a_n against a_1.

These reproduce the tables of the reference, whose text prints 1 / n for the share, and the opposite sign for the local
threshold on WAD. A factor without an order (which class contaminates) has only ``gm``.

References
----------
Re-Evaluating the Impact of Unseen-Class Unlabeled Data on Semi-Supervised Learning Model, ICLR 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_BOUNDS = {"gm": (0.0, math.inf), "p_ad_nonneg": (0.0, 1.0)}


class _Record:
    """A frozen dataclass that is read by item as well."""

    def __getitem__(self, name: str) -> float:
        if name not in self.keys():
            raise KeyError(f"{name!r}; there are {', '.join(self.keys())}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> tuple[str, ...]:
        """Names of the entries, so that dict(result) works."""
        return tuple(f.name for f in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class CurveMetrics(_Record):
    """Metrics of one curve; NaN where one is undefined. Read as ``result.gm`` or ``result["gm"]``."""

    r_slope: float
    gm: float
    wad: float
    bad: float
    p_ad_nonneg: float
    p_value: float


def curve_metrics(
    x: ArrayLike, acc: ArrayLike, *, tolerance: float = 0.0, decimals: int | None = None, ordered: bool = True
) -> CurveMetrics:
    """Metrics of an accuracy curve.

    Parameters
    ----------
    x : array-like (n,)
        Values of the factor, strictly increasing; the first one is the baseline.
    acc : array-like (n,)
        Accuracy at each of them.
    tolerance : float, default=0
        A step of accuracy down by no more than this still counts as AD >= 0.
    decimals : int, optional
        Round the accuracies first, as printed tables do; ties depend on it.
    ordered : bool, default=True
        False for a factor without an order: all but ``gm`` are NaN, and `x` only names the points.

    Returns
    -------
    CurveMetrics

    Examples
    --------
    >>> m = curve_metrics([0, 0.5, 1], [0.7, 0.6, 0.6])
    >>> round(m.r_slope, 3), round(m.gm, 3), round(m["wad"], 3), m.bad, m.p_ad_nonneg
    (-0.1, 0.133, -0.2, 0.0, 0.5)
    >>> curve_metrics([0, 0.5, 1], [0.6, 0.6, 0.6]).p_value
    nan
    """
    a = _check_accuracy(acc, 1)
    points = _check_factor(x, a.shape[-1]) if ordered else np.arange(a.shape[-1], dtype=np.float64)
    if tolerance < 0:
        raise ValueError(f"tolerance must be 0 or more; got {tolerance}")
    a = a if decimals is None else np.round(a, decimals)
    if not ordered:
        nan = float("nan")
        return CurveMetrics(nan, float(_magnitude(a)), nan, nan, nan, nan)
    values = {name: float(v) for name, v in _ordered_metrics(points, a, tolerance).items()}
    return CurveMetrics(**values, p_value=_p_value(a))


def metrics_of_curves(
    x: ArrayLike, acc: ArrayLike, *, tolerance: float = 0.0, ordered: bool = True
) -> dict[str, Floats]:
    """Metrics of many curves over the same points at once, such as posterior draws of one curve.

    Parameters
    ----------
    x : array-like (n,)
        Values of the factor, as in `curve_metrics`.
    acc : array-like (..., n)
        A curve in the last axis. A curve with a NaN has NaN metrics.
    tolerance, ordered
        As in `curve_metrics`.

    Returns
    -------
    dict of array (...)
        r_slope, gm, wad, bad and p_ad_nonneg; gm alone for a factor without an order.

    Examples
    --------
    >>> found = metrics_of_curves([0, 0.5, 1], [[0.7, 0.6, 0.6], [0.7, 0.7, 0.8]])
    >>> found["r_slope"].round(3).tolist(), found["p_ad_nonneg"].tolist()
    ([-0.1, 0.1], [0.5, 1.0])
    """
    a = np.asarray(acc, dtype=np.float64)
    if a.ndim < 1 or a.shape[-1] < 2:
        raise ValueError(f"acc has the shape {a.shape}; a curve in its last axis needs at least 2 points")
    if tolerance < 0:
        raise ValueError(f"tolerance must be 0 or more; got {tolerance}")
    points = _check_factor(x, a.shape[-1]) if ordered else np.arange(a.shape[-1], dtype=np.float64)
    found = _ordered_metrics(points, a, tolerance) if ordered else {"gm": _magnitude(a)}
    broken = ~np.isfinite(a).all(axis=-1)
    return {name: np.where(broken, np.nan, values) for name, values in found.items()}


def magnitude(acc: ArrayLike) -> float:
    """GM alone: the sum of absolute deviations from the mean, for factors with or without an order.

    Examples
    --------
    >>> round(magnitude([0.635, 0.504, 0.533, 0.527, 0.710]), 3)
    0.363
    """
    return float(_magnitude(_check_accuracy(acc, 1)))


def _magnitude(a: Floats) -> Floats:
    center = np.where(np.ptp(a, axis=-1) == 0, a[..., 0], a.mean(axis=-1))  # a constant curve is 0, not rounding noise
    return np.abs(a - center[..., None]).sum(axis=-1)


def _ordered_metrics(x: Floats, a: Floats, tolerance: float) -> dict[str, Floats]:
    """All metrics but the p-value, of curves (..., n) at once."""
    centered = x - x.mean()
    steps = np.diff(a, axis=-1)
    difference = steps / np.diff(x)
    return {
        "r_slope": (a - a[..., :1]) @ centered / (centered @ centered),
        "gm": _magnitude(a),
        "wad": difference.min(axis=-1),
        "bad": difference.max(axis=-1),
        "p_ad_nonneg": (steps >= -tolerance * (1 + 1e-9)).mean(axis=-1),  # 0.659 - 0.660 is a hair below -0.001
    }


def _p_value(a: Floats) -> float:
    """Two-sided one-sample t test of a_2..a_n against a_1; NaN for a constant curve or one further point."""
    rest = a[1:]
    if len(rest) < 2 or np.ptp(a) == 0:
        return float("nan")
    if np.ptp(rest) == 0:
        return 0.0
    t = (rest.mean() - a[0]) / (rest.std(ddof=1) / math.sqrt(len(rest)))
    return _t_tails(abs(float(t)), len(rest) - 1)


def _t_tails(t: float, dof: int) -> float:
    """P(|T| > t) of Student's t with whole degrees of freedom, by the finite sums of Abramowitz and Stegun, 26.7.3-4.

    Examples
    --------
    >>> round(_t_tails(2.015048, 5), 6), _t_tails(0.0, 3)
    (0.1, 1.0)
    """
    theta = math.atan(t / math.sqrt(dof))
    cos, cos2 = math.cos(theta), math.cos(theta) ** 2
    term = total = 1.0
    first = 2 if dof % 2 == 0 else 3
    for k in range(first, dof - 1, 2):
        term *= cos2 * (k - 1) / k
        total += term
    if dof % 2 == 0:
        inside = math.sin(theta) * total
    else:
        inside = 2 / math.pi * (theta + (math.sin(theta) * cos * total if dof > 1 else 0.0))
    return min(max(1 - inside, 0.0), 1.0)


# ------------------------------------------------------------------------------------------------------------ averages


@dataclass(frozen=True)
class Averages:
    """Mean magnitude by algorithm over factors (F_avg), and by factor over algorithms (A_avg)."""

    f_avg: dict[str, float]
    a_avg: dict[str, float]


def factor_averages(table: Mapping[str, Mapping[str, float]]) -> Averages:
    """Row and column means of a table of GM by algorithm and factor; NaN cells (not measured) are left out.

    Examples
    --------
    >>> averages = factor_averages({"VAT": {"r": 0.111, "c_n": 0.139}, "ICT": {"r": 0.007, "c_n": 0.014}})
    >>> {name: round(v, 4) for name, v in averages.f_avg.items()}, {k: round(v, 4) for k, v in averages.a_avg.items()}
    ({'VAT': 0.125, 'ICT': 0.0105}, {'r': 0.059, 'c_n': 0.0765})
    """
    if not table:
        raise ValueError("table is empty; give at least one algorithm with its GM by factor")
    factors = list(dict.fromkeys(factor for row in table.values() for factor in row))
    values = np.array([[float(row.get(factor, math.nan)) for factor in factors] for row in table.values()])
    return Averages(
        {name: _nan_mean(row) for name, row in zip(table, values, strict=True)},
        {factor: _nan_mean(column) for factor, column in zip(factors, values.T, strict=True)},
    )


def _nan_mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


# ------------------------------------------------------------------------------------------------------------ verdicts


@dataclass(frozen=True)
class RobustnessVerdict:
    """Whether a curve is robust globally (r_slope >= delta_g) and locally (wad >= delta_w and bad >= delta_b)."""

    is_global: bool
    is_local: bool
    delta_g: float
    delta_w: float
    delta_b: float

    def __str__(self) -> str:
        words = {(True, True): "globally and locally robust", (True, False): "globally robust, not locally",
                 (False, True): "locally robust, not globally", (False, False): "not robust"}  # fmt: skip
        return words[self.is_global, self.is_local]


def robustness_verdict(
    metrics: CurveMetrics, *, delta_g: float = 0.0, delta_w: float = 0.0, delta_b: float = 0.0
) -> RobustnessVerdict:
    """Delta-robustness of a curve. Larger is better for all three; thresholds are negative where a loss is tolerated.

    The definition in the reference prints ``wad <= delta_w``; its own reading of the values is the one used here.

    Examples
    --------
    >>> m = curve_metrics([0, 0.5, 1], [0.70, 0.69, 0.69])
    >>> print(robustness_verdict(m, delta_g=-0.02, delta_w=-0.01))
    globally robust, not locally
    """
    values = (metrics.r_slope, metrics.wad, metrics.bad)
    if any(math.isnan(v) for v in values):
        raise ValueError("the curve has no slope or no differences (a factor without an order); compare its gm instead")
    return RobustnessVerdict(
        metrics.r_slope >= delta_g, metrics.wad >= delta_w and metrics.bad >= delta_b, delta_g, delta_w, delta_b
    )


# ----------------------------------------------------------------------------------------------------------- intervals


@dataclass(frozen=True)
class Interval(_Record):
    """An estimate and its interval."""

    estimate: float
    lower: float
    upper: float


def curve_intervals(
    x: ArrayLike,
    acc: ArrayLike,
    *,
    level: float = 0.9,
    n_resamples: int = 2000,
    seed: int = 0,
    tolerance: float = 0.0,
    ordered: bool = True,
    small_sample: bool = True,
) -> dict[str, Interval]:
    """Intervals of the metrics of the mean curve, by resampling whole seeds.

    Seeds are drawn as wholes, since the points of one seed share their split and their initial weights.

    Parameters
    ----------
    x : array-like (n,)
        Values of the factor.
    acc : array-like (n_seeds, n)
        Accuracy of every seed at each of them.
    level : float, default=0.9
        Of the intervals.
    n_resamples : int, default=2000
        Bootstrap samples.
    seed : int
        Of the resampling.
    tolerance, ordered
        As in `curve_metrics`.
    small_sample : bool, default=True
        Estimate -+ t * sqrt(s / (s - 1)) * bootstrap standard error, with s - 1 degrees of freedom for s seeds: for
        the slope, which is linear in the curve, the usual t interval of the seeds' slopes. False gives percentiles of
        the bootstrap distribution, which follow its shape but hold the truth too rarely: with three seeds an interval
        of 90 % does in about three cases of five.

    Returns
    -------
    dict of Interval
        By metric; the p-value has none. GM, WAD and BAD are not linear in the curve: noise between seeds raises GM and
        BAD and lowers WAD, and no resampling takes that away.

    Examples
    --------
    >>> out = curve_intervals([0, 0.5, 1], [[0.70, 0.65, 0.60], [0.72, 0.66, 0.61], [0.69, 0.66, 0.62]])
    >>> out["r_slope"].lower < -0.093 < out["r_slope"].upper
    True
    """
    a = _check_accuracy(acc, 2)
    points = _check_factor(x, a.shape[1]) if ordered else np.arange(a.shape[1], dtype=np.float64)
    n_seeds = len(a)
    if n_seeds < 2:
        raise ValueError("acc holds one seed; an interval over seeds needs at least 2 rows")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level}")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1; got {n_resamples}")
    rows = np.random.default_rng(seed).integers(n_seeds, size=(n_resamples, n_seeds))
    means = a[rows].mean(axis=1)

    def metrics(curves: Floats) -> dict[str, Floats]:
        return _ordered_metrics(points, curves, tolerance) if ordered else {"gm": _magnitude(curves)}

    estimates, draws = metrics(a.mean(axis=0)), metrics(means)
    factor = None
    if small_sample:
        factor = math.sqrt(n_seeds / (n_seeds - 1)) * _t_quantile(1 - level, n_seeds - 1)
    return {name: _interval(name, float(estimates[name]), draws[name], level, factor) for name in estimates}


def _interval(name: str, estimate: float, draws: Floats, level: float, factor: float | None) -> Interval:
    if factor is None:
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    else:
        half = factor * float(draws.std())
        low, high = estimate - half, estimate + half
    floor, ceiling = _BOUNDS.get(name, (-math.inf, math.inf))
    return Interval(estimate, float(np.clip(low, floor, ceiling)), float(np.clip(high, floor, ceiling)))


def _t_quantile(p: float, dof: int) -> float:
    """The t whose two tails hold p, by bisection."""
    low, high = 0.0, 1.0
    while _t_tails(high, dof) > p:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_tails(middle, dof) > p else (low, middle)
    return (low + high) / 2


# --------------------------------------------------------------------------------------------------------------- checks


def _check_accuracy(acc: ArrayLike, n_dims: int) -> Floats:
    a = np.asarray(acc, dtype=np.float64)
    wanted = "(n,), one curve" if n_dims == 1 else "(n_seeds, n), one row for each seed"
    if a.ndim != n_dims:
        raise ValueError(f"acc must have shape {wanted}; got {a.shape}")
    if a.shape[-1] < 2:
        raise ValueError(f"acc has {a.shape[-1]} points; a curve needs at least 2")
    if not np.isfinite(a).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(a))[0])
        at = where[0] if n_dims == 1 else where
        raise ValueError(f"acc[{at}] is {a[where]}; leave out points or seeds that did not finish")
    return a


def _check_factor(x: ArrayLike | Sequence[float], n: int) -> Floats:
    points = np.asarray(x, dtype=np.float64)
    if points.shape != (n,):
        raise ValueError(f"x must have one value for each of the {n} points of acc; got shape {points.shape}")
    if not np.isfinite(points).all() or not (np.diff(points) > 0).all():
        raise ValueError("x must be finite and strictly increasing, the baseline first; sort the points by x")
    return points
