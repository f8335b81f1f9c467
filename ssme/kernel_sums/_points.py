"""Rows, scaled and centred, that give exponents of Gaussian kernels for any block of queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]

DEFAULT_BUDGET = 2**28  # bytes
NO_WEIGHT = 1e-150  # weights under this share of the column's largest are left to the sums that are done again

_MAX_NORM = 1e7  # squared norm of scaled rows up to which the product is good: exponents to about 1e-9
BLOCK = 2**20  # bytes of exponents worked on at a time; fits the second-level cache
_PIECE = 2**18  # multiplications up to which BLAS does not wake its threads, which cost milliseconds on busy cores
_SMALL_D = 64  # dimensions up to which the product goes in such pieces; beyond, few large ones are worth the threads
GRID_PAIRS = 2**29  # one dimension: above so many pairs sums come from a grid
GRID_STEPS = 64  # grid steps per bandwidth
GRID_REACH = 30  # bandwidths after which a kernel ends, and the nearest centres alone give the sum
GRID_LIMIT = 2**21  # grid points


class Points:
    """Query rows and centres, scaled by the bandwidth and centred, that give exponents of any block of rows."""

    def __init__(self, X: ArrayLike, centers: ArrayLike, bandwidth: ArrayLike, exclude_self: bool) -> None:
        same = X is centers
        X = check_rows(X, "X")
        centers = X if same else check_rows(centers, "centers")
        self.q, self.n, self.d = len(X), len(centers), X.shape[1]
        h = np.asarray(bandwidth, dtype=np.float64)
        if centers.shape[1] != self.d:
            raise ValueError(f"X has {self.d} columns and centers have {centers.shape[1]}; they must agree")
        if h.shape not in ((), (self.d,)) or not np.all(np.isfinite(h)) or np.any(h <= 0):
            raise ValueError(f"bandwidth must be one positive finite number or {self.d} of them, one per column")
        if exclude_self and self.q != self.n:
            raise ValueError(f"exclude_self needs X to be the centers, but there are {self.q} and {self.n} rows")
        self.exclude_self = exclude_self
        h = np.broadcast_to(h, (self.d,))
        self.log_normalizer = float(-np.log(h).sum() - 0.5 * self.d * np.log(2 * np.pi))
        with np.errstate(over="ignore"):
            middle = centers.mean(axis=0)
            y_norm = self._scale(X, centers, middle, h)
            self._product_is_good = y_norm.max() <= _MAX_NORM
            if not self._product_is_good:  # a middle that far rows have moved would cost the near ones their digits
                self._scale(X, centers, np.zeros(self.d), h)
        if self._product_is_good:
            self._right = np.concatenate([self.y, -0.5 * y_norm[:, None], np.ones((self.n, 1))], axis=1).T

    def _scale(self, X: Floats, centers: Floats, middle: Floats, h: Floats) -> Floats:
        """Set `x` and `y`, in bandwidths from the middle (beyond 1e150 all is equally far); norms of `y`."""
        self.y = np.clip((centers - middle) / h, -1e150, 1e150)
        self.x = self.y if X is centers else np.clip((X - middle) / h, -1e150, 1e150)
        y_norm = np.einsum("id,id->i", self.y, self.y)
        self._x_norm = y_norm if X is centers else np.einsum("id,id->i", self.x, self.x)
        return np.asarray(y_norm)

    @property
    def use_grid(self) -> bool:
        """Whether there are too many pairs to visit and one dimension, whose range a grid can cover."""
        if self.d != 1 or self.q * self.n <= GRID_PAIRS:
            return False
        return bool((self.y.max() - self.y.min() + 2 * GRID_REACH) * GRID_STEPS < GRID_LIMIT)

    def exponents(self, rows: NDArray[np.intp], *, out: Floats | None = None) -> Floats:
        """Exponents (b, n) of the kernels at `rows` of the queries; -inf for the own one when that is left out."""
        x, norm = self.x[rows], self._x_norm[rows]
        out = np.empty((len(x), self.n)) if out is None else out
        if self._product_is_good and norm.max(initial=0.0) <= _MAX_NORM:
            left = np.concatenate([x, np.ones((len(x), 1)), -0.5 * norm[:, None]], axis=1)
            step = max(1, _PIECE // (len(x) * (self.d + 2))) if len(x) and self.d <= _SMALL_D else self.n
            for start in range(0, self.n, step):
                np.matmul(left, self._right[:, start : start + step], out=out[:, start : start + step])
        else:
            cdist(x, self.y, "sqeuclidean", out=out)
            out *= -0.5
        self.set_own(out, rows, -np.inf)
        return out

    def blocks(self, memory_budget: int) -> Iterator[slice]:
        """Slices of the queries: exponents of a quarter of the budget at most, that fit the cache where d is small."""
        size = memory_budget // (32 * self.n)
        if self.d <= _SMALL_D:
            size = min(size, max(8, BLOCK // (8 * self.n)))
        for start in range(0, self.q, max(1, size)):
            yield slice(start, min(start + max(1, size), self.q))

    def set_own(self, block: Floats, rows: NDArray[np.intp], value: float) -> None:
        """Put a value at the rows' own centres, where the own kernels are left out."""
        if self.exclude_self:
            block[np.arange(len(rows)), rows] = value


def product(kernel: Floats, weights: Floats) -> Floats:
    """Kernel (b, n) times weights (n, C), a few rows at a time where threads would cost more than they give."""
    n, c = weights.shape
    step = _PIECE // max(1, n * c)
    if step < 8:
        return np.asarray(kernel @ weights)
    out = np.empty((len(kernel), c))
    for start in range(0, len(kernel), step):
        np.matmul(kernel[start : start + step], weights, out=out[start : start + step])
    return out


def check_rows(X: ArrayLike, name: str) -> Floats:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] == 0 or (X.shape[0] == 0 and name == "centers"):
        raise ValueError(f"{name} must have the shape (rows, d) with at least one column, got {X.shape}")
    if not np.isfinite(X).all():
        row = int(np.argwhere(~np.isfinite(X))[0, 0])
        raise ValueError(f"{name} has NaN or infinite entries, the first in row {row}; remove those rows first")
    return X


def check_weights(weights: ArrayLike, n: int) -> Floats:
    w = np.asarray(weights, dtype=np.float64)
    w = w[:, None] if w.ndim == 1 else w
    if w.ndim != 2 or len(w) != n:
        raise ValueError(f"weights must have the shape ({n}, C) or ({n},), got {np.shape(weights)}")
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError("weights must be finite numbers >= 0")
    return w
