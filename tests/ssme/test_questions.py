"""Methods that read the posterior: they are what the functions below them say, on the estimator's own draws."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from ssme import SSME, ScoreTable
from ssme.decisions import compare_models, rank_models
from ssme.label_design import design_weights, inclusion_probability
from ssme.metrics import evaluate_metric
from ssme.prevalence import prevalence_draws, prevalence_table
from ssme.shift import ShiftWarning


def problem(seed: int = 0, n: int = 600, n_labeled: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three models that are better from first to last: scores (n, 3), labels with most of them hidden, truth."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, n)
    logits = (2 * truth - 1)[:, None] * [0.4, 1.0, 2.0] + random.normal(size=(n, 3))
    y = np.full(n, -1)
    chosen = random.choice(n, n_labeled, replace=False)
    y[chosen] = truth[chosen]
    return 1 / (1 + np.exp(-logits)), y, truth


def uneven(seed: int, n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    """Two models that are sure of most rows and open on the others: scores (n, 2), truth."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, n)
    ease = np.where(random.random(n) < 0.6, 6.0, 0.5)
    logits = ((2 * truth - 1) * ease)[:, None] + random.normal(size=(n, 2))
    return 1 / (1 + np.exp(-logits)), truth


@pytest.fixture(scope="module")
def fitted() -> SSME:
    scores, y, _ = problem()
    return SSME(random_state=0).fit(pd.DataFrame(scores, columns=["weak", "fair", "good"]), y)


class TestDecisions:
    def test_the_best_model_is_found_and_the_tables_are_those_of_the_functions(self, fitted: SSME) -> None:
        best = fitted.select_best("accuracy")
        assert best.model == "good" and best.p_best > 0.9
        draws = fitted.posterior_draws("accuracy")[0]
        names = ["weak", "fair", "good"]
        pd.testing.assert_frame_equal(fitted.compare("accuracy"), compare_models(draws, names))
        pd.testing.assert_frame_equal(fitted.rank("accuracy", level=0.8), rank_models(draws, names, level=0.8))
        assert list(fitted.rank("accuracy")["model"]) == ["good", "fair", "weak"]

    def test_groups_come_below_the_whole(self, fitted: SSME) -> None:
        groups = {"half": np.arange(600) % 2}
        for table in (fitted.compare(groups=groups), fitted.rank(groups=groups)):
            assert list(dict.fromkeys(table["group"])) == ["all", "half=0", "half=1"]
            assert list(table.index) == list(range(9))

    def test_a_function_needs_its_direction(self, fitted: SSME) -> None:
        def share(y_true: np.ndarray, y_score: np.ndarray) -> float:
            return float(np.mean((y_score > 0.5) == y_true))

        with pytest.raises(ValueError, match="greater_is_better"):
            fitted.select_best(share)
        assert fitted.select_best(share, greater_is_better=True).model == "good"

    @pytest.mark.parametrize("metric", [["accuracy", "ece"], None, 3])
    def test_one_metric_at_a_time(self, fitted: SSME, metric: object) -> None:
        with pytest.raises(TypeError, match="metric must be one metric"):
            fitted.compare(metric)  # type: ignore[arg-type]

    @pytest.mark.parametrize("method", ["compare", "rank", "select_best", "prevalence", "check_shift"])
    def test_before_fit(self, method: str) -> None:
        with pytest.raises(NotFittedError):
            getattr(SSME(), method)()
        with pytest.raises(NotFittedError):
            SSME().suggest_labels(3)


