"""The estimator from the outside: shapes, invariances, diagnostics, subgroups, traps."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ssme import SSME, ScoreTable
from ssme.metrics import METRICS, evaluate_metric

COLUMNS = "metric model group estimate lower upper level n_labeled n_unlabeled method flags".split()
MULTI = ["accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc", "average_precision", "ece", "brier"]
BINARY = [*MULTI, "ece_positive", "log_loss"]


def simulate(n=300, n_models=3, n_classes=3, n_labeled=20, seed=0, strength=2.0):
    """Scores (n, M, K), partial labels (n,), truth (n,)."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    logits = random.normal(size=(n, n_models, n_classes))
    logits[np.arange(n), :, truth] += strength
    scores = np.exp(logits - logits.max(axis=2, keepdims=True))
    scores /= scores.sum(axis=2, keepdims=True)
    return scores, np.where(np.arange(n) < n_labeled, truth, -1), truth


def numbers(frame):
    return frame[["estimate", "lower", "upper"]].to_numpy(dtype=float)


EXPECTED_FAILURES = {
    "check_classifiers_classes": "-1 marks an unlabeled row and is no class",
    "check_supervised_y_no_nan": "NaN marks an unlabeled row",
}


@parametrize_with_checks(
    [SSME(score_type="logit")], expected_failed_checks=lambda estimator: EXPECTED_FAILURES, legacy=True
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_table_is_tidy(n_classes):
    scores, y, _ = simulate(n_classes=n_classes)
    metrics = BINARY if n_classes == 2 else MULTI
    table = SSME(random_state=0).fit(scores, y).estimate(metrics, labeled_only=True)
    assert list(table.columns) == COLUMNS
    ours = table[table.method == "ssme"]
    assert list(ours.metric) == [m for m in metrics for _ in range(3)]
    assert list(ours.model) == [0, 1, 2] * len(metrics)
    assert set(table.method) == {"ssme", "labeled-only"} and set(ours.group) == {"all"}
    assert (ours.n_labeled == 20).all() and (ours.n_unlabeled == 280).all() and (ours.level == 0.9).all()
    assert ((ours.lower <= ours.estimate) & (ours.estimate <= ours.upper)).all()
    for metric, rows in ours.groupby("metric"):
        low, high = METRICS[metric].bounds
        assert rows.lower.min() >= low and rows.upper.max() <= high


def test_estimates_are_near_the_truth_and_beat_the_labels():
    errors = []
    for seed in range(8):
        scores, y, truth = simulate(n=1000, seed=seed)
        table = SSME(random_state=0).fit(scores, y).estimate(["accuracy", "ece"], labeled_only=True)
        for metric in ("accuracy", "ece"):
            value = evaluate_metric(metric, scores, truth)
            rows = table[table.metric == metric]
            errors.append([np.abs(rows[rows.method == m].estimate - value).mean() for m in ("ssme", "labeled-only")])
    ours, labels = np.mean(errors, axis=0)
    assert ours < 0.5 * labels and ours < 0.03


def test_all_rows_labeled_gives_the_metric_itself():
    scores, _, truth = simulate()
    table = SSME(random_state=0).fit(scores, truth).estimate(MULTI)
    for metric, rows in table.groupby("metric"):
        np.testing.assert_allclose(rows.estimate, evaluate_metric(metric, scores, truth), atol=1e-9)
    assert (table.upper - table.lower > 0.001).all()


def test_converges_to_the_truth_as_labels_grow():
    # an adversarial case: every model is overconfident and they err together
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, 6000)
    wrong = random.random(6000) < 0.4
    p1 = np.where((truth == 1) ^ wrong, 0.97, 0.03)[:, None] + random.uniform(-0.02, 0.02, (6000, 3))
    errors = []
    for n_labeled in (20, 200, 5000):
        y = np.where(np.arange(6000) < n_labeled, truth, -1)
        table = SSME(random_state=0).fit(p1, y).estimate("accuracy")
        errors.append(np.abs(table.estimate - np.mean(~wrong)).max())
    assert errors[2] < 0.01 and errors[2] < errors[0]


@pytest.mark.parametrize("density", ["recalibrated", "kde"])
def test_labeled_rows_are_pinned(density):
    scores, y, _ = simulate()
    model = SSME(density=density, random_state=0).fit(scores, y)
    np.testing.assert_array_equal(model.responsibilities_[:20], np.eye(3)[y[:20]])
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1)
    np.testing.assert_allclose(model.priors_, model.responsibilities_.mean(axis=0))


