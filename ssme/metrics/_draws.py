"""Draws of soft labels, and the few sums over them that the metrics share.

Inside the package arrays over rows and draws are (n, D), rows first: a row is then one piece of memory, so that sorting
the rows by a score copies pieces, and sums over rows run over all draws at once.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

FloatArray = NDArray[np.float64]


class LabelDraws:
    """Label draws (D, n, K) with row weights (D, n) or None, as the metrics read them; neither is written to.

    Set `exists` (K,) where it is known that some classes do not occur, whatever mass the draws give to them. What
    several metrics ask for is computed once: draws do not change, :meth:`reweighted` gives others.
    """

    exists: NDArray[np.bool_] | None = None

    def __init__(self, labels: NDArray, weights: FloatArray | None) -> None:
        self.labels = labels
        n_draws, n_rows, n_classes = labels.shape
        self._set(n_draws, n_rows, n_classes, None if weights is None else np.ascontiguousarray(weights.T))

    def _set(self, n_draws: int, n_rows: int, n_classes: int, weights: FloatArray | None) -> None:
        self.n_draws, self.n_rows, self.n_classes, self.weights = n_draws, n_rows, n_classes, weights
        self._masses: dict[int, FloatArray] = {}
        self._present: tuple[FloatArray, NDArray, NDArray] | None = None

    @classmethod
    def of_weights(cls, labels: NDArray, weights: FloatArray | None) -> LabelDraws:
        """Labels (D, n, K) with row weights that are (n, D) already."""
        return cls(labels, None).reweighted(weights)

    def reweighted(self, weights: FloatArray | None) -> LabelDraws:
        """The same draws with other row weights (n, D)."""
        other = copy(self)
        other._set(self.n_draws, self.n_rows, self.n_classes, weights)
        return other

    def column(self, k: int) -> FloatArray:
        """Label mass of class k, (n, D), a fresh array."""
        if self.n_classes == 2 and k == 0:
            return 1.0 - self.column(1)
        return np.array(self.labels[:, :, k].T, dtype=np.float64, order="C")

    def hits(self, predicted: NDArray) -> FloatArray:
        """Label mass of the predicted class (n,) of each row, (n, D), a fresh array; K > 2."""
        mass = self.labels[:, np.arange(self.n_rows), predicted]
        return np.ascontiguousarray(mass.T, dtype=np.float64)

    def mass(self, k: int) -> FloatArray:
        """Label mass of class k times the row weights, (n, D); the same array each time, to be read only."""
        if k not in self._masses:
            self._masses[k] = self.weighted(self.column(k))
        return self._masses[k]

    def weighted(self, values: FloatArray) -> FloatArray:
        """Values (n, D) times the row weights."""
        return values if self.weights is None else values * self.weights

    def total(self) -> FloatArray:
        """Sum of the row weights, (D, 1)."""
        if self.weights is None:
            return np.full((self.n_draws, 1), float(self.n_rows))
        return self.weights.sum(axis=0)[:, None]

    def present(self) -> tuple[FloatArray, NDArray, NDArray]:
        """Weighted class counts (K, D), which classes are present, and which of these have other rows beside them.

        Present means a soft count of one half or more, where a row counts by the ceiling of its weight: whole weights
        equal repeated rows, and the class of a single row does not come and go with a fractional bootstrap weight.
        """
        if self._present is None:
            counts = self._count(self.weights)
            support = counts if self.weights is None else self._count(np.ceil(self.weights))
            present = support >= 0.5
            if self.exists is not None:
                present &= self.exists[:, None]
            self._present = counts, present, present & (support.sum(axis=0) - support >= 0.5)
        return self._present

    def _count(self, weights: FloatArray | None) -> FloatArray:
        classes = range(self.n_classes)
        if weights is None or weights is self.weights:
            return np.stack([self.mass(k).sum(axis=0) for k in classes])
        if self.n_classes == 2:
            second = np.einsum("nd,nd->d", self.column(1), weights)
            return np.stack([weights.sum(axis=0) - second, second])
        return np.stack([np.einsum("nd,nd->d", self.column(k), weights) for k in classes])


def divide(numerator: NDArray, denominator: NDArray) -> FloatArray:
    """The ratio, NaN where the denominator is not positive; never warns."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def mean_where(values: FloatArray, use: NDArray, axis: int) -> FloatArray:
    """Mean over the axis of the values that are used, NaN where none is."""
    use = np.broadcast_to(use, values.shape)
    return divide(np.where(use, values, 0.0).sum(axis=axis), use.sum(axis=axis))


def bin_matrix(bins: NDArray, n_bins: int, values: FloatArray | None = None) -> csc_array:
    """Sparse (M * n_bins, n): times an array (n, D) it sums the rows of each bin of each model.

    bins (n, M) holds integers below n_bins; values (n, M) multiply the rows, 1 by default. By columns, so that the
    product reads each row once.
    """
    n_rows, n_models = bins.shape
    data = np.ones(bins.size) if values is None else values.ravel()
    indices = (bins + np.arange(n_models) * n_bins).ravel()
    return csc_array((data, indices, np.arange(n_rows + 1) * n_models), shape=(n_models * n_bins, n_rows))


def bin_totals(matrix: csc_array, weights: FloatArray | None) -> FloatArray:
    """The matrix times the row weights: (bins, D), or (bins, 1) where there are none."""
    return (matrix @ np.ones(matrix.shape[1]))[:, None] if weights is None else matrix @ weights
