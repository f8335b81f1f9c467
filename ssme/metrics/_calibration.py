"""Calibration errors: the scores are binned once, the labels are summed over the bins of all draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._draws import FloatArray, LabelDraws, bin_matrix, bin_totals, divide, mean_where

N_BINS = 15
N_MASS_BINS = 10


def ece(scores: FloatArray) -> Callable:
    """Expected calibration error of the top label: 15 bins of equal width, weighted by the share of rows in them.

    ``sum_b |sum_(i in b) w_i (conf_i - hit_i)| / sum_i w_i``; conf is the highest score of the row and hit the label of
    that class. Bin b holds conf in [b / 15, (b + 1) / 15), the last one 1.0 too. Bounds [0, 1], lower is better.
    Not linear in the labels: the value at the mean of the draws is at most the mean of the draws' values.
    Reference: Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning; Guo et al. (2017),
    On calibration of modern neural networks.
    """
    n_models, n_classes = scores.shape[1:]
    confidence, best = scores.max(axis=2), scores.argmax(axis=2)
    bins = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    gaps = _binary_gaps(confidence, best, bins) if n_classes == 2 else _class_gaps(confidence, best, bins)

    def evaluate(draws: LabelDraws) -> FloatArray:
        by_model = np.abs(gaps(draws)).reshape(n_models, N_BINS, -1).sum(axis=1)
        return divide(by_model.T, draws.total())

    return evaluate


def _binary_gaps(confidence: FloatArray, best: NDArray, bins: NDArray) -> Callable:
    """Sums over each bin of conf - hit, (M * bins, D): with hit = y or 1 - y they are linear in y."""
    constant = bin_matrix(bins, N_BINS, confidence - (best == 0))
    slope = bin_matrix(bins, N_BINS, np.where(best == 1, 1.0, -1.0))
    return lambda draws: bin_totals(constant, draws.weights) - slope @ draws.weighted(draws.column(1))


def _class_gaps(confidence: FloatArray, best: NDArray, bins: NDArray) -> Callable:
    """The same sums for K > 2, one model after another."""
    models = range(confidence.shape[1])
    of_model = [bin_matrix(bins[:, m : m + 1], N_BINS) for m in models]

    def gaps(draws: LabelDraws) -> FloatArray:
        return np.stack([of_model[m] @ draws.weighted(confidence[:, m, None] - draws.hits(best[:, m])) for m in models])

    return gaps


def ece_positive(scores: FloatArray, weights: FloatArray | None = None) -> Callable:
    """Calibration error of P(class 1), two classes: 10 bins of equal mass, each counted alike.

    ``mean_b |mean_(i in b) p_i - mean_(i in b) y_i|`` over the bins that are not empty. Their edges are the quantiles
    0, .1, ..., 1 of p, weighted by what the rows count for in the data (:func:`mass_edges`) and not by the random
    weights of a draw; a value on an edge belongs to the lower bin, so that tied scores share one. Whole weights do what
    repeating the rows does. Bounds [0, 1], lower is better. Not the same metric as ``ece`` (top label).
    Reference: Nguyen and O'Connor (2015), Posterior calibration and exploratory analysis for natural language
    processing models.
    """
    p = np.ascontiguousarray(scores[:, :, 1])
    n_models = p.shape[1]
    edges = mass_edges(p, weights)
    bins = np.stack([np.searchsorted(edges[:, m], p[:, m]) for m in range(n_models)], axis=1)
    rows_of, scores_of = bin_matrix(bins, N_MASS_BINS), bin_matrix(bins, N_MASS_BINS, p)

    def evaluate(draws: LabelDraws) -> FloatArray:
        mass = bin_totals(rows_of, draws.weights)
        gaps = bin_totals(scores_of, draws.weights) - rows_of @ draws.weighted(draws.column(1))
        means, filled = divide(np.abs(gaps), mass), mass > 0
        shape = (n_models, N_MASS_BINS, -1)
        return mean_where(means.reshape(shape), filled.reshape(shape), axis=1).T

    return evaluate


def mass_edges(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The inner edges (9, M) of ten bins of equal mass for values (n, M) of rows with weights (n,).

    See :func:`weighted_quantile`.
    """
    levels = np.linspace(0.0, 1.0, N_MASS_BINS + 1)[1:-1]
    if weights is None or np.all(weights == 1) or not np.any(weights > 0):
        return np.quantile(values, levels, axis=0)
    return np.stack([weighted_quantile(column, weights, levels) for column in values.T], axis=1)


def weighted_quantile(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of values (n,) that count for weights (n,), not all 0.

    Rows of whole weights are that many rows, and the quantile q of their W = sum w is the linear interpolation at place
    q (W - 1) that :func:`numpy.quantile` makes of the repeated rows, to the bit. That interpolation is the mean of the
    values over a window of one row of weight, from q (W - 1) on, along the rows in rising order. So it is for weights
    that are not whole; where they are below 1 in the mean, the window is their mean, so that their scale is no matter.
    Rows of weight 0 are not there.

    Examples
    --------
    >>> weighted_quantile(np.array([1.0, 2.0]), np.array([3.0, 2.0]), np.array([0.5, 0.75, 1.0]))
    array([1., 2., 2.])
    >>> weighted_quantile(np.array([1.0, 2.0]), np.array([0.5, 0.5]), np.array([0.5]))
    array([1.5])
    """
    order = np.argsort(values[weights > 0], kind="stable")
    v, w = values[weights > 0][order], weights[weights > 0][order]
    upto = np.cumsum(w)
    if np.all(w == np.rint(w)):
        place = levels * (upto[-1] - 1)
        whole = np.floor(place)
        low, high = (v[np.searchsorted(upto, each, side="right").clip(max=len(v) - 1)] for each in (whole, whole + 1))
        share = place - whole
        # both forms, as numpy has it: each is exact at its own end, and an edge that is a value must equal it
        return np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))
    window = min(1.0, upto[-1] / len(w))
    start = levels * (upto[-1] - window)
    below = np.concatenate([[0.0], np.cumsum(w * v)])
    area = np.interp(start + window, np.r_[0.0, upto], below) - np.interp(start, np.r_[0.0, upto], below)
    first = np.searchsorted(upto, start, side="right").clip(max=len(v) - 1)
    last = np.searchsorted(upto, start + window, side="left").clip(max=len(v) - 1)
    # inside a run of tied values the mean is that value, whatever rounding makes of the areas
    return np.clip(area / window, v[first], v[np.maximum(first, last)])
