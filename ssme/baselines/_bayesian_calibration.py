"""Bayesian calibration of each model's own score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats, labeled_rows
from ssme.baselines._label_draws import metrics_of_own_labels
from ssme.metrics import MetricSpec
from ssme.transforms import normalize

EDGE = 1e-3  # scores are kept this far from 0 and 1
LARGEST_ODDS = 15.0
# variances of log a, log b and c: of the mean of the groups plus, for one group, of its deviation from that mean
PRIOR_VARIANCE = np.array([0.4**2 + 0.15**2, 0.4**2 + 0.15**2, 2.0**2 + 0.75**2])
ROUNDS = 50


def bayesian_calibration(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """Label probabilities from a Bayesian beta calibration of each model's own score.

    ``logit P(y = 1 | s) = c + a log s - b log(1 - s)`` with ``log a``, ``log b`` and c normal around the identity [1]_.
    The published prior is hierarchical over groups of rows; here all rows are one group, for which it is a normal prior
    of variances summed over common part and group (``PRIOR_VARIANCE``). The posterior is the normal one at its mode.
    Metrics are computed on the probabilities of a draw; known labels are kept.

    The published method is for two classes. For more, s is the score of the model's vote and y whether that is right;
    the other classes share what is left in proportion to their scores.

    References
    ----------
    .. [1] Ji, D., Smyth, P., Steyvers, M. (2020). "Can I Trust My Fairness Metric? Assessing Fairness with Unlabeled
       Data and Bayesian Inference". NeurIPS. arXiv:2010.09851.
    .. [2] Kull, M., Silva Filho, T., Flach, P. (2017). "Beta Calibration". AISTATS.
    """
    score, outcome = own_score(scores, codes)
    labeled = labeled_rows(codes, weights)
    mean, covariance = calibration_posterior(score[labeled], outcome[labeled], weights[labeled])
    normal = np.random.default_rng([seed, 14]).standard_normal((n_draws, 3))
    theta = mean[:, None, :] + normal @ np.swapaxes(np.linalg.cholesky(covariance), 1, 2)  # (M, D, 3)

    def chance(m: int, numbers: Codes) -> Floats:
        return calibrated(score[:, m, None], theta[m, numbers])

    return metrics_of_own_labels(specs, scores, codes, weights, chance, seed=seed, n_draws=n_draws)


def own_score(scores: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """What is calibrated (n, M), and its outcome (n, M) where labels are known.

    Two classes: P(class 1), and whether the label is class 1. More: the greatest score, and whether its class is right.
    """
    p = normalize(scores)
    if scores.shape[2] == 2:
        return p[:, :, 1], np.repeat((codes == 1)[:, None], scores.shape[1], axis=1).astype(np.float64)
    vote = scores.argmax(axis=2)
    score = np.take_along_axis(p, vote[:, :, None], axis=2)[:, :, 0]
    return score, (vote == codes[:, None]).astype(np.float64)


def calibrated(score: Floats, theta: Floats) -> Floats:
    """Probabilities for scores and parameters (..., 3): log a, log b, c.

    Examples
    --------
    >>> calibrated(np.array([0.2, 0.8]), np.zeros(3)).round(3)
    array([0.2, 0.8])
    """
    s = np.clip(score, EDGE, 1 - EDGE)
    odds = theta[..., 2] + np.exp(theta[..., 0]) * np.log(s) - np.exp(theta[..., 1]) * np.log1p(-s)
    return expit(np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS))


def calibration_posterior(score: Floats, outcome: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mode (M, 3) and covariance (M, 3, 3) of the parameters of each model, from labeled scores and outcomes (n, M).

    Examples
    --------
    >>> mode, covariance = calibration_posterior(np.empty((0, 1)), np.empty((0, 1)), np.empty(0))
    >>> mode[0].tolist(), np.diag(covariance[0]).round(3).tolist()
    ([0.0, 0.0, 0.0], [0.183, 0.183, 4.562])
    """
    s = np.clip(score, EDGE, 1 - EDGE).T
    slopes, y = (np.log(s), -np.log1p(-s)), outcome.T
    theta = np.zeros((len(s), 3))
    objective = _objective(theta, slopes, y, weights)
    for _ in range(ROUNDS):
        gradient, curvature = _derivatives(theta, slopes, y, weights)
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        length = np.ones((len(s), 1))
        for _ in range(20):  # half the step of a model as long as it leads down
            value = _objective(theta + length * step, slopes, y, weights)
            worse = value < objective - 1e-12 * np.abs(objective)
            if not worse.any():
                break
            length[worse] /= 2
        theta, objective = theta + length * step, value
        if np.abs(length * step).max(initial=0.0) < 1e-8:
            break
    return theta, np.asarray(np.linalg.inv(_derivatives(theta, slopes, y, weights)[1]))


def _odds(theta: Floats, slopes: tuple[Floats, Floats]) -> Floats:
    """Log-odds (M, n)."""
    return theta[:, 2:] + np.exp(theta[:, :1]) * slopes[0] + np.exp(theta[:, 1:2]) * slopes[1]


def _objective(theta: Floats, slopes: tuple[Floats, Floats], y: Floats, weights: Floats) -> Floats:
    """Log posterior (M,), up to a constant."""
    odds = _odds(theta, slopes)
    fit = (y * odds - np.logaddexp(0.0, odds)) @ weights
    return fit - 0.5 * (theta**2 / PRIOR_VARIANCE).sum(axis=1)


def _derivatives(theta: Floats, slopes: tuple[Floats, Floats], y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Gradient (M, 3) of the log posterior and its expected curvature (M, 3, 3), which is positive."""
    p = expit(_odds(theta, slopes))
    lever = np.stack(
        [np.exp(theta[:, :1]) * slopes[0], np.exp(theta[:, 1:2]) * slopes[1], np.ones_like(p)], axis=2
    )  # (M, n, 3)
    gradient = np.einsum("mn,mnj->mj", weights * (y - p), lever) - theta / PRIOR_VARIANCE
    curvature = np.einsum("mn,mni,mnj->mij", weights * p * (1 - p), lever, lever, optimize=True)
    return gradient, curvature + np.diag(1.0 / PRIOR_VARIANCE)
