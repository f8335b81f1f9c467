"""Rivals that label every row: against versions written again, plainly, and against crowd-kit where it is there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ssme.baselines import BASELINES
from ssme.baselines._dawid_skene import run_dawid_skene
from ssme.baselines._label_draws import metrics_of_own_labels, metrics_of_shared_labels
from ssme.baselines._majority_vote import winners
from ssme.baselines._pseudo_labeling import predicted_labels
from ssme.metrics import METRICS, LabelDraws, evaluate_metric, get_metric
from ssme.posterior import HardDraws, draw_codes


def simulate(n=200, n_models=5, n_classes=3, n_labeled=30, seed=0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    logits = random.normal(size=(n, n_models, n_classes))
    logits[np.arange(n), :, truth] += np.linspace(0.5, 2.0, n_models)
    scores = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return scores, np.where(np.arange(n) < n_labeled, truth, -1), truth


def accuracy_of(p, scores, codes):
    """Expected accuracy (M,) when labels are drawn from p (n, K) and known ones kept."""
    p = p.copy()
    for i in np.flatnonzero(codes >= 0):
        p[i] = 0.0
        p[i, codes[i]] = 1.0
    return np.array([np.mean([p[i, scores[i, m].argmax()] for i in range(len(p))]) for m in range(scores.shape[1])])


def run(name, scores, codes, metric="accuracy", n_draws=400):
    spec = get_metric(metric, scores.shape[2])
    return BASELINES[name].function([spec], scores, codes, np.ones(len(codes)), seed=0, n_draws=n_draws)[0]


def test_mean_score():
    scores, codes, _ = simulate()
    point, draws = run("mean-score", scores, codes)
    np.testing.assert_allclose(point, accuracy_of(scores.mean(axis=1), scores, codes), atol=0.006)
    assert draws.shape == (400, 5) and draws.std(axis=0).min() > 0.02


def test_majority_vote_shares_ties():
    scores, codes, _ = simulate(n_models=4)
    p = np.zeros((200, 3))
    for i, row in enumerate(scores.argmax(axis=2)):
        counts = np.bincount(row, minlength=3)
        p[i, counts == counts.max()] = 1 / np.sum(counts == counts.max())
    assert ((p > 0).sum(axis=1) > 1).any()
    np.testing.assert_allclose(run("majority-vote", scores, codes)[0], accuracy_of(p, scores, codes), atol=0.006)


def test_weighted_vote():
    scores, codes, _ = simulate()
    votes = scores.argmax(axis=2)
    weight = [np.mean(votes[:30, m] == codes[:30]) for m in range(5)]
    p = np.zeros((200, 3))
    for i in range(200):
        totals = [sum(weight[m] for m in range(5) if votes[i, m] == k) for k in range(3)]
        p[i, int(np.argmax(totals))] = 1.0
    np.testing.assert_allclose(run("weighted-vote", scores, codes)[0], accuracy_of(p, scores, codes), rtol=1e-12)


def test_weighted_vote_where_no_model_is_ever_right_is_the_majority():
    scores, codes, _ = simulate(n_labeled=3)
    codes[:3] = (scores[:3, 0].argmax(axis=1) + 1) % 3
    scores[:3] = scores[:3, :1]
    for weighted, plain in zip(run("weighted-vote", scores, codes), run("majority-vote", scores, codes), strict=True):
        np.testing.assert_array_equal(weighted, plain)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pseudo_labeling(n_classes):
    scores, codes, _ = simulate(n_classes=n_classes)
    x = scores[:, :, 1] if n_classes == 2 else scores.reshape(200, -1)
    label = LogisticRegression(max_iter=1000).fit(x[:30], codes[:30]).predict(x)
    label[:30] = codes[:30]
    for metric in ("accuracy", "ece", "roc_auc"):
        expected = evaluate_metric(metric, scores, label)
        np.testing.assert_allclose(run("pseudo-labeling", scores, codes, metric, 3)[0], expected, rtol=1e-9)


def test_pseudo_labels_of_one_class_are_that_class():
    scores, codes, _ = simulate()
    codes[codes != 2] = -1
    labeled = np.flatnonzero(codes >= 0)
    assert (predicted_labels(scores, codes, np.ones(200), labeled) == 2).all()


def naive_dawid_skene(votes, codes, n_classes, rounds):
    n, n_models = votes.shape
    p = np.array([[np.mean(votes[i] == k) for k in range(n_classes)] for i in range(n)])
    for _ in range(rounds + 1):
        for i in range(n):
            if codes[i] >= 0:
                p[i] = [float(codes[i] == k) for k in range(n_classes)]
        if _ == rounds:
            return p
        prior = [np.mean(p[:, k]) for k in range(n_classes)]
        confusion = np.full((n_models, n_classes, n_classes), 1e-10)
        for m in range(n_models):
            for k in range(n_classes):
                for v in range(n_classes):
                    confusion[m, k, v] = max(sum(p[i, k] for i in range(n) if votes[i, m] == v), 1e-10)
                confusion[m, k] /= confusion[m, k].sum()
        for i in range(n):
            joint = [
                prior[k] * np.prod([confusion[m, k, votes[i, m]] for m in range(n_models)]) for k in range(n_classes)
            ]
            p[i] = np.array(joint) / np.sum(joint)
    raise AssertionError


@pytest.mark.parametrize("n_labeled", [0, 8])
def test_dawid_skene_against_the_plain_version(n_labeled):
    scores, codes, _ = simulate(n=50, n_labeled=n_labeled)
    votes = scores.argmax(axis=2)
    for rounds in (0, 1, 7):
        found = run_dawid_skene(votes, codes, np.ones(50), 3, max_iter=rounds, tol=-1.0)
        np.testing.assert_allclose(found, naive_dawid_skene(votes, codes, 3, rounds), atol=1e-10)


def test_dawid_skene_with_weights_is_dawid_skene_of_repeated_rows():
    scores, codes, _ = simulate(n=60)
    votes, times = scores.argmax(axis=2), np.random.default_rng(0).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), times)
    found = run_dawid_skene(votes, codes, times.astype(float), 3)
    np.testing.assert_allclose(found[rows], run_dawid_skene(votes[rows], codes[rows], np.ones(len(rows)), 3), atol=1e-6)


def test_dawid_skene_finds_the_models_that_are_right():
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 3000)
    accuracy = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    wrong = (truth[:, None] + random.integers(1, 3, (3000, 5))) % 3
    votes = np.where(random.random((3000, 5)) < accuracy, truth[:, None], wrong)
    p = run_dawid_skene(votes, np.full(3000, -1), np.ones(3000), 3)
    found = [p[np.arange(3000), votes[:, m]].mean() for m in range(5)]
    np.testing.assert_allclose(found, accuracy, atol=0.03)


@pytest.mark.parametrize("n_labeled", [0, 12])
def test_dawid_skene_against_crowd_kit(n_labeled):
    pd = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crowdkit = pytest.importorskip("crowdkit.aggregation.classification.dawid_skene")
        scores, codes, _ = simulate(n=80, n_labeled=n_labeled)
        votes = scores.argmax(axis=2)
        rows = [(i, m, votes[i, m]) for i in range(80) for m in range(5)]
        gold = pd.Series(codes[:n_labeled], index=range(n_labeled)) if n_labeled else None
        theirs = crowdkit.DawidSkene(n_iter=15, tol=-1e9).fit(
            pd.DataFrame(rows, columns=["task", "worker", "label"]), true_labels=gold
        )
    ours = run_dawid_skene(votes, codes, np.ones(80), 3, max_iter=15, tol=-1.0)
    np.testing.assert_allclose(theirs.probas_.sort_index()[[0, 1, 2]].to_numpy(), ours, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_drawn_codes_are_those_of_one_hot_labels(n_classes, weighted):
    scores, _, _ = simulate(n=40, n_classes=n_classes)
    random = np.random.default_rng(0)
    drawn = random.integers(0, n_classes, (40, 6))
    weights = random.exponential(size=(40, 6)) if weighted else None
    plain = LabelDraws.of_weights(np.eye(n_classes)[drawn.T], weights)
    for name, spec in METRICS.items():
        if not spec.binary_only or n_classes == 2:
            evaluate = spec.prepare(scores)
            found = evaluate(HardDraws(drawn, n_classes).reweighted(weights))
            np.testing.assert_allclose(found, evaluate(plain), atol=1e-12, err_msg=name)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_codes_are_drawn_with_their_probabilities(n_classes):
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(n_classes, 0.5), 30)
    p[0] = np.eye(n_classes)[n_classes - 1]
    edges = np.cumsum(p, axis=1)
    edges[:, -1] = 1.0
    uniform = random.random((30, 4000))
    uniform[:, 0] = 0.0
    uniform[:, 1] = np.nextafter(1.0, 0.0)
    codes = draw_codes(edges, uniform)
    naive = (uniform[:, :, None] >= edges[:, None, :-1]).sum(axis=2)
    assert np.mean(codes != naive) < 1e-4  # rounding at an edge
    assert (codes[0] == n_classes - 1).all() and codes.min() >= 0 and codes.max() < n_classes
    share = np.stack([(codes == k).mean(axis=1) for k in range(n_classes)], axis=1)
    np.testing.assert_allclose(share, p, atol=0.04)


def test_winners_share_ties():
    np.testing.assert_allclose(winners(np.array([[0.1 + 0.2, 0.3, 0.0]])), [[0.5, 0.5, 0.0]])


def test_blocks_of_draws_change_nothing_but_the_draws(monkeypatch):
    scores, codes, _ = simulate()
    specs, ones = [get_metric("accuracy", 3), get_metric("brier", 3)], np.ones(200)
    p = np.eye(3)[scores.mean(axis=1).argmax(axis=1)]
    whole = metrics_of_shared_labels(specs, scores, codes, ones, p, seed=0, n_draws=7)
    monkeypatch.setattr("ssme.baselines._label_draws.BLOCK_ELEMENTS", 1)
    for (point, draws), (alike, others) in zip(
        whole, metrics_of_shared_labels(specs, scores, codes, ones, p, seed=0, n_draws=7), strict=True
    ):
        np.testing.assert_allclose(point, alike)
        assert draws.shape == others.shape and np.isfinite(others).all()


def test_own_labels_of_many_classes_keep_the_proportions_of_the_scores():
    scores, codes, _ = simulate(n_labeled=0)
    hit = np.full((200, 1), 0.6)
    spec, ones = get_metric("brier", 3), np.ones(200)
    found = metrics_of_own_labels(
        [spec], scores, codes, ones, lambda m, d: np.repeat(hit, len(d), axis=1), seed=0, n_draws=3
    )[0][0]
    for m in range(5):
        p = scores[:, m].copy()
        top = p.argmax(axis=1)
        p *= (0.4 / (1 - p.max(axis=1)))[:, None]
        p[np.arange(200), top] = 0.6
        expected = np.mean(
            [sum(p[i, k] * np.sum((scores[i, m] - np.eye(3)[k]) ** 2) for k in range(3)) for i in range(200)]
        )
        np.testing.assert_allclose(found[m], expected, rtol=1e-9)
