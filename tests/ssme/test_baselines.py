"""Every method by name: one table, one set of rules that all of them keep, and the corners where none may crash."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ssme import SSME, ScoreTable
from ssme.baselines import BASELINES, estimate_with, get_baseline
from ssme.metrics import METRICS, evaluate_metric, get_metric

NAMES = [
    *["labeled-only", "mean-score", "majority-vote", "weighted-vote", "pseudo-labeling", "dawid-skene", "autoeval"],
    *["bayesian-calibration", "spe", "active-testing", "cbpe", "atc", "doc", "ssme", "ssme-kde", "ssme-m"],
]
COLUMNS = "metric model group estimate lower upper level n_labeled n_unlabeled method flags".split()
BINARY = list(METRICS)
MANY = [name for name in METRICS if name != "ece_positive"]
RIVALS = [name for name in NAMES if name not in {"ssme", "ssme-kde"}]  # their class has tests of its own


def simulate(n=150, n_models=3, n_classes=3, n_labeled=30, seed=0, skill=2.0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    logits = random.normal(size=(n, n_models, n_classes))
    logits[np.arange(n), :, truth] += skill
    scores = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return scores, np.where(np.arange(n) < n_labeled, truth, -1), truth


def quietly(name, scores, y, metrics="accuracy", **options):
    """The table, where warnings are not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimate_with(name, scores, y, metrics, **{"random_state": 0, "n_draws": 20, **options})


def gives(name, metric, n_classes):
    return BASELINES[name].gives(get_metric(metric, n_classes)) is None


