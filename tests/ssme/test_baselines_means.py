"""Rivals in closed form: AutoEval, active testing, CBPE, ATC, DoC, by hand and against ppi-python where it is there."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ssme.baselines import BASELINES, estimate_with, lure_weights
from ssme.baselines._atc import negative_entropy, thresholded_share
from ssme.baselines._autoeval import prediction_powered_mean
from ssme.baselines._means import is_mean, row_values, values_at
from ssme.metrics import METRICS, MetricSpec, evaluate_metric, get_metric


def simulate(n=200, n_models=4, n_classes=3, n_labeled=30, seed=0, sharpness=1.0):
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_classes, n)
    logits = random.normal(size=(n, n_models, n_classes))
    logits[np.arange(n), :, truth] += np.linspace(0.5, 2.0, n_models)
    logits *= sharpness
    scores = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return scores, np.where(np.arange(n) < n_labeled, truth, -1), truth


def run(name, scores, codes, metric="accuracy", n_draws=2000, **options):
    spec = get_metric(metric, scores.shape[2])
    ones = np.ones(len(codes))
    return BASELINES[name].function([spec], scores, codes, ones, seed=0, n_draws=n_draws, **options)[0]


# -- means -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
def test_means_of_row_values_are_the_metrics(n_classes):
    scores, _, truth = simulate(n_classes=n_classes)
    for name, spec in METRICS.items():
        if is_mean(spec):
            mean = values_at(row_values(spec, scores), truth).mean(axis=0)
            np.testing.assert_allclose(mean, evaluate_metric(name, scores, truth), rtol=1e-12)


def test_a_metric_of_the_users_is_not_taken_for_a_mean_by_its_name():
    assert not is_mean(MetricSpec("accuracy", lambda scores: lambda labels, weights=None: None))
    assert is_mean(get_metric("brier", 2))  # with narrower bounds for two classes


# -- AutoEval ----------------------------------------------------------------------------------------------------------


def naive_ppi(seen, expected, elsewhere):
    """PPI++ of one mean with power tuning (Angelopoulos et al. 2023), written with numpy's own moments."""
    n, n_other = len(seen), len(elsewhere)
    covariance = np.mean((seen - seen.mean()) * (expected - expected.mean()))
    power = covariance / ((1 + n / n_other) * np.var(np.r_[expected, elsewhere], ddof=1))
    power = min(max(power, 0.0), 1.0)
    point = power * elsewhere.mean() + (seen - power * expected).mean()
    return point, (power * elsewhere).var() / n_other + (seen - power * expected).var() / n


@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_autoeval(metric, n_classes):
    scores, codes, _ = simulate(n_classes=n_classes)
    point, draws = run("autoeval", scores, codes, metric)
    values = row_values(get_metric(metric, n_classes), scores)
    for m in range(4):
        g = (scores[:, m] * values[:, m]).sum(axis=1)
        seen = values[np.arange(30), m, codes[:30]]
        expected, variance = naive_ppi(seen, g[:30], g[30:])
        np.testing.assert_allclose(point[m], expected, rtol=1e-9)
        np.testing.assert_allclose(draws[:, m].std(), np.sqrt(variance), rtol=0.1)


