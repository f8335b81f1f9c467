"""Bayesian calibration and SPE: against a grid, against simulations of their own models, and against themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from ssme.baselines import BASELINES
from ssme.baselines._bayesian_calibration import PRIOR_VARIANCE, calibrated, calibration_posterior, own_score
from ssme.baselines._spe import sample_densities
from ssme.metrics import evaluate_metric, get_metric


def run(name, scores, codes, metric="accuracy", n_draws=200):
    spec = get_metric(metric, scores.shape[2])
    return BASELINES[name].function([spec], scores, codes, np.ones(len(codes)), seed=0, n_draws=n_draws)[0]


def binary(p):
    return np.stack([1 - p, p], axis=2)


def calibration_data(n, seed=0, a=2.5, b=0.6, c=0.4, n_models=2):
    """Scores whose true calibration curve is known."""
    random = np.random.default_rng(seed)
    s = random.beta(1.2, 1.2, (n, n_models))
    y = (random.random(n) < calibrated(s[:, 0], np.array([np.log(a), np.log(b), c]))).astype(int)
    return s, y


# -- Bayesian calibration ----------------------------------------------------------------------------------------------


def test_the_score_that_is_calibrated():
    scores = np.array([[[0.2, 0.8], [0.6, 0.4]], [[0.7, 0.3], [0.1, 0.9]]])
    score, outcome = own_score(scores, np.array([1, 0]))
    np.testing.assert_allclose(score, [[0.8, 0.4], [0.3, 0.9]])
    np.testing.assert_array_equal(outcome, [[1, 1], [0, 0]])
    score, outcome = own_score(np.array([[[0.2, 0.7, 0.1]], [[0.5, 0.2, 0.3]]]), np.array([1, 2]))
    np.testing.assert_allclose(score, [[0.7], [0.5]])
    np.testing.assert_array_equal(outcome, [[1], [0]])


def test_posterior_against_a_grid():
    s, y = calibration_data(40)
    mode, covariance = calibration_posterior(s, np.repeat(y[:, None], 2, axis=1), np.ones(40))
    axes = [np.linspace(-3.5 * r, 3.5 * r, 41) for r in np.sqrt(PRIOR_VARIANCE)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    at = np.array([0.05, 0.2, 0.5, 0.8, 0.95])
    random = np.random.default_rng(0)
    for m in range(2):
        p = calibrated(s[:, m], grid[:, None])
        log_post = np.log(np.where(y == 1, p, 1 - p)).sum(axis=1) - 0.5 * (grid**2 / PRIOR_VARIANCE).sum(axis=1)
        weight = np.exp(log_post - log_post.max())
        weight /= weight.sum()
        exact = weight @ calibrated(at, grid[:, None])
        theta = random.multivariate_normal(mode[m], covariance[m], 4000)
        np.testing.assert_allclose(calibrated(at, theta[:, None]).mean(axis=0), exact, atol=0.03)
        np.testing.assert_allclose(
            np.sqrt(np.diag(covariance[m])), np.sqrt(weight @ (grid - weight @ grid) ** 2), rtol=0.25
        )


def test_the_mode_is_where_the_gradient_vanishes():
    s, y = calibration_data(60)
    outcome, ones = np.repeat(y[:, None], 2, axis=1), np.ones(60)
    mode, _ = calibration_posterior(s, outcome, ones)

    def log_posterior(theta, m):
        p = calibrated(s[:, m], theta)
        return np.log(np.where(y == 1, p, 1 - p)).sum() - 0.5 * (theta**2 / PRIOR_VARIANCE).sum()

    for m in range(2):
        for direction in np.eye(3):
            assert log_posterior(mode[m], m) >= log_posterior(mode[m] + 0.01 * direction, m)
            assert log_posterior(mode[m], m) >= log_posterior(mode[m] - 0.01 * direction, m)


def test_many_labels_find_the_calibration_curve():
    s, y = calibration_data(20_000, n_models=1)
    mode, covariance = calibration_posterior(s, y[:, None], np.ones(20_000))
    deviation = (mode[0] - [np.log(2.5), np.log(0.6), 0.4]) / np.sqrt(np.diag(covariance[0]))
    assert np.abs(deviation).max() < 3.5


def test_weights_are_repeated_labels():
    s, y = calibration_data(30, n_models=1)
    times = np.random.default_rng(0).integers(0, 3, 30)
    rows = np.repeat(np.arange(30), times)
    weighted = calibration_posterior(s, y[:, None], times.astype(float))
    repeated = calibration_posterior(s[rows], y[rows, None], np.ones(len(rows)))
    for mine, theirs in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-7)


def test_calibration_estimates_what_miscalibrated_scores_hide():
    s, y = calibration_data(3000, a=0.3, b=0.3, c=-0.7)  # overconfident
    codes = np.where(np.arange(3000) < 200, y, -1)
    scores = binary(s[:, :1])
    truth = evaluate_metric("accuracy", scores, y)
    assert abs(run("bayesian-calibration", scores, codes)[0] - truth)[0] < 0.04
    assert abs(run("cbpe", scores, codes)[0] - truth)[0] > 0.08
    ece = evaluate_metric("ece_positive", scores, y)
    assert abs(run("bayesian-calibration", scores, codes, "ece_positive")[0] - ece)[0] < 0.05


def test_without_labels_calibration_is_the_score_on_average():
    s, _ = calibration_data(500)
    codes = np.full(500, -1)
    point, draws = run("bayesian-calibration", binary(s), codes)
    np.testing.assert_allclose(point, np.maximum(s, 1 - s).mean(axis=0), atol=0.2)
    assert draws.std(axis=0).min() > 0.05


# -- SPE ---------------------------------------------------------------------------------------------------------------


def density_data(n, share=0.3, means=(-1.5, 2.0), sds=(1.0, 1.4), seed=0):
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(int)
    x = np.where(y == 1, random.normal(means[1], sds[1], n), random.normal(means[0], sds[0], n))
    return x, y


@pytest.mark.parametrize("n_labeled", [30, 4000])
def test_spe_finds_its_own_model(n_labeled):
    x, y = density_data(4000)
    labeled = np.arange(4000) < n_labeled
    found = sample_densities(
        x[:, None], y[:, None].astype(float), labeled, np.ones(4000), np.arange(4000), seed=0, n_draws=100
    )
    np.testing.assert_allclose(expit(found.odds).mean(), 0.3, atol=0.05)
    np.testing.assert_allclose(found.mean[:, :, 0].mean(axis=1), [-1.5, 2.0], atol=0.15 if n_labeled == 4000 else 0.3)
    np.testing.assert_allclose(
        np.sqrt(found.variance[:, :, 0]).mean(axis=1), [1.0, 1.4], atol=0.1 if n_labeled == 4000 else 0.25
    )


def test_with_all_labels_the_draws_are_those_of_the_conjugate_posterior():
    x, y = density_data(60)
    everything = np.ones(60, dtype=bool)
    found = sample_densities(
        x[:, None], y[:, None].astype(float), everything, np.ones(60), np.arange(60), seed=0, n_draws=3000, thinning=1
    )
    n1 = y.sum()
    np.testing.assert_allclose(expit(found.odds).mean(), (1 + n1) / 62, atol=0.005)
    for k in (0, 1):
        own = x[y == k]
        center = (0.1 * x.mean() + own.sum()) / (0.1 + len(own))
        np.testing.assert_allclose(found.mean[k].mean(), center, atol=0.02)
        rate = 0.5 * x.var() + 0.5 * ((own - own.mean()) ** 2).sum()
        rate += 0.5 * 0.1 * len(own) / (0.1 + len(own)) * (own.mean() - x.mean()) ** 2
        np.testing.assert_allclose(found.variance[k].mean(), rate / (len(own) / 2), rtol=0.03)


def test_probability_of_a_draw_is_bayes_rule():
    x, y = density_data(50)
    known = np.arange(50) < 10
    two = np.stack([x, -x], axis=1)
    outcome = np.repeat(y[:, None], 2, axis=1).astype(float)
    found = sample_densities(two, outcome, known, np.ones(50), np.arange(50), seed=0, n_draws=6)
    chance = found.chance(two[:, 1, None], np.array([2, 5]), 1)
    for j, d in enumerate((2, 5)):
        q = expit(found.odds[d, 1])
        density = [
            np.exp(-((two[:, 1] - found.mean[k, d, 1]) ** 2) / (2 * found.variance[k, d, 1]))
            / np.sqrt(found.variance[k, d, 1])
            for k in (0, 1)
        ]
        np.testing.assert_allclose(chance[:, j], q * density[1] / (q * density[1] + (1 - q) * density[0]))


def test_spe_estimates_accuracy_and_auc_of_a_shifted_score():
    x, y = density_data(3000)
    scores = binary(expit(x - 1.5)[:, None])  # the threshold is off
    codes = np.where(np.arange(3000) < 30, y, -1)
    for metric in ("accuracy", "roc_auc", "ece_positive"):
        truth = evaluate_metric(metric, scores, y)
        assert abs(run("spe", scores, codes, metric)[0] - truth)[0] < 0.04, metric
    without = run("spe", scores, np.full(3000, -1))[0]
    assert abs(without - evaluate_metric("accuracy", scores, y))[0] < 0.06


def test_spe_of_many_classes_is_of_the_votes_being_right():
    random = np.random.default_rng(0)
    right = random.random(2000) < 0.7
    confidence = expit(np.where(right, random.normal(4.0, 1.0, 2000), random.normal(1.5, 1.0, 2000)))  # overconfident
    vote = random.integers(0, 5, 2000)
    truth = np.where(right, vote, (vote + random.integers(1, 5, 2000)) % 5)
    scores = np.repeat((1 - confidence)[:, None, None] / 4, 5, axis=2)
    scores[np.arange(2000), 0, vote] = confidence
    codes = np.where(np.arange(2000) < 200, truth, -1)
    found = run("spe", scores, codes)[0]
    assert abs(found - evaluate_metric("accuracy", scores, truth))[0] < 0.05


def test_spe_of_a_constant_score():
    scores = binary(np.full((40, 1), 0.3))
    codes = np.where(np.arange(40) < 8, np.arange(40) % 2, -1)
    point, draws = run("spe", scores, codes)
    assert 0.2 < point[0] < 0.8 and np.isfinite(draws).all()
    assert logit(0.3) < 0
