"""One confusion matrix for each model, learned from the votes by EM, with the known labels kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats
from ssme.baselines._label_draws import metrics_of_shared_labels
from ssme.consensus import votes_of
from ssme.metrics import MetricSpec

MAX_ITER = 100
TOL = 1e-6
LEAST_COUNT = 1e-10


def dawid_skene(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """Labels drawn from the Dawid-Skene posterior of the models' votes, the known labels kept in every round of EM.

    Votes are independent given the label; model m votes for v under label k with probability ``E_m[k, v]``. EM starts
    at the shares of the votes and ends when no probability moves by more than 1e-6, or after 100 rounds.
    The intervals know of the posterior of the labels and of the rows being a sample, and not that the matrices are
    estimates. One or two models do not determine the matrices; what comes out is then near the start.

    References
    ----------
    Dawid, A. P., Skene, A. M. (1979). "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm".
    Applied Statistics 28(1).
    """
    p = run_dawid_skene(votes_of(scores), codes, weights, scores.shape[2])
    return metrics_of_shared_labels(specs, scores, codes, weights, p, seed=seed, n_draws=n_draws)


def run_dawid_skene(
    votes: Codes, codes: Codes, weights: Floats, n_classes: int, *, max_iter: int = MAX_ITER, tol: float = TOL
) -> Floats:
    """P(label) (n, K) from votes (n, M); rows with a code of 0 or more are pinned to it.

    Examples
    --------
    >>> votes = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    >>> run_dawid_skene(votes, np.full(4, -1), np.ones(4), 2).round(2)[:, 1]
    array([0., 1., 0., 1.])
    """
    n, n_models = votes.shape
    cell = votes + n_classes * np.arange(n_models)
    cast = csr_array((np.ones(votes.size), cell.ravel(), np.arange(n + 1) * n_models), shape=(n, n_models * n_classes))
    pinned = np.flatnonzero(codes >= 0)
    known = np.eye(n_classes)[codes[pinned]]
    p = (cast @ np.tile(np.eye(n_classes), (n_models, 1))) / n_models
    p[pinned] = known
    for _ in range(max_iter):
        new = _e_step(cast, *_m_step(cast, p, weights, n_models))
        new[pinned] = known
        change = np.abs(new - p).max(initial=0.0)
        p = new
        if change <= tol:
            break
    return p


def _m_step(cast: csr_array, p: Floats, weights: Floats, n_models: int) -> tuple[Floats, Floats]:
    """Prior (K,) and confusion matrices, stacked (M K votes, K labels)."""
    weighted = weights[:, None] * p
    counts = np.maximum(cast.T @ weighted, LEAST_COUNT).reshape(n_models, -1, p.shape[1])
    confusion = counts / counts.sum(axis=1, keepdims=True)
    return weighted.sum(axis=0) / weights.sum(), confusion.reshape(-1, p.shape[1])


def _e_step(cast: csr_array, prior: Floats, confusion: Floats) -> Floats:
    """P(label) (n, K); a class of prior 0 stays empty."""
    with np.errstate(divide="ignore"):
        logs = np.log(prior) + cast @ np.log(confusion)
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