def test_the_sixteen_are_there():
    assert list(BASELINES) == NAMES
    for name, row in BASELINES.items():
        assert row.name == name and row.reference and row.description.endswith(".") and len(row.description) < 120


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 2), (4, 2), (3, 4)])
def test_one_table_for_all(name, shape):
    scores, y, truth = simulate(n_models=shape[0], n_classes=shape[1])
    before = scores.copy(), y.copy(), np.random.get_state()[1].copy()
    metrics = BINARY if shape[1] == 2 else MANY
    table = quietly(name, scores, y, metrics)
    assert list(table.columns) == COLUMNS and len(table) == len(metrics) * shape[0]
    assert set(table.method) == {name} and (table.n_labeled == 30).all() and (table.n_unlabeled == 120).all()
    given = table[table.estimate.notna()]
    assert ((given.lower <= given.estimate) & (given.estimate <= given.upper)).all()
    for metric, part in table.groupby("metric"):
        if gives(name, metric, shape[1]):
            assert part.estimate.notna().all() and "not-given" not in set(part["flags"])
        else:
            assert part.estimate.isna().all() and part["flags"].str.contains("not-given").all()
    accuracy = table[table.metric == "accuracy"].estimate.to_numpy()
    np.testing.assert_allclose(accuracy, evaluate_metric("accuracy", scores, truth), atol=0.3)
    np.testing.assert_array_equal(quietly(name, scores, y, metrics).estimate, table.estimate)
    for now, then in zip((scores, y, np.random.get_state()[1]), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_labeled_is_the_truth(name):
    scores, y, truth = simulate(n=80, n_labeled=80)
    table = quietly(name, scores, y, ["accuracy", "ece", "brier", "roc_auc"])
    for metric, part in table.groupby("metric"):
        if gives(name, metric, 3):
            np.testing.assert_allclose(part.estimate, evaluate_metric(metric, scores, truth), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_labels(name, n_classes):
    scores, _, _ = simulate(n_classes=n_classes)
    table = quietly(name, scores, None, ["accuracy", "roc_auc"])
    assert set(table.n_labeled) == {0} and table["flags"].str.contains("no-labels").all()
    for metric, part in table.groupby("metric"):
        assert part.estimate.isna().all() == (BASELINES[name].needs_labels or not gives(name, metric, n_classes))
    if BASELINES[name].needs_labels:
        with pytest.warns(UserWarning, match=f"{name} needs labels, and no row has one"):
            estimate_with(name, scores, None, n_draws=5, random_state=0)


@pytest.mark.parametrize("name", NAMES)
def test_many_classes_of_which_labels_cover_few(name):
    scores, y, _ = simulate(n=90, n_models=2, n_classes=150, n_labeled=6)
    table = quietly(name, scores, y, ["accuracy", "ece", "brier"], n_draws=4)
    given = table[[gives(name, metric, 150) for metric in table.metric]]
    assert given.estimate.between(0, 2).all() and given["flags"].str.contains("few-labels").all()


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize(
    "corner",
    ["one label", "one class", "class without labels", "same model twice", "constant", "hard scores", "opposite"],
)
def test_corners(name, corner):
    scores, y, truth = simulate(n_classes=3)
    if corner == "one label":
        y[1:] = -1
    elif corner == "one class":
        y[(y >= 0) & (y != 1)] = -1
    elif corner == "class without labels":
        y[y == 2] = -1
    elif corner == "same model twice":
        scores[:, 1] = scores[:, 0]
    elif corner == "constant":
        scores[:, 0] = [0.2, 0.5, 0.3]
    elif corner == "hard scores":
        scores = (scores == scores.max(axis=2, keepdims=True)).astype(float)
    else:
        scores[:, 1] = (1 - scores[:, 0]) / 2
    table = quietly(name, scores, y, ["accuracy", "ece", "log_loss"])
    accuracy = table[table.metric == "accuracy"]
    assert accuracy.estimate.between(0, 1).all()
    if corner == "same model twice":
        np.testing.assert_allclose(accuracy.estimate[1], accuracy.estimate[0], atol=1e-9 if name != "spe" else 0.05)


@pytest.mark.parametrize("name", RIVALS)
def test_the_order_of_rows_and_models_changes_nothing(name):
    scores, y, _ = simulate(n_models=4, n_classes=2)
    random = np.random.default_rng(1)
    rows, models = random.permutation(len(y)), random.permutation(4)
    metrics = ["accuracy", "ece", "brier"]
    here = quietly(name, scores, y, metrics).estimate.to_numpy().reshape(3, 4)
    there = quietly(name, scores[rows][:, models], y[rows], metrics).estimate.to_numpy().reshape(3, 4)
    # the sampler of SPE starts elsewhere for other models; the calibration's draws and EM's sums differ by rounding
    np.testing.assert_allclose(there, here[:, models], atol=0.03 if name == "spe" else 1e-6)


@pytest.mark.parametrize("name", [name for name in RIVALS if name not in {"spe", "ssme-m"}])
def test_whole_weights_are_repeated_rows(name):
    scores, y, _ = simulate(n=90, n_classes=2, n_models=4)
    times = np.random.default_rng(2).integers(0, 3, 90)
    again = np.repeat(np.arange(90), times)
    metrics = ["accuracy", "brier"]
    weighted = quietly(name, scores, y, metrics, sample_weight=times, n_draws=300).estimate
    repeated = quietly(name, scores[again], y[again], metrics, n_draws=300).estimate
    drawn = name in {"mean-score", "majority-vote", "dawid-skene", "bayesian-calibration"}
    np.testing.assert_allclose(weighted, repeated, atol=0.01 if drawn else 1e-6)


@pytest.mark.parametrize("name", ["labeled-only", "mean-score", "cbpe", "bayesian-calibration", "active-testing"])
def test_a_function_of_the_users(name):
    def share_right(y_true, y_score):
        return float(np.mean(y_true == y_score.argmax(axis=1)))

    scores, y, _ = simulate()
    table = quietly(name, scores, y, ["accuracy", share_right], n_draws=300)
    np.testing.assert_allclose(*(part.estimate for _, part in table.groupby("metric")), atol=0.02)


def test_estimates_of_a_score_table_keep_its_names():
    scores, y, _ = simulate()
    table = ScoreTable.from_arrays(scores, y, model_names=["a", "b", "c"], class_names=["x", "y", "z"])
    found = estimate_with("mean-score", table, metrics=["accuracy"], random_state=0)
    assert found.model.tolist() == ["a", "b", "c"] and (found.n_labeled == 30).all()
    np.testing.assert_array_equal(found.estimate, quietly("mean-score", scores, y, n_draws=None).estimate)


@pytest.mark.parametrize("density", ["recalibrated", "kde"])
def test_the_estimator_by_name_is_the_estimator(density):
    scores, y, _ = simulate(n_classes=2)
    name = "ssme" if density == "recalibrated" else "ssme-kde"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = SSME(density=density, random_state=3).fit(scores, y).estimate(["accuracy", "ece"])
    found = quietly(name, scores, y, ["accuracy", "ece"], random_state=3, n_draws=None)
    assert found.equals(expected)


def test_one_fit_for_each_model_knows_that_model_alone():
    scores, y, _ = simulate(n=300, n_classes=2)
    whole = quietly("ssme-m", scores, y, n_draws=200).estimate
    alone = quietly("ssme-m", scores[:, :1], y, n_draws=200).estimate
    np.testing.assert_allclose(whole[0], alone[0], atol=0.01)  # the same labels but for the draws
    other = quietly("ssme-kde", scores[:, :1], y, n_draws=200).estimate
    np.testing.assert_allclose(whole[0], other[0], atol=0.02)  # which goes on to a smaller tolerance


def test_seeds():
    scores, y, _ = simulate()
    tables = [quietly("spe", scores, y, random_state=seed).estimate for seed in (0, 0, 1)]
    assert tables[0].equals(tables[1]) and not tables[0].equals(tables[2])
    state = np.random.RandomState(0)
    first, second = (quietly("spe", scores, y, random_state=state).estimate for _ in range(2))
    assert not first.equals(second)
    assert quietly("spe", scores, y, random_state=np.random.RandomState(0)).estimate.equals(first)


def test_a_metric_that_cannot_be_given_says_why():
    scores, y, _ = simulate(n_classes=2)
    with pytest.warns(UserWarning, match="atc cannot give roc_auc, ece: it is defined for accuracy alone"):
        table = estimate_with("atc", scores, y, ["accuracy", "roc_auc", "ece"], random_state=0)
    assert table["flags"].tolist()[:3] == ["", "", ""] and table.estimate[3:].isna().all()
    assert "not-given" in table["flags"][3]
    for name, metric in (("autoeval", "f1"), ("cbpe", "ece"), ("cbpe", "ece_positive"), ("doc", "brier")):
        assert not gives(name, metric, 2)


def test_a_metric_that_is_undefined_warns():
    scores, _, _ = simulate(n_classes=2)
    y = np.r_[np.zeros(12, int), np.full(138, -1)]
    with pytest.warns(UserWarning, match="roc_auc is undefined for group 'all'"):
        table = estimate_with("labeled-only", scores, y, "roc_auc", random_state=0)
    assert table.estimate.isna().all() and "not-given" not in table["flags"][0]


def test_errors():
    scores, y, _ = simulate()
    with pytest.raises(ValueError, match="unknown method 'majority', did you mean 'majority-vote'"):
        get_baseline("majority")
    with pytest.raises(ValueError, match="metrics is empty"):
        estimate_with("spe", scores, y, [])
    with pytest.raises(ValueError, match="n_draws must be a whole number of at least 2, got 1"):
        estimate_with("spe", scores, y, n_draws=1)
    with pytest.raises(ValueError, match="sampling_weight is for 'active-testing' alone"):
        estimate_with("spe", scores, y, sampling_weight=np.ones(150))
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1"):
        estimate_with("spe", scores, y, level=90)
