"""What the labels say about each model beyond the consensus.

The consensus implies an accuracy for every model; on the labeled rows it is off by r (M,). With C the covariance of the
hits of one row that the consensus implies, r has the error C / n_l, and the bias b of the consensus gets the prior

    b ~ N(0, c 1 1' / n_c + C_d / n_d + (.3)^2 d d'),

c the mean of C, C_d its part between the models, d the deviations of the implied accuracies from their mean: a bias in
common is what a consensus learned from n_c rows would have, one between models what n_d rows would leave, and the
models may be spread more or less than the consensus says. n_d is one of a few values, weighed by their evidence. The
posterior mean corrects the estimates, the posterior spread widens the intervals; with many labels both go to what the
labels alone say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]

COMMON_ROWS = 500.0
BETWEEN_ROWS = ((1000.0, 0.5), (300.0, 0.4), (100.0, 0.1))
SPREAD_SCALE = 0.2
MISFIT = 1.3  # the spread of the posterior is multiplied by this: no consensus is wrong in exactly this form
EDGE = 1e-9


@dataclass(frozen=True, eq=False)
class ModelBias:
    """Posterior of the bias: a mixture with weights (J,), means (J, M) and covariances (J, M, M)."""

    weight: Floats
    mean: Floats
    covariance: Floats

    @property
    def expected(self) -> Floats:
        """Mean bias (M,)."""
        return self.weight @ self.mean

    def draws(self, normal: Floats, component: NDArray[np.int64]) -> Floats:
        """Deviations (D, M) from the mean bias, for standard normals (D, M) and mixture components (D,)."""
        roots = np.stack([_root(c) for c in self.covariance])
        spread = MISFIT * np.einsum("dm,dmk->dk", normal, roots[component])
        return self.mean[component] - self.expected + spread


def hit_covariance(hits: Floats, votes: NDArray[np.int64], weights: Floats) -> Floats:
    """Mean over the rows of the covariance (M, M) of the models' hits; hits (n, M) are P(the vote is right)."""
    w = weights / weights.sum()
    same = np.stack([w @ ((votes == votes[:, [m]]) * hits[:, [m]]) for m in range(votes.shape[1])])
    return same - (hits * w[:, None]).T @ hits


def model_bias(
    residual: Floats,
    covariance: Floats,
    implied: Floats,
    n_labeled: float,
    common_rows: float = COMMON_ROWS,
    between_rows: tuple[tuple[float, float], ...] = BETWEEN_ROWS,
) -> ModelBias:
    """Posterior of the bias given the labeled residual (M,), the hit covariance (M, M) and implied accuracies (M,)."""
    m = len(residual)
    center = np.eye(m) - 1.0 / m
    common = np.full((m, m), covariance.mean())
    between = center @ covariance @ center
    deviation = implied - implied.mean()
    log_weight, means, covariances = [], [], []
    for rows, weight in between_rows:
        prior = common / common_rows + between / rows + SPREAD_SCALE**2 * np.outer(deviation, deviation)
        if n_labeled == 0:
            log_weight.append(np.log(weight))
            means.append(np.zeros(m))
            covariances.append(prior)
            continue
        total = prior + (common + between) / n_labeled
        least = 1e-6 * max(np.trace(total) / m, 0.0) + 1e-15
        values, vectors = np.linalg.eigh(total + least * np.eye(m))
        values = np.maximum(values, least)  # a group of one row may have a negative one by rounding
        gain = prior @ (vectors / values) @ vectors.T
        fit = (vectors.T @ residual) ** 2 / values
        log_weight.append(np.log(weight) - 0.5 * (fit.sum() + np.log(values).sum()))
        means.append(gain @ residual)
        covariances.append(prior - gain @ prior)
    share = np.exp(np.array(log_weight) - max(log_weight))
    return ModelBias(share / share.sum(), np.array(means), np.array(covariances))


def tilt_for_shift(hits: Floats, shift: Floats, weights: Floats) -> Floats:
    """Log-odds (M,) to add to P(hit) (n, M) so that its mean moves by shift (M,); means stay in (.002, .998)."""
    odds = logit(np.clip(hits, EDGE, 1 - EDGE))
    w = weights / weights.sum()
    start = w @ hits
    target = np.clip(start + shift, np.minimum(start, 0.002), np.maximum(start, 0.998))
    tilt = np.zeros(hits.shape[1])
    for _ in range(20):
        p = expit(odds + tilt)
        step = np.clip((target - w @ p) / np.maximum(w @ (p * (1 - p)), 1e-9), -1.0, 1.0)
        tilt += step
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return np.clip(tilt, -20.0, 20.0)


def _root(covariance: Floats) -> Floats:
    """Symmetric square root: it turns with the models, whatever their order."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
