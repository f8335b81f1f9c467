"""Sums of scaled kernels with NumPy: tiles that fit the cache, or a matrix that is kept.

A pass over the tiles of a block of rows goes with one shift for every row, folded into the matrix product that gives
the exponents. The shift only has to be within `SLACK` under the row's largest exponent: it is set by the first tile,
and raised, with what has been summed scaled down, by a tile that goes further. Later passes over the same rows know
their shifts and need not look for the largest exponents any more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ssme.kernel_sums._points import Points, Tile, product

Floats = NDArray[np.float64]

SLACK = 30.0  # exponents that a row may rise above its shift: exp(SLACK) times n is far from the largest float32
_TILE = 2**17  # kernels worked on at a time: about what a second-level cache holds
_TILE_ROWS = 256


class NumpySums:
    """Kernel sums of `points`, relative to a shift for every row.

    Parameters
    ----------
    points : Points
    memory_budget : int
        Bytes for a kept matrix and for temporaries.
    keep : bool
        Hold the kernel matrix where it fits.
    """

    def __init__(self, points: Points, memory_budget: int, keep: bool) -> None:
        self._points, self._precision = points, points.precision
        # four arrays of a tile's size may be alive: exponents, a wider copy, what a comparison makes of them
        self._tile = max(1, min(_TILE, memory_budget // (4 * 8)))
        self._shift, self._passed = np.full(points.q, -np.inf), False
        self._kernel: Tile | None = None
        needed = points.q * points.n * self._precision.dtype.itemsize
        if keep and needed <= memory_budget:
            self._kernel = np.empty((points.q, points.n), self._precision.dtype)
            size = max(1, self._tile // points.n)
            for start in range(0, points.q, size):
                rows = slice(start, min(start + size, points.q))
                self._shift[rows] = self._fill(rows, self._kernel[rows])

    @property
    def kept(self) -> bool:
        return self._kernel is not None

    def sums(self, weights: Floats) -> tuple[Floats, Floats]:
        """Shifts (q,), and sums (q, C) of exp(exponent - shift) times weights (n, C)."""
        w = weights.astype(self._precision.dtype, copy=False)
        if self._kernel is not None:
            return self._shift, product(self._kernel, w).astype(np.float64, copy=False)
        out = np.empty((self._points.q, w.shape[1]))
        height = min(_TILE_ROWS, max(1, self._tile // min(self._points.n, _TILE_ROWS)))
        for start in range(0, self._points.q, height):
            rows = slice(start, min(start + height, self._points.q))
            out[rows] = self._pass(rows, w, max(1, self._tile // height))
        self._passed = True
        return np.where(np.isneginf(self._shift), 0.0, self._shift), out

    def _fill(self, rows: slice, out: Tile) -> Floats:
        """Put the kernels of `rows` relative to their largest into `out`; the largest exponents."""
        exponents = self._points.exponents(rows, out=self._buffer(rows, out.size).reshape(out.shape))
        top = exponents.max(axis=1)
        top[np.isneginf(top)] = 0.0  # nothing but the own kernel, or all at infinite distance
        exponents -= top[:, None]
        # twice as fast as the maximum of an array and a number
        np.clip(exponents, self._precision.cut, np.inf, out=out, casting="same_kind")
        np.exp(out, out=out)
        self._points.set_own(out, rows, slice(None), 0.0)
        return top.astype(np.float64)

    def _pass(self, rows: slice, weights: Tile, width: int) -> Floats:
        """Sums (b, C) of `rows`, tile by tile; moves their shifts."""
        points, shift = self._points, self._shift[rows]  # a view
        sums = np.zeros((len(shift), weights.shape[1]))
        clip = points.may_underflow(points.x_norm[rows])
        wide = self._buffer(rows, len(shift) * min(width, points.n))
        narrow = wide if wide.dtype == self._precision.dtype else wide.astype(self._precision.dtype)
        known, left = np.where(np.isneginf(shift), 0.0, shift), None
        for start in range(0, points.n, width):
            columns = slice(start, min(start + width, points.n))
            shape = len(shift), columns.stop - start
            size = shape[0] * shape[1]
            exponents, tile = wide[:size].reshape(shape), narrow[:size].reshape(shape)
            left = points.left(rows, known).astype(wide.dtype, copy=False) if left is None else left
            points.exponents(rows, columns, shift=known, left=left, out=exponents)
            if not self._passed and _raise_shift(shift, sums, exponents):
                known, left = np.where(np.isneginf(shift), 0.0, shift), None
            if clip or wide is not narrow:  # keeps exp and the product off the slow subnormal numbers
                np.clip(exponents, self._precision.cut, np.inf, out=tile, casting="same_kind")
            np.exp(tile, out=tile)
            points.set_own(tile, rows, columns, 0.0)
            sums += product(tile, weights[columns])
        return sums

    def _buffer(self, rows: slice, size: int) -> Tile:
        """Room for exponents: float64 where a far row would lose digits in float32, even for a moment."""
        kind = self._points.product_type(self._points.x_norm[rows])
        return np.zeros(size, self._precision.dtype if kind == "float32" else np.float64)


def _raise_shift(shift: Floats, sums: Floats, exponents: Tile) -> bool:
    """Raise the shifts of rows that a tile takes out of their slack, in `shift`, `sums` and `exponents` alike."""
    top = exponents.max(axis=1).astype(np.float64)
    unset = np.isneginf(shift)
    higher = np.flatnonzero((unset & np.isfinite(top)) | (top > SLACK))
    if not len(higher):
        return False
    rise = top[higher]
    exponents[higher] -= rise[:, None].astype(exponents.dtype)
    sums[higher] *= np.exp(np.where(unset[higher], 0.0, -rise))[:, None]
    shift[higher] = np.where(unset[higher], rise, shift[higher] + rise)
    return True
