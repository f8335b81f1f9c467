"""SPE: for each model, normal densities of its score under either class, from labeled and unlabeled rows alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from ssme.baselines._bayesian_calibration import own_score
from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats
from ssme.baselines._label_draws import metrics_of_own_labels
from ssme.intervals import row_ranks
from ssme.metrics import MetricSpec

EDGE = 1e-6  # scores are kept this far from 0 and 1
BURN_IN = 100
THINNING = 2
# normal-inverse-gamma prior around mean and variance of all rows, worth a fraction of a row
PRIOR_ROWS = 0.1
PRIOR_SHAPE = 1.0
LEAST_VARIANCE = 1e-4


def spe(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """Label probabilities from class-conditional normal densities of each model's score, unlabeled rows included.

    For each model on its own: ``y ~ Bernoulli(q)``, the log-odds of the score normal with mean and variance of their
    own under y = 0 and y = 1, weak conjugate priors. Gibbs sampling of the missing labels and the parameters starts at
    the labels that the score says, which tells the two classes apart where no label does. Metrics are computed on
    ``P(y | score, parameters)`` of a draw; known labels are kept. The paper chooses among parametric families; this is
    one of them.

    The published method is for two classes. For more, the score is that of the model's vote and y whether that is
    right; the other classes share what is left in proportion to their scores.

    References
    ----------
    Welinder, P., Welling, M., Perona, P. (2013). "A Lazy Man's Approach to Benchmarking: Semisupervised Classifier
    Evaluation and Recalibration". CVPR. arXiv:1210.2162.
    """
    score, outcome = own_score(scores, codes)
    x = logit(np.clip(score, EDGE, 1 - EDGE))
    rank = row_ranks(scores, codes, weights)
    found = sample_densities(x, outcome, codes >= 0, weights, rank, seed=seed, n_draws=n_draws)

    def chance(m: int, numbers: Codes) -> Floats:
        return found.chance(x[:, m, None], numbers, m)

    return metrics_of_own_labels(specs, scores, codes, weights, chance, seed=seed, n_draws=n_draws)


@dataclass(frozen=True, eq=False)
class Densities:
    """Draws of the prior log-odds (D, M), and of means and variances (2, D, M) of the score under y = 0 and 1."""

    odds: Floats
    mean: Floats
    variance: Floats

    def chance(self, x: Floats, d: Codes | int, m: int | slice = slice(None)) -> Floats:
        """P(y = 1 | x) in the draws d, for the models m."""
        return expit(_log_odds(x, self.odds[d, m], self.mean[:, d, m], self.variance[:, d, m]))


def sample_densities(
    x: Floats,
    outcome: Floats,
    labeled: NDArray[np.bool_],
    weights: Floats,
    rank: Codes,
    *,
    seed: int,
    n_draws: int,
    burn_in: int = BURN_IN,
    thinning: int = THINNING,
) -> Densities:
    """Gibbs sampling for all models at once: log-odds of the score (n, M), outcomes (n, M) that count where labeled."""
    n, n_models = x.shape
    random = np.random.default_rng([seed, 15])
    known = np.flatnonzero(labeled)
    total = weights.sum()
    center = weights @ x / total
    scale = np.maximum(weights @ (x - center) ** 2 / total, LEAST_VARIANCE)
    z = _drawn(expit(x), outcome, known, random, rank)
    odds, mean, variance = np.empty((n_draws, n_models)), *np.empty((2, 2, n_draws, n_models))
    for round_ in range(burn_in + thinning * n_draws):
        mass = np.stack([weights @ (1 - z), weights @ z])  # (2, M)
        mu, sigma2 = _draw_normals(x, z, weights, mass, center, scale, random)
        share = random.standard_gamma(1.0 + mass)
        log_odds = np.log(share[1] / share[0])
        if round_ >= burn_in and (round_ - burn_in) % thinning == 0:
            d = (round_ - burn_in) // thinning
            odds[d], mean[:, d], variance[:, d] = log_odds, mu, sigma2
        z = _drawn(expit(_log_odds(x, log_odds, mu, sigma2)), outcome, known, random, rank)
    return Densities(odds, mean, variance)


def _drawn(p: Floats, outcome: Floats, known: Codes, random: np.random.Generator, rank: Codes) -> Floats:
    """Labels (n, M) drawn from p (n, M), those that are known put in their place."""
    z = (random.random(p.shape)[rank] < p).astype(np.float64)
    z[known] = outcome[known]
    return z


def _draw_normals(
    x: Floats,
    z: Floats,
    weights: Floats,
    mass: Floats,
    center: Floats,
    scale: Floats,
    random: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Means and variances (2, M) from their normal-inverse-gamma posterior given the labels z (n, M)."""
    wz = weights[:, None] * z
    ones = (wz * x).sum(axis=0)
    ones2 = (wz * x**2).sum(axis=0)
    first = np.stack([weights @ x - ones, ones])
    second = np.stack([weights @ x**2 - ones2, ones2])
    average = np.divide(first, mass, out=np.zeros_like(first), where=mass > 0)
    within = np.maximum(second - mass * average**2, 0.0)
    rows = PRIOR_ROWS + mass
    middle = (PRIOR_ROWS * center + first) / rows
    shape = PRIOR_SHAPE + mass / 2
    rate = PRIOR_SHAPE * scale / 2 + (within + PRIOR_ROWS * mass / rows * (average - center) ** 2) / 2
    variance = np.maximum(rate / random.standard_gamma(shape), LEAST_VARIANCE)
    return middle + np.sqrt(variance / rows) * random.standard_normal(mass.shape), variance


def _log_odds(x: Floats, odds: Floats, mean: Floats, variance: Floats) -> Floats:
    """Log-odds of y = 1 given the score, from prior log-odds (...) and means and variances (2, ...) under y = 0, 1."""
    logs = -0.5 * ((x - mean[1]) ** 2 / variance[1] - (x - mean[0]) ** 2 / variance[0])
    return odds + logs - 0.5 * np.log(variance[1] / variance[0])
