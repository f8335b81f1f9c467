"""Rows, scaled and centred, that give exponents of Gaussian kernels for any tile of queries and centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Tile = NDArray[Any]  # float64 or float32

DEFAULT_BUDGET = 2**30  # bytes
BLOCK = 2**20  # bytes of exponents of single sums worked on at a time
GRID_PAIRS = 2**29  # one dimension: above so many pairs sums come from a grid
GRID_STEPS = 64  # grid steps per bandwidth
GRID_REACH = 30  # bandwidths after which a kernel ends, and the nearest centres alone give the sum
GRID_LIMIT = 2**21  # grid points

_PIECE = 2**18  # multiplications up to which BLAS does not wake its threads, which cost milliseconds on busy cores
_PIECE_ROWS = 64
_SMALL_D = 256  # dimensions up to which the product goes in such pieces; beyond, few large ones are worth the threads


@dataclass(frozen=True)
class Precision:
    """Where a floating-point type ends, for kernels relative to (nearly) the largest of their row.

    Attributes
    ----------
    dtype : numpy.dtype
        Of the kernels.
    max_norm : float
        Squared norm of scaled rows up to which the exponents come from a product of this type: float64 gives them to
        about 1e-9, float32 to about 1e-4.
    cut : float
        Exponents under the row's largest that are told apart. ``exp`` of it is a normal number.
    no_weight : float
        Weights under this share of the column's largest are left to the sums that are done again.
    doubtful : float
        A sum under this could be made of what was cut: n exp(cut) and n no_weight are under its last digit.
    sure : float
        A sum over this makes doubtful ones not matter for the shares of the columns.
    drowned : float
        exp(-drowned) is under the last digit.
    """

    dtype: np.dtype[Any]
    max_norm: float
    cut: float
    no_weight: float
    doubtful: float
    sure: float
    drowned: float


PRECISIONS = {
    "float64": Precision(np.dtype(np.float64), 1e7, -300.0, 1e-150, 1e-105, 1e-80, 40.0),
    "float32": Precision(np.dtype(np.float32), 1024.0, -80.0, 1e-30, 1e-15, 1e-8, 20.0),
}


class Points:
    """Query rows and centres, scaled by the bandwidth and centred, that give exponents of any tile."""

    def __init__(
        self, X: ArrayLike, centers: ArrayLike, bandwidth: ArrayLike, exclude_self: bool, dtype: str = "float64"
    ) -> None:
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
        if dtype not in PRECISIONS:
            raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
        self.precision, self.exclude_self = PRECISIONS[dtype], exclude_self
        h = np.broadcast_to(h, (self.d,))
        self.log_normalizer = float(-np.log(h).sum() - 0.5 * self.d * np.log(2 * np.pi))
        with np.errstate(over="ignore"):
            y_norm = self._scale(X, centers, centers.mean(axis=0), h)
            if y_norm.max() > PRECISIONS["float64"].max_norm:
                # a middle that far rows have moved would cost the near ones their digits
                y_norm = self._scale(X, centers, np.zeros(self.d), h)
        self.y_reach = float(np.sqrt(y_norm.max()))
        self._y_norm_max = float(y_norm.max())
        self._right: dict[str, Tile] = {}
        right = np.concatenate([self.y, -0.5 * y_norm[:, None], np.ones((self.n, 1))], axis=1).T
        narrow = dtype == "float32" and self._y_norm_max <= self.precision.max_norm
        if self._y_norm_max <= PRECISIONS["float64"].max_norm:
            self._right["float64"] = right
        if narrow:
            self._right["float32"] = right.astype(np.float32)

    def _scale(self, X: Floats, centers: Floats, middle: Floats, h: Floats) -> Floats:
        """Set `x` and `y`, in bandwidths from the middle (beyond 1e150 all is equally far); norms of `y`."""
        self.y = np.clip((centers - middle) / h, -1e150, 1e150)
        self.x = self.y if X is centers else np.clip((X - middle) / h, -1e150, 1e150)
        y_norm = np.einsum("id,id->i", self.y, self.y)
        self.x_norm = y_norm if X is centers else np.einsum("id,id->i", self.x, self.x)
        return np.asarray(y_norm)

    @property
    def use_grid(self) -> bool:
        """Whether there are too many pairs to visit and one dimension, whose range a grid can cover."""
        if self.d != 1 or self.q * self.n <= GRID_PAIRS:
            return False
        return bool((self.y.max() - self.y.min() + 2 * GRID_REACH) * GRID_STEPS < GRID_LIMIT)

    def product_type(self, norm: Floats) -> str | None:
        """Type in which a matrix product gives the exponents of queries of these norms; None: take differences."""
        largest = max(self._y_norm_max, norm.max(initial=0.0))
        if self.precision.dtype == np.float32 and largest <= self.precision.max_norm:
            return "float32"
        return "float64" if largest <= PRECISIONS["float64"].max_norm else None

    def may_underflow(self, norm: Floats) -> bool:
        """Whether ``exp`` can leave the normal numbers at queries of these norms: the triangle inequality tells."""
        smallest = np.log(np.finfo(self.precision.dtype).tiny) + 1
        return bool(-0.5 * (np.sqrt(norm.max(initial=0.0)) + self.y_reach) ** 2 < smallest)

    def left(self, rows: slice | NDArray[np.intp], shift: Floats | float = 0.0) -> Floats:
        """The queries' factor (b, d + 2) of the exponents, less a shift (b,)."""
        x = self.x[rows]
        return np.concatenate([x, np.ones((len(x), 1)), (-0.5 * self.x_norm[rows] - shift)[:, None]], axis=1)

    def right(self, dtype: str) -> Tile:
        """The centres' factor (d + 2, n), where `product_type` says that there is one."""
        return self._right[dtype]

    def exponents(
        self,
        rows: slice | NDArray[np.intp],
        columns: slice = slice(None),
        *,
        shift: Floats | float = 0.0,
        left: Tile | None = None,
        out: Tile | None = None,
    ) -> Tile:
        """Exponents (b, t) of the kernels of `columns` at `rows`, less a shift (b,); the own one is -inf if left out.

        They are of the type of `out`, float64 without it; float32 only where `product_type` says so. `left` is the
        queries' factor of that type, for many tiles of the same rows and shifts.
        """
        norm = self.x_norm[rows]
        first, last, _ = columns.indices(self.n)
        out = np.empty((len(norm), last - first)) if out is None else out
        if self.product_type(norm) is None:
            cdist(self.x[rows], self.y[columns], "sqeuclidean", out=out)
            out *= -0.5
            out -= np.reshape(shift, (-1, 1))
        else:
            left = self.left(rows, shift).astype(out.dtype, copy=False) if left is None else left
            self._product(left, self._right[out.dtype.name][:, first:last], out)
        self.set_own(out, rows, columns, -np.inf)
        return out

    def _product(self, left: Tile, right: Tile, out: Tile) -> None:
        if self.d > _SMALL_D:
            np.matmul(left, right, out=out)
            return
        width = _PIECE // (_PIECE_ROWS * (self.d + 2))
        for start in range(0, right.shape[1], width):
            piece = right[:, start : start + width]
            for top in range(0, len(left), _PIECE_ROWS):
                rows = slice(top, top + _PIECE_ROWS)
                np.matmul(left[rows], piece, out=out[rows, start : start + width])

    def set_own(self, tile: Tile, rows: slice | NDArray[np.intp], columns: slice, value: float) -> None:
        """Put a value at the rows' own centres, where the own kernels are left out."""
        if not self.exclude_self:
            return
        first, last, _ = columns.indices(self.n)
        if isinstance(rows, slice):
            low, _, _ = rows.indices(self.q)
            own = np.arange(max(low, first), min(low + len(tile), last))
            tile[own - low, own - first] = value
        else:
            here = np.flatnonzero((rows >= first) & (rows < last))
            tile[here, rows[here] - first] = value


def product(kernel: Tile, weights: Tile) -> Tile:
    """Kernel (b, n) times weights (n, C), a few rows at a time where threads would cost more than they give."""
    n, c = weights.shape
    step = _PIECE // max(1, n * c)
    if step < 8:
        return np.asarray(kernel @ weights)
    out = np.empty((len(kernel), c), kernel.dtype)
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


def check_budget(memory_budget: float) -> int:
    number = isinstance(memory_budget, (int, float, np.number)) and not isinstance(memory_budget, bool)
    if not number or not memory_budget >= 1:
        raise ValueError(f"memory_budget must be a positive number of bytes, got {memory_budget!r}")
    return int(min(memory_budget, 2**62))
