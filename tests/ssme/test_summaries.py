"""Metrics of many rows from sums: sums of parts are the sum of the whole, and what they give is what the rows give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssme import METRICS, SSME, evaluate_metric
from ssme.metrics import get_metric
from ssme.summaries import BinaryPlan, ClassesPlan, Summary, make_plan, total
from ssme.summaries._ranking import CellCounts, average_precision, mass_bins_of, roc_auc
from ssme.summaries._values import error_bound, is_summable, values_of

BINARY = tuple(METRICS)
OF_CLASSES = tuple(name for name, spec in METRICS.items() if not spec.binary_only)
EXACT = {"accuracy", "balanced_accuracy", "precision", "recall", "f1", "ece", "brier", "log_loss", "ece_positive"}


def of_classes(n: int, n_models: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, M, K) and true classes (n,)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    signal = rng.normal(size=(n, n_classes))
    signal[np.arange(n), y] += 2.0
    logit = rng.uniform(0.7, 2.0, n_models)[:, None] * (signal[:, None] + rng.normal(0, 0.6, (n, n_models, n_classes)))
    p = np.exp(logit - logit.max(axis=2, keepdims=True))
    return p / p.sum(axis=2, keepdims=True), y


def data(
    simulate: Callable[..., Any], n_classes: int, n: int = 4000, n_models: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """Scores as the estimator takes them, and true classes."""
    if n_classes == 2:
        made = simulate(n=n, n_models=n_models)
        return made.p, made.y
    return of_classes(n, n_models, n_classes)


def fitted(p: np.ndarray, y: np.ndarray, n_labeled: int = 200, **options: Any) -> SSME:
    labels = np.where(np.arange(len(y)) < n_labeled, y, -1)
    return SSME(**{"random_state": 0, "max_exact_rows": 0, **options}).fit(p, labels)


def planned(model: SSME, names: tuple[str, ...]) -> tuple[BinaryPlan | ClassesPlan, list[Any]]:
    """A plan, and the arguments that count all rows."""
    rows = model._rows
    specs = [get_metric(name, rows.scores.shape[2]) for name in names]
    plan = make_plan(specs, rows.scores, model._posterior.node, model._posterior)
    return plan, [rows.scores, model._posterior.node.pooled, rows.codes, rows.weights]


def of_rows(arguments: list[Any], rows: Any) -> list[Any]:
    scores, pooled, codes, weights = arguments
    return [scores[rows], [log[rows] for log in pooled], codes[rows], weights[rows]]


class TestSums:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_parts_add_to_the_whole_to_the_last_bit(
        self, simulate: Callable[..., Any], n_classes: int, weighted: bool
    ) -> None:
        p, y = data(simulate, n_classes, n=700)
        plan, arguments = planned(fitted(p, y), BINARY if n_classes == 2 else OF_CLASSES)
        if weighted:
            arguments[3] = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
        whole = plan.count(*arguments)
        for cuts in ([1, 699], [100, 101, 350], []):
            parts = [plan.count(*of_rows(arguments, rows)) for rows in np.split(np.arange(len(y)), cuts)]
            for order in (parts, parts[::-1]):
                joined = total(order)
                for kind in ("sums", "low", "high"):
                    mine, others = getattr(joined, kind), getattr(whole, kind)
                    assert mine.keys() == others.keys() and mine.keys()
                    assert all(np.array_equal(mine[name], others[name]) for name in mine)

    def test_adding_does_not_write_to_what_is_added(self) -> None:
        one, two = Summary({"a": np.ones(2)}), Summary({"a": np.full(2, 2.0)}, low={"b": np.zeros(1)})
        joined = one + two
        joined += two
        assert one.sums["a"].tolist() == [1, 1] and two.sums["a"].tolist() == [2, 2]
        assert joined.sums["a"].tolist() == [5, 5] and joined.low["b"].tolist() == [0]

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_with_every_label_known_sums_give_the_metrics_of_the_labels(
        self, simulate: Callable[..., Any], n_classes: int
    ) -> None:
        p, y = data(simulate, n_classes, n=900)
        names = BINARY if n_classes == 2 else OF_CLASSES
        model = fitted(p, y, n_labeled=900)
        plan, arguments = planned(model, names)
        if isinstance(plan, BinaryPlan):
            from ssme.metrics._calibration import mass_edges

            specs = [get_metric(name, 2) for name in names]
            node = model._posterior.node
            edges = mass_edges(arguments[0][:, :, 1])
            plan = make_plan(specs, arguments[0], node, model._posterior, mass_edges_of=edges)
        summary = plan.count(*arguments)
        for name in names:
            spec = get_metric(name, n_classes)
            truth = evaluate_metric(name, arguments[0], y)
            for m in range(3):
                if isinstance(plan, BinaryPlan):
                    sums = plan.sums(summary, m, model._posterior.node_of, np.zeros(100))
                else:
                    sums = plan.sums(summary, m)
                found = values_of(spec, sums)
                tolerance = 1e-6 if name in EXACT else error_bound(spec, sums) + 1e-9
                assert np.abs(found - truth[m]).max() <= tolerance, name
                if name not in EXACT:
                    assert error_bound(spec, sums) < 0.03

    def test_only_metrics_by_name_are_summed(self) -> None:
        assert all(is_summable(spec) for spec in METRICS.values())
        assert not is_summable(get_metric(lambda y, p: 0.0, 2))

        def accuracy(y: np.ndarray, p: np.ndarray) -> float:
            return 0.0

        assert not is_summable(get_metric(accuracy, 2))


@st.composite
def labeled_scores(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores with ties, binary labels of both kinds, and edges of cells."""
    n = draw(st.integers(4, 60))
    scores = np.array(draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))) / 12
    y = np.array([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    edges = np.unique(draw(st.lists(st.integers(0, 11), min_size=1, max_size=6))) / 12
    return scores, y, edges


def cells_of(scores: np.ndarray, y: np.ndarray, edges: np.ndarray) -> CellCounts:
    cell = np.searchsorted(edges, scores)
    size = len(edges) + 1
    tied = np.array([len(np.unique(scores[cell == c])) == 1 for c in range(size)])
    rows, sums = np.bincount(cell, minlength=size), np.bincount(cell, scores, size)
    return CellCounts(rows.astype(float), sums, np.bincount(cell, y, size)[:, None], tied)


class TestBounds:
    @given(labeled_scores())
    @pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
    def test_the_metric_of_the_rows_is_within_the_bound(
        self, name: str, made: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        scores, y, edges = made
        exact = evaluate_metric(name, np.stack([1 - scores, scores], axis=1)[:, None], y)[0]
        areas = roc_auc if name == "roc_auc" else average_precision
        (found,), (bound,) = areas(cells_of(scores, y, edges))
        assert abs(found - exact) <= bound + 1e-12

    @given(labeled_scores())
    def test_cells_of_one_score_are_exact(self, made: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        scores, y, _ = made
        cells = cells_of(scores, y, np.arange(12) / 12)
        for name, areas in (("roc_auc", roc_auc), ("average_precision", average_precision)):
            exact = evaluate_metric(name, np.stack([1 - scores, scores], axis=1)[:, None], y)[0]
            (found,), (bound,) = areas(cells)
            assert bound == 0 and found == pytest.approx(exact, abs=1e-12)

    def test_wide_cells_are_warned_of(self, simulate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ssme.summaries._binary.N_CELLS", 2)
        monkeypatch.setattr("ssme.summaries._binary.LEAST_CELLS", 2)
        monkeypatch.setattr("ssme.summaries._grid.N_TAIL", 0)
        p, y = data(simulate, 2, n=1000)
        with pytest.warns(UserWarning, match="average_precision is computed from cells .* max_exact_rows"):
            fitted(p, y).estimate("average_precision")

    def test_bins_of_equal_mass_end_at_cells(self) -> None:
        rows = np.random.default_rng(0).integers(1, 5, 200).astype(float)
        bins = mass_bins_of(rows, np.zeros(200, dtype=bool))
        assert np.all(np.diff(bins) >= 0) and set(bins) == set(range(10))
        assert np.abs(np.bincount(bins, rows) - rows.sum() / 10).max() < 5


class TestEstimates:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_summed_is_as_row_by_row(self, simulate: Callable[..., Any], n_classes: int) -> None:
        p, y = data(simulate, n_classes)
        names = BINARY if n_classes == 2 else OF_CLASSES
        exact, summed = (fitted(p, y, n_draws=400, max_exact_rows=limit) for limit in (10**6, 0))
        np.testing.assert_array_equal(exact.responsibilities_, summed.responsibilities_)
        a, b = exact.estimate(names), summed.estimate(names)
        assert np.abs(a["estimate"] - b["estimate"]).max() < 1e-3
        width = (b["upper"] - b["lower"]) / (a["upper"] - a["lower"])
        assert 0.8 < width.min() and width.max() < 1.25 and abs(width.mean() - 1) < 0.06
        assert (a[["metric", "model", "flags", "n_labeled"]] == b[["metric", "model", "flags", "n_labeled"]]).all(
            axis=None
        )

    def test_few_rows_are_drawn_row_by_row(self, simulate: Callable[..., Any]) -> None:
        p, y = data(simulate, 2, n=300)
        by_default, exact = (
            fitted(p, y, 20, **options).estimate(BINARY)
            for options in ({"max_exact_rows": 50_000}, {"max_exact_rows": 300})
        )
        assert SSME().max_exact_rows == 50_000 and by_default.equals(exact)
        assert (
            not fitted(p, y, 20, max_exact_rows=299)
            .estimate("ece")
            .equals(fitted(p, y, 20, max_exact_rows=300).estimate("ece"))
        )

    def test_the_order_of_the_rows_is_no_matter(self, simulate: Callable[..., Any]) -> None:
        p, y = data(simulate, 2, n=2000)
        labels = np.where(np.arange(2000) < 100, y, -1)
        order = np.random.default_rng(0).permutation(2000)
        one, two = (
            SSME(random_state=0, max_exact_rows=0).fit(p[rows], labels[rows]).estimate(BINARY)
            for rows in (np.arange(2000), order)
        )
        for column in ("estimate", "lower", "upper"):
            np.testing.assert_allclose(one[column], two[column], atol=1e-9)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_whole_weights_are_repeated_rows(self, simulate: Callable[..., Any], n_classes: int) -> None:
        p, y = data(simulate, n_classes, n=1500)
        labels = np.where(np.arange(1500) < 150, y, -1)
        w = np.random.default_rng(3).integers(1, 4, 1500)
        names = BINARY if n_classes == 2 else OF_CLASSES
        weighted = SSME(random_state=0, max_exact_rows=0).fit(p, labels, sample_weight=w).estimate(names)
        again = np.repeat(np.arange(1500), w)
        repeated = SSME(random_state=0, max_exact_rows=0).fit(p[again], labels[again]).estimate(names)
        assert np.abs(weighted["estimate"] - repeated["estimate"]).max() < 1e-3

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_weights_that_are_not_whole(self, simulate: Callable[..., Any], n_classes: int) -> None:
        p, y = data(simulate, n_classes, n=3000)
        labels = np.where(np.arange(3000) < 300, y, -1)
        w = np.random.default_rng(3).gamma(2.0, 0.5, 3000)
        names = BINARY if n_classes == 2 else OF_CLASSES
        a, b = (
            SSME(random_state=0, max_exact_rows=limit).fit(p, labels, sample_weight=w).estimate(names)
            for limit in (10**6, 0)
        )
        assert np.abs(a["estimate"] - b["estimate"]).max() < 1e-3

    def test_groups_small_and_large(self, simulate: Callable[..., Any]) -> None:
        p, y = data(simulate, 2)
        group = np.where(np.arange(4000) % 4 == 0, "few", "many")
        a, b = (
            fitted(p, y, max_exact_rows=limit).estimate(("accuracy", "roc_auc", "ece"), groups={"g": group})
            for limit in (10**6, 2000)
        )
        assert np.abs(a["estimate"] - b["estimate"]).max() < 1e-3
        few = (a["group"] == "g=few") & (a["metric"] == "accuracy")  # below the limit: row by row, as before
        assert few.sum() == 3
        np.testing.assert_allclose(a.loc[few, ["lower", "upper"]], b.loc[few, ["lower", "upper"]], atol=1e-12)

    @pytest.mark.parametrize("digits", [0, 1])
    def test_scores_of_few_values(
        self, simulate: Callable[..., Any], digits: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Hard votes and ratings: many rows are alike, and a sample of rows must have each kind as often as all."""
        for name in ("ssme._fitting.SAMPLE_SIZE", "ssme.estimator.SAMPLE_SIZE", "ssme.summaries._draws.PLAN_ROWS"):
            monkeypatch.setattr(name, 1500)
        monkeypatch.setattr("ssme.summaries._draws.THIN_BINARY", 1000)
        p, y = data(simulate, 2, n=12_000)
        p = p.round(digits)
        sampled = fitted(p, y, n_draws=400)
        monkeypatch.setattr("ssme._fitting.SAMPLE_SIZE", 20_000)
        exact = fitted(p, y, n_draws=400, max_exact_rows=12_000)
        assert np.abs(sampled.diagnostics_["agreement"] - exact.diagnostics_["agreement"]) < 0.02
        a, b = (model.estimate(("accuracy", "roc_auc", "ece")) for model in (exact, sampled))
        assert np.abs(a["estimate"] - b["estimate"]).max() < 0.01
        width = (b["upper"] - b["lower"]) / (a["upper"] - a["lower"])
        assert 0.75 < width.min() and width.max() < 1.35

    def test_labels_that_were_not_drawn_at_random(self, simulate: Callable[..., Any]) -> None:
        p, y = data(simulate, 2)
        labels = np.where(np.arange(4000) < 200, y, -1)
        w = np.where(labels == 1, 0.3, 1.0)
        a, b = (
            SSME(random_state=0, max_exact_rows=limit).fit(p, labels, label_weight=w).estimate(BINARY)
            for limit in (10**6, 0)
        )
        assert np.abs(a["estimate"] - b["estimate"]).max() < 1e-3

    def test_functions_of_the_user_are_drawn_on_a_sample_and_flagged(
        self, simulate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def brier(truth: np.ndarray, score: np.ndarray) -> float:
            return float(np.mean((truth - score) ** 2))

        p, y = data(simulate, 2, n=1200, n_models=2)
        exact = fitted(p, y, n_draws=40, max_exact_rows=1200).estimate([brier, "accuracy"])
        same = fitted(p, y, n_draws=40).estimate([brier, "accuracy"])
        np.testing.assert_allclose(exact["estimate"], same["estimate"], atol=1e-4)
        assert (same["flags"] == "").all()
        for name in ("ssme.summaries._draws.SAMPLE_ROWS", "ssme.estimator.SAMPLE_ROWS"):
            monkeypatch.setattr(name, 500)
        part = fitted(p, y, n_draws=40).estimate([brier, "accuracy"])
        assert part["flags"].tolist() == ["from-500-rows", "from-500-rows", "", ""]
        assert np.abs(part["estimate"] - exact["estimate"])[:2].max() < 0.03
        assert (part["upper"] - part["lower"])[0] > (exact["upper"] - exact["lower"])[0]  # as wide as 500 rows leave it

    def test_all_metrics_of_one_model_and_of_scores_that_are_all_alike(self) -> None:
        y = np.arange(600) % 2
        labels = np.where(np.arange(600) < 60, y, -1)
        for p in (np.full((600, 1), 0.5), np.where(y == 1, 0.9, 0.1)[:, None]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # precision is undefined where nothing is predicted
                a, b = (
                    SSME(random_state=0, max_exact_rows=limit).fit(p, labels).estimate(BINARY) for limit in (10**6, 0)
                )
            np.testing.assert_allclose(a["estimate"], b["estimate"], atol=2e-3)

    def test_a_class_that_does_not_occur_is_left_out_of_means(self) -> None:
        p, y = of_classes(3000, 3, 4)
        keep = y != 3
        p, y = p[keep], y[keep]
        names = ("balanced_accuracy", "f1", "roc_auc")
        a, b = (fitted(p, y, max_exact_rows=limit).estimate(names) for limit in (10**6, 0))
        assert np.abs(a["estimate"] - b["estimate"]).max() < 2e-3

    def test_the_other_questions_work_too(self, simulate: Callable[..., Any]) -> None:
        p, y = data(simulate, 2)
        a, b = (fitted(p, y, max_exact_rows=limit) for limit in (10**6, 0))
        one, two = a.compare("roc_auc"), b.compare("roc_auc")
        assert np.abs(one["difference"] - two["difference"]).max() < 1e-3
        assert a.rank("ece")["model"].tolist() == b.rank("ece")["model"].tolist()
        assert a.prevalence().equals(b.prevalence())

    def test_the_mixture_as_published_is_always_drawn_row_by_row(self, simulate: Callable[..., Any]) -> None:
        p, y = data(simulate, 2, n=200)
        a, b = (
            fitted(p, y, 50, density="kde", n_draws=20, max_iter=3, max_exact_rows=limit).estimate("ece")
            for limit in (10**6, 0)
        )
        assert a.equals(b)

    @pytest.mark.parametrize("value", [-1, 2.5, True, "many"])
    def test_the_limit_is_a_whole_number(self, value: Any) -> None:
        with pytest.raises(ValueError, match="max_exact_rows must be a whole number of at least 0"):
            SSME(max_exact_rows=value).fit(np.full((10, 1), 0.5))


@pytest.mark.parametrize(("n_models", "n_classes"), [(40, 60), (4, 400)])
def test_thousands_of_dimensions_are_finite_and_better_than_the_labels_alone(n_models: int, n_classes: int) -> None:
    p, y = of_classes(600, n_models, n_classes)
    truth = evaluate_metric("accuracy", p, y)
    frame = fitted(p, y, 40, max_exact_rows=600, n_draws=20).estimate(["accuracy", "ece"], labeled_only=True)
    assert np.isfinite(frame[["estimate", "lower", "upper"]]).all(axis=None)
    error = {
        method: np.abs(frame[(frame["metric"] == "accuracy") & (frame["method"] == method)]["estimate"] - truth).mean()
        for method in ("ssme", "labeled-only")
    }
    assert error["ssme"] <= error["labeled-only"]
