"""The class that most models vote for as the label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats
from ssme.baselines._label_draws import metrics_of_shared_labels
from ssme.consensus import votes_of
from ssme.metrics import MetricSpec

TIE = 1e-12


def majority_vote(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """The class that most models vote for, taken for the label.

    A model votes for the class of its highest score. Among tied classes the label is drawn; known labels are kept.
    The intervals know of ties and of the rows being a sample, and not that a majority may be wrong.

    References
    ----------
    Penrose, L. S. (1946). "The Elementary Statistics of Majority Voting". Journal of the Royal Statistical Society 109.
    """
    votes = votes_of(scores)
    p = winners(weighted_votes(votes, np.ones(votes.shape[1]), scores.shape[2]))
    return metrics_of_shared_labels(specs, scores, codes, weights, p, seed=seed, n_draws=n_draws)


def weighted_votes(votes: Codes, strength: Floats, n_classes: int) -> Floats:
    """Sum (n, K) of the strengths (M,) of the models that vote (n, M) for each class.

    Examples
    --------
    >>> weighted_votes(np.array([[0, 1, 1]]), np.array([0.9, 0.6, 0.5]), 2)
    array([[0.9, 1.1]])
    """
    n, m = votes.shape
    cells = (votes + n_classes * np.arange(n)[:, None]).ravel()
    total = np.bincount(cells, np.tile(strength, n), minlength=n * n_classes)
    return np.asarray(total, dtype=np.float64).reshape(n, n_classes)


def winners(total: Floats) -> Floats:
    """Probabilities (n, K): 1 for the class with the greatest total, shared alike among tied ones.

    Examples
    --------
    >>> winners(np.array([[2.0, 1.0], [1.0, 1.0]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    top = total.max(axis=1, keepdims=True)
    first = total >= top - TIE * np.maximum(top, 1.0)
    return first / first.sum(axis=1, keepdims=True)
