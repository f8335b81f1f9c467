"""Hard labels: equal to scikit-learn, torchmetrics, netcal, and to plain formulas written out again."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn import metrics as sk

from ssme.metrics import evaluate_metric

N_CLASSES = [2, 3, 7]


def data(n_classes, seed=0, n=300, n_models=4, decimals=None):
    """Scores that know something of the labels; rounded ones have many ties."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    logits = rng.normal(size=(n, n_models, n_classes)) + 1.5 * np.eye(n_classes)[y][:, None]
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    if decimals is not None:
        p = np.floor(p * 10**decimals) / 10**decimals
        p[:, :, 0] = np.maximum(1 - p[:, :, 1:].sum(axis=2), 0)
    return p, y


def per_model(f, scores, y):
    return [f(y, scores[:, m]) for m in range(scores.shape[1])]


def plain_auc(y, p):
    ranks, n1 = rankdata(p), y.sum()
    return (ranks[y == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1))


def plain_average_precision(y, p):
    """Over the distinct scores in falling order: recall gained times precision."""
    value, before = 0.0, 0
    for t in np.unique(p)[::-1]:
        tp, chosen = y[p >= t].sum(), np.sum(p >= t)
        value += (tp - before) / y.sum() * tp / chosen
        before = tp
    return value


def plain_ece(y, p):
    """Top label, 15 bins of equal width, weighted by their share."""
    confidence, hit = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum(np.floor(confidence * 15), 14)
    return sum(np.mean(bins == b) * abs(confidence[bins == b].mean() - hit[bins == b].mean()) for b in np.unique(bins))


def plain_ece_positive(y, p):
    """10 bins of equal mass, a value on an edge in the lower one, each bin counted alike."""
    edges = np.quantile(p, np.linspace(0, 1, 11))[1:-1]
    bins = np.array([np.sum(value > edges) for value in p])
    return np.mean([abs(p[bins == b].mean() - y[bins == b].mean()) for b in np.unique(bins)])


SKLEARN = {
    "accuracy": lambda y, p: sk.accuracy_score(y, p.argmax(axis=1)),
    "balanced_accuracy": lambda y, p: sk.balanced_accuracy_score(y, p.argmax(axis=1)),
    "precision": lambda y, p: sk.precision_score(y, p.argmax(axis=1), average=average(p), zero_division=0),
    "recall": lambda y, p: sk.recall_score(y, p.argmax(axis=1), average=average(p)),
    "f1": lambda y, p: sk.f1_score(y, p.argmax(axis=1), average=average(p)),
    "roc_auc": lambda y, p: sk.roc_auc_score(*one_versus_rest(y, p), average="macro"),
    "average_precision": lambda y, p: sk.average_precision_score(*one_versus_rest(y, p), average="macro"),
    "brier": lambda y, p: sk.brier_score_loss(y, p[:, 1]) if p.shape[1] == 2 else np.mean(squares(y, p)),
    "log_loss": lambda y, p: sk.log_loss(y, p, labels=np.arange(p.shape[1])),
}


def average(p):
    return "binary" if p.shape[1] == 2 else "macro"


def one_versus_rest(y, p):
    return (y, p[:, 1]) if p.shape[1] == 2 else (np.eye(p.shape[1])[y], p)


def squares(y, p):
    return ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("n_classes", N_CLASSES)
@pytest.mark.parametrize("name", SKLEARN)
def test_equal_to_scikit_learn(name, n_classes, decimals):
    for seed in range(3):
        scores, y = data(n_classes, seed, decimals=decimals)
        np.testing.assert_allclose(evaluate_metric(name, scores, y), per_model(SKLEARN[name], scores, y), rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc", "average_precision", "log_loss"]
)
@pytest.mark.parametrize("decimals", [None, 1])
def test_equal_to_scikit_learn_with_weights(name, decimals):
    scores, y = data(2, decimals=decimals)
    w = np.random.default_rng(5).exponential(size=len(y)) * (np.arange(len(y)) % 5 > 0)
    p, best = scores[:, 0, 1], scores[:, 0].argmax(axis=1)
    f = getattr(sk, name if name == "log_loss" else f"{name}_score")
    expected = f(y, p if name in ("roc_auc", "average_precision", "log_loss") else best, sample_weight=w)
    np.testing.assert_allclose(evaluate_metric(name, scores, y, w)[0], expected, rtol=1e-12)


