"""The consensus, against routines written out naively: pools, clues, the posterior of the temperature, the bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

from ssme.consensus import (
    Pool,
    agreement_with_others,
    consensus_pools,
    fit_bias,
    fit_consensus,
    hit_covariance,
    model_bias,
    systematic,
    tilt_for_shift,
    votes_of,
)
from ssme.consensus import _temperature as temperature
from ssme.consensus._pool import dependence, independent_accuracy, scale_to_confidence, vote_shares


def simulate(n=200, n_models=3, n_classes=3, seed=0, strength=2.0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    logits = random.normal(size=(n, n_models, n_classes))
    logits[np.arange(n), :, truth] += strength
    p = np.exp(logits - logsumexp(logits, axis=2, keepdims=True))
    return p, truth


def test_agreement_and_shares():
    p, _ = simulate()
    votes, w = votes_of(p), np.random.default_rng(1).integers(1, 4, 200).astype(float)
    expected = [
        np.mean([np.average(votes[:, i] == votes[:, j], weights=w) for j in range(3) if j != i]) for i in range(3)
    ]
    np.testing.assert_allclose(agreement_with_others(votes, 3, w), expected)
    shares = vote_shares(votes, 3)
    np.testing.assert_allclose(shares, [[np.mean(row == k) for k in range(3)] for row in votes])
    assert np.isnan(agreement_with_others(votes[:, :1], 3, w)).all()


def test_pool_is_the_mean_probability():
    p, _ = simulate()
    log_scores = Pool(1.0).log_scores(p)
    back = np.exp(log_scores) / np.exp(log_scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(back, p.mean(axis=1))
    np.testing.assert_allclose(log_scores.max(axis=1), 0)


def test_models_are_scaled_to_a_confidence():
    p, _ = simulate()
    target = np.array([0.5, 0.8, 0.97])
    g = scale_to_confidence(p, target, np.ones(200))
    scaled = p ** np.exp(g)[:, None]
    scaled /= scaled.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(scaled.max(axis=2).mean(axis=0), target, atol=1e-4)


def test_second_pool_only_for_confidences_on_different_scales():
    p, _ = simulate(n_classes=8)
    assert len(consensus_pools(p, votes_of(p), np.ones(200))) == 1
    assert len(consensus_pools(p[:, :1], votes_of(p[:, :1]), np.ones(200))) == 1
    q = p ** np.array([0.01, 1.0, 15.0])[:, None]
    q /= q.sum(axis=2, keepdims=True)
    pools = consensus_pools(q, votes_of(q), np.ones(200))
    assert pools[-1].log_temperatures is not None and pools[-1].weight > 0.9


@pytest.mark.parametrize(("n_models", "n_classes"), [(3, 2), (5, 4)])
def test_independent_errors_are_recognised(n_models, n_classes):
    p, truth = simulate(3000, n_models, n_classes)
    accuracy = np.mean(votes_of(p) == truth[:, None])
    assert independent_accuracy(votes_of(p), n_classes, np.ones(3000)) == pytest.approx(accuracy, abs=0.02)
    assert dependence(p, votes_of(p), np.ones(3000)) < 0.1
    # the same rows are hard for all models: shared noise on every row
    random = np.random.default_rng(2)
    shared = np.log(p) + random.normal(scale=2.0, size=(3000, 1, n_classes))
    q = np.exp(shared - logsumexp(shared, axis=2, keepdims=True))
    assert dependence(q, votes_of(q), np.ones(3000)) > 0.5
    assert dependence(np.eye(n_classes)[votes_of(p)], votes_of(p), np.ones(3000)) == 1.0


def test_consensus_reaches_its_target():
    p, _ = simulate()
    log_scores, shares, w = Pool(1.0).log_scores(p), vote_shares(votes_of(p), 3), np.ones(200)
    g = temperature.temperature_for(log_scores, shares, 0.7, w)
    r = temperature.responsibilities(log_scores, g, 0.0)
    assert np.mean([r[i, votes_of(p)[i]].mean() for i in range(200)]) == pytest.approx(0.7, abs=1e-5)


def test_unreachable_targets_leave_a_usable_prior():
    # two good models and one that guesses: no consensus makes all three as good as agreement of the good two
    p, truth = simulate(500, 3, 5, strength=5.0)
    p[:, 2] = np.roll(p[:, 2], 1, axis=0)
    found = fit_consensus(p, np.full(500, -1), np.ones(500), np.ones(500), np.arange(500), 100)
    assert found.nodes.log_temperature.max() < 6
    accuracy = np.mean(votes_of(p) == truth[:, None])
    assert found.prior_accuracy == pytest.approx(accuracy, abs=0.1)


def _naive_prior(g, prior):
    total = 0.0
    for center, weight in zip(prior.centers, prior.weights, strict=True):
        for scale, share in zip(temperature.SCALES, temperature.SCALE_WEIGHTS, strict=True):
            total = total + weight * share * norm.pdf(g, center, np.hypot(scale, temperature.RELATIVE_SCALE * center))
    return total


@pytest.mark.parametrize("n_classes", [2, 4])
def test_posterior_of_the_temperature_by_brute_force(n_classes):
    p, truth = simulate(60, 3, n_classes)
    log_scores = Pool(1.0).log_scores(p)
    prior = temperature.TemperaturePrior(np.array([0.0, 0.4, 0.9]), np.array([0.5, 0.3, 0.2]))
    nodes, evidence = temperature.posterior_nodes(log_scores, truth, np.ones(60), prior)
    g = np.linspace(-4, 8, 6001)
    offsets = np.linspace(-6, 6, 241) if n_classes == 2 else np.zeros(1)
    log_joint = np.empty((len(g), len(offsets)))
    for j, a in enumerate(offsets):
        z = np.exp(g)[:, None, None] * log_scores
        if n_classes == 2:
            u = z[..., 1] - z[..., 0] + a
            likelihood = np.log(expit(np.where(truth == 1, u, -u))).sum(axis=1)
        else:
            likelihood = (z[:, np.arange(60), truth] - logsumexp(z, axis=2)).sum(axis=1)
        log_joint[:, j] = np.log(_naive_prior(g, prior)) + 0.5 * likelihood
        log_joint[:, j] += norm.logpdf(a) if n_classes == 2 else 0.0
    weight = np.exp(log_joint - log_joint.max())
    weight /= weight.sum()
    mean = (weight.sum(axis=1) * g).sum()
    spread = np.sqrt((weight.sum(axis=1) * (g - mean) ** 2).sum())
    assert nodes.weight @ nodes.log_temperature == pytest.approx(mean, abs=0.01)
    found = np.sqrt(nodes.weight @ (nodes.log_temperature - nodes.weight @ nodes.log_temperature) ** 2)
    assert found == pytest.approx(spread, rel=0.05)
    if n_classes == 2:
        assert nodes.weight @ nodes.offset == pytest.approx((weight.sum(axis=0) * offsets).sum(), abs=0.02)
    step = (g[1] - g[0]) * (offsets[1] - offsets[0] if n_classes == 2 else 1.0)
    density = _naive_prior(g, prior).sum() * (g[1] - g[0])
    assert evidence == pytest.approx(logsumexp(log_joint) + np.log(step) - np.log(density), abs=0.03)


def test_hit_covariance_is_that_of_drawn_labels():
    p, _ = simulate(40, 3, 3)
    r, votes = p.mean(axis=1), votes_of(p)
    hits = np.take_along_axis(r, votes, axis=1)
    expected = np.zeros((3, 3))
    for i in range(40):
        for k in range(3):
            right = (votes[i] == k) - hits[i]
            expected += r[i, k] * np.outer(right, right) / 40
    np.testing.assert_allclose(hit_covariance(hits, votes, np.ones(40)), expected, atol=1e-12)


def test_bias_of_one_model_is_the_conjugate_answer():
    for n_labeled in (20.0, 500.0):
        found = model_bias(np.array([0.1]), np.array([[0.16]]), np.array([0.8]), n_labeled, 500.0, ((300.0, 1.0),))
        assert found.expected[0] == pytest.approx(0.1 * n_labeled / (n_labeled + 500), rel=1e-4)
        assert found.covariance[0, 0, 0] == pytest.approx(0.16 / (n_labeled + 500), rel=1e-3)
    prior = model_bias(np.zeros(1), np.array([[0.16]]), np.array([0.8]), 0.0, 500.0, ((300.0, 1.0),))
    assert prior.expected[0] == 0 and prior.covariance[0, 0, 0] == pytest.approx(0.16 / 500)


def test_bias_goes_to_the_residual_with_many_labels_and_is_equivariant():
    p, _ = simulate(100, 4, 3)
    votes = votes_of(p)
    hits = np.take_along_axis(p.mean(axis=1), votes, axis=1)
    covariance, residual = hit_covariance(hits, votes, np.ones(100)), np.array([0.05, -0.02, 0.1, 0.0])
    many = model_bias(residual, covariance, hits.mean(axis=0), 1e6)
    np.testing.assert_allclose(many.expected, residual, atol=2e-3)
    few = model_bias(residual, covariance, hits.mean(axis=0), 20)
    assert np.all(np.abs(few.expected) < 0.5 * np.abs(residual).max())
    order = [2, 0, 3, 1]
    turned = model_bias(residual[order], covariance[np.ix_(order, order)], hits.mean(axis=0)[order], 20)
    np.testing.assert_allclose(turned.expected, few.expected[order], atol=1e-10)
    normal = np.random.default_rng(0).normal(size=(50, 4))
    component = np.zeros(50, dtype=int)
    np.testing.assert_allclose(
        turned.draws(normal[:, order], component), few.draws(normal, component)[:, order], atol=1e-8
    )


def test_tilt_moves_the_mean():
    hits = np.random.default_rng(0).beta(4, 1, size=(300, 3))
    w = np.random.default_rng(1).random(300)
    shift = np.array([0.05, -0.1, 5.0])
    tilt = tilt_for_shift(hits, shift, w)
    moved = np.average(expit(np.log(hits / (1 - hits)) + tilt), axis=0, weights=w) - np.average(hits, axis=0, weights=w)
    np.testing.assert_allclose(moved[:2], shift[:2], atol=1e-8)
    assert np.average(hits[:, 2], weights=w) + moved[2] == pytest.approx(0.998, abs=1e-6)


def test_systematic_draws():
    chosen = systematic(np.array([0.5, 0.0, 0.3, 0.2]), 10)
    assert np.bincount(chosen, minlength=4).tolist() == [5, 0, 3, 2]


def test_labels_pull_the_consensus():
    p, truth = simulate(400, 3, 3)
    wrong = (truth + 1) % 3
    accuracy = []
    for y in (truth, wrong):
        codes = np.where(np.arange(400) < 40, y, -1)
        nodes = fit_consensus(p, codes, np.ones(400), np.ones(400), np.arange(400), 100).nodes
        mean = nodes.mean(p)
        bias, tilt, slope = fit_bias(mean, votes_of(p), codes, np.ones(400), np.ones(400), np.arange(400))
        accuracy.append(np.take_along_axis(mean, votes_of(p), axis=1).mean())
        assert np.sign(tilt).tolist() == np.sign(bias.expected).tolist() and (slope > 0).all()
    assert accuracy[0] > accuracy[1] + 0.2


def test_bias_of_a_covariance_with_a_negative_value_by_rounding() -> None:
    covariance = np.array([[0.2, 0.2, 0.2], [0.2, 0.2, 0.2], [0.2, 0.2, 0.2 - 1e-3]])
    with np.errstate(all="raise"):
        found = model_bias(np.full(3, 0.1), covariance, np.full(3, 0.8), 1.0, 1.0, ((1.0, 1.0),))
    assert np.isfinite(found.mean).all() and np.isfinite(found.covariance).all()
