"""A pool for models of one family: classes as Gaussian clusters of the joint scores, started at the mean of the models.

Models that were trained on the same rows, such as those of a sweep, share their errors, and a mean of their
probabilities takes what most of them have wrong for right: it shrinks the differences between the better and the worse
of them. Where they are wrong together they are so in ways of their own, and the scores of all models together still
tell such rows from rows of the class that is voted for. So: the centred log scores of all models, each model scaled to
the same spread, their first 2 (K - 1) principal components, one for every contrast of classes and as many for what the
models get wrong in common; a Gaussian with a common covariance for every class; EM from the mean of the probabilities.
No label takes part: the labels judge the result as they judge the other pools.

Clusters are too sure of themselves, most so far from the borders. A row is therefore of a cluster with probability
1 - 1e-12 only, and of any class else; without that, bringing the pool to a sensible confidence would make it unsure of
the rows at the borders, where the models differ, and of these alone.

Clusters need not be classes. Where EM leaves the classes of its start on many rows, it has found something else, and
the prior weight of the pool goes to 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ssme.transforms import softmax

from ._pool import FLOOR, IGNORE, Pool
from ._temperature import implied_accuracy, temperature_for

Floats = NDArray[np.float64]

LEAST_SCORE = 1e-4  # probabilities below are all alike
OUTSIDE = 1e-12  # probability that a row belongs to no cluster
RIDGE = 1e-3  # share of the mean variance that is added to every variance
ROWS_A_DIMENSION = 10.0
BASIS_ROWS = 2000
ROUNDS, TOLERANCE = 100, 1e-4
MOVED, STEEPNESS = 0.1, 4  # share of rows in another class than at the start, at which the pool is half believed


@dataclass(frozen=True, eq=False)
class DiscriminantPool:
    """Linear discriminants of the joint scores, by the interface of :class:`Pool`.

    Attributes
    ----------
    weight : float
        Prior probability.
    scale : array (M,)
        What the centred log scores of each model are divided by.
    directions : array (M K, K), offset : array (K,)
        Log densities of the clusters, up to what they have in common: scaled features times directions, plus offset.
    sharpness : float
        What the log probabilities of the clusters are multiplied by.
    """

    weight: float
    scale: Floats
    directions: Floats
    offset: Floats
    sharpness: float = 1.0

    def log_scores(self, p: Floats) -> Floats:
        """Log scores (n, K), 0 for the best class of each row, of probabilities (n, M, K)."""
        inside = softmax(_features(p, self.scale) @ self.directions + self.offset)
        found = self.sharpness * np.log((1 - OUTSIDE) * inside + OUTSIDE / inside.shape[1])
        return np.asarray(found - found.max(axis=1, keepdims=True))


def discriminant_pool(p: Floats, shares: Floats, weights: Floats) -> DiscriminantPool | None:
    """The pool of probabilities (n, M, K), with the share (n, K) of the models that vote for each class.

    None where there are too few rows for the covariance, a class that is never the likeliest, or clusters that are not
    the classes.
    """
    n, n_models, n_classes = p.shape
    size = 2 * (n_classes - 1)
    w = weights / weights.sum()
    start = p.mean(axis=1)
    best = start.argmax(axis=1)
    if n_models < 2 or n < ROWS_A_DIMENSION * size or len(np.unique(best)) < n_classes:
        return None
    centred = _features(p, np.ones(n_models)).reshape(p.shape)
    scale = np.sqrt(np.maximum(np.einsum("n,nmk->m", w, centred**2), 1e-12))
    x = _features(p, scale)
    basis = _principal(x, w, size)
    center = w @ x
    z = (x - center) @ basis
    linear, offset, found = _em(z, start, w)
    moved = float(w @ (found.argmax(axis=1) != best))
    weight = 1.0 / (1.0 + (moved / MOVED) ** STEEPNESS)
    if weight <= IGNORE:
        return None
    directions = basis @ linear
    raw = DiscriminantPool(weight, scale, directions, offset - center @ directions)
    mean = implied_accuracy(Pool(1.0).log_scores(p), shares, weights, 0.0)
    as_sure = temperature_for(raw.log_scores(p), shares, mean, weights)
    return replace(raw, sharpness=float(np.exp(as_sure)))


def _features(p: Floats, scale: Floats) -> Floats:
    """Centred log scores (n, M K), each model divided by its scale (M,)."""
    logs = np.log(np.clip(p, LEAST_SCORE, 1.0))
    logs -= logs.mean(axis=2, keepdims=True)
    logs /= scale[:, None]
    return logs.reshape(len(p), -1)


def _principal(x: Floats, w: Floats, size: int) -> Floats:
    """The first principal directions (F, size) of weighted rows, from at most BASIS_ROWS of them."""
    rows = np.linspace(0, len(x) - 1, min(len(x), BASIS_ROWS)).astype(np.int64)
    own = np.sqrt(w[rows])[:, None] * (x[rows] - w @ x)
    if len(rows) < x.shape[1]:
        values, vectors = np.linalg.eigh(own @ own.T)
        return own.T @ vectors[:, ::-1][:, :size] / np.sqrt(np.maximum(values[::-1][:size], 1e-12))
    return np.linalg.eigh(own.T @ own)[1][:, ::-1][:, :size]


def _em(z: Floats, start: Floats, w: Floats) -> tuple[Floats, Floats, Floats]:
    """Discriminants (d, K), (K,) of Gaussians with a common covariance, and the responsibilities (n, K)."""
    found, total = start, (w[:, None] * z).T @ z
    for _ in range(ROUNDS):
        mass = w[:, None] * found
        share = mass.sum(axis=0) + FLOOR
        mean = (mass.T @ z) / share[:, None]
        covariance = total - (mean * share[:, None]).T @ mean
        covariance += RIDGE * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        linear = np.linalg.solve(covariance, mean.T)
        offset = np.log(share) - 0.5 * np.einsum("kd,dk->k", mean, linear)
        before, found = found, softmax(z @ linear + offset)
        if np.abs(found - before).max() < TOLERANCE:
            break
    return linear, offset, found
