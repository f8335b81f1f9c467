"""Comparisons, rankings and selection against counts by hand, normal theory, and outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from ssme import SSME
from ssme.decisions import compare_models, p_better, rank_models, select_best
from ssme.results import MetricDraws


def found(draws, point=None, greater=True, metric="accuracy"):
    draws = np.asarray(draws, dtype=float)
    point = np.nanmean(draws, axis=0) if point is None else np.asarray(point, dtype=float)
    return MetricDraws(metric, "all", point, draws, (0.0, 1.0), greater, 20, 100, "ssme")


@pytest.fixture
def draws():
    common = np.random.default_rng(0).normal(0, 0.05, (200, 1))
    return 0.7 + common + np.random.default_rng(1).normal([0, 0.02, -0.05, 0.01], 0.03, (200, 4))


def test_probabilities_are_counts_of_draws(draws):
    matrix = p_better(found(draws))
    for a in range(4):
        for b in range(4):
            wins = sum(1.0 if x > y else 0.5 if x == y else 0.0 for x, y in zip(draws[:, a], draws[:, b], strict=True))
            assert matrix[a, b] == pytest.approx((wins + 0.5) / 201, abs=1e-12)
    assert np.allclose(matrix + matrix.T, 1) and np.allclose(np.diag(matrix), 0.5)


def test_probability_of_normal_draws_is_that_of_the_normal_difference():
    random = np.random.default_rng(0)
    covariance = np.array([[0.04, 0.03], [0.03, 0.05]])
    draws = random.multivariate_normal([0.1, 0.0], covariance, 40_000)
    expected = norm.cdf(0.1 / np.sqrt(0.04 + 0.05 - 2 * 0.03))
    assert p_better(found(draws))[0, 1] == pytest.approx(expected, abs=0.01)


def test_comparison_has_the_better_model_first_and_the_interval_of_the_difference(draws):
    table = compare_models(found(draws), ["a", "b", "c", "d"], level=0.8)
    point = draws.mean(axis=0)
    assert len(table) == 6 and set(table.level) == {0.8}
    index = {name: i for i, name in enumerate("abcd")}
    for row in table.itertuples():
        a, b = index[row.model_a], index[row.model_b]
        assert row.difference == pytest.approx(point[a] - point[b]) and row.difference >= 0
        low, high = np.quantile(draws[:, a] - draws[:, b], [0.1, 0.9])
        assert (row.lower, row.upper) == pytest.approx((min(low, row.difference), max(high, row.difference)))
        assert row.p_a_better == pytest.approx(p_better(found(draws))[a, b])


def test_joint_draws_tell_apart_what_two_intervals_do_not():
    common = np.random.default_rng(0).normal(0, 0.1, (500, 1))
    table = compare_models(found(0.7 + common + np.array([[0.0, 0.01]])))
    assert table.loc[0, "p_a_better"] > 0.99 and table.loc[0, "lower"] == pytest.approx(0.01)


def test_less_is_better_turns_everything_round(draws):
    less, more = found(draws, greater=False), found(-draws, greater=True)
    assert np.allclose(p_better(less), p_better(more))
    assert list(rank_models(less).model) == list(rank_models(more).model)
    assert np.allclose(rank_models(less).estimate, -rank_models(more).estimate)
    assert select_best(less).expected_regret == pytest.approx(select_best(more).expected_regret)
    difference = compare_models(less).difference
    assert (difference <= 0).all() and np.allclose(difference, -compare_models(more).difference)


def test_ranks_are_those_of_scipy(draws):
    table = rank_models(found(draws)).set_index("model")
    ranks = rankdata(-draws, axis=1)
    best = (draws == draws.max(axis=1, keepdims=True)).mean(axis=0)
    order = np.argsort(-draws.mean(axis=0))
    assert list(table.index) == list(order) and list(table["rank"]) == [1, 2, 3, 4]
    for m in range(4):
        assert table.loc[m, "expected_rank"] == pytest.approx(ranks[:, m].mean())
        assert table.loc[m, "p_best"] == pytest.approx(best[m])
        low, high = np.quantile(ranks[:, m], [0.05, 0.95])
        assert (table.loc[m, "rank_lower"], table.loc[m, "rank_upper"]) == (np.floor(low), np.ceil(high))
    assert np.isnan(table.loc[order[-1], "p_better_than_next"])


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_probabilities_of_being_best_add_to_one_with_ties(seed, n_models, n_values):
    draws = np.random.default_rng(seed).integers(0, n_values, (30, n_models)) / 10
    table = rank_models(found(draws))
    assert table.p_best.sum() == pytest.approx(1)
    assert table.expected_rank.sum() == pytest.approx(n_models * (n_models + 1) / 2)


def test_the_same_model_twice_is_even():
    one = np.random.default_rng(0).normal(0.8, 0.02, (100, 1))
    twice = found(np.hstack([one, one]))
    assert compare_models(twice).loc[0, "p_a_better"] == 0.5
    assert list(rank_models(twice).p_best) == [0.5, 0.5]
    best = select_best(twice)
    assert (best.index, best.expected_regret, best.p_better_than_runner_up) == (0, 0.0, 0.5)


def test_regret_is_the_mean_of_what_the_best_has_more(draws):
    best = select_best(found(draws), ["a", "b", "c", "d"])
    regret = draws.max(axis=1)[:, None] - draws
    assert best.index == regret.mean(axis=0).argmin() and best.model == "abcd"[best.index]
    assert best.expected_regret == pytest.approx(regret.mean(axis=0).min())
    low, high = np.quantile(regret[:, best.index], [0.05, 0.95])
    assert (best.regret_lower, best.regret_upper) == pytest.approx((low, high))
    assert 0 <= best.regret_lower <= best.expected_regret <= best.regret_upper
    assert best.runner_up in "abcd" and f"probability {best.p_best:.2f}" in str(best)


def test_least_regret_is_not_most_often_best():
    # model 1 is best in two draws of three, by little, and worse in the third, by much
    best = select_best(found([[0.80, 0.81], [0.80, 0.81], [0.80, 0.60]]))
    assert best.index == 0 and best.p_best == pytest.approx(1 / 3)
    assert best.expected_regret == pytest.approx(0.02 / 3)


def test_draws_agree_with_the_estimates():
    draws = np.tile([0.5, 0.6], (50, 1)) + np.random.default_rng(0).normal(0, 0.001, (50, 2))
    assert select_best(found(draws, point=[0.9, 0.8])).p_best == 1


def test_a_model_without_the_metric_is_left_out(draws):
    draws = draws.copy()
    draws[:, 2], draws[3, 1] = np.nan, np.nan
    point = np.nanmean(np.where(np.arange(4) == 2, 0, draws), axis=0)
    point[2] = np.nan
    record = found(draws, point)
    table = rank_models(record)
    assert table.model.iloc[-1] == 2 and table["rank"].isna().tolist() == [False] * 3 + [True]
    assert len(compare_models(record)) == 3 and np.isnan(p_better(record)[2]).all()
    assert table.p_best.sum() == pytest.approx(1) and select_best(record).index != 2
    with pytest.raises(ValueError, match="undefined for every model"):
        select_best(found(np.full((5, 2), np.nan), [np.nan, np.nan]))


def test_a_single_model_is_the_best():
    best = select_best(found(np.full((5, 1), 0.7)))
    assert (best.p_best, best.expected_regret, best.runner_up) == (1.0, 0.0, None)
    assert len(compare_models(found(np.full((5, 1), 0.7)))) == 0


def test_errors_say_what_to_do(draws):
    with pytest.raises(ValueError, match="greater_is_better"):
        select_best(found(draws, greater=None, metric="cost"))
    assert select_best(found(draws, greater=None), greater_is_better=False).index == 2
    with pytest.raises(ValueError, match="names has 1 entries, but there are 4 models"):
        rank_models(found(draws), ["a"])


def test_many_models_are_quick():
    record = found(np.random.default_rng(0).normal(size=(100, 112)))
    assert len(compare_models(record)) == 112 * 111 // 2


def test_stated_probabilities_come_true():
    """Of the pairs that are stated with some probability about that share is right, on simulated classifiers."""
    stated, right, regrets, expected = [], [], [], []
    for seed in range(60):
        random = np.random.default_rng(seed)
        skill = random.uniform(0.6, 1.2, 4)
        truth = random.integers(0, 2, 20_000)
        logits = (2 * truth[:, None] - 1) * skill**2 * 2 + 2 * skill * random.normal(size=(20_000, 4))
        value = ((logits > 0) == truth[:, None].astype(bool)).mean(axis=0)
        y = np.where(np.arange(400) < 30, truth[:400], -1)
        model = SSME(score_type="logit", random_state=0, n_draws=50).fit(logits[:400], y)
        record = model.posterior_draws("accuracy")[0]
        table = compare_models(record)
        stated += list(table.p_a_better)
        right += list(value[table.model_a.to_numpy()] > value[table.model_b.to_numpy()])
        best = select_best(record)
        regrets.append(value.max() - value[best.index])
        expected.append(best.expected_regret)
    stated, right = np.array(stated), np.array(right)
    sure = stated > 0.9
    assert right[sure].mean() > 0.9 and right[~sure].mean() < right[sure].mean()
    assert abs(right.mean() - stated.mean()) < 0.1
    assert np.mean(regrets) < 1.5 * np.mean(expected)
