"""ATC: the share of unlabeled rows above the confidence that as many labeled rows reach as are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssme.baselines._common import (
    MANY_DRAWS,
    Codes,
    Estimates,
    Floats,
    all_undefined,
    labeled_rows,
    undefined,
    unlabeled_rows,
)
from ssme.intervals import with_jeffreys
from ssme.metrics import MetricSpec
from ssme.transforms import normalize

BLOCK_ELEMENTS = 2**22


def accuracy_only(spec: MetricSpec) -> str | None:
    """Why a method for accuracy alone cannot give a metric; None where it can."""
    return None if spec.share_of_rows and spec.name == "accuracy" else "it is defined for accuracy alone"


def atc(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = MANY_DRAWS,
) -> Estimates:
    """Average thresholded confidence: the share of unlabeled rows above a threshold learned from the labeled rows.

    The confidence is the negative entropy of the model's probabilities. The threshold is the one that as large a share
    of the labeled rows stays below as the model gets wrong. Without unlabeled rows the labeled ones are counted. The
    draws are those of the Bayesian bootstrap, half a right and half a wrong row added to the labeled accuracy.

    References
    ----------
    Garg, S., Balakrishnan, S., Lipton, Z. C., Neyshabur, B., Sedghi, H. (2022). "Leveraging Unlabeled Data to Predict
    Out-of-Distribution Performance". ICLR. arXiv:2201.04234.
    """
    labeled, n_models = labeled_rows(codes, weights), scores.shape[1]
    if len(labeled) == 0:
        return all_undefined(specs, n_models, n_draws)
    others = unlabeled_rows(codes, weights)
    others = others if len(others) else labeled
    confidence = negative_entropy(normalize(scores))
    right = (scores[labeled].argmax(axis=2) == codes[labeled, None]).astype(np.float64)
    here, there, w, u = confidence[labeled], confidence[others], weights[labeled], weights[others]
    point = thresholded_share(here, there, w @ right / w.sum(), w[None], u[None])[0]
    random = np.random.default_rng([seed, 17])
    half = random.standard_gamma(0.5, size=(n_draws, 2))
    draws: Floats = np.empty((n_draws, n_models))
    size = max(1, BLOCK_ELEMENTS // len(scores))
    for start in range(0, n_draws, size):
        block = slice(start, min(start + size, n_draws))
        drawn = random.standard_gamma(w, size=(block.stop - start, len(w)))
        mass = drawn.sum(axis=1)
        accuracy = with_jeffreys(drawn @ right / mass[:, None], mass, half[block])
        elsewhere = drawn if others is labeled else random.standard_gamma(u, size=(block.stop - start, len(u)))
        draws[block] = thresholded_share(here, there, accuracy, drawn, elsewhere)
    return [(point, draws) if accuracy_only(spec) is None else undefined(n_models, n_draws) for spec in specs]


def negative_entropy(p: Floats) -> Floats:
    """``sum_k p_k log p_k`` (n, M) of probabilities (n, M, K).

    Examples
    --------
    >>> negative_entropy(np.array([[[0.0, 1.0], [0.5, 0.5]]])).round(3)
    array([[ 0.   , -0.693]])
    """
    return np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=2)


def thresholded_share(here: Floats, there: Floats, accuracy: Floats, weights: Floats, weights_there: Floats) -> Floats:
    """Share (D, M) of the unlabeled rows whose confidence (N, M) is above the threshold.

    The threshold is the confidence (n, M) of a labeled row, or below all of them: the one that leaves the share of the
    labeled rows at or below it nearest to ``1 - accuracy``; accuracy is (M,) or (D, M), weights are (D, n) and (D, N).

    Examples
    --------
    >>> here, there = np.array([[0.1], [0.2], [0.3], [0.4]]), np.array([[0.15], [0.25], [0.35]])
    >>> thresholded_share(here, there, np.array([0.5]), np.ones((1, 4)), np.ones((1, 3))).round(3)
    array([[0.667]])
    """
    accuracy = np.broadcast_to(accuracy, (len(weights), here.shape[1]))
    out: Floats = np.empty(accuracy.shape)
    for m in range(here.shape[1]):
        levels, level = np.unique(here[:, m], return_inverse=True)
        below = _cumulative(weights, level, len(levels))
        chosen = np.abs(below - (1 - accuracy[:, m, None])).argmin(axis=1)
        # rows there that are above level j: those that more than j levels are below
        place = np.searchsorted(levels, there[:, m], side="left")
        kept = 1.0 - _cumulative(weights_there, place, len(levels) + 1)[:, 1:]
        out[:, m] = np.where(chosen == 0, 1.0, np.take_along_axis(kept, np.maximum(chosen - 1, 0)[:, None], 1)[:, 0])
    return np.clip(out, 0.0, 1.0)


def _cumulative(weights: Floats, place: Codes, n_places: int) -> Floats:
    """Share (D, n_places + 1) of the weights (D, n) before each place and, last, of all."""
    order = np.argsort(place, kind="stable")
    sums = np.cumsum(weights[:, order], axis=1)
    ends = np.searchsorted(place[order], np.arange(n_places), side="right")
    sums = np.concatenate([np.zeros((len(weights), 1)), sums], axis=1)
    return np.concatenate([np.zeros((len(weights), 1)), sums[:, ends]], axis=1) / sums[:, -1:]
