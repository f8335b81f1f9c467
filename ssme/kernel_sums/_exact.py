"""Kernel sums from exponents, block by block, and the kernel matrix that is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssme.kernel_sums._grid import grid_log_sums
from ssme.kernel_sums._points import BLOCK, DEFAULT_BUDGET, NO_WEIGHT, Points, check_weights, product

Floats = NDArray[np.float64]

_CUT = -300.0  # exponents under the row's largest that are told apart; times NO_WEIGHT still a normal number
_DOUBTFUL = 1e-105  # a sum under this could be made of what was cut (n exp(-300) and n 1e-150, n up to 1e10)
_SURE = 1e-80  # a sum over this makes doubtful ones not matter for the shares of the columns


def log_kernel_sums(
    X: ArrayLike,
    centers: ArrayLike,
    weights: ArrayLike,
    bandwidth: ArrayLike,
    *,
    exclude_self: bool = False,
    exact_tails: bool = True,
    memory_budget: int = DEFAULT_BUDGET,
) -> Floats:
    """Log of weighted Gaussian kernel sums.

    Parameters
    ----------
    X : array-like (q, d)
        Query rows.
    centers : array-like (n, d)
        Rows on which the kernels sit.
    weights : array-like (n, C) or (n,)
        Non-negative weights, one column per sum.
    bandwidth : array-like (d,) or float
        Standard deviation of the kernel in every dimension.
    exclude_self : bool
        `X` is `centers`, and each row's own kernel is left out.
    exact_tails : bool
        False: sums under 1e-105 of the row's nearest kernel may come out as any number under that while another column
        is above 1e-80. The columns' shares of the row are not affected, and many columns cost one matrix product.
    memory_budget : int
        Bytes that temporaries may take, apart from the result.

    Returns
    -------
    array (q, C)
        ``-inf`` where all weights are 0; never NaN. With d = 1 and more than 2**29 pairs of rows the sums are read
        from a grid of 64 steps per bandwidth: a kernel t bandwidths away is then off by at most about
        ``(t^2 + 1) / 32768``, relative.

    Examples
    --------
    >>> log_kernel_sums([[0.0]], [[0.0], [1.0]], [[0.5], [0.5]], [1.0]).round(4).tolist()
    [[-1.138]]
    """
    points = Points(X, centers, bandwidth, exclude_self)
    w = check_weights(weights, points.n)
    if points.use_grid and not exclude_self:
        return grid_log_sums(points, w)
    summed = _Summands(w)
    out = np.empty((points.q, w.shape[1]))
    for rows in points.blocks(memory_budget):
        top, kernel = _scaled_kernel(points, rows)
        out[rows] = _finish(points, summed, rows, top, product(kernel, summed.scaled), None, exact_tails)
    return np.asarray(out + points.log_normalizer)


class KernelMatrix:
    """Kernels between all pairs of rows, computed once and kept while they fit the budget.

    Parameters
    ----------
    X : array-like (n, d)
        Rows; each is a query and a centre.
    bandwidth : array-like (d,) or float
        Standard deviation of the kernel in every dimension.
    memory_budget : int
        Bytes. The matrix takes ``8 n^2``; where that is too much it is recomputed in blocks for every product.

    Attributes
    ----------
    n : int
        Number of rows.
    kept : bool
        Whether the matrix is held in memory.

    Examples
    --------
    >>> kernel = KernelMatrix([[0.0], [1.0], [5.0]], [1.0])
    >>> kernel.log_dot([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).round(2).tolist()
    [[-0.92, -1.42], [-1.42, -0.92], [-13.42, -0.92]]
    """

    def __init__(self, X: ArrayLike, bandwidth: ArrayLike, *, memory_budget: int = DEFAULT_BUDGET) -> None:
        self._points = Points(X, X, bandwidth, True)
        self._budget = memory_budget
        self.n = self._points.n
        self.kept = 8 * self.n**2 <= memory_budget and not self._points.use_grid
        if self.kept:
            self._kernel, self._top = np.empty((self.n, self.n)), np.empty(self.n)
            for rows in self._points.blocks(memory_budget):
                self._top[rows], _ = _scaled_kernel(self._points, rows, self._kernel[rows])

    @property
    def log_own(self) -> float:
        """Log of a row's kernel at the row itself: what a weight of 1 adds to its own sum."""
        return self._points.log_normalizer

    def log_dot(self, weights: ArrayLike, exclude_self: bool = False, *, exact_tails: bool = True) -> Floats:
        """What `log_kernel_sums` gives for X at X: one matrix product while the matrix is kept.

        Parameters
        ----------
        weights : array-like (n, C) or (n,)
        exclude_self, exact_tails : bool
            As for `log_kernel_sums`.

        Returns
        -------
        array (n, C)
        """
        w = check_weights(weights, self.n)
        if self._points.use_grid and not exclude_self:
            return grid_log_sums(self._points, w)
        summed, own = _Summands(w), None if exclude_self else w
        if self.kept:
            sums = product(self._kernel, summed.scaled)
            out = _finish(self._points, summed, slice(0, self.n), self._top, sums, own, exact_tails)
        else:
            out = np.empty(w.shape)
            for rows in self._points.blocks(self._budget):
                top, kernel = _scaled_kernel(self._points, rows)
                sums = product(kernel, summed.scaled)
                own_rows = None if own is None else own[rows]
                out[rows] = _finish(self._points, summed, rows, top, sums, own_rows, exact_tails)
        return np.asarray(out + self._points.log_normalizer)


class _Summands:
    """Weights (n, C), divided by each column's largest and rid of what no sum would show."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self.largest = weights.max(axis=0, initial=0.0)
        scaled = weights / np.where(self.largest > 0, self.largest, 1.0)
        scaled[scaled < NO_WEIGHT] = 0.0
        self.scaled = scaled


def _scaled_kernel(points: Points, rows: slice, out: Floats | None = None) -> tuple[Floats, Floats]:
    """Largest exponent of every row in `rows`, and the kernels relative to it; an own kernel left out is exactly 0."""
    exponents = points.exponents(np.arange(points.q)[rows], out=out)
    top = exponents.max(axis=1)
    top[np.isneginf(top)] = 0.0  # nothing but the own kernel, or all at infinite distance
    exponents -= top[:, None]
    np.maximum(exponents, _CUT, out=exponents)
    np.exp(exponents, out=exponents)
    points.set_own(exponents, np.arange(points.q)[rows], 0.0)
    return top, exponents


def _finish(
    points: Points, summed: _Summands, rows: slice, top: Floats, sums: Floats, own: Floats | None, exact_tails: bool
) -> Floats:
    """Logs (b, C) of the sums of scaled kernels; `own` are the weights of the rows' own kernels, if they count.

    Doubtful sums, those that what was cut could have made, are done again unless the own kernel or, without
    `exact_tails`, another column drowns them.
    """
    with np.errstate(divide="ignore"):
        scale = top[:, None] + np.log(summed.largest)
        out = np.log(sums) + scale
        own_log = None if own is None else np.log(own)
    doubtful = (sums < _DOUBTFUL) & (summed.largest > 0)
    if doubtful.any():
        if own_log is not None:  # exp(-40) is under the last digit
            doubtful &= own_log < scale + (np.log(_DOUBTFUL) + 40)
        if not exact_tails:
            best = (sums * summed.largest).max(axis=1)
            best = best if own is None else np.maximum(best, own.max(axis=1))
            doubtful &= (best < _SURE * summed.largest.max())[:, None]
        _redo(points, summed.weights, rows, doubtful, out)
    return out if own_log is None else np.logaddexp(out, own_log)


def _redo(points: Points, weights: Floats, rows: slice, doubtful: NDArray[np.bool_], out: Floats) -> None:
    """Replace doubtful entries of `out` by sums over the centres of positive weight, shifted by their largest term."""
    index = np.arange(points.q)[rows]
    size = max(1, BLOCK // (8 * points.n))
    for c in np.flatnonzero(doubtful.any(axis=0)):
        use = np.flatnonzero(weights[:, c] > 0)
        log_weights = np.log(weights[use, c])
        todo = np.flatnonzero(doubtful[:, c])
        for start in range(0, len(todo), size):
            part = todo[start : start + size]
            terms = points.exponents(index[part])[:, use]
            terms += log_weights
            top = terms.max(axis=1, initial=-np.inf)
            finite = np.isfinite(top)
            terms -= np.where(finite, top, 0.0)[:, None]
            np.maximum(terms, -700.0, out=terms)  # off the subnormal numbers
            out[part, c] = np.where(finite, top + np.log(np.exp(terms).sum(axis=1)), -np.inf)
