"""Kernel sums from exponents, tile by tile, and the kernel matrix that is kept."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssme.kernel_sums._grid import grid_log_sums
from ssme.kernel_sums._points import BLOCK, DEFAULT_BUDGET, Points, check_budget, check_weights
from ssme.kernel_sums._tiles import NumpySums

Floats = NDArray[np.float64]


class ScaledSums(Protocol):
    """What a backend does: kernel sums relative to a shift for every row."""

    @property
    def kept(self) -> bool:
        """Whether the kernel matrix is held in memory."""

    def sums(self, weights: Floats) -> tuple[Floats, Floats]:
        """Shifts (q,), and sums (q, C) of exp(exponent - shift) times weights (n, C)."""


def log_kernel_sums(
    X: ArrayLike,
    centers: ArrayLike,
    weights: ArrayLike,
    bandwidth: ArrayLike,
    *,
    exclude_self: bool = False,
    exact_tails: bool = True,
    memory_budget: int = DEFAULT_BUDGET,
    dtype: str = "float64",
    backend: str = "numpy",
    device: str | None = None,
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
    exclude_self : bool, default=False
        `X` is `centers`, and each row's own kernel is left out.
    exact_tails : bool, default=True
        False: sums under 1e-105 (float32: 1e-15) of the row's nearest kernel may come out as any number under that
        while another column is above 1e-80 (float32: 1e-8). The columns' shares of the row are not affected beyond
        their last digits, and many columns cost one matrix product.
    memory_budget : int, default=2**30
        Bytes that the temporaries may take. Scaled copies of the rows, O((q + n) d), and the sums, O((q + n) C), come
        on top; nothing grows with q n.
    dtype : {"float64", "float32"}, default="float64"
        Of the kernels. float32 gives the logs to about 1e-4, sums that it cannot hold are done in float64.
    backend : {"numpy", "torch"}, default="numpy"
        What computes. "torch" needs PyTorch.
    device : str, optional
        Of PyTorch ("cuda", "cuda:1", "mps", "cpu"). Default: CUDA where there is one; else, with float32, Apple's MPS
        (which has no float64); else the CPU.

    Returns
    -------
    array (q, C)
        ``-inf`` where all weights are 0; never NaN. With d = 1 and more than 2**29 pairs of rows the sums are read
        from a grid of 64 steps per bandwidth: a kernel t bandwidths away is then off by at most about
        ``(t^2 + 1) / 32768``, relative.

    Raises
    ------
    ValueError
        Where shapes do not agree, or a number or a name cannot be used.
    ImportError
        Where PyTorch is asked for and not installed.

    Examples
    --------
    >>> log_kernel_sums([[0.0]], [[0.0], [1.0]], [[0.5], [0.5]], [1.0]).round(4).tolist()
    [[-1.138]]
    """
    budget = check_budget(memory_budget)
    points = Points(X, centers, bandwidth, exclude_self, dtype)
    w = check_weights(weights, points.n)
    kernels = _backend(points, budget, False, backend, device)
    if points.use_grid and not exclude_self:
        return grid_log_sums(points, w)
    summed = _Summands(w, points)
    shift, sums = kernels.sums(summed.scaled)
    return _finish(points, summed, shift, sums, None, exact_tails)


class KernelMatrix:
    """Kernels between all pairs of rows, computed once and kept while they fit the budget.

    Parameters
    ----------
    X : array-like (n, d)
        Rows; each is a query and a centre.
    bandwidth : array-like (d,) or float
        Standard deviation of the kernel in every dimension.
    memory_budget : int, default=2**30
        Bytes. The matrix takes ``8 n^2`` (float32: ``4 n^2``); where that is too much it is recomputed in tiles for
        every product.
    dtype, backend, device
        As for `log_kernel_sums`.

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

    def __init__(
        self,
        X: ArrayLike,
        bandwidth: ArrayLike,
        *,
        memory_budget: int = DEFAULT_BUDGET,
        dtype: str = "float64",
        backend: str = "numpy",
        device: str | None = None,
    ) -> None:
        budget = check_budget(memory_budget)
        self._points = Points(X, X, bandwidth, True, dtype)
        self.n = self._points.n
        self._kernels = _backend(self._points, budget, not self._points.use_grid, backend, device)
        self.kept = self._kernels.kept

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
        summed = _Summands(w, self._points)
        shift, sums = self._kernels.sums(summed.scaled)
        return _finish(self._points, summed, shift, sums, None if exclude_self else w, exact_tails)


def _backend(points: Points, memory_budget: int, keep: bool, backend: str, device: str | None) -> ScaledSums:
    if backend == "numpy":
        if device is not None:
            raise ValueError(f"device={device!r} needs backend='torch'; NumPy computes on the CPU")
        return NumpySums(points, memory_budget, keep)
    if backend == "torch":
        from ssme.kernel_sums._torch import TorchSums

        return TorchSums(points, memory_budget, keep, device)
    raise ValueError(f"backend must be 'numpy' or 'torch', got {backend!r}")


class _Summands:
    """Weights (n, C), divided by each column's largest and rid of what no sum would show."""

    def __init__(self, weights: Floats, points: Points) -> None:
        self.weights = weights
        self.largest = weights.max(axis=0, initial=0.0)
        scaled = weights / np.where(self.largest > 0, self.largest, 1.0)
        scaled[scaled < points.precision.no_weight] = 0.0
        self.scaled = scaled


def _finish(
    points: Points, summed: _Summands, shift: Floats, sums: Floats, own: Floats | None, exact_tails: bool
) -> Floats:
    """Log sums (q, C) from sums of scaled kernels; `own` are the weights of the rows' own kernels, if they count.

    Doubtful sums, those that what was cut could have made, are done again unless the own kernel or, without
    `exact_tails`, another column drowns them.
    """
    limits = points.precision
    with np.errstate(divide="ignore"):
        scale = shift[:, None] + np.log(summed.largest)
        out = np.log(sums) + scale
        own_log = None if own is None else np.log(own)
    doubtful = (sums < limits.doubtful) & (summed.largest > 0)
    if doubtful.any():
        if own_log is not None:
            doubtful &= own_log < scale + (np.log(limits.doubtful) + limits.drowned)
        if not exact_tails:
            best = (sums * summed.largest).max(axis=1)
            best = best if own is None else np.maximum(best, own.max(axis=1))
            doubtful &= (best < limits.sure * summed.largest.max())[:, None]
        _redo(points, summed.weights, doubtful, out)
    out = out if own_log is None else np.logaddexp(out, own_log)
    return np.asarray(out + points.log_normalizer)


def _redo(points: Points, weights: Floats, doubtful: NDArray[np.bool_], out: Floats) -> None:
    """Replace doubtful entries of `out` by sums over the centres of positive weight, shifted by their largest term."""
    size = max(1, BLOCK // (8 * points.n))
    for c in np.flatnonzero(doubtful.any(axis=0)):
        use = np.flatnonzero(weights[:, c] > 0)
        log_weights = np.log(weights[use, c])
        todo = np.flatnonzero(doubtful[:, c])
        for start in range(0, len(todo), size):
            part = todo[start : start + size]
            terms = points.exponents(part)[:, use]
            terms += log_weights
            top = terms.max(axis=1, initial=-np.inf)
            finite = np.isfinite(top)
            terms -= np.where(finite, top, 0.0)[:, None]
            np.maximum(terms, -700.0, out=terms)  # off the subnormal numbers
            out[part, c] = np.where(finite, top + np.log(np.exp(terms).sum(axis=1)), -np.inf)
