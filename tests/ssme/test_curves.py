"""Curves as posterior draws: with every label known they are the curves of the labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_curve

from ssme import SSME
from ssme.curves import GRIDS, curve_draws


def scores_and_truth(n: int = 400, n_classes: int = 2, n_models: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, n_classes, n)
    logits = rng.normal(size=(n, n_models, n_classes))
    logits[np.arange(n)[:, None], np.arange(n_models), truth[:, None]] += 1.2
    p = np.exp(logits)
    return p / p.sum(axis=2, keepdims=True), truth


def fitted(n_labeled: int, **shape: int) -> tuple[SSME, np.ndarray, np.ndarray]:
    p, truth = scores_and_truth(**shape)
    return SSME(random_state=0).fit(p, np.where(np.arange(len(truth)) < n_labeled, truth, -1)), p, truth


def test_roc_of_all_labels_is_the_roc_of_the_labels() -> None:
    model, p, truth = fitted(400)
    found = curve_draws(model, "roc")
    for m in range(2):
        fpr, tpr, _ = roc_curve(truth, p[:, m, 1], drop_intermediate=False)
        # at rate 0 the curve has a step, of which interpolation takes the top
        np.testing.assert_allclose(found.point[m, 1:], np.interp(GRIDS["roc"][1:], fpr, tpr), atol=0.03)


def test_precision_recall_of_all_labels() -> None:
    model, p, truth = fitted(400)
    found = curve_draws(model, "precision_recall")
    for m in range(2):
        precision, recall, _ = precision_recall_curve(truth, p[:, m, 1])
        want = [precision[recall >= g - 1e-9][-1] for g in GRIDS["precision_recall"]]
        np.testing.assert_allclose(found.point[m], want, atol=0.03)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_reliability_of_all_labels(n_classes: int) -> None:
    model, p, truth = fitted(400, n_classes=n_classes)
    found = curve_draws(model, "reliability", n_bins=5)
    confidence, hit = p[:, 0].max(axis=1), p[:, 0].argmax(axis=1) == truth
    place = np.minimum((confidence * 5).astype(int), 4)
    for b in range(5):
        rows = place == b
        assert found.share is not None and found.share[0, b] == pytest.approx(rows.mean())
        if rows.any():
            assert found.x[0, b] == pytest.approx(confidence[rows].mean())
            assert found.point[0, b] == pytest.approx(hit[rows].mean(), abs=0.02)
        else:
            assert np.isnan(found.point[0, b])


@pytest.mark.parametrize("kind", ["reliability", "roc", "precision_recall"])
def test_bands_hold_the_curve_and_shrink_with_labels(kind: str) -> None:
    widths = []
    for n_labeled in (20, 400):
        model, _, _ = fitted(n_labeled, n_classes=3)
        found = curve_draws(model, kind)
        low, high = found.band(0.9)
        known = np.isfinite(found.point)
        assert (low[known] <= found.point[known]).all() and (found.point[known] <= high[known]).all()
        assert low[known].min() >= 0 and high[known].max() <= 1
        assert (found.n_labeled, found.n_unlabeled) == (n_labeled, 400 - n_labeled)
        widths.append((high - low)[known].mean())
    assert widths[1] < widths[0]


def test_roc_never_falls_and_the_same_seed_gives_the_same_curve() -> None:
    first, second = (curve_draws(fitted(20, n_classes=3)[0], "roc") for _ in range(2))
    assert (np.diff(first.point, axis=1) >= 0).all() and (np.diff(first.draws, axis=2) >= 0).all()
    np.testing.assert_array_equal(first.draws, second.draws)


def test_errors_say_what_to_give() -> None:
    model, _, _ = fitted(20)
    with pytest.raises(ValueError, match="kind must be one of reliability, roc, precision_recall"):
        curve_draws(model, "lift")
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        curve_draws(model, "reliability", n_bins=0)
