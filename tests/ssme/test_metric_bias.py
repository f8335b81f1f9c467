"""The bias of metrics on unlabeled rows, as the labeled rows show it, and classes that do not occur."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ssme import SSME, evaluate_metric
from ssme._fitting import existing_classes
from ssme._metric_bias import MetricBias, metric_biases, shifted
from ssme.metrics import get_metric
from ssme.posterior import FixedNode, LabelPosterior


def flat_consensus(
    n: int, n_labeled: int, seed: int = 0, n_draws: int = 100
) -> tuple[np.ndarray, LabelPosterior, np.ndarray]:
    """A score that ranks well, a consensus that knows nothing of it, and the first labels known."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, n)
    second = 1 / (1 + np.exp(-(2 * truth - 1) - random.normal(size=n)))
    scores = np.stack([1 - second, second], axis=1)[:, None, :]
    codes = np.where(np.arange(n) < n_labeled, truth, -1)
    node, votes = FixedNode(np.full((n, 2), 0.5)), scores.argmax(axis=2)
    posterior = LabelPosterior(
        node, np.zeros(n_draws, dtype=np.int64), codes, votes, np.zeros(1), np.zeros((n_draws, 1))
    )
    return scores, posterior, truth


def bias(n_labeled: int, metric: str = "roc_auc", seed: int = 0) -> MetricBias:
    scores, posterior, _ = flat_consensus(6000, n_labeled, seed)
    ones = np.ones(6000)
    return metric_biases([get_metric(metric, 2)], scores, posterior, ones, ones, np.arange(6000), seed=[0])[0]


class TestMetricBiases:
    def test_the_residual_is_shrunk_little_with_many_labels_and_much_with_few(self) -> None:
        scores, _, truth = flat_consensus(6000, 0)
        exact = evaluate_metric("roc_auc", scores, truth)[0] - 0.5
        assert bias(5000).expected[0] == pytest.approx(exact, rel=0.05)
        assert 0 <= bias(6).expected[0] < 0.1 * exact
        assert bias(40).expected[0] < bias(400).expected[0] < bias(4000).expected[0]

    def test_a_consensus_that_is_right_has_little_bias(self) -> None:
        """z scores of the bias over seeds: the noise says how far the expectation is from 0."""
        z = []
        for seed in range(30):
            scores, posterior, truth = flat_consensus(1000, 200, seed)
            random = np.random.default_rng(100 + seed)
            drawn = random.integers(0, 2, 200)
            posterior = replace(posterior, codes=np.concatenate([drawn, np.full(800, -1)]))
            ones = np.ones(1000)
            found = metric_biases([get_metric("roc_auc", 2)], scores, posterior, ones, ones, np.arange(1000), seed=[1])
            z.append(found[0].expected[0] / found[0].noise.std())
        assert np.abs(z).mean() < 0.5 and np.max(np.abs(z)) < 2.5

    def test_accuracy_has_none_and_few_labels_say_nothing(self) -> None:
        for found in (bias(500, "accuracy"), bias(4)):
            assert not found.expected.any() and not found.noise.any()

    def test_a_metric_that_the_labels_do_not_define_has_none(self) -> None:
        scores, posterior, _ = flat_consensus(600, 50)
        posterior = replace(posterior, codes=np.where(posterior.codes >= 0, 0, -1))
        ones = np.ones(600)
        found = metric_biases([get_metric("roc_auc", 2)], scores, posterior, ones, ones, np.arange(600), seed=[0])
        assert not found[0].expected.any()

    def test_a_group_starts_from_the_whole(self) -> None:
        scores, posterior, _ = flat_consensus(600, 3)
        whole = [MetricBias(np.array([0.2]), np.full((100, 1), 0.01))]
        ones = np.ones(600)
        specs = [get_metric("roc_auc", 2)]
        found = metric_biases(specs, scores, posterior, ones, ones, np.arange(600), seed=[0], before=whole)
        np.testing.assert_array_equal(found[0].expected, [0.2])
        scores, posterior, truth = flat_consensus(600, 500)
        found = metric_biases(specs, scores, posterior, ones, ones, np.arange(600), seed=[0], before=whole)
        exact = evaluate_metric("roc_auc", scores, truth)[0] - 0.5
        assert 0.2 < found[0].expected[0] < exact + 0.02

    def test_whole_weights_are_repeated_rows(self) -> None:
        scores, posterior, _ = flat_consensus(300, 100)
        weight = np.random.default_rng(0).integers(1, 4, 300)
        specs = [get_metric(each, 2) for each in ("roc_auc", "brier", "ece")]
        plain = metric_biases(
            specs, scores, posterior, weight.astype(float), weight.astype(float), np.arange(300), seed=[0]
        )
        many = np.repeat(np.arange(300), weight)
        ones = np.ones(len(many))
        repeated = metric_biases(
            specs, scores[many], posterior.subset(many), ones, ones, np.arange(len(many)), seed=[0]
        )
        for a, b in zip(plain, repeated, strict=True):
            np.testing.assert_allclose(a.expected, b.expected, atol=1e-12)
            np.testing.assert_allclose(a.noise, b.noise, atol=1e-12)
        halves = metric_biases(specs, scores, posterior, weight + 0.001, weight + 0.001, np.arange(300), seed=[0])
        for a, b in zip(halves, repeated, strict=True):
            np.testing.assert_allclose(a.expected, b.expected, rtol=0.6, atol=1e-4)
            np.testing.assert_allclose(a.noise.std(axis=0), b.noise.std(axis=0), rtol=0.4)

    def test_shifted_stays_inside_the_bounds_and_moves_by_the_unlabeled_share(self) -> None:
        spec = get_metric("roc_auc", 2)
        move = MetricBias(np.array([0.2]), np.array([[0.1], [-0.1]]))
        point, draws = shifted(spec, (np.array([0.7]), np.array([[0.6], [0.95]])), move, 0.5)
        np.testing.assert_allclose(point, [0.8])
        np.testing.assert_allclose(draws, [[0.75], [1.0]], atol=1e-12)


