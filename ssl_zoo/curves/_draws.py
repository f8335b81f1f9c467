"""Joint draws of the models' metrics -> draws of curves, of their robustness metrics, and what these decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ssl_zoo.robustness import metrics_of_curves

Floats = NDArray[np.float64]

MIDWAY = ("gm", "wad", "bad")
DECIMALS = 12  # equal models differ by rounding noise in their draws, and that is no slope


def curves_of(values: Floats, models: NDArray[np.int64]) -> Floats:
    """Values (..., M) of the models -> curve (..., n): the mean over the seeds (S, n).

    Examples
    --------
    >>> curves_of(np.array([0.9, 0.8, 0.7, 0.7]), np.array([[0, 1], [2, 3]])).tolist()
    [0.8, 0.75]
    """
    return np.asarray(np.round(values[..., models].mean(axis=-2), DECIMALS))


def curve_of_seeds(draws: Floats, models: NDArray[np.int64], *, seed: int = 0) -> Floats:
    """Draws (D, n) of the mean curve over seeds that could have been drawn, from draws (D, M) of these models.

    Every draw takes seeds with replacement, as wholes; deviations from the mean are stretched by sqrt(s / (s - 1)), for
    s seeds vary less around their own mean than around that of all.
    """
    n_seeds = len(models)
    if n_seeds < 2:
        raise ValueError("an interval over seeds needs at least 2 seeds of every algorithm.")
    chosen = np.random.default_rng(seed).integers(n_seeds, size=(len(draws), n_seeds))
    of_seed = draws[:, models]
    mean = of_seed.mean(axis=1)
    again = np.take_along_axis(of_seed, chosen[:, :, None], axis=1).mean(axis=1)
    return np.asarray(np.round(mean + np.sqrt(n_seeds / (n_seeds - 1)) * (again - mean), DECIMALS))


def robustness_draws(
    x: NDArray,
    point: Floats,
    draws: Floats,
    *,
    tolerance: float = 0.0,
    ordered: bool = True,
    plain: bool = False,
) -> dict[str, tuple[float, Floats]]:
    """Estimate and draws (D,) of every robustness metric, from a curve (n,) and its joint draws (D, n).

    The metrics are applied to every draw of the whole curve, so that what is wrong with all points alike cancels and
    what is not does not. The slope is linear in the curve: its estimate is that of the estimated curve. GM, WAD and BAD
    are not: an estimated curve is calmer than the true one and a drawn one is rougher, since it carries the doubt about
    every point. Their estimates lie midway between the metric of the estimated curve and the median of the draws, and
    the draws are moved there by as much. The estimate of P(AD >= 0) is the median of the draws. With `plain` all
    estimates are those of the estimated curve, and the draws stay as they are.

    Examples
    --------
    >>> shift = np.linspace(-0.1, 0.1, 5)[:, None]  # an error common to all points
    >>> found = robustness_draws(np.array([0, 0.5, 1]), np.array([0.8, 0.7, 0.6]), np.array([0.8, 0.7, 0.6]) + shift)
    >>> round(found["r_slope"][0], 3), round(float(np.ptp(found["r_slope"][1])), 6)
    (-0.2, 0.0)
    """
    of_point = metrics_of_curves(x, point, tolerance=tolerance, ordered=ordered)
    of_draws = metrics_of_curves(x, draws, tolerance=tolerance, ordered=ordered)
    out = {}
    for name, values in of_draws.items():
        estimate, finite = float(of_point[name]), values[np.isfinite(values)]
        if len(finite) and not plain and name != "r_slope":
            median = float(np.median(finite))
            shift = (estimate - median) / 2 if name in MIDWAY else 0.0
            estimate, values = median + shift, values + shift
        out[name] = estimate, np.maximum(values, 0.0) if name == "gm" else values
    return out


def interval_of(estimate: float, draws: Floats, level: float) -> tuple[float, float]:
    """Equal-tailed interval of draws (D,), widened to hold the estimate; NaN without either.

    Examples
    --------
    >>> interval_of(50.0, np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    finite = draws[np.isfinite(draws)]
    if not len(finite) or not np.isfinite(estimate):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(min(low, estimate)), float(max(high, estimate))


def share_of(events: NDArray[np.bool_]) -> float:
    """Probability of an event from draws (D,), with half a draw more on either side: never exactly 0 or 1.

    Examples
    --------
    >>> share_of(np.ones(99, bool))
    0.995
    """
    return float((events.sum() + 0.5) / (len(events) + 1))


def verdict_shares(
    draws: dict[str, Floats], *, delta_g: float, delta_w: float, delta_b: float
) -> tuple[float, float, float]:
    """Probability that a curve is globally, locally, and in both ways delta-robust, from draws of its metrics.

    Global is r_slope >= delta_g; local is wad >= delta_w and bad >= delta_b, in the same draw.
    """
    whole = draws["r_slope"] >= delta_g
    local = (draws["wad"] >= delta_w) & (draws["bad"] >= delta_b)
    known = np.isfinite(draws["r_slope"])
    return share_of(whole[known]), share_of(local[known]), share_of((whole & local)[known])
