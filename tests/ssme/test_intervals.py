"""Draws of labels as each model sees them, random weights that belong to rows, quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta

from ssme.intervals import draw_metrics, interval, row_ranks, with_jeffreys
from ssme.metrics import get_metric
from ssme.posterior import FixedNode, LabelPosterior, draw_hard


def posterior_of(responsibilities, codes, votes, tilt=None, noise=None, n_draws=4, hard=False):
    m = votes.shape[1]
    return LabelPosterior(
        FixedNode(responsibilities),
        np.zeros(n_draws, dtype=np.int64),
        codes,
        votes,
        np.zeros(m) if tilt is None else tilt,
        np.zeros((n_draws, m)) if noise is None else noise,
        hard,
    )


def example(n_classes, n=30, seed=0):
    random = np.random.default_rng(seed)
    r = random.dirichlet(np.ones(n_classes), n)
    scores = random.dirichlet(np.ones(n_classes), (n, 2))
    codes = np.where(np.arange(n) < 5, random.integers(0, n_classes, n), -1)
    return r, scores, codes


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_view_tilts_the_models_own_vote(n_classes):
    r, scores, codes = example(n_classes)
    votes, tilt = scores.argmax(axis=2), np.array([0.7, -0.4, 0.0, 1.0])
    view = posterior_of(r, codes, votes).block(slice(0, 4)).view(1, tilt, None)
    for d in range(4):
        expected = r.copy()
        for i in range(len(r)):
            expected[i, votes[i, 1]] *= np.exp(tilt[d])
        expected /= expected.sum(axis=1, keepdims=True)
        expected[:5] = np.eye(n_classes)[codes[:5]]
        np.testing.assert_allclose(view.labels[d], expected, atol=1e-7)
        for k in range(n_classes):
            np.testing.assert_allclose(view.column(k)[:, d], expected[:, k], atol=1e-7)
        if n_classes > 2:
            for v in (votes[:, 1], votes[:, 0]):
                np.testing.assert_allclose(view.hits(v)[:, d], expected[np.arange(len(r)), v], atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_hard_labels_follow_the_probabilities(n_classes):
    r, scores, codes = example(n_classes, n=8)
    posterior = posterior_of(r, np.full(8, -1), scores.argmax(axis=2), n_draws=4000)
    soft = posterior.block(slice(0, 4000)).view(0, np.zeros(4000), None)
    hard = draw_hard(soft, np.random.default_rng(0).random((8, 4000)))
    np.testing.assert_allclose(hard.labels.mean(axis=0), r, atol=0.04)
    assert set(np.unique(hard.labels)) == {0.0, 1.0}


def test_mean_hits_has_the_tilt():
    r, scores, codes = example(3)
    votes, tilt = scores.argmax(axis=2), np.array([0.5, -1.0])
    expected = expit(logit(np.take_along_axis(r, votes, axis=1)) + tilt)
    np.testing.assert_allclose(posterior_of(r, codes, votes, tilt).mean_hits(), expected, atol=1e-7)


def test_blocks_of_draws_do_not_matter(monkeypatch):
    r, scores, codes = example(3)
    posterior = posterior_of(
        r, codes, scores.argmax(axis=2), n_draws=20, noise=np.random.default_rng(0).normal(size=(20, 2))
    )
    specs = [get_metric(name, 3) for name in ("accuracy", "ece", "roc_auc")]
    arguments = (specs, scores, posterior, np.ones(30), row_ranks(scores, codes, np.ones(30)), 7)
    whole = draw_metrics(*arguments)
    monkeypatch.setattr("ssme.intervals.BLOCK_ELEMENTS", 300)
    for (point, draws), (point_2, draws_2) in zip(whole, draw_metrics(*arguments), strict=True):
        np.testing.assert_allclose(point_2, point, atol=1e-12)
        np.testing.assert_allclose(draws_2, draws, atol=1e-12)


def test_known_labels_give_the_jeffreys_posterior():
    n, right = 25, 20
    scores = np.zeros((n, 1, 2))
    scores[:, 0, 1] = np.random.default_rng(0).uniform(0.6, 0.9, n)
    scores[:, 0, 0] = 1 - scores[:, 0, 1]
    codes = (np.arange(n) < right).astype(np.int64)
    posterior = posterior_of(np.eye(2)[codes], codes, scores.argmax(axis=2), n_draws=4000)
    [(point, draws)] = draw_metrics(
        [get_metric("accuracy", 2)], scores, posterior, np.ones(n), row_ranks(scores, codes, np.ones(n)), 0
    )
    assert point[0] == pytest.approx(right / n)
    low, high = interval(draws, point, 0.9)
    np.testing.assert_allclose([low[0], high[0]], beta(right + 0.5, n - right + 0.5).ppf([0.05, 0.95]), atol=0.01)
    mass = np.array([10.0])
    assert with_jeffreys(np.array([[1.0]]), mass, np.array([[0.5, 0.5]]))[0, 0] == pytest.approx(10.5 / 11)


def test_row_ranks_belong_to_the_rows():
    r, scores, codes = example(3, n=50)
    weights = np.random.default_rng(0).integers(1, 3, 50).astype(float)
    rank = row_ranks(scores, codes, weights)
    assert sorted(rank) == list(range(50))
    order = np.random.default_rng(1).permutation(50)
    np.testing.assert_array_equal(row_ranks(scores[order], codes[order], weights[order]), rank[order])
    np.testing.assert_array_equal(row_ranks(scores[:, ::-1], codes, weights), rank)
    np.testing.assert_array_equal(row_ranks(scores[:, :, [2, 0, 1]], codes, weights), rank)
    # mirrored rows differ by the second key alone, and still do not depend on their place
    mirrored = np.array([[[0.3, 0.7]], [[0.7, 0.3]]])
    codes, weights = np.array([-1, -1]), np.ones(2)
    first = row_ranks(mirrored, codes, weights)
    np.testing.assert_array_equal(row_ranks(mirrored[::-1].copy(), codes, weights), first[::-1])


def test_interval_holds_the_estimate_and_skips_undefined_draws():
    draws = np.array([[0.1, np.nan, 0.5], [0.2, 0.4, 0.5], [0.3, 0.6, 0.5]])
    low, high = interval(draws, np.array([0.9, 0.5, np.nan]), 0.5)
    np.testing.assert_allclose(low[:2], [0.15, 0.45])
    np.testing.assert_allclose(high[:2], [0.9, 0.55])
    assert np.isnan(low[2]) and np.isnan(high[2])


def test_calibration_draws_are_not_pushed_away_from_the_estimate():
    random = np.random.default_rng(0)
    n = 400
    p1 = random.uniform(0.02, 0.98, n)
    scores = np.stack([1 - p1, p1], axis=1)[:, None]
    codes = np.full(n, -1)
    posterior = posterior_of(scores[:, 0], codes, scores.argmax(axis=2), n_draws=200)
    [(point, draws)] = draw_metrics(
        [get_metric("ece", 2)], scores, posterior, np.ones(n), row_ranks(scores, codes, np.ones(n)), 0
    )
    assert point[0] == pytest.approx(0, abs=1e-6)  # the posterior is the score itself: perfectly calibrated
    assert interval(draws, point, 0.9)[0][0] == pytest.approx(0, abs=1e-6)
