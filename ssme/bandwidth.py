"""Bandwidths of Gaussian product kernels: one rule, one function, one row in `BANDWIDTH_RULES`.

Every rule is scale-equivariant (``bandwidth(c x) = c bandwidth(x)``) and reads weights as numbers of rows: an integer
weight does what repeating the row does, a weight of 0 what leaving it out does.

A column that a rule cannot serve gets a stand-in, and one warning says how many there were and why:

- constant column: 1.0 (one unit of log-ratio; there is no scale to be equivariant to);
- improved Sheather-Jones on data without a fixed point that a grid can show (a handful of rows, two values, an atom
  that holds many of the rows, clusters narrower than a hundred-thousandth of the range): the normal reference with a
  robust spread.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct

Floats = NDArray[np.float64]

CONSTANT_BANDWIDTH = 1.0
_PAD = 0.5  # grid = range of the data and half of it on either side: reflections at the edges do not matter
_GRIDS = (2**12, 2**14, 2**16, 2**18)  # finer ones only for columns whose bandwidth the coarse one cannot resolve
_STEPS = 4.0  # a bandwidth under so many grid steps is not trusted: the fixed points of tied data sit there
_STAGES = 7  # l of the reference
_LARGEST = float(np.sqrt(0.1))  # of the solutions, as a share of the grid's length
_SCAN_RATIO, _PARTS = 1.3, 8  # scan this ratio apart, so many candidates at a time
_MAX_TIES = 0.1
_COLUMNS = 64  # columns solved together; bounds the temporaries


def select_bandwidth(
    X: ArrayLike, rule: str | float | ArrayLike = "isj", *, weights: ArrayLike | None = None
) -> Floats:
    """Bandwidth of every column.

    Parameters
    ----------
    X : array-like (n, d)
        Data, one column per dimension.
    rule : str, float or array-like (d,)
        A name in `BANDWIDTH_RULES`, one bandwidth for all columns, or one for each.
    weights : array-like (n,), optional
        How many rows each row counts for.

    Returns
    -------
    array (d,)
        Positive and finite.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 10.0]
    >>> select_bandwidth(X, "scott").round(2).tolist()
    [0.35, 3.44]
    >>> select_bandwidth(X, 0.5).tolist()
    [0.5, 0.5]
    """
    X, w = _check_data(X, weights)
    if not isinstance(rule, str):
        return _given_bandwidth(rule, X.shape[1])
    if rule not in BANDWIDTH_RULES:
        close = difflib.get_close_matches(rule, BANDWIDTH_RULES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        names = ", ".join(BANDWIDTH_RULES)
        raise ValueError(f"bandwidth must be a number, an array or one of {names}; got {rule!r}{hint}")
    keep = w > 0
    X, w = X[keep], w[keep]
    low, high = X.min(axis=0), X.max(axis=0)
    if not np.all(np.isfinite(high - low)):
        raise ValueError("X spans more than float64 can hold in at least one column; rescale it first")
    # rounding noise around one value is no spread, and neither is a subnormal one
    constant = high - low <= np.maximum(64 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high)), 1e-290)
    h, failed = np.full(X.shape[1], CONSTANT_BANDWIDTH), np.zeros(X.shape[1], dtype=bool)
    if not constant.all():
        h[~constant], failed[~constant] = BANDWIDTH_RULES[rule](X[:, ~constant], w)
    _warn(rule, int(constant.sum()), int(failed.sum()), X.shape[1])
    return h


def scott(X: Floats, w: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Scott's rule, ``sd n^(-1 / (d + 4))`` [1]_.

    References
    ----------
    .. [1] Scott, D. W. (1992). "Multivariate Density Estimation". Wiley, eq. 6.42.
    """
    return _spread(X, w) * w.sum() ** (-1 / (X.shape[1] + 4)), np.zeros(X.shape[1], dtype=bool)


