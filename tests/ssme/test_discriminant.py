"""The pool of clusters: what it finds, when it stays out, and that it does not depend on the order of things."""

from __future__ import annotations

import numpy as np
import pytest

from ssme import SSME
from ssme.consensus._discriminant import MOVED, DiscriminantPool, discriminant_pool
from ssme.consensus._pool import vote_shares
from ssme.transforms import softmax


def family(n: int = 900, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Fifteen models (n, 15, 3): ten of them share something that misleads them, five are nearly free of it."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    signal = 3.0 * np.eye(3)[truth] + rng.normal(0, 0.8, (n, 3))
    misleading = rng.normal(0, 1.5, (n, 3))
    power = np.r_[np.full(10, 1.0), np.full(5, 0.2)]
    logits = signal[:, None] + power[:, None] * misleading[:, None] + rng.normal(0, 0.5, (n, 15, 3))
    return softmax(1.5 * logits), truth


def pool_of(p: np.ndarray) -> DiscriminantPool | None:
    return discriminant_pool(p, vote_shares(p.argmax(axis=2), p.shape[2]), np.ones(len(p)))


def test_errors_that_most_models_share_are_seen_through() -> None:
    p, truth = family()
    found = pool_of(p)
    assert found is not None and found.weight > 0.5
    own, mean = (scores.argmax(axis=1) == truth for scores in (found.log_scores(p), p.mean(axis=1)))
    assert own.mean() > mean.mean() + 0.02


def test_differences_between_models_are_no_longer_shrunk() -> None:
    p, truth = family()
    y = np.where(np.arange(len(p)) < 30, truth, -1)
    true = (p.argmax(axis=2) == truth[:, None]).mean(axis=0)
    gap = true[10:].mean() - true[:10].mean()
    errors = {}
    for consensus in ("mean", "discriminant"):
        point = SSME(consensus=consensus, random_state=0).fit(p, y).posterior_draws("accuracy")[0].point
        errors[consensus] = abs(point[10:].mean() - point[:10].mean() - gap)
    assert gap > 0.05 and errors["discriminant"] < 0.6 * errors["mean"]


def test_rows_are_scored_one_by_one_and_orders_do_not_matter() -> None:
    p, _ = family(400)
    found = pool_of(p)
    whole = found.log_scores(p)
    assert found.log_scores(p[::7]) == pytest.approx(whole[::7], abs=1e-9) and (whole.max(axis=1) == 0).all()
    models, classes = np.random.default_rng(0).permutation(15), np.array([2, 0, 1])
    turned = p[:, models][:, :, classes]
    assert pool_of(turned).log_scores(turned) == pytest.approx(whole[:, classes], abs=1e-4)


def test_repeated_rows_and_weights_are_the_same() -> None:
    p, _ = family(300)
    weights = np.random.default_rng(1).integers(1, 3, 300)
    twice = np.repeat(p, weights, axis=0)
    weighted = discriminant_pool(p, vote_shares(p.argmax(axis=2), 3), weights.astype(float))
    assert weighted.log_scores(p) == pytest.approx(pool_of(twice).log_scores(p), abs=1e-3)


def test_it_stays_out_where_clusters_are_not_the_classes() -> None:
    p, _ = family()
    assert pool_of(p[:30]) is None  # too few rows
    assert pool_of(p[:, :1]) is None  # one model
    assert pool_of(np.concatenate([p, np.full((900, 15, 1), 1e-9)], axis=2)) is None  # a class that nobody votes for
    rng = np.random.default_rng(0)
    noise = softmax(0.3 * rng.normal(size=(600, 15, 3)))
    found = pool_of(noise)
    assert found is None or found.weight < 0.5
    assert 0 < MOVED < 0.5


def test_the_estimator_takes_it_and_says_what_is_wrong() -> None:
    p, truth = family(300)
    y = np.where(np.arange(300) < 20, truth, -1)
    model = SSME(consensus="discriminant", random_state=0).fit(p, y)
    assert model.predict_proba(p[:5]).sum(axis=1) == pytest.approx(np.ones(5))
    assert (model.predict(p) == truth).mean() > 0.9
    with pytest.raises(ValueError, match="consensus must be one of 'mean', 'discriminant'"):
        SSME(consensus="median").fit(p, y)


def test_joint_draws_of_the_labels_alone_come_last() -> None:
    p, truth = family(300)
    model = SSME(random_state=0).fit(p, np.where(np.arange(300) < 20, truth, -1))
    first, last = model.posterior_draws("accuracy", labeled_only=True)
    assert (first.method, last.method) == ("ssme", "labeled-only") and last.draws.shape[1] == 15
    right = (p.argmax(axis=2) == truth[:, None])[:20].mean(axis=0)
    assert last.point == pytest.approx(right)
