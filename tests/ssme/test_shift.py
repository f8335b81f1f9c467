"""The shift test holds its level and sees what it should; label shift is recovered and undone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

from ssme.label_design import inclusion_probability, suggest_labels
from ssme.posterior import FixedNode, LabelPosterior
from ssme.shift import ANCHOR, LabelShift, ShiftWarning, _energy, _tails, label_shift, shift_test


def scores(random, n, n_models=3, prevalence=0.3, sharp=1.0):
    truth = (random.random(n) < prevalence).astype(np.int64)
    logits = 1.5 * (2 * truth - 1)[:, None] + random.normal(size=(n, n_models)) + random.normal(size=(n, 1))
    second = 1 / (1 + np.exp(-sharp * logits))
    return np.stack([1 - second, second], axis=2), truth


def test_energy_distance_is_that_of_its_definition():
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3))
    sets = np.zeros((40, 2))
    sets[:12, 0], sets[5:30, 1] = 1, 1
    d = squareform(pdist(x))
    for b in range(2):
        a, c = sets[:, b] == 1, sets[:, b] == 0
        by_hand = 2 * d[np.ix_(a, c)].mean() - d[np.ix_(a, a)].mean() - d[np.ix_(c, c)].mean()
        assert _energy(x, sets)[b] == pytest.approx(by_hand, rel=1e-10)


def test_tails_count_the_sets_with_as_large_a_statistic():
    assert np.allclose(_tails(np.array([3.0, 1.0, 2.0, 3.0])), [0.5, 1.0, 0.75, 0.5])


@pytest.mark.parametrize("n_labeled", [5, 20])
def test_p_values_are_uniform_without_shift(n_labeled):
    p_values = []
    for seed in range(400):
        p, _ = scores(np.random.default_rng(seed), 150)
        p_values.append(shift_test(p, np.arange(150) < n_labeled, n_permutations=99, seed=seed).p_value)
    p_values = np.array(p_values)
    for level in (0.05, 0.1, 0.3, 0.5, 0.8):
        assert abs((p_values <= level).mean() - level) < 4 * np.sqrt(level * (1 - level) / 400) + 0.01
    assert p_values.min() >= 0.01


def test_twenty_labels_see_a_large_shift_and_say_of_what_kind():
    kinds, seen = [], []
    for seed in range(30):
        random = np.random.default_rng(seed)
        p, _ = scores(random, 500)
        sure = p.mean(axis=1).max(axis=1)
        rows = random.choice(500, 20, replace=False, p=np.exp(-8 * sure) / np.exp(-8 * sure).sum())
        test = shift_test(p, np.isin(np.arange(500), rows), n_permutations=199, seed=seed, alpha=0.05)
        seen.append(test.shifted)
        kinds.append(test.p_confidence <= test.p_classes)
        p, truth = scores(random, 500, prevalence=0.15)
        balanced = np.where(truth == 1, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))
        rows = random.choice(500, 20, replace=False, p=balanced / balanced.sum())
        seen.append(shift_test(p, np.isin(np.arange(500), rows), n_permutations=199, seed=seed, alpha=0.05).shifted)
    assert np.mean(seen[::2]) > 0.8 and np.mean(seen[1::2]) > 0.5 and np.mean(kinds) > 0.8


def test_labels_by_a_design_are_tested_against_the_design():
    flagged, plain = [], []
    for seed in range(60):
        p, _ = scores(np.random.default_rng(seed), 300, sharp=4.0)
        mean = p.mean(axis=1)
        posterior = LabelPosterior(
            FixedNode(mean),
            np.zeros(2, dtype=np.int64),
            np.full(300, -1),
            p.argmax(axis=2),
            np.zeros(3),
            np.zeros((2, 3)),
        )
        batch = suggest_labels(posterior, np.ones(300), 60, seed=seed)
        labeled = np.isin(np.arange(300), batch.rows)
        probability = inclusion_probability(np.where(labeled, 0, -1), np.ones(300), batch.label_weight)
        plain.append(shift_test(p, labeled, n_permutations=99, seed=seed).p_value)
        flagged.append(shift_test(p, labeled, probability=probability, n_permutations=99, seed=seed).p_value)
    assert np.mean(np.array(plain) <= 0.05) > 0.5
    assert np.mean(np.array(flagged) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 60)


def test_warning_is_given_where_there_is_shift_alone():
    p, _ = scores(np.random.default_rng(0), 300)
    far = shift_test(p, p.mean(axis=1).max(axis=1) > 0.97)
    with pytest.warns(ShiftWarning, match="not like the unlabeled ones.*how sure|which classes"):
        assert far.warn() is far
    near = shift_test(p, np.arange(300) < 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near.warn()
    assert "No sign of shift between 20 labeled and 280 unlabeled rows" in str(near)


@pytest.mark.parametrize("n_labeled", [0, 1, 29, 30])
def test_too_few_rows_of_a_kind(n_labeled):
    p, _ = scores(np.random.default_rng(0), 30)
    test = shift_test(p, np.arange(30) < n_labeled)
    assert np.isnan(test.p_value) and not test.shifted and "cannot be compared" in str(test)


def test_large_tables_are_thinned_and_inputs_are_left_alone():
    p, _ = scores(np.random.default_rng(0), 20_000)
    copy, labeled = p.copy(), np.arange(20_000) < 50
    test = shift_test(p, labeled, n_permutations=49)
    assert (test.n_labeled, test.n_unlabeled) == (50, 19_950) and (p == copy).all() and labeled.sum() == 50


def gaussian_rows(random, n, prevalence):
    """One score per row with known class densities, and P(class) where classes are even."""
    truth = (random.random(n) < prevalence).astype(np.int64)
    x = random.normal(2.0 * truth, 1.0)
    second = 1 / (1 + np.exp(-(2 * x - 2)))
    return np.stack([1 - second, second], axis=1), truth


@pytest.mark.parametrize("method", ["em", "bbse"])
def test_shares_of_the_target_are_found(method):
    errors = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        source, y = gaussian_rows(random, 400, 0.5)
        target, truth = gaussian_rows(random, 4000, 0.15)
        codes = np.concatenate([y, np.full(4000, -1)])
        shift = label_shift(np.concatenate([source, target]), codes, method=method)
        errors.append(abs(shift.target[1] - truth.mean()))
        assert shift.source[1] == pytest.approx(0.5, abs=0.1)
        bayes = target * [1.7, 0.3]
        assert np.abs(shift.adapt(target) - bayes / bayes.sum(axis=1, keepdims=True)).mean() < 0.05
    assert np.mean(errors) < 0.03


def test_em_is_at_the_maximum_of_its_objective():
    random = np.random.default_rng(0)
    p = random.dirichlet([0.5, 0.7, 0.3], 300)
    codes = np.where(np.arange(300) < 50, random.integers(0, 3, 300), -1)
    shift = label_shift(p, codes)
    source, others = shift.source, p[50:]
    assert np.allclose(source, p[:50].mean(axis=0))

    def objective(z):
        t = np.exp(z - np.logaddexp.reduce(z))
        return -(np.log(others @ (t / source)).mean() + ANCHOR / 50 * source @ np.log(t))

    best = minimize(objective, np.log(source), tol=1e-12).x
    assert np.allclose(shift.target, np.exp(best - np.logaddexp.reduce(best)), atol=1e-4)


def test_bbse_solves_the_confusion_equations():
    """Rows that are one-hot: the shares of what is said are the confusion matrix times the ratios."""
    said = np.concatenate([np.repeat([0, 0, 1, 1], [700, 300, 200, 800]), np.repeat([0, 1], [400, 600])])
    codes = np.concatenate([np.repeat([0, 1, 0, 1], [700, 300, 200, 800]), np.full(1000, -1)])
    shift = label_shift(np.eye(2)[said], codes, method="bbse")
    confusion = np.array([[0.35, 0.15], [0.10, 0.40]])
    expected = np.linalg.solve(confusion, [0.4, 0.6]) * np.array([0.45, 0.55])
    assert np.allclose(shift.target, expected, atol=0.01)


def test_weights_undo_the_shift():
    shift = LabelShift(np.array([0.5, 0.5]), np.array([0.8, 0.2]))
    codes = np.array([0, 1, 1, -1, 0])
    weight = shift.label_weight(codes)
    assert np.allclose(weight, [1.6, 0.4, 0.4, 1, 1.6]) and weight[codes >= 0].mean() == pytest.approx(1)
    assert (weight[codes == 0].sum() / weight[codes >= 0].sum()) == pytest.approx(0.8)
    even = LabelShift(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    p = np.random.default_rng(0).dirichlet([1, 1], 5)
    assert np.allclose(even.adapt(p), p) and np.allclose(even.label_weight(codes), 1)


def test_row_weights_are_repeated_rows():
    random = np.random.default_rng(0)
    p, codes = random.dirichlet([1, 1, 1], 60), np.where(np.arange(60) < 20, np.arange(60) % 3, -1)
    w = np.where(codes >= 0, 1, random.integers(1, 4, 60)).astype(float)
    twice = np.repeat(np.arange(60), w.astype(int))
    assert np.allclose(label_shift(p, codes, w).target, label_shift(p[twice], codes[twice]).target, atol=1e-6)


def test_errors_say_what_to_do():
    p, codes = np.full((4, 2), 0.5), np.array([0, 1, -1, -1])
    with pytest.raises(ValueError, match="no unlabeled row"):
        label_shift(p, np.zeros(4, dtype=np.int64))
    with pytest.raises(ValueError, match="no labeled row"):
        label_shift(p, np.full(4, -1))
    with pytest.raises(ValueError, match="method must be 'em' or 'bbse'"):
        label_shift(p, codes, method="EM")
