"""Pool and temperature together, and the bias that is left: what the default estimator draws from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._bias import ModelBias, hit_covariance, model_bias, tilt_for_shift
from ._discriminant import DiscriminantPool, discriminant_pool
from ._pool import (
    Pool,
    agreement_with_others,
    consensus_pools,
    dependence,
    independent_accuracy,
    vote_shares,
    votes_of,
)
from ._temperature import Clues, Nodes, posterior_nodes, responsibilities, temperature_prior

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ConsensusNodes:
    """Equally weighted draws of the consensus, sorted: pool, log temperature and offset of each, all (D,)."""

    pools: Sequence[Pool | DiscriminantPool]
    pool_of: NDArray[np.int64]
    log_temperature: Floats
    offset: Floats

    def distinct(self) -> tuple[ConsensusNodes, NDArray[np.int64]]:
        """The distinct ones among the draws and the number (D,) of the one that each draw is."""
        rows = np.stack([self.pool_of, self.log_temperature, self.offset], axis=1)
        _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        kept = ConsensusNodes(self.pools, self.pool_of[first], self.log_temperature[first], self.offset[first])
        return kept, number.ravel()

    def pooled(self, p: Floats) -> list[Floats]:
        """Log scores (n, K) of probabilities (n, M, K) in each pool."""
        return [pool.log_scores(p) for pool in self.pools]

    def at(self, j: int, pooled: list[Floats]) -> Floats:
        """Responsibilities (n, K) of draw j."""
        return responsibilities(pooled[self.pool_of[j]], self.log_temperature[j], self.offset[j])

    def mean(self, p: Floats) -> Floats:
        """Mean responsibilities (n, K) of probabilities (n, M, K)."""
        nodes, number = self.distinct()
        pooled, share = self.pooled(p), np.bincount(number) / len(number)
        total = sum(s * nodes.at(j, pooled) for j, s in enumerate(share))
        return np.asarray(total / total.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class PooledNodes:
    """The responsibilities of the nodes at fixed rows, as a function of the node's number."""

    nodes: ConsensusNodes
    pooled: list[Floats]

    def __call__(self, j: int) -> Floats:
        return self.nodes.at(j, self.pooled)

    def take(self, rows: NDArray[np.int64]) -> PooledNodes:
        """The same at some of the rows."""
        return PooledNodes(self.nodes, [log_scores[rows] for log_scores in self.pooled])


@dataclass(frozen=True, eq=False)
class Consensus:
    """The fitted consensus.

    Attributes
    ----------
    nodes : ConsensusNodes
    clues : Clues
    prior_accuracy, prior_spread : float
        Mean accuracy of the models that the consensus implies before any label, and its standard deviation.
    accuracy_spread : float
        That deviation given the labels.
    """

    nodes: ConsensusNodes
    clues: Clues
    prior_accuracy: float
    prior_spread: float
    accuracy_spread: float


def fit_consensus(
    p: Floats,
    codes: Codes,
    weights: Floats,
    of_labels: Floats,
    sample: NDArray[np.int64],
    n_draws: int,
    *,
    discriminant: bool = False,
) -> Consensus:
    """Fit to probabilities (n, M, K), class codes (n,) with -1 = unlabeled, weights (n,) of rows and of labels.

    What needs no labels is computed on the rows in `sample`. With `discriminant` the clusters of the joint scores are a
    pool beside the means of the models.
    """
    n_classes = p.shape[2]
    labeled = np.flatnonzero(codes >= 0)
    q, w = p[sample], weights[sample]
    votes = votes_of(q)
    agreement = float(np.mean(agreement_with_others(votes, n_classes, w)))
    confidence = float(np.average(q.max(axis=2).mean(axis=1), weights=w))
    clues = Clues(agreement, confidence, independent_accuracy(votes, n_classes, w), dependence(q, votes, w))
    shares = vote_shares(votes, n_classes)
    pools: list[Pool | DiscriminantPool] = [*consensus_pools(q, votes, w)]
    clusters = discriminant_pool(q, shares, w) if discriminant else None
    if clusters is not None:
        pools = [*(replace(pool, weight=pool.weight * (1.0 - clusters.weight)) for pool in pools), clusters]
    prior, posterior, evidence = [], [], []
    for pool in pools:
        log_scores, at_labels = pool.log_scores(q), pool.log_scores(p[labeled])
        prior_of = temperature_prior(log_scores, shares, clues, w)
        label_data = (at_labels, codes[labeled], of_labels[labeled], prior_of)
        nodes, log_evidence = posterior_nodes(*label_data)
        posterior.append(nodes)
        evidence.append(np.log(pool.weight) + log_evidence)
        prior.append(posterior_nodes(*label_data, power=0.0)[0])
    share = np.exp(np.array(evidence) - max(evidence))
    turn = 1.0 if n_classes == 2 and w @ (shares[:, 1] - shares[:, 0]) > 0 else -1.0
    before = _draw(pools, prior, np.array([pool.weight for pool in pools]), n_draws, turn)
    after = _draw(pools, posterior, share, n_draws, turn)
    implied_before, implied_after = (_implied_accuracies(each, q, shares, w) for each in (before, after))
    return Consensus(
        nodes=after,
        clues=clues,
        prior_accuracy=float(implied_before.mean()),
        prior_spread=float(implied_before.std()),
        accuracy_spread=float(implied_after.std()),
    )