def test_every_metric_converges_where_the_consensus_is_wrong_about_the_top() -> None:
    """Two models that are sure and wrong about the rows they score highest: areas and losses need the labels."""
    random = np.random.default_rng(0)
    truth = (random.random(9000) < 0.15).astype(int)
    x = 2.5 * truth + random.normal(size=9000)
    spoiled = (x > 2.0) & (random.random(9000) < 0.5)
    truth[spoiled] = 0
    scores = 1 / (1 + np.exp(-(3 * x - 5)[:, None] - 0.3 * random.normal(size=(9000, 2))))
    both = np.stack([1 - scores, scores], axis=2)
    metrics = ("average_precision", "roc_auc", "log_loss", "brier", "f1")
    exact = np.array([evaluate_metric(each, both, truth) for each in metrics])
    errors = {}
    for n_labeled in (30, 3000):
        y = np.where(np.arange(9000) < n_labeled, truth, -1)
        table = SSME(random_state=0).fit(scores, y).estimate(metrics)
        errors[n_labeled] = np.abs(table["estimate"].to_numpy().reshape(5, 2) - exact).max(axis=1) / exact.max(axis=1)
    assert (errors[3000] < 0.12).all()
    assert errors[30][0] > 0.5


class TestExistingClasses:
    def test_a_class_is_seen_by_a_label_or_by_being_the_likeliest_somewhere(self) -> None:
        mean = np.array([[0.7, 0.2, 0.06, 0.04], [0.3, 0.6, 0.06, 0.04]])
        np.testing.assert_array_equal(existing_classes(mean, np.array([-1, -1]), np.ones(2)), [1, 1, 0, 0])
        np.testing.assert_array_equal(existing_classes(mean, np.array([2, -1]), np.ones(2)), [1, 1, 1, 0])
        np.testing.assert_array_equal(existing_classes(mean, np.array([2, -1]), np.array([0.0, 1.0])), [0, 1, 0, 0])

    def test_a_row_or_two_at_the_edge_make_no_class(self) -> None:
        mean = np.tile([0.5, 0.44, 0.06], (100, 1))
        mean[0] = [0.3, 0.3, 0.4]
        mean[1] = [0.1, 0.8, 0.1]
        np.testing.assert_array_equal(existing_classes(mean, np.full(100, -1), np.ones(100)), [1, 0, 0])
        mean[:60] = [0.2, 0.7, 0.1]
        np.testing.assert_array_equal(existing_classes(mean, np.full(100, -1), np.ones(100)), [1, 1, 0])

    def test_of_two_classes_both_exist(self) -> None:
        np.testing.assert_array_equal(existing_classes(np.array([[0.9, 0.1]]), np.array([-1]), np.ones(1)), [1, 1])

    def test_means_over_classes_leave_out_a_class_that_only_the_scores_know(self) -> None:
        random = np.random.default_rng(0)
        truth = random.integers(0, 3, 1500)
        logits = 3.0 * np.eye(4)[truth][:, None, :] + random.normal(size=(1500, 3, 4))
        logits[:, :, 3] -= 1.0  # class 3 never occurs, and gets some percent of every row
        scores = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
        y = np.where(np.arange(1500) < 50, truth, -1)
        table = SSME(random_state=0).fit(scores, y).estimate(["balanced_accuracy", "roc_auc"])
        for metric, rows in table.groupby("metric"):
            np.testing.assert_allclose(rows["estimate"], evaluate_metric(metric, scores, truth), atol=0.03)
