"""The registry, functions as metrics, degenerate data, and the errors."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

import ssme.metrics._linear as linear
from ssme.metrics import METRICS, MetricSpec, evaluate_metric, get_metric

NAMES = [
    "accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc",
    "average_precision", "ece", "ece_positive", "brier", "log_loss",
]  # fmt: skip
MULTICLASS = [name for name in NAMES if name != "ece_positive"]


def scores_and_labels(n=40, n_models=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(n_classes), size=(n, n_models))
    return scores, rng.integers(0, n_classes, n)


def one_hot(y, n_classes):
    return np.eye(n_classes)[np.asarray(y)]


def binary(p):
    """Scores (n, 1, 2) of one model from P(class 1)."""
    p = np.asarray(p, dtype=float)
    return np.stack([1 - p, p], axis=-1)[:, None, :]


# -- registry


def test_registry_has_every_metric_and_says_what_it_is():
    assert list(METRICS) == NAMES
    for name, spec in METRICS.items():
        assert spec.name == name and spec.reference and spec.description.endswith(".")
        assert isinstance(spec.greater_is_better, bool) and not spec.hard_labels_only
        doc = " ".join(inspect.getdoc(spec.prepare).split()).lower()
        direction = "higher is better" if spec.greater_is_better else "lower is better"
        for words in ("reference: ", direction, "in [0, 2]" if name == "brier" else "bounds [0, "):
            assert words in doc, (name, words)


@pytest.mark.parametrize(("name", "n_classes"), [(n, 2) for n in NAMES] + [(n, 3) for n in MULTICLASS])
def test_values_lie_in_the_bounds(name, n_classes):
    spec = get_metric(name, n_classes)
    for seed in range(20):
        values = evaluate_metric(name, *scores_and_labels(12, 3, n_classes, seed))
        assert np.all((spec.bounds[0] <= values) & (values <= spec.bounds[1]))


def test_bounds_of_brier_depend_on_the_number_of_classes():
    assert get_metric("brier", 2).bounds == (0, 1) and get_metric("brier", 3).bounds == (0, 2)
    assert evaluate_metric("brier", [[[1.0, 0.0]]], [1]) == 1
    assert evaluate_metric("brier", [[[1.0, 0.0, 0.0]]], [1]) == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("auroc", "roc_auc"), ("AUC", "roc_auc"), ("acuracy", "accuracy"), ("average precision", "average_precision")],
)
def test_unknown_name_says_what_was_meant(typed, meant):
    with pytest.raises(ValueError, match=rf"unknown metric '{typed}', did you mean .*'{meant}'"):
        get_metric(typed, 2)


def test_unknown_name_without_a_match_lists_the_metrics():
    with pytest.raises(ValueError, match=r"unknown metric 'zzz'\. Known are accuracy, .*log_loss, or any function"):
        get_metric("zzz", 2)


def test_what_is_no_metric():
    with pytest.raises(TypeError, match="a metric is a name or a function"):
        get_metric(3, 2)


def test_binary_metric_refuses_more_classes():
    for ask in (lambda: get_metric("ece_positive", 3), lambda: METRICS["ece_positive"].prepare(np.ones((4, 1, 3)) / 3)):
        with pytest.raises(ValueError, match="'ece_positive' is defined for two classes, and the scores have 3"):
            ask()


def test_own_specification():
    def share_of_class_1(scores, weights=None):
        return lambda labels, weights=None: np.repeat(labels[:, :, 1].mean(axis=1)[:, None], scores.shape[1], axis=1)

    spec = MetricSpec("share", share_of_class_1)
    assert get_metric(spec, 2) is spec
    np.testing.assert_array_equal(evaluate_metric(spec, *scores_and_labels(4)), [scores_and_labels(4)[1].mean()] * 3)


# -- functions of the user's


def test_function_gets_hard_labels_and_scores():
    seen = []

    def f(y_true, y_score):
        """Agreement. More words."""
        seen.append((y_true, y_score))
        return accuracy_score(y_true, y_score > 0.5)

    scores, y = scores_and_labels()
    spec = get_metric(f, 2)
    assert (spec.name, spec.description, spec.hard_labels_only) == ("f", "Agreement. More words.", True)
    assert spec.greater_is_better is None and spec.bounds == (-np.inf, np.inf)
    np.testing.assert_allclose(evaluate_metric(f, scores, y), evaluate_metric("accuracy", scores, y))
    np.testing.assert_array_equal(seen[1][0], y)
    np.testing.assert_array_equal(seen[1][1], scores[:, 1, 1])


def test_function_of_more_classes_gets_all_scores():
    scores, y = scores_and_labels(n_classes=4)
    values = evaluate_metric(lambda t, s: cohen_kappa_score(t, s.argmax(axis=1)), scores, y)
    np.testing.assert_allclose(values, [cohen_kappa_score(y, scores[:, m].argmax(axis=1)) for m in range(3)])


def test_function_of_many_draws_and_whole_weights():
    scores, _ = scores_and_labels(n=30)
    rng = np.random.default_rng(1)
    labels = one_hot(rng.integers(0, 2, (5, 30)), 2)
    weights = rng.integers(0, 3, (5, 30))
    spec = get_metric(lambda t, s: np.mean(t == (s > 0.5)), 2)
    expected = get_metric("accuracy", 2).prepare(scores)
    np.testing.assert_allclose(spec.prepare(scores)(labels), expected(labels))
    np.testing.assert_allclose(spec.prepare(scores)(labels, weights), expected(labels, weights))


def test_function_may_write_to_its_arguments_and_return_nan():
    def spoils(y_true, y_score):
        y_true[:] = 0
        y_score.sort()
        return np.nan

    scores, y = scores_and_labels()
    before = scores.copy(), y.copy()
    assert np.isnan(evaluate_metric(spoils, scores, y)).all()
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(y, before[1])


class Constant:
    """No function."""

    def __call__(self, y_true, y_score, c=1.0):
        return c


def test_names_of_functions():
    assert get_metric(lambda t, s: 0.0, 2).name == "lambda"
    assert get_metric(partial(accuracy_score, normalize=True), 2).name == "accuracy_score"
    assert get_metric(Constant(), 2).name == "Constant"
    assert evaluate_metric(partial(Constant(), c=2), *scores_and_labels(3)).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (np.zeros(3), r"an array of shape \(3,\)"),
        ([0.5], r"an array of shape \(1,\)"),
        (None, "NoneType"),
        ("0.5", "str"),
        (1j, "complex"),
        ({"auc": 1.0}, "dict"),
    ],
)
def test_function_must_return_one_number(returned, what):
    def my_metric(y_true, y_score):
        return returned

    with pytest.raises(ValueError, match=rf"'my_metric' must return one number .*, got {what}\."):
        evaluate_metric(my_metric, *scores_and_labels())


@pytest.mark.parametrize("returned", [True, 1, np.float32(1), np.array(1)])
def test_function_may_return_any_kind_of_number(returned):
    assert evaluate_metric(lambda t, s: returned, *scores_and_labels()).tolist() == [1, 1, 1]


def test_function_refuses_soft_labels_and_fractional_weights():
    scores, y = scores_and_labels(n=4)
    evaluate = get_metric(accuracy_score, 2).prepare(scores)
    for soft in (np.full((1, 4, 2), 0.5), np.ones((1, 4, 2)), np.zeros((1, 4, 2))):
        with pytest.raises(ValueError, match="'accuracy_score' is a function of hard labels"):
            evaluate(soft)
    for weights in ([[0.5, 1, 1, 1]], [[-1, 1, 1, 1]]):
        with pytest.raises(ValueError, match="'accuracy_score' takes no weights"):
            evaluate(one_hot(y, 2)[None], weights)


# -- shapes and errors


@pytest.mark.parametrize("metric", [*NAMES, accuracy_score])
def test_shapes_are_checked(metric):
    spec = get_metric(metric, 2)
    scores, y = scores_and_labels()
    for bad in (scores[:, :, 1], scores[:0], scores[:, :, :1]):
        with pytest.raises(ValueError, match=rf"'{spec.name}' needs scores of shape \(n, M, K\)"):
            spec.prepare(bad)
    evaluate = spec.prepare(scores)
    for labels in (one_hot(y, 2), one_hot(y, 2)[None, :-1], one_hot(y, 3)[None]):
        with pytest.raises(ValueError, match=rf"'{spec.name}' needs labels of shape \(D, 40, 2\)"):
            evaluate(labels)
    with pytest.raises(ValueError, match=rf"'{spec.name}' needs weights of shape \(1, 40\), got \(40,\)"):
        evaluate(one_hot(y, 2)[None], np.ones(40))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1], r"y must have one label a row, shape \(3,\), got \(2,\)"),
        ([0, -1, 1], "y must hold class indices 0 to 1, and 1 rows do not: row 1 has .*-1"),
        ([0, 1, 2], "row 2 has"),
        (["a", "b", "a"], "and 3 rows do not: row 0 has"),
    ],
)
def test_labels_of_evaluate_metric(y, message):
    with pytest.raises(ValueError, match=message):
        evaluate_metric("accuracy", binary([0.1, 0.2, 0.3]), y)


def test_scores_of_evaluate_metric():
    with pytest.raises(ValueError, match="scores must be finite; 2 of them are not"):
        evaluate_metric("accuracy", binary([0.1, np.nan]), [0, 1])
    with pytest.raises(ValueError, match=r"of shape \(n, M, K\)"):
        evaluate_metric(accuracy_score, [[0.1, 0.2]], [0])


@pytest.mark.parametrize("name", NAMES)
def test_other_types_of_labels(name):
    """Whole, logical and single-precision labels, other memory orders, and lists."""
    scores, y = scores_and_labels()
    evaluate = get_metric(name, 2).prepare(scores)
    labels = np.stack([one_hot(y, 2), one_hot(1 - y, 2)])
    expected = evaluate(labels)
    for kind in (
        labels.astype(bool),
        labels.astype(np.int8),
        labels.astype(np.float32),
        np.asfortranarray(labels),
        labels.tolist(),
    ):
        np.testing.assert_array_equal(evaluate(kind), expected)


@pytest.mark.parametrize("name", MULTICLASS)
def test_other_types_of_labels_of_more_classes(name):
    scores, y = scores_and_labels(n_classes=4)
    evaluate = get_metric(name, 4).prepare(scores.astype(np.float32))
    labels = np.stack([one_hot(y, 4), one_hot((y + 1) % 4, 4)])
    expected = evaluate(labels)
    for kind in (
        labels.astype(bool),
        labels.astype(np.float32),
        np.asfortranarray(labels),
        np.flip(np.flip(labels, 0).copy(), 0),
    ):
        np.testing.assert_allclose(evaluate(kind), expected, rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_written_to(name):
    for n_classes in (2,) if METRICS[name].binary_only else (2, 3):
        scores, y = scores_and_labels(n_classes=n_classes)
        labels, weights = one_hot(y, n_classes)[None].repeat(2, axis=0), np.full((2, 40), 0.7)
        before = [a.copy() for a in (scores, labels, weights)]
        for a in (scores, labels, weights):
            a.setflags(write=False)
        evaluate = get_metric(name, n_classes).prepare(scores)
        assert evaluate(labels, weights).shape == (2, 3)
        np.testing.assert_array_equal(evaluate(labels), evaluate(labels))
        for a, b in zip((scores, labels, weights), before, strict=True):
            np.testing.assert_array_equal(a, b)


# -- degenerate data


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1]])
def test_one_class(y):
    scores = binary([0.2, 0.6, 0.9])
    for name in ("roc_auc", "average_precision"):
        assert np.isnan(evaluate_metric(name, scores, y))
    for name in set(NAMES) - {"roc_auc", "average_precision", "recall"}:
        assert np.isfinite(evaluate_metric(name, scores, y)), name
    assert np.isnan(evaluate_metric("recall", scores, y)) == (y[0] == 0)
    assert evaluate_metric("balanced_accuracy", scores, y) == (1 / 3 if y[0] == 0 else 2 / 3)


def test_one_class_of_three():
    scores, y = scores_and_labels(n_classes=3)
    y[:] = 2
    for name in ("roc_auc", "average_precision"):
        assert np.isnan(evaluate_metric(name, scores, y)).all()
    for name in ("balanced_accuracy", "recall"):
        np.testing.assert_allclose(evaluate_metric(name, scores, y), evaluate_metric("accuracy", scores, y))


def test_one_class_in_some_draws_only():
    scores, y = scores_and_labels()
    labels = np.stack([one_hot(y, 2), one_hot(np.ones_like(y), 2)])
    values = get_metric("roc_auc", 2).prepare(scores)(labels)
    assert np.isfinite(values[0]).all() and np.isnan(values[1]).all()


def test_nothing_predicted_as_class_1():
    scores = binary([0.2, 0.3, 0.5])
    assert np.isnan(evaluate_metric("precision", scores, [0, 1, 1]))
    assert evaluate_metric("recall", scores, [0, 1, 1]) == 0
    assert evaluate_metric("f1", scores, [0, 1, 1]) == 0
    assert np.isnan(evaluate_metric("f1", scores, [0, 0, 0]))


def test_a_soft_count_below_one_half_is_absent():
    scores = binary([0.2, 0.6, 0.9])
    for name in ("roc_auc", "average_precision", "recall"):
        evaluate = get_metric(name, 2).prepare(scores)
        few, enough = (np.stack([1 - q, q], axis=-1)[None] for q in (np.full(3, 0.16), np.full(3, 0.17)))
        assert np.isnan(evaluate(few)).all() and np.isfinite(evaluate(enough)).all()


@pytest.mark.parametrize("name", NAMES)
def test_small_weights_do_not_make_a_class_disappear(name):
    """Weights that sum to 1 give what they give at another scale; for bins of equal mass a weight is several rows."""
    scale = 1e-3 if name == "ece_positive" else 1e3
    for n_classes in (2,) if METRICS[name].binary_only else (2, 3):
        scores, y = scores_and_labels(n=12, n_classes=n_classes)
        y[:n_classes] = range(n_classes)
        w = np.random.default_rng(0).dirichlet(np.ones(12))
        values = evaluate_metric(name, scores, y, w)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values, evaluate_metric(name, scores, y, scale * w))


@pytest.mark.parametrize("name", NAMES)
def test_no_weight_at_all(name):
    for n_classes in (2,) if METRICS[name].binary_only else (2, 3):
        scores, y = scores_and_labels(n_classes=n_classes)
        assert np.isnan(evaluate_metric(name, scores, y, np.zeros(40))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_constant_scores(name, p):
    y = np.array([0, 1, 1, 0, 1])
    value = evaluate_metric(name, binary(np.full(5, p)), y)[0]
    expected = {
        "accuracy": 0.6 if p > 0.5 else 0.4,
        "balanced_accuracy": 0.5,
        "precision": 0.6 if p > 0.5 else np.nan,
        "recall": float(p > 0.5),
        "f1": 0.75 if p > 0.5 else 0.0,
        "roc_auc": 0.5,
        "average_precision": 0.6,
        "ece": abs(max(p, 1 - p) - (0.6 if p > 0.5 else 0.4)),
        "ece_positive": abs(p - 0.6),
        "brier": 0.6 * (1 - p) ** 2 + 0.4 * p**2,
        "log_loss": -0.6 * np.log(max(p, linear.EPS)) - 0.4 * np.log(max(1 - p, linear.EPS)),
    }
    np.testing.assert_allclose(value, expected[name], rtol=1e-12)


def test_scores_of_exactly_0_and_1():
    p, y = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 0, 0])
    assert evaluate_metric("ece", binary(p), y) == 0.25  # all in the last bin, 1.0 included
    assert evaluate_metric("ece_positive", binary(p), y) == 0.25
    assert evaluate_metric("brier", binary(p), y) == 0.25
    np.testing.assert_allclose(evaluate_metric("log_loss", binary(p), y), -np.log(linear.EPS) / 4)
    assert evaluate_metric("log_loss", binary([0.0, 1.0]), [0, 1]) < 1e-15


def test_a_perfect_model_of_three_classes():
    y = np.array([0, 1, 2, 1])
    scores = one_hot(y, 3)[:, None]
    for name in MULTICLASS:
        value = evaluate_metric(name, scores, y)[0]
        assert value == (1 if METRICS[name].greater_is_better else 0) or (name == "log_loss" and value < 1e-15)


def test_collapsed_quantile_bins():
    """90 % of the values tied: most edges are one number, and the tied rows share a bin."""
    p = np.r_[np.full(18, 0.2), 0.7, 0.9]
    y = np.r_[np.ones(9), np.zeros(9), 1, 0].astype(int)
    value = evaluate_metric("ece_positive", binary(p), y)[0]
    edges = np.quantile(p, np.linspace(0, 1, 11))[1:-1]
    bins = (p[:, None] > edges).sum(axis=1)
    gaps = [abs(p[bins == b].mean() - y[bins == b].mean()) for b in np.unique(bins)]
    assert len(gaps) == 2
    np.testing.assert_allclose(value, np.mean(gaps))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_more_bins_than_rows(n):
    p, y = np.linspace(0.1, 0.7, n), np.arange(n) % 2
    np.testing.assert_allclose(evaluate_metric("ece_positive", binary(p), y), np.abs(p - y).mean())
    hit = np.where(p > 0.5, y, 1 - y)
    np.testing.assert_allclose(evaluate_metric("ece", binary(p), y), np.abs(np.maximum(p, 1 - p) - hit).mean())


@pytest.mark.parametrize("name", NAMES)
def test_one_row(name):
    value = evaluate_metric(name, binary([0.8]), [1])[0]
    undefined = name in ("roc_auc", "average_precision")
    expected = 1.0 if METRICS[name].greater_is_better else {"brier": 0.04, "log_loss": -np.log(0.8)}.get(name, 0.2)
    np.testing.assert_allclose(value, np.nan if undefined else expected)