def silverman(X: Floats, w: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Silverman's rule, ``sd (4 / (d + 2))^(1 / (d + 4)) n^(-1 / (d + 4))`` [1]_.

    References
    ----------
    .. [1] Silverman, B. W. (1986). "Density Estimation for Statistics and Data Analysis". Chapman & Hall, eq. 4.14.
    """
    return _spread(X, w) * _normal_factor(w.sum(), X.shape[1]), np.zeros(X.shape[1], dtype=bool)


def normal_reference(X: Floats, w: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Silverman's rule with the smaller of standard deviation and interquartile range / 1.349 as the spread.

    Where ties make the interquartile range less than a thousandth of the standard deviation, that one is used.

    References
    ----------
    .. [1] Silverman, B. W. (1986). "Density Estimation for Statistics and Data Analysis". Chapman & Hall, sec. 3.4.2.
    """
    return _robust_spread(X, w) * _normal_factor(w.sum(), X.shape[1]), np.zeros(X.shape[1], dtype=bool)


def improved_sheather_jones(X: Floats, w: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Improved Sheather-Jones (diffusion) plug-in bandwidth of every column on its own [1]_.

    The fixed point ``t = xi gamma^[7](t)`` is solved on the discrete cosine transform of linearly binned data, with t
    in units of the grid's length. Where several solutions exist (rounded data) the largest one is taken: the small
    ones follow the rounding.

    Returns
    -------
    bandwidths (d,), failed (d,)
        Where no solution can be resolved, `failed` is true and the one-dimensional normal reference is returned.

    References
    ----------
    .. [1] Botev, Z. I., Grotowski, J. F., Kroese, D. P. (2010). "Kernel density estimation via diffusion".
       Annals of Statistics 38(5), 2916-2957.
    """
    h = np.full(X.shape[1], np.nan)
    for start in range(0, X.shape[1], _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        h[columns] = _solve_on_grids(X[:, columns], w)
    failed = np.isnan(h)
    if failed.any():
        h[failed] = _robust_spread(X[:, failed], w) * _normal_factor(w.sum(), 1)
    return h, failed


BANDWIDTH_RULES: dict[str, Callable[[Floats, Floats], tuple[Floats, NDArray[np.bool_]]]] = {
    "isj": improved_sheather_jones,
    "scott": scott,
    "silverman": silverman,
    "normal-reference": normal_reference,
}


def _solve_on_grids(X: Floats, w: Floats) -> Floats:
    """Bandwidths of the columns; NaN where there is no trustworthy fixed point."""
    low = X.min(axis=0)
    span = X.max(axis=0) - low
    unit = (X - low) / span  # everything below is free of scale
    h = np.full(X.shape[1], np.nan)
    todo, largest = np.arange(X.shape[1]), _LARGEST
    for size in _GRIDS:
        root, unresolved = _fixed_point(_squared_coefficients(unit[:, todo], w, size), w.sum(), largest, _STEPS / size)
        h[todo] = root * (1 + 2 * _PAD) * span[todo]
        todo, largest = todo[unresolved], _STEPS / size
        # tied values look narrower on every finer grid; only clusters that are really narrow are worth the search
        todo = todo[[_tied_share(unit[:, j], w) < _MAX_TIES for j in todo]]
        if not len(todo):
            break
    return h


def _tied_share(x: Floats, w: Floats) -> float:
    """Share of the rows that repeat the value of another row."""
    return 1 - len(np.unique(x)) / float(max(w.sum(), len(x)))


def _squared_coefficients(unit: Floats, w: Floats, size: int) -> Floats:
    """(d, size - 1) squared cosine coefficients of the columns of `unit` (n, d) in [0, 1], linearly binned."""
    n, d = unit.shape
    u = (unit + _PAD) * (size / (1 + 2 * _PAD)) - 0.5  # in bins, measured from the centre of the first one
    left = u.astype(np.int64)
    right_share = (u - left) * w[:, None]
    left += np.arange(d) * size
    counts = np.bincount(left.ravel(), (w[:, None] - right_share).ravel(), d * size)
    counts += np.bincount(left.ravel() + 1, right_share.ravel(), d * size)
    return np.asarray((0.5 * dct(counts.reshape(d, size) / w.sum(), axis=1)[:, 1:]) ** 2)


def _fixed_point(a2: Floats, n: float, largest: float, smallest: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Largest solution in [smallest, largest] for every row, NaN where none, and where one must lie below.

    Everything is in units of the grid's length. The candidates are scanned downward, so that the usual column needs
    few and short sums.
    """
    d = len(a2)
    n_points = 1 + int(np.ceil(np.log(largest / smallest) / np.log(_SCAN_RATIO)))
    scan = np.geomspace(largest, smallest, n_points)
    low, high = np.full(d, np.nan), np.full(d, np.nan)
    unresolved = np.zeros(d, dtype=bool)
    todo = np.arange(d)
    for start in range(0, n_points - 1, _PARTS):
        points = scan[start : start + _PARTS + 1]
        above = _excess(np.broadcast_to(points, (len(todo), len(points))), a2[todo], n) > 0
        crossing = above[:, :-1] & ~above[:, 1:]
        hit = crossing.any(axis=1)
        first = crossing[hit].argmax(axis=1)
        high[todo[hit]], low[todo[hit]] = points[first], points[first + 1]
        todo, above = todo[~hit], above[~hit]
        if not len(todo):
            break
    else:
        unresolved[todo] = above[:, -1]
    found = ~np.isnan(low)
    root = np.full(d, np.nan)
    if found.any():
        root[found] = _refine(low[found], high[found], a2[found], n)
    return root, unresolved


def _refine(low: Floats, high: Floats, a2: Floats, n: float) -> Floats:
    """Shrink all brackets 8-fold four times, then interpolate: about 1e-9 relative."""
    which = np.arange(len(low))
    for _ in range(4):
        points = low[:, None] * (high / low)[:, None] ** (np.arange(_PARTS + 1) / _PARTS)
        values = _excess(points, a2, n)
        at = _PARTS - 1 - ((values[:, :-1] <= 0) & (values[:, 1:] > 0))[:, ::-1].argmax(axis=1)  # the largest crossing
        low, high = points[which, at], points[which, at + 1]
        below, above = values[which, at], values[which, at + 1]
    return np.asarray(low + (high - low) * (-below / (above - below)))


def _excess(h: Floats, a2: Floats, n: float) -> Floats:
    """``h - sqrt(xi gamma^[7](h^2))`` for candidates (d, T), rows of coefficients (d, size - 1); 0 is a solution."""
    k2 = np.arange(1, a2.shape[1] + 1, dtype=np.float64) ** 2

    def norm(s: int, t: Floats) -> Floats:
        """Squared norm of the s-th derivative of the density smoothed with variance t."""
        # terms with k^2 pi^2 t over 80 are under 1e-13 of the largest, also times k^14
        terms = min(len(k2), 2 + int(np.sqrt(80 / t.min()) / np.pi))
        damped = np.exp(t[..., None] * (-(np.pi**2) * k2[:terms]))
        return np.asarray(2 * np.pi ** (2 * s) * np.einsum("dtk,dk->dt", damped, k2[:terms] ** s * a2[:, :terms]))

    with np.errstate(divide="ignore", under="ignore"):
        f = norm(_STAGES, h**2)
        for s in range(_STAGES - 1, 1, -1):
            odd = np.prod(np.arange(1, 2 * s, 2)) / np.sqrt(2 * np.pi)
            t = (2 * (1 + 0.5 ** (s + 0.5)) / 3 * odd / (n * f)) ** (2 / (3 + 2 * s))
            f = norm(s, t)
        return np.asarray(h - (2 * n * np.sqrt(np.pi) * f) ** -0.2)


def _normal_factor(n: float, d: int) -> float:
    return float((4 / ((d + 2) * n)) ** (1 / (d + 4)))


def _spread(X: Floats, w: Floats) -> Floats:
    """Standard deviation (n - 1 in the denominator) of rows that count w times."""
    total = w.sum()
    centred = X - (w @ X) / total
    return np.sqrt((w @ centred**2) / max(total - 1, 0.5 * total))


def _robust_spread(X: Floats, w: Floats) -> Floats:
    sd = _spread(X, w)
    quartiles = [_quantile(X, w, q) for q in (0.25, 0.75)]
    robust = (quartiles[1] - quartiles[0]) / 1.349
    return np.where(robust < 1e-3 * sd, sd, np.minimum(sd, robust))


def _quantile(X: Floats, w: Floats, q: float) -> Floats:
    """What numpy's linear quantile gives on rows that are repeated w times."""
    order = np.argsort(X, axis=0, kind="stable")
    sorted_x = np.take_along_axis(X, order, axis=0)
    position = q * max(float(w.sum()) - 1, 0.0)
    lower, share = np.floor(position), position - np.floor(position)
    ends = np.cumsum(w[order], axis=0)  # row j of the sorted column covers positions up to ends[j], not included
    last = len(X) - 1
    at = [np.minimum((ends <= lower + step).sum(axis=0), last) for step in (0, 1)]
    values = [np.take_along_axis(sorted_x, i[None], axis=0)[0] for i in at]
    return np.asarray(values[0] + share * (values[1] - values[0]))


def _check_data(X: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must have the shape (n, d) with at least one row and column, got {X.shape}")
    if not np.isfinite(X).all():
        n_bad = int((~np.isfinite(X)).any(axis=1).sum())
        raise ValueError(f"X has NaN or infinite entries in {n_bad} rows; remove those rows first")
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(X),) or not np.all(np.isfinite(w)) or np.any(w < 0) or not w.sum() > 0:
        raise ValueError(f"weights must be {len(X)} finite numbers >= 0 that are not all 0")
    return X, w


def _given_bandwidth(rule: float | ArrayLike, d: int) -> Floats:
    h = np.asarray(rule, dtype=np.float64)
    if h.shape not in ((), (d,)):
        raise ValueError(f"bandwidth must be one number or {d} of them, one per column, got the shape {h.shape}")
    if not np.all(np.isfinite(h)) or np.any(h <= 0):
        raise ValueError(f"bandwidth must be positive and finite, got {rule!r}")
    return np.full(d, h) if h.ndim == 0 else h.copy()


def _warn(rule: str, n_constant: int, n_failed: int, d: int) -> None:
    reasons = []
    if n_constant:
        reasons.append(f"{n_constant} of {d} columns are constant and get bandwidth {CONSTANT_BANDWIDTH}")
    if n_failed:
        why = "few rows, tied values or an extreme range"
        reasons.append(f"{n_failed} of {d} columns have no fixed point ({why}) and get the normal reference")
    if reasons:
        warnings.warn(f"bandwidth rule {rule!r}: " + "; ".join(reasons) + ".", UserWarning, stacklevel=3)
