"""The sampling design: its probabilities are those that it states, and estimates with its weights are unbiased."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssme.label_design import (
    FLOOR,
    added_probability,
    draw_systematic,
    inclusion_probability,
    label_effects,
    label_weights,
    suggest_labels,
)
from ssme.posterior import FixedNode, LabelPosterior

SUREST = 0.999


def posterior_of(second, codes=None, n_models=1):
    """A posterior of binary rows with P(class 1) as given, and models that all vote for the likelier class."""
    n = len(second)
    return LabelPosterior(
        node=FixedNode(np.stack([1 - second, second], axis=1)),
        node_of=np.zeros(10, dtype=np.int64),
        codes=np.full(n, -1) if codes is None else codes,
        votes=np.repeat((second > 0.5).astype(np.int64)[:, None], n_models, axis=1),
        tilt=np.zeros(n_models),
        tilt_noise=np.zeros((10, n_models)),
    )


@pytest.fixture
def second():
    return np.clip(np.random.default_rng(0).beta(0.3, 0.5, 300), 1 - SUREST, SUREST)


@given(st.integers(0, 10_000), st.integers(1, 39), st.booleans())
def test_probabilities_add_to_the_size_and_stay_below_one(seed, k, second_batch):
    random = np.random.default_rng(seed)
    effect, before, free = random.gamma(0.3, size=40) + 1e-9, np.zeros(40), np.ones(40, dtype=bool)
    if second_batch:
        before = random.uniform(0.0, 0.9, 40)
        free[random.integers(0, 40)] = False
    added = added_probability(effect, before, free, k)
    assert added[free].sum() == pytest.approx(k, abs=1e-6)
    assert ((added >= 0) & (added <= 1)).all()


def test_all_batches_together_come_to_the_aim():
    effect = np.array([4.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    before = np.full(6, 0.1)
    free = np.ones(6, dtype=bool)
    after = before + (1 - before) * added_probability(effect, before, free, 2)
    assert np.allclose(after / effect, after[0] / effect[0])  # in proportion to the effects
    # with more labels than that the largest is certain, and the others share the rest in proportion
    after = before + (1 - before) * added_probability(effect, before, free, 3)
    assert after[0] == 1 and np.allclose(after[1:] / effect[1:], after[1] / effect[1])


@given(st.integers(0, 10_000))
def test_weights_and_probabilities_are_inverse(seed):
    random = np.random.default_rng(seed)
    p = random.uniform(0.01, 1.0, 50)
    p *= 20 / p.sum()
    p = np.minimum(p, 1.0)
    codes = np.where(np.arange(50) < round(p.sum()), 0, -1)
    p *= (codes >= 0).sum() / p.sum()
    if p.max() <= 1:
        assert np.allclose(inclusion_probability(codes, np.ones(50), label_weights(p)), p, atol=1e-8)


def test_a_label_drawn_at_random_weighs_one():
    codes = np.where(np.arange(100) < 20, 1, -1)
    p = inclusion_probability(codes, np.ones(100))
    assert np.allclose(p, 0.2) and np.allclose(label_weights(p), 1.0)
    assert (inclusion_probability(np.full(9, -1), np.ones(9)) == 0).all()
    assert np.allclose(label_weights(np.ones(5)), 1.0)


def test_weights_by_hand():
    # (1 - P) / P is 1 and 4; the scale brings sum P v to sum P = 1.4
    assert np.allclose(label_weights(np.array([0.5, 0.5, 0.2, 0.2])), np.array([1, 1, 4, 4]) * 1.4 / 2.6)
    assert label_weights(np.array([1.0, 0.5]))[0] == 0  # stands for itself alone


def test_systematic_draws_have_the_stated_probabilities():
    random = np.random.default_rng(0)
    p = np.array([0.05, 0.9, 0.3, 1.0, 0.25, 0.5])
    drawn = [draw_systematic(p, np.array([3, 1, 0, 2, 5, 4]), random) for _ in range(8000)]
    assert all(len(np.unique(rows)) == 3 for rows in drawn)
    share = np.bincount(np.concatenate(drawn), minlength=6) / 8000
    assert np.allclose(share, p, atol=4 * np.sqrt(0.25 / 8000))


def test_batch_is_drawn_with_its_probabilities(second):
    posterior, drawn, stated = posterior_of(second), np.zeros(300), np.zeros(300)
    for seed in range(1000):
        batch = suggest_labels(posterior, np.ones(300), 30, seed=seed)
        assert len(batch) == 30 and (np.diff(batch.rows) > 0).all()
        drawn[batch.rows] += 1
        stated[batch.rows] = batch.probability
    seen = stated > 0
    z = (drawn[seen] / 1000 - stated[seen]) / np.sqrt(stated[seen] * (1 - stated[seen]) / 1000 + 1e-12)
    assert seen.mean() > 0.95 and np.abs(z).max() < 4.5


def test_uncertain_rows_are_drawn_more_and_none_is_left_out(second):
    effects = label_effects(posterior_of(second), np.ones(300))
    sd = np.sqrt(second * (1 - second))
    assert np.allclose(effects, (1 - FLOOR) * sd / sd.mean() + FLOOR)
    assert effects.min() >= FLOOR


def test_the_models_that_matter_decide():
    second = np.full(100, 0.9)
    posterior = posterior_of(second, n_models=2)
    votes = np.ones((100, 2), dtype=np.int64)
    tilt = np.array([0.0, 5.0])  # the second model is right nearly always
    posterior = LabelPosterior(posterior.node, posterior.node_of, posterior.codes, votes, tilt, posterior.tilt_noise)
    weights = np.where(np.arange(100) < 50, 2.0, 1.0)
    one, other = (label_effects(posterior, weights, [m]) for m in (0, 1))
    assert np.allclose(one, other) and np.allclose(one[:50], 2 * one[50:][0])  # rows that count twice
    both = label_effects(posterior, np.ones(100))
    assert np.allclose(both, 1.0)


def labels_and_truth(second, seed=5):
    """Labels of rows whose probabilities the posterior has wrong: it is too sure of itself."""
    log_odds = 0.5 * np.log(second / (1 - second)) - 0.4
    return (np.random.default_rng(seed).random(len(second)) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)


def run_batches(second, truth, sizes, seed):
    """Codes after a first random batch and suggested ones, and the weights of the labels."""
    n, random = len(second), np.random.default_rng([seed, 1])
    codes = np.full(n, -1)
    if sizes[0]:
        first = random.permutation(n)[: sizes[0]]
        codes[first] = truth[first]
    weight = None
    for number, k in enumerate(sizes[1:]):
        batch = suggest_labels(posterior_of(second, codes), np.ones(n), k, label_weight=weight, seed=[seed, number])
        codes, weight = codes.copy(), batch.label_weight
        codes[batch.rows] = truth[batch.rows]
    return codes, weight


@pytest.mark.parametrize("sizes", [(0, 40), (15, 25), (10, 15, 15)])
def test_estimates_are_unbiased_under_the_design(second, sizes):
    """The total over all rows, and what the posterior has wrong on the rows that stay unlabeled, are hit on average."""
    truth = labels_and_truth(second)
    wrong = truth - second
    totals, gaps, plain = [], [], []
    for seed in range(600):
        codes, weight = run_batches(second, truth, sizes, seed)
        labeled, p = codes >= 0, inclusion_probability(codes, np.ones(300), weight)
        totals.append((truth[labeled] / p[labeled]).sum() / 300)
        u = weight[labeled] / weight[labeled].sum()
        gaps.append(u @ wrong[labeled] - wrong[~labeled].mean())
        plain.append(wrong[labeled].mean() - wrong[~labeled].mean())
    totals, gaps, plain = map(np.array, (totals, gaps, plain))
    noise = np.array([each.std() / np.sqrt(600) for each in (totals, gaps, plain)])
    assert abs(totals.mean() - truth.mean()) < 4 * noise[0]
    assert abs(gaps.mean()) < 4 * noise[1] + 0.004  # a ratio of two sums: unbiased up to 1 / n_labeled
    assert abs(plain.mean()) > 4 * noise[2]  # without the weights the design would bias the estimate
    assert gaps.std() < 1.1 * plain.std() + 0.02


def test_the_design_is_worth_more_labels():
    """Variance of the weighted correction against that of as many random labels."""
    second = np.clip(np.random.default_rng(0).beta(0.15, 0.2, 300), 1 - SUREST, SUREST)
    truth = (np.random.default_rng(3).random(300) < second).astype(np.int64)  # here the posterior is right
    wrong, errors = truth - second, {"design": [], "random": []}
    for seed in range(800):
        codes, weight = run_batches(second, truth, (0, 40), seed)
        labeled = codes >= 0
        p = inclusion_probability(codes, np.ones(300), weight)[labeled]
        errors["design"].append((wrong[labeled] / p).sum() / 300 - wrong.mean())
        rows = np.random.default_rng([seed, 2]).permutation(300)[:40]
        errors["random"].append(wrong[rows].mean() - wrong.mean())
    effects = label_effects(posterior_of(second), np.ones(300))
    p = added_probability(effects, np.zeros(300), np.ones(300, dtype=bool), 40)
    expected = ((1 - p) / p * wrong**2).sum() / ((300 / 40 - 1) * ((wrong - wrong.mean()) ** 2).sum())
    measured = np.var(errors["design"]) / np.var(errors["random"])
    assert expected < 0.7 and measured < 1.25 * expected  # the order along the scores takes a little more off


def test_rows_without_weight_and_labeled_rows_are_not_suggested(second):
    weights = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    codes = np.where(np.arange(300) < 50, 0, -1)
    batch = suggest_labels(posterior_of(second, codes), weights, 60, seed=0)
    assert (batch.rows >= 50).all() and (batch.rows % 3 != 0).all() and len(batch) == 60
    everything = suggest_labels(posterior_of(second, codes), np.ones(300), 250, seed=0)
    assert list(everything.rows) == list(range(50, 300)) and np.allclose(everything.probability, 1)


def test_rows_that_were_suggested_and_left_unlabeled_can_come_again(second):
    batch = suggest_labels(posterior_of(second), np.ones(300), 100, seed=0)
    codes = np.full(300, -1)
    codes[batch.rows[:50]] = 1
    again = suggest_labels(posterior_of(second, codes), np.ones(300), 250, label_weight=batch.label_weight, seed=1)
    assert len(again) == 250 and np.isfinite(again.label_weight).all()


def test_more_than_two_classes():
    r = np.random.default_rng(0).dirichlet([0.3] * 4, 200)
    posterior = LabelPosterior(
        FixedNode(r),
        np.zeros(4, dtype=np.int64),
        np.full(200, -1),
        r.argmax(axis=1)[:, None],
        np.zeros(1),
        np.zeros((4, 1)),
    )
    batch = suggest_labels(posterior, np.ones(200), 20, seed=0)
    assert r.max(axis=1)[batch.rows].mean() < r.max(axis=1).mean()


def test_batch_as_a_table_and_the_same_seed(second):
    batch = suggest_labels(posterior_of(second), np.ones(300), 10, seed=3)
    ids = np.array([f"row-{i}" for i in range(300)])
    table = batch.to_frame(ids)
    assert list(table.columns) == ["row", "id", "probability", "label_weight"] and list(table.id) == list(
        ids[batch.rows]
    )
    assert list(batch.to_frame().columns) == ["row", "probability", "label_weight"]
    again = suggest_labels(posterior_of(second), np.ones(300), 10, seed=3)
    assert (again.rows == batch.rows).all()


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_k_must_be_a_whole_number(second, k):
    with pytest.raises(ValueError, match="k must be a whole number"):
        suggest_labels(posterior_of(second), np.ones(300), k)


def test_k_is_at_most_what_is_left(second):
    with pytest.raises(ValueError, match="250 rows have no label yet"):
        suggest_labels(posterior_of(second, np.where(np.arange(300) < 50, 0, -1)), np.ones(300), 251)
