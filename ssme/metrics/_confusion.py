"""Metrics of the confusion counts: balanced accuracy, precision, recall, F1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._draws import FloatArray, LabelDraws, bin_matrix, bin_totals, divide, mean_where


def balanced_accuracy(scores: FloatArray) -> Callable:
    """Mean over the classes of the share of their rows that are predicted as such (mean recall).

    ``mean_k [sum_i w_i y_ik (pred_i = k) / sum_i w_i y_ik]`` over the classes that are present. Bounds [0, 1], higher
    is better; NaN when no class is present.
    Reference: Brodersen et al. (2010), The balanced accuracy and its posterior distribution;
    ``sklearn.metrics.balanced_accuracy_score``.
    """
    return _ratio_of_counts(scores, lambda right, predicted, true: divide(right, true), macro=True)


def precision(scores: FloatArray) -> Callable:
    """Share of the rows predicted as a class that have it: class 1 of two, the macro average of more.

    ``sum_i w_i y_ik (pred_i = k) / sum_i w_i (pred_i = k)``. Bounds [0, 1], higher is better. Two classes: NaN when
    nothing is predicted as class 1. More: the mean over the classes that are present in the labels, where a class that
    is never predicted counts as 0.
    Reference: ``sklearn.metrics.precision_score``.
    """
    return _ratio_of_counts(scores, lambda right, predicted, true: divide(right, predicted))


def recall(scores: FloatArray) -> Callable:
    """Share of the rows of a class that are predicted as such: class 1 of two, the macro average of more.

    ``sum_i w_i y_ik (pred_i = k) / sum_i w_i y_ik``. Bounds [0, 1], higher is better. Two classes: NaN when class 1 is
    absent. More: the mean over the classes that are present.
    Reference: ``sklearn.metrics.recall_score``.
    """
    return _ratio_of_counts(scores, lambda right, predicted, true: divide(right, true), of_present=True)


def f1(scores: FloatArray) -> Callable:
    """Harmonic mean of precision and recall: class 1 of two, the macro average of more.

    ``2 right_k / (predicted_k + true_k)`` with the weighted counts of precision and recall. Bounds [0, 1], higher is
    better. Two classes: NaN when nothing is predicted as class 1 and nothing has it. More: the mean over the classes
    that are present in the labels.
    Reference: van Rijsbergen (1979), Information Retrieval; ``sklearn.metrics.f1_score``.
    """
    return _ratio_of_counts(scores, lambda right, predicted, true: divide(2.0 * right, predicted + true))


def _ratio_of_counts(scores: FloatArray, ratio: Callable, macro: bool = False, of_present: bool = False) -> Callable:
    """The evaluation of a ratio of the counts right (M, K, D), predicted (M, K, D) and true (K, D).

    Its value is that of class 1 for K = 2 (with ``of_present`` NaN where that class is absent), else, or by ``macro``,
    the mean over the classes that are present.
    """
    binary = scores.shape[2] == 2
    count = _binary_counts(scores) if binary else _class_counts(scores)

    def evaluate(draws: LabelDraws) -> FloatArray:
        true, present, _ = draws.present()
        right, predicted = count(draws, true)
        values = ratio(right, predicted, true)
        if macro or not binary:
            # present but never predicted: a precision of 0 / 0 counts as 0, as in scikit-learn
            return mean_where(np.nan_to_num(values), present, axis=1).T
        return np.where(present[1], values[:, 1], np.nan).T if of_present else values[:, 1].T

    return evaluate


def _binary_counts(scores: FloatArray) -> Callable:
    """Two matrix products: all counts follow from the rows predicted as class 1."""
    second = np.ascontiguousarray((scores[:, :, 1] > scores[:, :, 0]).T, dtype=np.float64)

    def count(draws: LabelDraws, true: FloatArray) -> tuple[FloatArray, FloatArray]:
        right, wrong = second @ draws.mass(1), second @ draws.mass(0)
        predicted = right + wrong
        others = true.sum(axis=0) - predicted
        return np.stack([true[0] - wrong, right], axis=1), np.stack([others, predicted], axis=1)

    return count


def _class_counts(scores: FloatArray) -> Callable:
    """Sums over the rows of each predicted class, one model after another."""
    n_models, n_classes = scores.shape[1:]
    best = scores.argmax(axis=2)
    everything = bin_matrix(best, n_classes)
    of_model = [bin_matrix(best[:, m : m + 1], n_classes) for m in range(n_models)]

    def count(draws: LabelDraws, true: FloatArray) -> tuple[FloatArray, FloatArray]:
        right = np.stack([of_model[m] @ draws.weighted(draws.hits(best[:, m])) for m in range(n_models)])
        predicted = bin_totals(everything, draws.weights)
        return right, predicted.reshape(n_models, n_classes, -1)

    return count
