"""Every method by name: the same table, and values that were computed on their own."""

from __future__ import annotations

import numpy as np
import pytest

from ssme.baselines import BASELINES, estimate_with
from ssme.metrics import evaluate_metric

COLUMNS = "metric model group estimate lower upper level n_labeled n_unlabeled method flags".split()


def simulate(n=200, n_models=3, n_classes=3, n_labeled=30, seed=0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    logits = random.normal(size=(n, n_models, n_classes))
    logits[np.arange(n), :, truth] += 2
    scores = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return scores, np.where(np.arange(n) < n_labeled, truth, -1), truth


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (3, 4)])
def test_every_method_returns_the_tidy_table(name, shape):
    scores, y, truth = simulate(n_models=shape[0], n_classes=shape[1])
    table = estimate_with(name, scores, y, ["accuracy", "ece"], random_state=0, n_draws=30)
    assert list(table.columns) == COLUMNS and len(table) == 2 * shape[0]
    assert set(table.method) == {name} and (table.n_labeled == 30).all() and (table.n_unlabeled == 170).all()
    assert ((table.lower <= table.estimate) & (table.estimate <= table.upper)).all()
    accuracy = table[table.metric == "accuracy"].estimate.to_numpy()
    np.testing.assert_allclose(accuracy, evaluate_metric("accuracy", scores, truth), atol=0.3)
    assert BASELINES[name].description and BASELINES[name].reference
    again = estimate_with(name, scores, y, ["accuracy", "ece"], random_state=0, n_draws=30)
    np.testing.assert_array_equal(again.estimate, table.estimate)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("n_labeled", [0, 200])
def test_no_labels_and_all_labels(name, n_labeled):
    scores, y, truth = simulate(n_labeled=n_labeled)
    table = estimate_with(name, scores, y, "accuracy", random_state=0, n_draws=30)
    if n_labeled == 200:
        np.testing.assert_allclose(table.estimate, evaluate_metric("accuracy", scores, truth))
    else:
        assert table.estimate.isna().all() == BASELINES[name].needs_labels


def test_mean_score_and_majority_vote_by_hand():
    scores, y, _ = simulate(n=500, n_models=5)
    votes = scores.argmax(axis=2)
    mean, vote = scores.mean(axis=1), np.zeros((500, 3))
    for i in range(500):
        counts = np.bincount(votes[i], minlength=3)
        vote[i] = (counts == counts.max()) / (counts == counts.max()).sum()
    for name, p in (("mean-score", mean), ("majority-vote", vote)):
        p = p.copy()
        p[:30] = np.eye(3)[y[:30]]
        expected = np.take_along_axis(p, votes, axis=1).mean(axis=0)
        table = estimate_with(name, scores, y, "accuracy", random_state=0, n_draws=400)
        np.testing.assert_allclose(table.estimate, expected, atol=0.004)


def test_one_fit_for_each_model_knows_only_that_model():
    scores, y, _ = simulate()
    whole = estimate_with("ssme-m", scores, y, "accuracy", random_state=0, n_draws=20)
    first = estimate_with("ssme-m", scores[:, :1], y, "accuracy", random_state=0, n_draws=20)
    assert whole.estimate[0] == first.estimate[0]


def test_unknown_name():
    scores, y, _ = simulate()
    with pytest.raises(ValueError, match="unknown method 'majority', did you mean 'majority-vote'"):
        estimate_with("majority", scores, y)