class TestLabelWeight:
    def test_equal_weights_change_nothing_and_the_scale_does_not_matter(self) -> None:
        scores, y, _ = problem()
        plain = SSME(random_state=0).fit(scores, y).estimate(["accuracy", "ece"], labeled_only=True)
        for weight in (1.0, 7.0):
            weighted = SSME(random_state=0).fit(scores, y, label_weight=np.full(600, weight))
            table = weighted.estimate(["accuracy", "ece"], labeled_only=True)
            pd.testing.assert_frame_equal(table, plain, rtol=1e-9)

    def test_a_label_of_weight_0_does_not_speak(self) -> None:
        """Whatever labels of weight 0 say, consensus and bias are the same; they are pinned all the same."""
        scores, y, truth = problem(n_labeled=60)
        spoiled, weight = np.flatnonzero(y >= 0)[:20], np.ones(600)
        weight[spoiled] = 0.0
        inverted = y.copy()
        inverted[spoiled] = 1 - truth[spoiled]
        right, wrong = (SSME(random_state=0).fit(scores, each, label_weight=weight) for each in (y, inverted))
        heard = SSME(random_state=0).fit(scores, inverted)
        for a, b in zip(right._consensus.nodes.pooled(right._p), wrong._consensus.nodes.pooled(wrong._p), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(right._posterior.tilt, wrong._posterior.tilt)
        assert np.abs(heard._posterior.tilt - wrong._posterior.tilt).max() > 0.1

    def test_labels_of_hard_rows_mislead_without_their_weights(self) -> None:
        """Mean over seeds: with the weights of the design, labels alone are right on average; without, far too low."""
        found: dict[str, list[np.ndarray]] = {"weighted": [], "plain": []}
        for seed in range(20):
            scores, truth = uneven(seed)
            batch = SSME(random_state=seed).fit(scores).suggest_labels(60)
            y = np.full(800, -1)
            y[batch.rows] = truth[batch.rows]
            exact = evaluate_metric("accuracy", np.stack([1 - scores, scores], axis=2), truth)
            for name, weight in (("weighted", batch.label_weight), ("plain", None)):
                model = SSME(random_state=seed, n_draws=20).fit(scores, y, label_weight=weight)
                table = model.estimate("accuracy", labeled_only=True)
                found[name].append(table.loc[table["method"] == "labeled-only", "estimate"].to_numpy() - exact)
        bias = {name: np.mean(each, axis=0) for name, each in found.items()}
        spread = np.std(found["weighted"], axis=0) / np.sqrt(20)
        assert (np.abs(bias["weighted"]) < 3 * spread).all()
        assert (bias["plain"] < -0.05).all()

    def test_groups_and_shares_use_the_weights(self) -> None:
        scores, y, _ = problem(n_labeled=60)
        weight = np.where(y == 1, 3.0, 1.0)
        groups = {"half": np.arange(600) % 2}
        plain, weighted = (SSME(random_state=0).fit(scores, y, label_weight=w) for w in (None, weight))
        assert (weighted.estimate(groups=groups)["estimate"] != plain.estimate(groups=groups)["estimate"]).all()
        shares = weighted.prevalence()
        assert shares["estimate"][1] > plain.prevalence()["estimate"][1]
        direct = prevalence_draws(
            weighted._posterior, np.ones(600), [("all", np.arange(600))], label_weight=weight, seed=weighted._seed
        )
        pd.testing.assert_frame_equal(shares, prevalence_table(direct, [0, 1]))

    @pytest.mark.parametrize(
        ("weight", "match"),
        [
            (np.ones(5), r"shape \(5,\)"),
            (np.full(600, -1.0), r"it is -1 at row 0"),
            (np.full(600, np.nan), r"it is nan at row 13"),
            (np.full(600, 1e300), r"it is 1e\+300 at row 0"),
            (["a"] * 600, "must be numbers"),
            (np.zeros(600), "0 for every labeled row"),
        ],
    )
    def test_weights_that_cannot_be(self, weight: object, match: str) -> None:
        scores, y, _ = problem()
        with pytest.raises(ValueError, match=match):
            SSME().fit(scores, y, label_weight=weight)  # type: ignore[arg-type]


class TestSuggestLabels:
    def test_batches_follow_each_other(self) -> None:
        scores, y, truth = problem(n_labeled=20)
        model = SSME(random_state=0).fit(scores, y)
        first = model.suggest_labels(30)
        assert (y[first.rows] < 0).all()
        y[first.rows] = truth[first.rows]
        model.fit(scores, y, label_weight=first.label_weight)
        second = model.suggest_labels(30)
        assert not set(second.rows) & set(np.flatnonzero(y >= 0))
        before = inclusion_probability(y, np.ones(600), first.label_weight)
        y[second.rows] = truth[second.rows]
        after = inclusion_probability(y, np.ones(600), second.label_weight)
        assert before.sum() == pytest.approx(50) and after.sum() == pytest.approx(80)

    def test_models_by_name_or_number(self, fitted: SSME) -> None:
        by_name, by_number = fitted.suggest_labels(20, models=["good"]), fitted.suggest_labels(20, models=[2])
        np.testing.assert_array_equal(by_name.rows, by_number.rows)
        for wrong in ("best", 3, -1, True, None):
            with pytest.raises(ValueError, match="which is no model; there are: weak, fair, good"):
                fitted.suggest_labels(20, models=[wrong])

    def test_the_same_seed_gives_the_same_rows(self) -> None:
        scores, y, _ = problem()
        one, two = (SSME(random_state=3).fit(scores, y).suggest_labels(25).rows for _ in range(2))
        np.testing.assert_array_equal(one, two)


def test_weights_of_a_design_stand_for_all_rows() -> None:
    codes, weight = np.array([0, 1, -1, -1]), np.array([0.5, 2.0, 1.0, 1.0])
    found = design_weights(codes, np.ones(4), weight)
    p = inclusion_probability(codes, np.ones(4), weight)
    assert found[:2].sum() == pytest.approx(2)
    assert found[1] / found[0] == pytest.approx(p[0] / p[1])


class TestCheckShift:
    def test_labels_by_design_are_no_shift_when_their_weights_are_known(self) -> None:
        scores, truth = uneven(0)
        batch = SSME(random_state=0).fit(scores).suggest_labels(80)
        y = np.full(800, -1)
        y[batch.rows] = truth[batch.rows]
        with pytest.warns(ShiftWarning) as caught:
            assert SSME(random_state=0).fit(scores, y).check_shift().shifted
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not SSME(random_state=0).fit(scores, y, label_weight=batch.label_weight).check_shift().shifted

    @pytest.mark.parametrize("alpha", [0, 1, 5, "x"])
    def test_alpha(self, fitted: SSME, alpha: object) -> None:
        with pytest.raises(ValueError, match="alpha must be"):
            fitted.check_shift(alpha=alpha)  # type: ignore[arg-type]


def test_a_table_brings_names_and_groups() -> None:
    scores, y, _ = problem()
    table = ScoreTable.from_arrays(scores, y, model_names=["a", "b", "c"], groups={"half": np.arange(600) % 2})
    model = SSME(random_state=0).fit(table)
    assert model.select_best().model == "c"
    assert set(model.prevalence(groups=["half"])["group"]) == {"all", "half=0", "half=1"}
