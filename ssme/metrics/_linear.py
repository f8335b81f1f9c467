"""Metrics that are linear in the labels: their value at soft labels is the mean over the hard draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._draws import FloatArray, LabelDraws, divide

EPS = float(np.finfo(np.float64).eps)


def accuracy(scores: FloatArray) -> Callable:
    """Share of the rows whose label is the class with the highest score.

    ``sum_i w_i y[i, argmax_k s_ik] / sum_i w_i``. The first of tied scores counts, as in ``numpy.argmax``; for two
    classes P(class 1) = 1/2 therefore predicts class 0. Bounds [0, 1], higher is better.
    Reference: ``sklearn.metrics.accuracy_score``.
    """
    if scores.shape[2] == 2:
        second = (scores[:, :, 1:] > scores[:, :, :1]).astype(np.float64)
        return _mean_of(np.concatenate([1.0 - second, second], axis=2))
    predicted = scores.argmax(axis=2).T

    def evaluate(draws: LabelDraws) -> FloatArray:
        agree = [draws.weighted(draws.hits(best)).sum(axis=0) for best in predicted]
        return divide(np.stack(agree, axis=1), draws.total())

    return evaluate


def brier(scores: FloatArray) -> Callable:
    """Mean squared distance between the scores and the labels.

    Two classes: ``mean_i (p_i1 - y_i)^2``, in [0, 1]. More: the sum over all K, ``mean_i sum_k (p_ik - y_ik)^2``, in
    [0, 2] (for K = 2 that sum would be twice the value given here). Soft labels: the expected value. Lower is better.
    Reference: Brier (1950), Verification of forecasts expressed in terms of probability;
    ``sklearn.metrics.brier_score_loss``.
    """
    if scores.shape[2] == 2:
        p1 = scores[:, :, 1:]
        return _mean_of(np.concatenate([p1**2, (p1 - 1.0) ** 2], axis=2))
    squares = scores**2
    others = squares.sum(axis=2, keepdims=True) - squares
    return _mean_of(others + (1.0 - scores) ** 2)


def log_loss(scores: FloatArray) -> Callable:
    """Mean negative log of the score of the true class.

    ``-mean_i sum_k y_ik log(clip(p_ik, eps, 1 - eps))``, natural logarithm, eps of float64 (2.2e-16): one sure and
    wrong row costs 36. Bounds [0, inf), lower is better.
    Reference: Good (1952), Rational decisions; ``sklearn.metrics.log_loss``.
    """
    return _mean_of(-np.log(np.clip(scores, EPS, 1.0 - EPS)))


def _mean_of(value: FloatArray) -> Callable:
    """The evaluation of ``sum_i w_i sum_k y_ik value[i, m, k] / sum_i w_i``."""
    binary = value.shape[2] == 2
    base = np.ascontiguousarray(value[:, :, 0])
    step = value[:, :, 1] - base
    of_class: FloatArray | list = [] if binary else np.ascontiguousarray(value.transpose(2, 0, 1))

    def evaluate(draws: LabelDraws) -> FloatArray:
        if binary:  # one column of the labels and two matrix products
            total = draws.mass(1).T @ step
            total += base.sum(axis=0) if draws.weights is None else draws.weights.T @ base
        else:
            total = sum(draws.mass(k).T @ of_class[k] for k in range(draws.n_classes))
        return divide(total, draws.total())

    return evaluate
