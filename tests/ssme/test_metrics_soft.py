"""Soft labels and weights: equal to loops over rows and pairs, means over hard draws, repeated rows; invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from ssme.metrics import METRICS, get_metric

NAMES = list(METRICS)
MULTICLASS = [name for name in NAMES if not METRICS[name].binary_only]
LINEAR = ["accuracy", "brier", "log_loss"]
CASES = [(name, 2) for name in NAMES] + [(name, 4) for name in MULTICLASS]


def random_case(n_classes, seed, n=25, n_models=2, n_draws=3, tied=False):
    """Scores (n, M, K), soft labels (D, n, K), weights (D, n) with some zeros."""
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(n_classes), size=(n, n_models))
    if tied:
        scores = np.round(scores * 4) / 4
    labels = rng.dirichlet(np.full(n_classes, 0.5), size=(n_draws, n))
    weights = rng.exponential(size=(n_draws, n)) * (rng.random((n_draws, n)) > 0.2)
    return scores, labels, weights


# -- every formula again, one row and one pair at a time: s (n, K), y (n, K), w (n,)


def naive_counts(s, y, w, k):
    right = predicted = true = 0.0
    for i in range(len(s)):
        is_best = np.argmax(s[i]) == k
        right += w[i] * y[i, k] * is_best
        predicted += w[i] * is_best
        true += w[i] * y[i, k]
    return right, predicted, true


def naive_per_class(name, s, y, w, k):
    right, predicted, true = naive_counts(s, y, w, k)
    if name == "precision":
        return right / predicted if predicted else 0.0
    return 2 * right / (predicted + true) if name == "f1" else right / true


def naive_auc(p, y, w):
    """Over all pairs of a row and a row, itself among them: its two parts are tied."""
    won = pairs = 0.0
    for i in range(len(p)):
        for j in range(len(p)):
            pair = w[i] * y[i] * w[j] * (1 - y[j])
            won += pair * (1.0 if p[i] > p[j] else 0.5 if p[i] == p[j] else 0.0)
            pairs += pair
    return won / pairs


def naive_average_precision(p, y, w):
    value, recall = 0.0, 0.0
    for t in sorted(set(p), reverse=True):
        tp = sum(w[i] * y[i] for i in range(len(p)) if p[i] >= t)
        chosen = sum(w[i] for i in range(len(p)) if p[i] >= t)
        new_recall = tp / sum(w * y)
        value += (new_recall - recall) * (tp / chosen if chosen else 0.0)
        recall = new_recall
    return value


def naive_ece(s, y, w):
    value = 0.0
    for b in range(15):
        rows = [i for i in range(len(s)) if min(int(max(s[i]) * 15), 14) == b]
        value += abs(sum(w[i] * (max(s[i]) - y[i, np.argmax(s[i])]) for i in rows))
    return value / sum(w)


def naive_ece_positive(p, y, w):
    edges = np.quantile(p, np.linspace(0, 1, 11))[1:-1]
    gaps = []
    for b in range(10):
        rows = [i for i in range(len(p)) if sum(p[i] > edges) == b]
        mass = sum(w[i] for i in rows)
        if mass > 0:
            gaps.append(abs(sum(w[i] * (p[i] - y[i]) for i in rows)) / mass)
    return np.mean(gaps)


def naive_linear(name, s, y, w):
    """The expected value over labels drawn from y: a sum over rows and classes of probability times loss."""
    value = 0.0
    for i in range(len(s)):
        for k in range(s.shape[1]):
            hard = np.eye(s.shape[1])[k]
            if name == "accuracy":
                loss = float(np.argmax(s[i]) == k)
            elif name == "log_loss":
                loss = -np.log(np.clip(s[i, k], 2.0**-52, 1 - 2.0**-52))
            else:
                loss = sum((s[i] - hard) ** 2) if s.shape[1] > 2 else (s[i, 1] - hard[1]) ** 2
            value += w[i] * y[i, k] * loss
    return value / sum(w)


def naive(name, s, y, w):
    n_classes = s.shape[1]
    if name in LINEAR:
        return naive_linear(name, s, y, w)
    if name == "ece":
        return naive_ece(s, y, w)
    if name == "ece_positive":
        return naive_ece_positive(s[:, 1], y[:, 1], w)
    if name in ("roc_auc", "average_precision"):
        f = naive_auc if name == "roc_auc" else naive_average_precision
        return np.mean([f(s[:, k], y[:, k], w) for k in ([1] if n_classes == 2 else range(n_classes))])
    classes = [1] if n_classes == 2 and name != "balanced_accuracy" else range(n_classes)
    return np.mean([naive_per_class(name, s, y, w, k) for k in classes])


@pytest.mark.parametrize(("name", "n_classes"), CASES)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_to_loops(name, n_classes, tied, weighted):
    for n_draws in (3, 4):  # an odd and an even number: cumulative sums take draws in pairs
        scores, labels, weights = random_case(n_classes, n_draws, n_draws=n_draws, tied=tied)
        values = get_metric(name, n_classes).prepare(scores)(labels, weights if weighted else None)
        w = weights if weighted else np.ones_like(weights)
        expected = [[naive(name, scores[:, m], labels[d], w[d]) for m in range(2)] for d in range(n_draws)]
        np.testing.assert_allclose(values, expected, rtol=1e-11)


@pytest.mark.parametrize(("name", "n_classes"), [(name, k) for name, k in CASES if name in LINEAR])
def test_linear_metrics_are_the_mean_over_hard_draws(name, n_classes):
    scores, labels, _ = random_case(n_classes, 0, n=30, n_draws=1)
    rng = np.random.default_rng(1)
    evaluate = get_metric(name, n_classes).prepare(scores)
    hard = (rng.random((4000, 30, 1)) > labels.cumsum(axis=2)).sum(axis=2)
    values = evaluate(np.eye(n_classes)[hard])
    error = np.abs(values.mean(axis=0) - evaluate(labels)[0])
    assert np.all(error < 4 * values.std(axis=0) / np.sqrt(4000))


@pytest.mark.parametrize(("name", "n_classes"), [("ece", 2), ("ece", 4), ("ece_positive", 2)])
def test_calibration_errors_of_the_mean_are_below_the_mean_over_draws(name, n_classes):
    scores, labels, weights = random_case(n_classes, 0, n_draws=50)
    evaluate = get_metric(name, n_classes).prepare(scores)
    assert np.all(evaluate(labels.mean(axis=0)[None]) <= evaluate(labels).mean(axis=0))


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_a_soft_row_is_two_weighted_rows(name):
    """One with the class, of weight y, and one without, of weight 1 - y."""
    scores, labels, weights = random_case(2, 0, n=60, tied=True)
    f = roc_auc_score if name == "roc_auc" else average_precision_score
    p = scores[:, 0, 1]
    y, w = labels[0, :, 1], weights[0]
    expected = f(np.r_[np.ones(60), np.zeros(60)], np.r_[p, p], sample_weight=np.r_[w * y, w * (1 - y)])
    value = get_metric(name, 2).prepare(scores)(labels[:1], weights[:1])[0, 0]
    np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_equal_weights_change_nothing(name, n_classes):
    scores, labels, _ = random_case(n_classes, 0)
    evaluate = get_metric(name, n_classes).prepare(scores)
    np.testing.assert_allclose(evaluate(labels, np.full(labels.shape[:2], 2.5)), evaluate(labels), rtol=1e-12)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_draws_do_not_see_each_other(name, n_classes):
    scores, labels, weights = random_case(n_classes, 0, n_draws=6)
    evaluate = get_metric(name, n_classes).prepare(scores)
    one_by_one = [evaluate(labels[d : d + 1], weights[d : d + 1])[0] for d in range(6)]
    np.testing.assert_allclose(evaluate(labels, weights), one_by_one, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_two_classes_read_the_second_column_alone(name):
    scores, labels, weights = random_case(2, 0)
    evaluate = get_metric(name, 2).prepare(scores)
    other = labels.copy()
    other[..., 0] = np.nan
    np.testing.assert_array_equal(evaluate(other, weights), evaluate(labels, weights))


# -- invariances

sizes = st.integers(1, 12)
seeds = st.integers(0, 10**6)


def hard_or_soft(rng, n_classes, n, soft):
    """Labels of two draws."""
    labels = rng.dirichlet(np.ones(n_classes), size=(2, n))
    return labels if soft else np.eye(n_classes)[labels.argmax(axis=2)]


def small_case(n, n_classes, seed, soft):
    rng = np.random.default_rng(seed)
    scores = rng.multinomial(6, np.ones(n_classes) / n_classes, size=(n, 3)) / 6.0  # many ties, zeros, ones
    return rng, scores, hard_or_soft(rng, n_classes, n, soft)


def prepared(name, scores):
    return get_metric(name, scores.shape[2]).prepare(scores)


@pytest.mark.parametrize(("name", "n_classes"), [(name, k) for name, k in CASES if name != "ece_positive"])
@given(n=sizes, seed=seeds, soft=st.booleans())
def test_whole_weights_equal_repeated_rows(name, n_classes, n, seed, soft):
    rng, scores, labels = small_case(n, n_classes, seed, soft)
    times = rng.integers(0, 4, n)
    times[0] = 1
    rows = np.repeat(np.arange(n), times)
    weighted = prepared(name, scores)(labels, np.stack([times, times]))
    np.testing.assert_allclose(weighted, prepared(name, scores[rows])(labels[:, rows]), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("name", "n_classes"), CASES)
@given(n=sizes, seed=seeds, soft=st.booleans())
def test_order_of_rows_and_models_is_free(name, n_classes, n, seed, soft):
    rng, scores, labels = small_case(n, n_classes, seed, soft)
    weights = rng.exponential(size=(2, n))
    rows, models = rng.permutation(n), rng.permutation(3)
    expected = prepared(name, scores)(labels, weights)[:, models]
    values = prepared(name, scores[rows][:, models])(labels[:, rows], weights[:, rows])
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", MULTICLASS)
@given(n=sizes, seed=seeds, soft=st.booleans())
def test_order_of_three_classes_is_free(name, n, seed, soft):
    rng = np.random.default_rng(seed)
    scores, labels = rng.dirichlet(np.ones(3), size=(n, 2)), hard_or_soft(rng, 3, n, soft)
    classes = rng.permutation(3)
    values = prepared(name, scores[..., classes])(labels[..., classes])
    np.testing.assert_allclose(values, prepared(name, scores)(labels), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "roc_auc", "ece", "brier", "log_loss"])
@given(n=sizes, seed=seeds, soft=st.booleans())
def test_order_of_two_classes_is_free(name, n, seed, soft):
    """Of the metrics that do not single out class 1; distinct scores, as ties go to the first class."""
    rng = np.random.default_rng(seed)
    scores, labels = rng.dirichlet(np.ones(2), size=(n, 2)), hard_or_soft(rng, 2, n, soft)
    values = prepared(name, scores[..., ::-1])(labels[..., ::-1])
    np.testing.assert_allclose(values, prepared(name, scores)(labels), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
@given(n=sizes, seed=seeds)
def test_ranking_metrics_see_the_order_of_the_scores_alone(name, n, seed):
    _, scores, labels = small_case(n, 2, seed, True)
    other = np.stack([1 - scores[..., 1], np.exp(3 * scores[..., 1])], axis=2)
    np.testing.assert_array_equal(prepared(name, other)(labels), prepared(name, scores)(labels))


@given(n=sizes, seed=seeds)
def test_roc_auc_of_the_reversed_order(n, seed):
    _, scores, labels = small_case(n, 2, seed, True)
    forward, back = (prepared("roc_auc", s)(labels) for s in (scores, scores[..., ::-1]))
    np.testing.assert_allclose(forward + back, np.where(np.isnan(forward), np.nan, 1.0))


@pytest.mark.parametrize(("name", "n_classes"), CASES)
@given(n=sizes, seed=seeds, soft=st.booleans())
def test_values_are_in_the_bounds_or_undefined(name, n_classes, n, seed, soft):
    rng, scores, labels = small_case(n, n_classes, seed, soft)
    low, high = get_metric(name, n_classes).bounds
    for weights in (None, rng.dirichlet(np.full(n, 0.1), size=2)):
        values = prepared(name, scores)(labels, weights)
        assert np.all(np.isnan(values) | ((values >= low) & (values <= high)))