def test_binary_input_in_two_and_three_dimensions_agree():
    scores, y, _ = simulate(n_classes=2)
    table = SSME(random_state=0).fit(scores, y).estimate(BINARY)
    flat = SSME(random_state=0).fit(scores[:, :, 1], y).estimate(BINARY)
    np.testing.assert_allclose(flat.estimate, table.estimate, atol=1e-9)
    np.testing.assert_allclose(numbers(flat), numbers(table), atol=0.06)  # other random weights: rounding of 1 - p
    logits = np.log(scores[:, :, 1] / scores[:, :, 0])
    declared = SSME(score_type="logit", random_state=0).fit(logits, y).estimate(BINARY)
    np.testing.assert_allclose(declared.estimate, table.estimate, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_row_order_changes_nothing(n_classes):
    scores, y, _ = simulate(n_classes=n_classes)
    order = np.random.default_rng(1).permutation(len(y))
    plain = SSME(random_state=3).fit(scores, y).estimate(["accuracy", "roc_auc", "ece"])
    shuffled = SSME(random_state=3).fit(scores[order], y[order]).estimate(["accuracy", "roc_auc", "ece"])
    np.testing.assert_allclose(numbers(shuffled), numbers(plain), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_models_and_classes_may_be_permuted(n_classes):
    scores, y, _ = simulate(n_models=4, n_classes=n_classes)
    metrics = ["accuracy", "roc_auc", "ece", "brier"] if n_classes > 2 else ["accuracy", "roc_auc", "ece"]
    plain = SSME(random_state=3).fit(scores, y).estimate(metrics)
    models = [2, 0, 3, 1]
    permuted = SSME(random_state=3).fit(scores[:, models], y).estimate(metrics)
    np.testing.assert_allclose(
        numbers(permuted), numbers(plain).reshape(len(metrics), 4, 3)[:, models].reshape(-1, 3), atol=1e-9
    )
    classes = np.roll(np.arange(n_classes), 1)
    renamed = SSME(random_state=3).fit(scores[:, :, classes], np.where(y >= 0, np.argsort(classes)[y], -1))
    np.testing.assert_allclose(numbers(renamed.estimate(metrics)), numbers(plain), atol=1e-9)


def test_whole_weights_equal_repeated_rows():
    scores, y, _ = simulate(n=120)
    weight = np.random.default_rng(0).integers(1, 4, 120)
    weighted = SSME(random_state=0).fit(scores, y, sample_weight=weight)
    repeated = SSME(random_state=0).fit(np.repeat(scores, weight, axis=0), np.repeat(y, weight))
    for metric in ("accuracy", "roc_auc", "ece", "f1"):
        np.testing.assert_allclose(weighted.estimate(metric).estimate, repeated.estimate(metric).estimate, atol=1e-8)
    width = [(t.upper - t.lower).mean() for t in (weighted.estimate(), repeated.estimate())]
    assert width[0] == pytest.approx(width[1], rel=0.3)


def test_a_duplicate_model_gets_the_same_numbers():
    scores, y, _ = simulate(n_models=3)
    table = SSME(random_state=0).fit(np.concatenate([scores, scores[:, :1]], axis=1), y).estimate(["accuracy", "ece"])
    values = numbers(table).reshape(2, 4, 3)
    np.testing.assert_allclose(values[:, 3], values[:, 0], atol=1e-6)


def test_random_state_alone_decides():
    scores, y, _ = simulate()
    np.random.seed(1)
    first = SSME(random_state=5).fit(scores, y).estimate(MULTI)
    state = np.random.get_state()[1].copy()
    np.random.seed(2)
    second = SSME(random_state=5).fit(scores, y).estimate(MULTI)
    pd.testing.assert_frame_equal(first, second)
    np.random.seed(1)
    SSME(random_state=5).fit(scores, y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    other = SSME(random_state=6).fit(scores, y).estimate(MULTI)
    assert not np.allclose(other.lower, first.lower) and np.allclose(other.estimate, first.estimate, atol=0.02)


def test_the_callers_arrays_are_not_written_to():
    scores, y, _ = simulate()
    scores[0, 0] = [1.0, 0.0, 0.0]
    before = scores.copy(), y.copy()
    scores.setflags(write=False)
    y.setflags(write=False)
    SSME(random_state=0).fit(scores, y).estimate(MULTI, groups=np.repeat(["a", "b"], 150))
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(y, before[1])


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 40),
    n_models=st.integers(1, 5),
    n_classes=st.integers(2, 5),
    n_labeled=st.integers(0, 10),
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["soft", "hard", "constant", "ties"]),
)
def test_any_scores_give_finite_posteriors_and_estimates_in_range(n, n_models, n_classes, n_labeled, seed, kind):
    scores, y, _ = simulate(n, n_models, n_classes, n_labeled, seed)
    if kind == "hard":
        scores = np.eye(n_classes)[scores.argmax(axis=2)]
    elif kind == "constant":
        scores[:, 0] = 1.0 / n_classes
    elif kind == "ties":
        scores = np.round(scores, 1)
        scores[:, :, -1] += 1 - scores.sum(axis=2)
        scores = np.clip(scores, 0, 1)
        scores /= scores.sum(axis=2, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = SSME(random_state=0, n_draws=20).fit(scores, y)
        table = model.estimate(MULTI)
    assert np.isfinite(model.responsibilities_).all()
    np.testing.assert_allclose(model.predict_proba(scores).sum(axis=1), 1)
    linear = table[table.metric.isin(["accuracy", "ece", "brier"])]
    assert np.isfinite(numbers(linear)).all()
    for metric, rows in table.groupby("metric"):
        low, high = METRICS[metric].bounds
        assert np.nanmin(rows.lower.to_numpy(), initial=low) >= low
        assert np.nanmax(rows.upper.to_numpy(), initial=high) <= high


@pytest.mark.parametrize("n_labeled", [0, 1])
@pytest.mark.parametrize("n_models", [1, 2])
def test_few_labels_and_few_models(n_labeled, n_models):
    scores, y, _ = simulate(n_models=n_models, n_labeled=n_labeled)
    table = SSME(random_state=0).fit(scores, y).estimate(["accuracy", "ece"])
    assert np.isfinite(numbers(table)).all()
    assert set(table["flags"]) == {"no-labels" if n_labeled == 0 else "few-labels"}


def test_no_unlabeled_rows_and_a_class_without_labels():
    scores, y, truth = simulate(n=20)
    assert (SSME(random_state=0).fit(scores, y).estimate().n_unlabeled == 0).all()
    scores, y, truth = simulate()
    table = SSME(random_state=0).fit(scores, np.where(y == 2, -1, y)).estimate(["accuracy", "roc_auc"])
    assert np.isfinite(numbers(table)).all()


def test_table_and_frame_bring_their_names():
    scores, y, _ = simulate()
    names = ["cat", "dog", "eel"]
    table = ScoreTable.from_arrays(
        scores,
        [names[k] if k >= 0 else None for k in y],
        model_names=["a", "b", "c"],
        class_names=names,
        groups={"site": np.repeat(["x", "y"], 150)},
    )
    found = SSME(random_state=0).fit(table)
    assert list(found.classes_) == names
    frame = found.estimate("accuracy", groups=["site"])
    assert list(frame.model[:3]) == ["a", "b", "c"] and set(frame.group) == {"all", "site=x", "site=y"}
    plain = SSME(random_state=0).fit(scores, y).estimate("accuracy")
    np.testing.assert_allclose(numbers(frame[frame.group == "all"]), numbers(plain))
    assert set(found.predict(table)) <= set(names)
    binary, y2, _ = simulate(n_classes=2)
    frame = pd.DataFrame(binary[:, :, 1], columns=["u", "v", "w"])
    assert list(SSME(random_state=0).fit(frame, y2).estimate().model) == ["u", "v", "w"]
    with pytest.raises(ValueError, match="'town', which is no group column"):
        found.estimate(groups=["town"])


def test_string_labels_need_their_order():
    scores, y, _ = simulate(n_classes=2)
    text = np.array(["no", "yes", ""], dtype=object)[np.where(y >= 0, y, 2)]
    assert list(SSME(random_state=0).fit(scores, text).classes_) == ["no", "yes"]
    swapped = SSME(class_names=["yes", "no"], random_state=0).fit(scores[:, :, ::-1], text).estimate()
    np.testing.assert_allclose(swapped.estimate, SSME(random_state=0).fit(scores, text).estimate().estimate, atol=1e-9)
    with pytest.raises(ValueError, match="maybe"):
        SSME(class_names=["yes", "no"]).fit(scores, np.where(text == "no", "maybe", text))


def test_subgroups_have_their_counts_and_borrow_from_the_whole():
    scores, y, truth = simulate(n=1000, n_labeled=40)
    group = np.where(np.arange(1000) % 10 == 0, "rare", "rest")
    table = SSME(random_state=0).fit(scores, y).estimate("accuracy", groups={"kind": group}, labeled_only=True)
    rare = table[table.group == "kind=rare"]
    assert (rare.n_labeled == 4).all() and (rare.n_unlabeled == 96).all()
    assert rare[rare.method == "ssme"]["flags"].str.contains("few-labels").all()
    ours, labels = (rare[rare.method == m] for m in ("ssme", "labeled-only"))
    assert (ours.upper - ours.lower).mean() < 0.6 * (labels.upper - labels.lower).mean()
    value = evaluate_metric("accuracy", scores[group == "rare"], truth[group == "rare"])
    assert np.abs(ours.estimate.to_numpy() - value).max() < 0.1
    whole = table[(table.group == "all") & (table.method == "ssme")]
    assert (ours.upper - ours.lower).mean() > (whole.upper - whole.lower).mean()


def test_one_class_subgroup_is_nan_with_one_warning():
    scores, y, truth = simulate(n_classes=2, n_labeled=300)
    with pytest.warns(UserWarning, match="roc_auc is undefined for group 'y=0'.*defined in 0 of 100") as caught:
        table = SSME(random_state=0).fit(scores, y).estimate(["accuracy", "roc_auc"], groups={"y": truth.astype(str)})
    assert len(caught) == 1
    bad = table[(table.metric == "roc_auc") & (table.group != "all")]
    assert bad.estimate.isna().all() and bad["flags"].str.contains("undefined").all()
    assert np.isfinite(numbers(table[table.metric == "accuracy"])).all()


def test_functions_are_metrics_too():
    scores, y, truth = simulate(n=200)

    def share_of_class_2(y_true, y_score):
        return np.mean(y_true == 2)

    def right(y_true, y_score):
        return np.mean(y_score.argmax(axis=1) == y_true)

    table = SSME(random_state=0, n_draws=200).fit(scores, y).estimate([share_of_class_2, right, "accuracy"])
    assert list(table.metric.unique()) == ["share_of_class_2", "right", "accuracy"]
    values = numbers(table).reshape(3, 3, 3)
    np.testing.assert_allclose(values[1], values[2], atol=0.05)
    assert abs(values[0, 0, 0] - np.mean(truth == 2)) < 0.05


def test_labels_that_contradict_the_models_are_flagged():
    scores, y, truth = simulate(n=500, n_labeled=30, strength=4.0)
    wrong = np.where(y >= 0, (truth + 1) % 3, -1)
    assert not SSME(random_state=0).fit(scores, y).estimate()["flags"].str.contains("labels-disagree").any()
    model = SSME(random_state=0).fit(scores, wrong)
    assert model.estimate()["flags"].str.contains("labels-disagree").all()
    assert model.diagnostics_["labels_against_consensus"] < -2.5


def test_mixture_says_when_it_cannot_move():
    scores, y, _ = simulate(n_models=5, n_classes=4)
    with pytest.warns(UserWarning, match="EM cannot move"):
        model = SSME(density="kde", bandwidth=0.02, random_state=0).fit(scores, y)
    table = model.estimate()
    assert (table.method == "ssme-kde").all() and table["flags"].str.contains("no-op-fit").all()
    np.testing.assert_allclose(model.responsibilities_[20:], scores.mean(axis=1)[20:], atol=1e-3)
    assert model.self_kernel_share_.mean() > 0.9


def test_mixture_options():
    scores, y, truth = simulate(n=400, n_models=2, n_classes=2)
    for options in (
        {},
        {"space": "pooled", "leave_one_out": True},
        {"init": "recalibrated", "bandwidth": "scott"},
        {"bandwidth": np.array([0.5, 0.5]), "unlabeled_weight": 0.5, "correct_bias": True},
        {"init": np.full((400, 2), 0.5), "bandwidth": 0.7},
    ):
        model = SSME(density="kde", random_state=0, **options).fit(scores, y)
        assert model.n_iter_ >= 1 and len(model.log_likelihood_) == model.n_iter_ + 1
        assert model.bandwidth_.shape == ((1,) if options.get("space") == "pooled" else (2,))
        accuracy = model.estimate().estimate.to_numpy()
        np.testing.assert_allclose(accuracy, evaluate_metric("accuracy", scores, truth), atol=0.2)
        assert (model.predict(scores) == truth).mean() > 0.8
        np.testing.assert_allclose(model.predict_proba(scores).sum(axis=1), 1)
        assert np.isfinite(model.score_samples(scores)).all()


def test_density_of_new_rows_integrates_to_one():
    scores, y, _ = simulate(n=200, n_models=1, n_classes=2)
    model = SSME(random_state=0).fit(scores, y)
    z = np.linspace(-25, 25, 4001)
    density = np.exp(model.score_samples(1 / (1 + np.exp(z))[:, None]))
    assert np.trapezoid(density, z) == pytest.approx(1, abs=0.01)


def test_parameters_and_inputs_are_checked():
    scores, y, _ = simulate()
    for options, text in (
        ({"density": "gmm"}, "density must be one of"),
        ({"space": "both"}, "space must be one of"),
        ({"init": "random"}, "init must be one of"),
        ({"n_draws": 1}, "n_draws must be a whole number of at least 2"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"tol": -1}, "tol must be a number"),
        ({"memory_budget": 0}, "memory_budget must be a whole number of at least 1"),
        ({"kernel_dtype": "float16"}, "kernel_dtype must be one of 'float64', 'float32'"),
        ({"backend": "jax"}, "backend must be one of 'numpy', 'torch'"),
        ({"unlabeled_weight": float("nan")}, "unlabeled_weight must be a number"),
        ({"correct_bias": "yes"}, "correct_bias must be"),
        ({"score_type": "odds"}, "score_type must be"),
        ({"density": "kde", "init": np.ones((2, 2))}, "init must have shape"),
        ({"density": "kde", "bandwidth": "best"}, "bandwidth"),
    ):
        with pytest.raises(ValueError, match=text):
            SSME(**options).fit(scores, y)
    model = SSME(random_state=0)
    with pytest.raises(NotFittedError):
        model.estimate()
    with pytest.raises(NotFittedError):
        model.predict(scores)
    model.fit(scores, y)
    for call, text in (
        (lambda: model.estimate([]), "metrics is empty"),
        (lambda: model.estimate("acuracy"), "did you mean 'accuracy'"),
        (lambda: model.estimate("ece_positive"), "two classes"),
        (lambda: model.estimate(level=1.0), "level"),
        (lambda: model.estimate(groups=["a"] * 3), "groups"),
        (lambda: model.predict_proba(scores[:, :2]), "models and|expecting 3 features"),
        (lambda: model.predict_proba(scores[0, 0]), "Reshape your data"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(ValueError, match="logit"):
        SSME().fit(scores * 8 - 4, y)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        SSME().fit(scores[:, :, 0], np.r_[0, 1, 2, np.full(297, -1)])


def test_clone_pickle_and_table_as_new_rows():
    scores, y, _ = simulate()
    model = SSME(n_draws=30, random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(scores, y)
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.estimate(MULTI), model.estimate(MULTI))
    table = ScoreTable.from_arrays(scores)
    np.testing.assert_allclose(model.predict_proba(table), model.predict_proba(scores))


def test_one_model_with_broken_confidence_does_not_decide_alone():
    # two of four good models are softmaxes of raw decision values: one nearly uniform, one nearly one-hot
    random = np.random.default_rng(0)
    truth = random.integers(0, 20, 800)
    logits = random.normal(size=(800, 4, 20))
    logits[np.arange(800), :, truth] += np.array([4.0, 4.0, 4.0, 2.0])
    logits *= np.array([1.0, 1.0, 0.02, 20.0])[:, None]
    scores = np.exp(logits - logits.max(axis=2, keepdims=True))
    scores /= scores.sum(axis=2, keepdims=True)
    table = SSME(random_state=0).fit(scores, np.where(np.arange(800) < 20, truth, -1)).estimate("accuracy")
    value = evaluate_metric("accuracy", scores, truth)
    assert np.abs(table.estimate - value).max() < 0.06


def test_labels_that_are_all_right_leave_an_interval_with_width():
    # twenty right rows of twenty are what 86 % accuracy gives in one draw of twenty: every metric's interval says so
    p1 = np.r_[np.full(100, 0.9), np.full(100, 0.1)][:, None]
    truth = np.r_[np.ones(100, dtype=int), np.zeros(100, dtype=int)]
    y = np.where(np.arange(200) % 10 == 0, truth, -1)
    metrics = ["accuracy", "balanced_accuracy", "f1", "roc_auc"]
    table = SSME(random_state=0).fit(p1, y).estimate(metrics, labeled_only=True)
    alone = table[table.method == "labeled-only"].set_index("metric")
    assert (alone["flags"] == "").all()
    assert (alone["upper"] - alone["lower"] > 0.01).all() and (alone["lower"] > 0.6).all()
    assert alone.loc["accuracy", "lower"] < 0.95 and alone.loc["balanced_accuracy", "lower"] < 0.95
    assert not table["flags"].str.contains("no-width").any()


def test_calibration_errors_of_few_labels_are_flagged():
    for n_labeled, flags in ((60, "too-high-by-noise"), (300, "")):
        scores, _, truth = simulate(n=400, n_classes=2)
        y = np.where(np.arange(400) < n_labeled, truth, -1)
        table = SSME(random_state=0).fit(scores, y).estimate(["ece", "brier"], labeled_only=True)
        alone = table[table.method == "labeled-only"]
        assert set(alone.loc[alone.metric == "ece", "flags"]) == {flags}
        assert set(alone.loc[alone.metric == "brier", "flags"]) == {""}


def test_a_metric_that_no_draw_moves_is_flagged():
    table = SSME(random_state=0).fit(*simulate(n_classes=2, n_labeled=60)[:2]).estimate(lambda y_true, y_score: 0.5)
    assert (table["flags"] == "no-width").all() and (table["estimate"] == 0.5).all()


def test_weights_that_are_shares_warn_and_are_flagged():
    scores, y, _ = simulate(n_classes=2, n_labeled=60)
    with pytest.warns(UserWarning, match=r"sample_weight makes 1 rows of \d+"):
        model = SSME(random_state=0).fit(scores, y, sample_weight=np.full(len(y), 1 / len(y)))
    assert model.estimate("accuracy")["flags"].str.contains("few-effective-rows").all()


def test_a_level_beyond_the_draws_warns_and_is_flagged():
    model = SSME(random_state=0, n_draws=50).fit(*simulate(n_classes=2, n_labeled=60)[:2])
    with pytest.warns(UserWarning, match="set n_draws to 1000 or more"):
        table = model.estimate("accuracy", level=0.99)
    assert (table["flags"] == "coarse-level").all()
    assert (model.estimate("accuracy", level=0.9)["flags"] == "").all()


def test_no_labels_is_a_flag_of_the_labels_alone_too():
    scores, _, _ = simulate(n_classes=2)
    table = SSME(random_state=0).fit(scores).estimate("accuracy", labeled_only=True)
    assert set(table["method"]) == {"ssme", "labeled-only"}
    assert table["flags"].str.contains("no-labels").all()


def test_metrics_asked_for():
    model = SSME(random_state=0).fit(*simulate(n_classes=2, n_labeled=60)[:2])
    pd.testing.assert_frame_equal(model.estimate(["accuracy", "ece", "accuracy"]), model.estimate(["accuracy", "ece"]))
    with pytest.raises(TypeError, match="metrics must be a name, a function or several of these, got None"):
        model.estimate(None)
    with pytest.raises(ValueError, match="metrics is empty"):
        model.estimate([])


def test_a_metric_function_that_fails_is_named():
    def broken(y_true, y_score):
        raise KeyError("missing column")

    with pytest.raises(ValueError, match=r"broken.*missing column"):
        SSME(random_state=0).fit(*simulate(n_classes=2, n_labeled=60)[:2]).estimate(broken)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "a"])
def test_bad_random_state_is_refused(seed):
    with pytest.raises((ValueError, TypeError), match="random_state"):
        SSME(random_state=seed).fit(*simulate(n_classes=2, n_labeled=60)[:2])
