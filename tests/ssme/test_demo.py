"""The demo: its scores are what it says, its arithmetic is right, and its verdict is honest whoever wins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ssme import demo
from ssme.metrics import evaluate_metric


@pytest.fixture(scope="module")
def scores() -> demo.DemoScores:
    return demo.make_scores(0)


@pytest.fixture(scope="module")
def frame(scores: demo.DemoScores) -> pd.DataFrame:
    return demo.compare(scores, 0)


def test_twenty_labels_are_shown_and_the_rest_hidden(scores: demo.DemoScores) -> None:
    table = scores.table
    assert table.scores.shape == (1397, 7, 10) and table.n_labeled == demo.N_LABELED == 20
    assert (table.labels[table.labeled] == scores.truth[table.labeled]).all()
    assert np.allclose(table.scores.sum(axis=2), 1)


def test_classifiers_differ_clearly_in_quality_and_calibration(scores: demo.DemoScores) -> None:
    accuracy = evaluate_metric("accuracy", scores.table.scores, scores.truth)
    confidence = scores.table.scores.max(axis=2).mean(axis=0)
    assert accuracy.max() > 0.9 and accuracy.min() < 0.6 and np.ptp(accuracy) > 0.3
    assert (confidence - accuracy).max() > 0.1 and (confidence - accuracy).min() < -0.05  # over- and underconfident


def test_seed_decides_everything() -> None:
    one, same, other = demo.make_scores(1), demo.make_scores(1), demo.make_scores(2)
    assert one.table.equals(same.table) and (one.truth == same.truth).all()
    assert not one.table.equals(other.table)


def test_comparison_has_a_row_for_each_metric_and_model(scores: demo.DemoScores, frame: pd.DataFrame) -> None:
    assert list(frame["metric"]) == ["accuracy"] * 7 + ["ece"] * 7
    assert list(frame["model"]) == 2 * list(scores.table.model_names)
    assert set(frame["n_labeled"]) == {20} and set(frame["n_unlabeled"]) == {1377} and set(frame["level"]) == {0.9}
    assert np.allclose(frame["truth"][:7], evaluate_metric("accuracy", scores.table.scores, scores.truth))
    assert (frame["ssme_lower"] <= frame["ssme"]).all() and (frame["ssme"] <= frame["ssme_upper"]).all()
    assert frame.notna().all(axis=None)


def made_up(ssme: list[float], alone: list[float], truth: list[float]) -> pd.DataFrame:
    """Two models, one metric, intervals of half width .1."""
    rows = {"metric": "accuracy", "model": ["a", "b"], "truth": truth, "level": 0.9, "n_labeled": 20, "n_unlabeled": 80}
    for name, values in (("ssme", ssme), ("labeled_only", alone)):
        rows |= {name: values, f"{name}_lower": np.subtract(values, 0.1), f"{name}_upper": np.add(values, 0.1)}
    rows["closer"] = [
        "labels" if abs(a - t) < abs(s - t) else "SSME" for s, a, t in zip(ssme, alone, truth, strict=True)
    ]
    return pd.DataFrame(rows)


def test_verdict_is_honest_when_ssme_loses() -> None:
    frame = made_up(ssme=[0.5, 0.7], alone=[0.79, 0.71], truth=[0.8, 0.9])
    summary = demo.summary(frame)
    assert summary["ssme_closer"] == 0 and summary["figures"] == 2
    assert summary["metrics"]["accuracy"]["ssme"]["mean_error"] == pytest.approx(0.25)
    assert summary["metrics"]["accuracy"]["ssme"]["covered"] == 0
    assert summary["metrics"]["accuracy"]["labeled_only"]["covered"] == 1
    text = "\n".join(demo.verdict(frame))
    assert "SSME was closer to the truth in 0 of 2 figures" in text
    assert "0.250" in text and "0 of 2 cases" in text and "1 of 2 cases" in text