def systematic(weight: Floats, n_draws: int) -> NDArray[np.int64]:
    """Numbers (D,), rising, of n_draws systematic draws from a discrete distribution; no chance is involved."""
    edges = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(edges, (np.arange(n_draws) + 0.5) / n_draws), len(weight) - 1)


def _draw(
    pools: Sequence[Pool | DiscriminantPool], nodes: list[Nodes], share: Floats, n_draws: int, turn: float
) -> ConsensusNodes:
    """Draw from the nodes of all pools; turn is the sign of the offset that favours the more frequent class."""
    pool_of = np.concatenate([np.full(len(each.weight), i) for i, each in enumerate(nodes)])
    g = np.concatenate([each.log_temperature for each in nodes])
    offset = np.concatenate([each.offset for each in nodes])
    weight = np.concatenate([s * each.weight for s, each in zip(share, nodes, strict=True)])
    order = np.lexsort((offset * turn, g, pool_of))
    chosen = order[systematic(weight[order], n_draws)]
    return ConsensusNodes(pools, pool_of[chosen], g[chosen], offset[chosen])


def _implied_accuracies(draws: ConsensusNodes, p: Floats, shares: Floats, weights: Floats) -> Floats:
    """Mean accuracy (D,) of the models that each draw implies."""
    nodes, number = draws.distinct()
    pooled, w = draws.pooled(p), weights / weights.sum()
    implied = [w @ np.einsum("nk,nk->n", nodes.at(j, pooled), shares) for j in range(len(nodes.offset))]
    return np.array(implied)[number]


def fit_bias(
    mean: Floats,
    votes: NDArray[np.int64],
    codes: Codes,
    weights: Floats,
    of_labels: Floats,
    sample: NDArray[np.int64],
) -> tuple[ModelBias, Floats, Floats]:
    """Bias of the accuracies that responsibilities (n, K) imply, the tilt (M,) its mean asks for, and its slope (M,).

    The slope is how fast the mean accuracy of a model moves with its tilt.
    """
    hits = np.take_along_axis(mean, votes, axis=1)
    residual, n_labeled = labeled_residual(hits, votes, codes, of_labels)
    hits, votes, w = hits[sample], votes[sample], weights[sample]
    implied = np.average(hits, axis=0, weights=w)
    bias = model_bias(residual, hit_covariance(hits, votes, w), implied, n_labeled)
    slope = np.maximum(np.average(hits * (1 - hits), axis=0, weights=w), 1e-4)
    return bias, tilt_for_shift(hits, bias.expected, w), slope


def labeled_residual(hits: Floats, votes: NDArray[np.int64], codes: Codes, weights: Floats) -> tuple[Floats, float]:
    """Share of right votes less P(right) on the labeled rows, of each model (M,); and the weight of these rows."""
    labeled = np.flatnonzero((codes >= 0) & (weights > 0))
    if len(labeled) == 0:
        return np.zeros(votes.shape[1]), 0.0
    right = votes[labeled] == codes[labeled, None]
    return np.average(right - hits[labeled], axis=0, weights=weights[labeled]), float(weights[labeled].sum())