def test_macro_averages_skip_classes_that_are_absent():
    scores, y = data(5)
    y[y == 3] = 1
    present = [0, 1, 2, 4]
    for m, value in enumerate(evaluate_metric("f1", scores, y)):
        np.testing.assert_allclose(value, sk.f1_score(y, scores[:, m].argmax(axis=1), labels=present, average="macro"))
    for name, f in (("roc_auc", sk.roc_auc_score), ("average_precision", sk.average_precision_score)):
        expected = [np.mean([f(y == k, scores[:, m, k]) for k in present]) for m in range(4)]
        np.testing.assert_allclose(evaluate_metric(name, scores, y), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of the predicted class that no row has
        expected = [sk.balanced_accuracy_score(y, scores[:, m].argmax(axis=1)) for m in range(4)]
    np.testing.assert_allclose(evaluate_metric("balanced_accuracy", scores, y), expected)


@pytest.mark.parametrize("decimals", [None, 2, 1])
def test_equal_to_plain_formulas(decimals):
    for seed, n in enumerate((300, 41, 9)):
        scores, y = data(2, seed, n, decimals=decimals)
        for name, f in (
            ("roc_auc", plain_auc),
            ("average_precision", plain_average_precision),
            ("ece_positive", plain_ece_positive),
        ):
            np.testing.assert_allclose(evaluate_metric(name, scores, y), per_model(f, scores[..., 1], y), rtol=1e-12)


@pytest.mark.parametrize("n_classes", N_CLASSES)
@pytest.mark.parametrize("decimals", [None, 1])
def test_ece_equal_to_the_plain_formula(n_classes, decimals):
    for seed in range(3):
        scores, y = data(n_classes, seed, decimals=decimals)
        np.testing.assert_allclose(evaluate_metric("ece", scores, y), per_model(plain_ece, scores, y), rtol=1e-12)


def test_ece_bins_are_closed_on_the_left_and_the_last_on_both_sides():
    p = np.array([0.8, 0.85, 1.0, 0.95])  # .8 = 12 / 15 opens the bin [12 / 15, 13 / 15)
    scores = np.stack([1 - p, p], axis=1)[:, None]
    y = np.array([0, 1, 0, 1])
    expected = abs(0.8 + 0.85 - 1) / 4 + abs(1.0 + 0.95 - 1) / 4
    np.testing.assert_allclose(evaluate_metric("ece", scores, y), expected)


def import_quietly(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed")


TORCHMETRICS = {
    "precision": "precision",
    "recall": "recall",
    "f1": "f1_score",
    "roc_auc": "auroc",
    "average_precision": "average_precision",
}


@pytest.mark.parametrize("n_classes", N_CLASSES)
def test_equal_to_torchmetrics(n_classes):
    torch = import_quietly("torch")
    tm = import_quietly("torchmetrics.functional.classification")
    scores, y = data(n_classes)
    target = torch.tensor(y)
    macro = {"num_classes": n_classes, "average": "macro"}
    for m in range(scores.shape[1]):
        p = torch.tensor(scores[:, m])
        expected = {
            "ece": tm.multiclass_calibration_error(p, target, num_classes=n_classes, n_bins=15, norm="l1"),
            "balanced_accuracy": tm.multiclass_accuracy(p, target, **macro),
        }
        for name, theirs in TORCHMETRICS.items():
            if n_classes == 2:
                expected[name] = getattr(tm, f"binary_{theirs}")(p[:, 1], target)
            else:
                expected[name] = getattr(tm, f"multiclass_{theirs}")(p, target, **macro)
        for name, value in expected.items():
            # torchmetrics sums in single precision
            np.testing.assert_allclose(evaluate_metric(name, scores, y)[m], float(value), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("n_classes", [3, 7])
def test_ece_equal_to_netcal(n_classes):
    netcal = import_quietly("netcal.metrics")
    scores, y = data(n_classes)
    expected = per_model(lambda t, p: netcal.ECE(bins=15).measure(p, t), scores, y)
    np.testing.assert_allclose(evaluate_metric("ece", scores, y), expected, rtol=1e-10)


def test_ece_of_two_classes_equal_to_netcal():
    """netcal reads binary scores as P(class 1); the top label is had by giving it confidence and hit."""
    netcal = import_quietly("netcal.metrics")
    scores, y = data(2)
    expected = per_model(
        lambda t, p: netcal.ECE(bins=15).measure(p.max(axis=1), (p.argmax(axis=1) == t).astype(int)), scores, y
    )
    np.testing.assert_allclose(evaluate_metric("ece", scores, y), expected, rtol=1e-10)
