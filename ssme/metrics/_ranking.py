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

    def areas(positive: FloatArray, draws: LabelDraws, tables: list[_RankTable], sums: _Sums) -> FloatArray:
        if draws.weights is None:
            # the ranks are the same in all draws: their sum over the class, less the pairs of the class with itself
            n1 = positive.sum(axis=0)
            ranked = np.stack([t.mid_ranks() for t in tables]) @ positive
            return divide(ranked - 0.5 * n1**2, n1 * (len(positive) - n1))
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

    def areas(positive: FloatArray, draws: LabelDraws, tables: list[_RankTable], sums: _Sums) -> FloatArray:
        gained = np.stack([_precision_gained(positive, draws.weights, t, sums) for t in tables])
        return divide(gained, positive.sum(axis=0))

    # negated, so that the cumulative sums start at the highest score
    return _one_versus_rest(-scores, areas)


class _RankTable:
    """Rising order of the values (n,); in it, how many are below each value, and how many up to its ties.

    Without ties both counts are the places themselves and not kept.
    """

    def __init__(self, values: FloatArray) -> None:
        order = np.argsort(values)
        in_order = values[order]
        first = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]])
        last = np.r_[first[1:], len(values)]
        self.order = order.astype(np.int32)  # 32 bits: there are K x M of these tables
        self.below: NDArray | None = None
        self.upto: NDArray | None = None
        if len(first) < len(values):
            self.below = np.repeat(first, last - first).astype(np.int32)
            self.upto = np.repeat(last, last - first).astype(np.int32)

    def counts_upto(self) -> NDArray:
        """How many values are up to the ties of each, in the order."""
        return np.arange(1, len(self.order) + 1) if self.upto is None else self.upto

    def mid_ranks(self) -> FloatArray:
        """Number of the values below plus half of the tied ones, the row itself among these; in the order of rows."""
        upto = self.counts_upto()
        below = upto - 1 if self.below is None else self.below
        out = np.empty(len(upto))
        out[self.order] = 0.5 * np.add(below, upto, dtype=np.float64)
        return out


class _Sums:
    """Arrays (n, D) in the order of a table; fresh ones for each model would cost more time than the sums."""

    def __init__(self, n_rows: int, n_draws: int) -> None:
        self._cumulative = np.zeros((n_rows + 1, n_draws))
        self._own, self._at = np.empty((n_rows, n_draws)), np.empty((n_rows, n_draws))

    def own(self, mass: FloatArray, order: NDArray) -> FloatArray:
        """The mass (n, D) itself in the order."""
        return np.take(mass, order, axis=0, out=self._own, mode="clip")

    def of(self, mass: FloatArray, order: NDArray) -> None:
        """Sum the mass (n, D) in the order; entry j is then that of the j lowest rows."""
        rows = self._cumulative[1:]
        np.take(mass, order, axis=0, out=rows, mode="clip")
        # a cumulative sum waits for each addition: two draws read as one complex number cost the time of one
        pairs = rows.view(np.complex128) if rows.shape[1] % 2 == 0 else rows
        np.cumsum(pairs, axis=0, out=pairs)

    def below(self, table: _RankTable) -> FloatArray:
        """The sums (n, D) over the rows below each."""
        return self._cumulative[:-1] if table.below is None else self._taken(table.below)

    def upto(self, table: _RankTable) -> FloatArray:
        """The sums (n, D) over the rows up to the ties of each."""
        return self._cumulative[1:] if table.upto is None else self._taken(table.upto)

    def _taken(self, counts: NDArray) -> FloatArray:
        return np.take(self._cumulative, counts, axis=0, out=self._at, mode="clip")


def _pairs_won(positive: FloatArray, negative: FloatArray, table: _RankTable, sums: _Sums) -> FloatArray:
    """Sum over the rows of their positive mass times the negative mass below, that of their own score by half: (D,)."""
    own = sums.own(positive, table.order)
    sums.of(negative, table.order)
    return 0.5 * (np.einsum("nd,nd->d", own, sums.below(table)) + np.einsum("nd,nd->d", own, sums.upto(table)))


def _precision_gained(positive: FloatArray, weights: FloatArray | None, table: _RankTable, sums: _Sums) -> FloatArray:
    """Sum over the rows of their positive mass times the precision at their score (table of negated scores): (D,)."""
    own = sums.own(positive, table.order)
    sums.of(positive, table.order)
    if weights is None:
        return np.einsum("nd,nd,n->d", own, sums.upto(table), 1.0 / table.counts_upto())
    own *= sums.upto(table)
    sums.of(weights, table.order)
    everything = sums.upto(table)
    np.maximum(everything, TINY, out=everything)  # where no row has weight yet both masses are 0
    own /= everything
    return own.sum(axis=0)


def _one_versus_rest(values: FloatArray, areas: Callable) -> Callable:
    """Mean over the classes (class 1 alone for K = 2) of ``areas(mass (n, D), draws, tables, sums)`` (M, D).

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
                total += np.where(defined[k], areas(draws.mass(k), draws, tables[k], sums), 0.0)
        return divide(total, defined[list(classes)].sum(axis=0)).T

    return evaluate
