"""A vote in which each model counts by its accuracy on the labeled rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats, all_undefined, labeled_rows
from ssme.baselines._label_draws import metrics_of_shared_labels
from ssme.baselines._majority_vote import weighted_votes, winners
from ssme.consensus import votes_of
from ssme.metrics import MetricSpec


def weighted_vote(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """The winner of a vote in which each model counts by its accuracy on the labeled rows, taken for the label.

    Among tied classes the label is drawn; known labels are kept. The intervals know of ties and of the rows being a
    sample, and not that the winner may be wrong.

    References
    ----------
    Littlestone, N., Warmuth, M. K. (1994). "The Weighted Majority Algorithm". Information and Computation 108(2).
    """
    labeled = labeled_rows(codes, weights)
    if len(labeled) == 0:
        return all_undefined(specs, scores.shape[1], n_draws)
    votes = votes_of(scores)
    right = votes[labeled] == codes[labeled, None]
    p = winners(weighted_votes(votes, strengths(right, weights[labeled]), scores.shape[2]))
    return metrics_of_shared_labels(specs, scores, codes, weights, p, seed=seed, n_draws=n_draws)


def strengths(right: Codes, weights: Floats) -> Floats:
    """What the vote of each model (M,) counts for: its accuracy, or 1 for all where no model is ever right.

    Examples
    --------
    >>> strengths(np.array([[True, False], [True, True]]), np.ones(2))
    array([1. , 0.5])
    """
    accuracy = np.average(right.astype(np.float64), axis=0, weights=weights)
    return accuracy if accuracy.any() else np.ones_like(accuracy)
