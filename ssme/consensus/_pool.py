"""The scores of several models as one log score per class.

The pool is the mean of the models' probabilities. That mean is meaningless when the models' confidences are not on one
scale: of two models that agree on 95 % of the rows one may be sure of itself at .99 and the other at .02 (a softmax of
raw decision values), and the first alone would then decide. So a second pool, in which every model is first brought to
the confidence that its agreement with the others suggests, takes over as the confidences spread more than the
agreements do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssme.transforms import softmax

Floats = NDArray[np.float64]

FLOOR = 1e-6  # least probability before the logarithm
SPREAD = 1.0  # log-odds: at this spread of the confidences both pools have the same prior weight
STEEPNESS = 4
IGNORE = 0.05  # a second pool with less prior weight than this is not worth its time
LARGEST_AGREEMENT = 0.995
BISECTIONS = 26
FEW_ROWS = 5
LARGEST_ODDS = 8.0


@dataclass(frozen=True, eq=False)
class Pool:
    """One way to pool: weight is its prior probability, log_temperatures (M,) or None what each model is scaled by."""

    weight: float
    log_temperatures: Floats | None = None

    def log_scores(self, p: Floats) -> Floats:
        """Pooled log scores (n, K), 0 for the best class of each row, of probabilities (n, M, K)."""
        if self.log_temperatures is not None:
            p = softmax(np.exp(self.log_temperatures)[:, None] * np.log(np.maximum(p, FLOOR)))
        pooled = np.log(np.clip(p.mean(axis=1), FLOOR, 1.0))
        return pooled - pooled.max(axis=1, keepdims=True)


def votes_of(scores: Floats) -> NDArray[np.int64]:
    """The class (n, M) with the highest score of every model; the first of tied ones."""
    return scores.argmax(axis=2)


def vote_shares(votes: NDArray[np.int64], n_classes: int) -> Floats:
    """Share (n, K) of the models that vote for each class."""
    n, m = votes.shape
    cells = votes + n_classes * np.arange(n)[:, None]
    return np.bincount(cells.ravel(), minlength=n * n_classes).reshape(n, n_classes) / m


def agreement_with_others(votes: NDArray[np.int64], n_classes: int, weights: Floats) -> Floats:
    """How often each model (M,) votes as another one does, in the mean over the others; NaN for a single model.

    Examples
    --------
    >>> agreement_with_others(np.array([[0, 0, 1], [1, 1, 1]]), 2, np.ones(2))
    array([0.75, 0.75, 0.5 ])
    """
    m = votes.shape[1]
    if m < 2:
        return np.full(m, np.nan)
    same = np.take_along_axis(vote_shares(votes, n_classes) * m, votes, axis=1)
    return np.average((same - 1.0) / (m - 1.0), axis=0, weights=weights)


def pairwise_agreement(votes: NDArray[np.int64], weights: Floats) -> Floats:
    """Share of the rows (M, M) on which two models vote alike."""
    w = weights / weights.sum()
    return np.stack([w @ (votes == votes[:, [i]]) for i in range(votes.shape[1])])


def independent_accuracy(votes: NDArray[np.int64], n_classes: int, weights: Floats) -> float:
    """Mean accuracy of the models if they err independently of each other; NaN for a single model.

    Two models of accuracies p and q that spread their errors evenly agree on p q + (1 - p)(1 - q) / (K - 1) of the
    rows: with x = (K p - 1) / (K - 1) the agreements, scaled alike, are the products of the x, which are found by least
    squares. Reference: Dawid and Skene (1979), with one accuracy a model.

    Examples
    --------
    >>> truth = np.repeat([0, 1], 500)
    >>> flip = np.random.default_rng(0).random((1000, 3)) < [0.1, 0.2, 0.3]
    >>> round(independent_accuracy(np.where(flip, 1 - truth[:, None], truth[:, None]), 2, np.ones(1000)), 2)
    0.79
    """
    m = votes.shape[1]
    if m < 2:
        return float("nan")
    products = np.clip((pairwise_agreement(votes, weights) - 1 / n_classes) * n_classes / (n_classes - 1), 0.0, 1.0)
    np.fill_diagonal(products, 0.0)
    x = np.full(m, np.sqrt(max(products.sum() / (m * (m - 1)), 1e-6)))
    for _ in range(200):
        x = np.clip((x + products @ x / np.maximum(np.sum(x**2) - x**2, 1e-9)) / 2, 0.0, 1.0)
    return float(np.mean(x) * (n_classes - 1) / n_classes + 1 / n_classes)


def dependence(p: Floats, votes: NDArray[np.int64], weights: Floats) -> float:
    """How much the models find the same rows easy: correlation of their certainty where they vote alike.

    Mean, over pairs of models and over classes, of the correlation of the log-odds of a class on the rows where both
    vote for it. Models that err independently have little in common there, trained classifiers much; docs/method.md has
    the figures. 1 where it cannot be seen, as with scores that are hard votes.
    """
    total = mass = 0.0
    for k in np.unique(votes):
        voted = (votes == k).astype(np.float64)
        odds = np.clip(_log_odds(p[:, :, k]), -LARGEST_ODDS, LARGEST_ODDS)
        odds = (odds - np.average(odds, axis=0, weights=weights)) * voted
        w = weights[:, None]
        n = voted.T @ (w * voted)
        n_safe = np.maximum(n, 1e-12)
        mean = odds.T @ (w * voted) / n_safe  # of model i on the rows where i and j both vote for k
        variance = (odds**2).T @ (w * voted) / n_safe - mean**2
        covariance = odds.T @ (w * odds) / n_safe - mean * mean.T
        seen = (np.minimum(variance, variance.T) > 1e-8) & (n >= FEW_ROWS) & ~np.eye(len(n), dtype=bool)
        if seen.any():
            correlation = covariance[seen] / np.sqrt(variance[seen] * variance.T[seen])
            total += n[seen] @ correlation
            mass += n[seen].sum()
    return float(np.clip(total / mass, 0.0, 1.0)) if mass > 0 else 1.0


def consensus_pools(p: Floats, votes: NDArray[np.int64], weights: Floats) -> list[Pool]:
    """The pools that come into question for probabilities (n, M, K), with their prior weights."""
    n_models, n_classes = p.shape[1:]
    if n_models < 2:
        return [Pool(1.0)]
    agreement = np.clip(agreement_with_others(votes, n_classes, weights), 1 / n_classes + 0.02, LARGEST_AGREEMENT)
    confidence = np.average(p.max(axis=2), axis=0, weights=weights)
    spread = np.std(_log_odds(confidence) - _log_odds(agreement), ddof=1)
    share = 1.0 / (1.0 + (SPREAD / max(float(spread), 1e-9)) ** STEEPNESS)
    if share <= IGNORE:
        return [Pool(1.0)]
    scaled = Pool(share, scale_to_confidence(p, agreement, weights))
    return [scaled] if 1.0 - share <= IGNORE else [Pool(1.0 - share), scaled]


def scale_to_confidence(p: Floats, target: Floats, weights: Floats) -> Floats:
    """Log temperature (M,) at which the mean top probability of each model equals its target (M,), by bisection."""
    log_p = np.log(np.maximum(p, FLOOR))
    log_p -= log_p.max(axis=2, keepdims=True)
    low, high = np.full(len(target), -4.0), np.full(len(target), 10.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        top = 1.0 / np.exp(np.exp(middle)[:, None] * log_p).sum(axis=2)
        below = np.average(top, axis=0, weights=weights) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _log_odds(p: Floats) -> Floats:
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return np.log(p) - np.log1p(-p)
