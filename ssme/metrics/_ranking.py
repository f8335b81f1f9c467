"""Metrics of the order of the scores: sorted once, ties exact, soft labels and weights by cumulative sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._draws import FloatArray, LabelDraws, divide

TINY = float(np.finfo(np.float64).tiny)


def roc_auc(scores: FloatArray) -> Callable:
    """Area under the ROC curve: the chance that a row of the class scores above a row without it.

    ``sum_ij w_i y_i w_j (1 - y_j) ([s_i > s_j] + [s_i = s_j] / 2) / (sum_i w_i y_i sum_j w_j (1 - y_j))``, ties counted
    one half: the trapezoid area under the ROC curve of the soft counts, where a row of soft label y is y rows with the
    class and 1 - y rows without, tied with each other. Two classes: the score is P(class 1). More: the mean of the
    one-versus-rest areas of the classes that are present. Bounds [0, 1], higher is better; NaN for one-class labels.
    Reference: Hanley and McNeil (1982), The meaning and use of the area under a ROC curve;
    ``sklearn.metrics.roc_auc_score``.
    """

    def areas(y: FloatArray, draws: LabelDraws, tables: list[_RankTable], sums: _Sums) -> FloatArray:
        if draws.weights is None:
            # the ranks are the same in all draws: their sum over the class, less the pairs of the class with itself
            n1 = y.sum(axis=0)
            return divide(np.stack([t.mid_ranks() for t in tables]) @ y - 0.5 * n1**2, n1 * (len(y) - n1))
        positive = y * draws.weights
        negative = draws.weights - positive
        won = np.stack([_pairs_won(positive, negative, t, sums) for t in tables])
        return divide(won, positive.sum(axis=0) * negative.sum(axis=0))

    return _one_versus_rest(scores, areas)


def average_precision(scores: FloatArray) -> Callable:
    """Area under the precision-recall curve by steps: the mean precision at the rows of the class.

    ``sum_t (R_t - R_(t-1)) P_t`` over the distinct scores t in falling order; P_t and R_t are precision and recall of
    the rows that score t or more (tied rows enter together), of weighted soft counts. Two classes: the score is P(class
    1). More: the mean of the one-versus-rest values of the classes that are present. Bounds [0, 1], higher is better;
    NaN for one-class labels.
    Reference: Zhu (2004), Recall, precision and average precision; ``sklearn.metrics.average_precision_score``.
    """

    def areas(y: FloatArray, draws: LabelDraws, tables: list[_RankTable], sums: _Sums) -> FloatArray:
        positive = draws.weighted(y)
        gained = np.stack([_precision_gained(positive, draws.weights, t, sums) for t in tables])
        return divide(gained, positive.sum(axis=0))

    # negated, so that the cumulative sums start at the highest score
    return _one_versus_rest(-scores, areas)


class _RankTable:
    """Rising order of the values (n,) and, for each row, how many values are below it, and how many up to its ties."""

    def __init__(self, values: FloatArray) -> None:
        order = np.argsort(values)
        in_order = values[order]
        first = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]])
        last = np.r_[first[1:], len(values)]
        self.order = order.astype(np.int32)  # 32 bits: there are K x M of these tables
        self.below = np.empty(len(values), dtype=np.int32)
        self.upto = np.empty(len(values), dtype=np.int32)
        self.below[order] = np.repeat(first, last - first)
        self.upto[order] = np.repeat(last, last - first)

    def mid_ranks(self) -> FloatArray:
        """Number of the values below plus half of the tied ones, the row itself among these."""
        return 0.5 * np.add(self.below, self.upto, dtype=np.float64)


class _Sums:
    """Cumulative sums in the order of a table; fresh arrays for each model would cost more time than the sums."""

    def __init__(self, n_rows: int, n_draws: int) -> None:
        self._cumulative = np.zeros((n_rows + 1, n_draws))
        self._at = (np.empty((n_rows, n_draws)), np.empty((n_rows, n_draws)))

    def of(self, mass: FloatArray, order: NDArray) -> None:
        """Sum the mass (n, D) in the order; entry j is then that of the j lowest rows."""
        rows = self._cumulative[1:]
        np.take(mass, order, axis=0, out=rows, mode="clip")
        # a cumulative sum waits for each addition: two draws read as one complex number cost the time of one
        pairs = rows.view(np.complex128) if rows.shape[1] % 2 == 0 else rows
        np.cumsum(pairs, axis=0, out=pairs)

    def at(self, counts: NDArray, which: int) -> FloatArray:
        """The sums (n, D) over as many of the lowest rows as counted for each row, in work array 0 or 1."""
        return np.take(self._cumulative, counts, axis=0, out=self._at[which], mode="clip")


def _pairs_won(positive: FloatArray, negative: FloatArray, table: _RankTable, sums: _Sums) -> FloatArray:
    """Sum over the rows of their positive mass times the negative mass below, that of their own score by half: (D,)."""
    sums.of(negative, table.order)
    below, upto = sums.at(table.below, 0), sums.at(table.upto, 1)
    below += upto
    return 0.5 * np.einsum("nd,nd->d", positive, below)


def _precision_gained(positive: FloatArray, weights: FloatArray | None, table: _RankTable, sums: _Sums) -> FloatArray:
    """Sum over the rows of their positive mass times the precision at their score (table of negated scores): (D,)."""
    sums.of(positive, table.order)
    precision = sums.at(table.upto, 0)
    if weights is None:
        return np.einsum("nd,nd,n->d", positive, precision, 1.0 / table.upto)
    sums.of(weights, table.order)
    everything = sums.at(table.upto, 1)
    np.maximum(everything, TINY, out=everything)  # where no row has weight yet both masses are 0
    precision /= everything
    return np.einsum("nd,nd->d", positive, precision)


def _one_versus_rest(values: FloatArray, areas: Callable) -> Callable:
    """Mean over the classes (class 1 alone for K = 2) of ``areas(y (n, D), draws, tables, sums)`` (M, D).

    Classes that no row or every row has are left out.
    """
    n_models, n_classes = values.shape[1:]
    classes = [1] if n_classes == 2 else range(n_classes)
    tables = {k: [_RankTable(np.ascontiguousarray(values[:, m, k])) for m in range(n_models)] for k in classes}

    def evaluate(draws: LabelDraws) -> FloatArray:
        defined = draws.present()[2]
        sums = _Sums(draws.n_rows, draws.n_draws)
        total = np.zeros((n_models, draws.n_draws))
        for k in classes:
            if defined[k].any():
                total += np.where(defined[k], areas(draws.column(k), draws, tables[k], sums), 0.0)
        return divide(total, defined[list(classes)].sum(axis=0)).T

    return evaluate
