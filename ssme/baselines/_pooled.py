"""Label every row by what the models say together, and take that for the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssme.consensus import votes_of
from ssme.intervals import draw_metrics, row_ranks
from ssme.metrics import MetricSpec
from ssme.posterior import FixedNode, LabelPosterior
from ssme.transforms import normalize

Floats = NDArray[np.float64]


def mean_score(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    *,
    seed: int,
    n_draws: int = 100,
) -> list[tuple[Floats, Floats]]:
    """Labels drawn from the mean score of the models, read as a probability; known labels are kept.

    Where EM of the published mixture cannot move, this is what it returns.
    """
    return _from_probabilities(normalize(scores).mean(axis=1), specs, scores, codes, weights, seed, n_draws)


def majority_vote(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    *,
    seed: int,
    n_draws: int = 100,
) -> list[tuple[Floats, Floats]]:
    """The class that most models vote for as the label, drawn among tied ones; known labels are kept."""
    counts = (votes_of(scores)[:, :, None] == np.arange(scores.shape[2])).sum(axis=1)
    first = counts == counts.max(axis=1, keepdims=True)
    return _from_probabilities(first / first.sum(axis=1, keepdims=True), specs, scores, codes, weights, seed, n_draws)


def _from_probabilities(
    p: Floats,
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    seed: int,
    n_draws: int,
) -> list[tuple[Floats, Floats]]:
    n_models = scores.shape[1]
    posterior = LabelPosterior(
        node=FixedNode(p),
        node_of=np.zeros(n_draws, dtype=np.int64),
        codes=codes,
        votes=votes_of(scores),
        tilt=np.zeros(n_models),
        tilt_noise=np.zeros((n_draws, n_models)),
        hard=True,
    )
    return draw_metrics(specs, scores, posterior, weights, row_ranks(scores, codes, weights), seed)