def test_autoeval_expects_the_confidence_for_accuracy():
    scores, codes, _ = simulate()
    seen = (scores[:30].argmax(axis=2) == codes[:30, None]).astype(float)
    confidence = scores.max(axis=2)
    expected = [naive_ppi(seen[:, m], confidence[:30, m], confidence[30:, m])[0] for m in range(4)]
    np.testing.assert_allclose(run("autoeval", scores, codes)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_prediction_powered_mean_against_ppi_python(sign):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ppi = pytest.importorskip("ppi_py")
        random = np.random.default_rng(0)
        seen = random.random((40, 1))
        g, elsewhere = sign * seen + random.normal(0, 0.2, (40, 1)), sign * random.random((300, 1))
        theirs = ppi.ppi_mean_pointestimate(seen, g, elsewhere)
        low, high = ppi.ppi_mean_ci(seen, g, elsewhere, alpha=0.1)
    point, covariance = prediction_powered_mean(seen, g, elsewhere, np.ones(40), np.ones(300))
    np.testing.assert_allclose(point, np.ravel(theirs), rtol=1e-9)
    half = 1.6448536 * np.sqrt(covariance[0, 0])
    np.testing.assert_allclose([point[0] - half, point[0] + half], [np.ravel(low)[0], np.ravel(high)[0]], rtol=1e-6)


def test_autoeval_is_never_far_from_unbiased_and_better_with_a_good_confidence():
    errors = {"autoeval": [], "labeled-only": []}
    for seed in range(60):
        scores, codes, truth = simulate(n=600, seed=seed, n_labeled=40)
        for name, found in errors.items():
            found.append(run(name, scores, codes, n_draws=2)[0] - evaluate_metric("accuracy", scores, truth))
    bias = np.mean(errors["autoeval"])
    assert abs(bias) < 0.01
    assert np.mean(np.abs(errors["autoeval"])) < np.mean(np.abs(errors["labeled-only"]))


def test_autoeval_with_one_label_has_no_interval():
    scores, codes, _ = simulate(n_labeled=1)
    point, draws = run("autoeval", scores, codes)
    assert np.isfinite(point).all() and np.isnan(draws).all()


# -- active testing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", list(METRICS))
def test_active_testing_of_a_random_sample_is_labeled_only(metric):
    scores, codes, _ = simulate(n_classes=2)
    plain = run("labeled-only", scores, codes, metric, 50)
    q = 1.0 / (200 - np.arange(30))
    weight = np.r_[lure_weights(q, 200), np.zeros(170)]
    np.testing.assert_allclose(weight[:30], 1.0)
    for options in ({}, {"sampling_weight": np.full(200, 1.0)}):
        for mine, theirs in zip(run("active-testing", scores, codes, metric, 50, **options), plain, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_weights_make_the_risk_unbiased_over_every_way_to_choose():
    loss, preference = np.array([1.0, 0.0, 0.5, 0.2]), np.array([0.5, 0.2, 0.2, 0.1])
    for n in (1, 2, 3, 4):
        expected = 0.0
        for chosen in itertools.permutations(range(4), n):
            left, q = 1.0, []
            for i in chosen:
                q.append(preference[i] / left)
                left -= preference[i]
            q = np.minimum(q, 1.0)
            expected += np.prod(q) * np.mean(lure_weights(q, 4) * loss[list(chosen)])
        np.testing.assert_allclose(expected, loss.mean())


def test_active_testing_by_hand():
    scores, codes, _ = simulate(n_classes=2)
    v = np.linspace(0.2, 2.0, 200)
    right = scores[:30].argmax(axis=2) == codes[:30, None]
    point, draws = run("active-testing", scores, codes, sampling_weight=v)
    np.testing.assert_allclose(point, (v[:30, None] * right).sum(axis=0) / 30)
    np.testing.assert_allclose(draws.mean(axis=0), point, atol=0.02)
    expected = [roc_auc_score(codes[:30], scores[:30, m, 1], sample_weight=v[:30]) for m in range(4)]
    np.testing.assert_allclose(run("active-testing", scores, codes, "roc_auc", sampling_weight=v)[0], expected)


def test_active_testing_by_name_takes_sampling_weights():
    scores, codes, _ = simulate()
    v = np.linspace(0.2, 2.0, 200)
    table = estimate_with("active-testing", scores, codes, ["accuracy", "ece"], sampling_weight=v, random_state=0)
    np.testing.assert_allclose(table.estimate[:4], run("active-testing", scores, codes, sampling_weight=v)[0])

    def share_right(y_true, y_score):
        return float(np.mean(y_true == y_score.argmax(axis=1)))

    v[:30] *= 30 / v[:30].sum()
    table = estimate_with("active-testing", scores, codes, ["accuracy", share_right], sampling_weight=v, random_state=0)
    np.testing.assert_allclose(table.estimate[4:], table.estimate[:4], atol=0.02)


def test_errors_of_the_weights():
    with pytest.raises(ValueError, match="probability must be a list of numbers above 0 and at most 1"):
        lure_weights([0.5, 0.0], 10)
    with pytest.raises(ValueError, match="n_pool is 1, but 2 rows were chosen"):
        lure_weights([0.5, 0.5], 1)
    scores, codes, _ = simulate(n_labeled=1)
    assert np.isfinite(run("active-testing", scores, codes, sampling_weight=np.full(200, 3.0))[0]).all()
    codes[:3] = 0
    only = np.r_[0.0, 1.0, 0.0, np.ones(197)]
    point = run("active-testing", scores, codes, "roc_auc", sampling_weight=only)[0]
    assert np.isnan(point).all()  # one class


# -- CBPE --------------------------------------------------------------------------------------------------------------


def test_cbpe_accuracy_is_the_mean_confidence():
    scores, codes, _ = simulate(n_labeled=0)
    np.testing.assert_allclose(run("cbpe", scores, codes)[0], scores.max(axis=2).mean(axis=0), rtol=1e-9)


def test_cbpe_keeps_known_labels():
    scores, codes, _ = simulate()
    right = (scores.argmax(axis=2) == codes[:, None]).astype(float)
    expected = np.where(codes[:, None] >= 0, right, scores.max(axis=2)).mean(axis=0)
    np.testing.assert_allclose(run("cbpe", scores, codes)[0], expected, rtol=1e-9)


def test_cbpe_of_two_classes_on_expected_counts():
    scores, codes, _ = simulate(n_classes=2, n_labeled=0)
    for m in range(4):
        p = scores[:, m, 1]
        expected = roc_auc_score(np.r_[np.ones(200), np.zeros(200)], np.r_[p, p], sample_weight=np.r_[p, 1 - p])
        np.testing.assert_allclose(run("cbpe", scores, codes, "roc_auc", 3)[0][m], expected, rtol=1e-9)
        tp, fp, fn = p[p > 0.5].sum(), (1 - p)[p > 0.5].sum(), p[p <= 0.5].sum()
        np.testing.assert_allclose(run("cbpe", scores, codes, "f1", 3)[0][m], 2 * tp / (2 * tp + fp + fn), rtol=1e-9)
        np.testing.assert_allclose(run("cbpe", scores, codes, "brier", 3)[0][m], np.mean(p * (1 - p)), rtol=1e-9)


# -- ATC ---------------------------------------------------------------------------------------------------------------


def naive_atc(here, there, right):
    """Walk through every threshold."""
    best, share = np.inf, None
    for t in [-np.inf, *sorted(here)]:
        gap = abs(np.mean(here <= t) - np.mean(~right))
        if gap < best - 1e-12:
            best, share = gap, np.mean(there > t)
    return share


@pytest.mark.parametrize("sharpness", [0.3, 3.0])
def test_atc_against_the_plain_version(sharpness):
    scores, codes, _ = simulate(sharpness=sharpness)
    confidence = np.sum(scores * np.log(scores), axis=2)
    np.testing.assert_allclose(negative_entropy(scores), confidence)
    right = scores[:30].argmax(axis=2) == codes[:30, None]
    expected = [naive_atc(confidence[:30, m], confidence[30:, m], right[:, m]) for m in range(4)]
    point, draws = run("atc", scores, codes)
    np.testing.assert_allclose(point, expected, rtol=1e-12)
    assert draws.std(axis=0).min() > 0.01 and draws.min() >= 0 and draws.max() <= 1


def test_atc_with_ties_and_with_all_right_or_all_wrong():
    random = np.random.default_rng(0)
    here, there = random.integers(0, 4, (20, 1)) / 4, random.integers(0, 4, (50, 1)) / 4
    for n_right in range(21):
        right = np.arange(20) < n_right
        found = thresholded_share(here, there, np.array([n_right / 20]), np.ones((1, 20)), np.ones((1, 50)))
        np.testing.assert_allclose(found[0, 0], naive_atc(here[:, 0], there[:, 0], right), atol=1e-12)
    assert thresholded_share(here, there, np.array([1.0]), np.ones((1, 20)), np.ones((1, 50)))[0, 0] == 1.0


def test_atc_draws_are_made_in_blocks(monkeypatch):
    scores, codes, _ = simulate()
    point, draws = run("atc", scores, codes, n_draws=600)
    monkeypatch.setattr("ssme.baselines._atc.BLOCK_ELEMENTS", 200 * 7)
    alike, others = run("atc", scores, codes, n_draws=600)
    np.testing.assert_array_equal(point, alike)
    np.testing.assert_allclose(draws.mean(axis=0), others.mean(axis=0), atol=0.02)


# -- DoC ---------------------------------------------------------------------------------------------------------------


def test_doc_by_hand():
    scores, codes, _ = simulate()
    confidence = scores.max(axis=2)
    right = scores[:30].argmax(axis=2) == codes[:30, None]
    expected = right.mean(axis=0) + confidence[30:].mean(axis=0) - confidence[:30].mean(axis=0)
    point, draws = run("doc", scores, codes)
    np.testing.assert_allclose(point, np.clip(expected, 0, 1), rtol=1e-12)
    np.testing.assert_allclose(draws.mean(axis=0), point, atol=0.03)


def test_doc_is_the_prediction_powered_mean_of_full_power():
    scores, codes, _ = simulate()
    seen = (scores[:30].argmax(axis=2) == codes[:30, None]).astype(float)
    confidence = scores.max(axis=2)
    full = confidence[30:].mean(axis=0) + (seen - confidence[:30]).mean(axis=0)
    np.testing.assert_allclose(run("doc", scores, codes)[0], np.clip(full, 0, 1))
