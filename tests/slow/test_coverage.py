"""Do 90 % intervals hold the truth? On populations drawn at random, from 20 and from 100 labels.

The bounds are what holds and not what is aimed at. Where the models are of about one quality the intervals are close
to nominal. Where they are very unequal they are too narrow: the consensus of a good and a bad model says of both that
they are average, and 20 labels say little of each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ssme import SSME
from ssme.metrics import evaluate_metric

sys.path.insert(0, str(Path(__file__).parent))
from _populations import random_population

pytestmark = pytest.mark.slow

METRICS = ["accuracy", "roc_auc", "ece"]
POPULATIONS, N_UNLABELED, N_TRUTH = 60, 1000, 50_000


def coverage(inequality: float) -> dict[str, float]:
    """Share of the intervals that hold the truth, by metric, over populations, budgets and models."""
    inside: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for seed in range(POPULATIONS):
        draw = random_population(seed, inequality)
        scores, y = draw(N_TRUTH, np.random.default_rng([seed, 1]))
        truth = {metric: evaluate_metric(metric, scores, y) for metric in METRICS}
        for budget in (20, 100):
            scores, y = draw(budget + N_UNLABELED, np.random.default_rng([seed, budget]))
            shown = np.where(np.arange(len(y)) < budget, y, -1)
            model = SSME(class_names=list(range(scores.shape[2])), random_state=seed).fit(scores, shown)
            table = model.estimate(METRICS, level=0.9)
            for metric, rows in table.groupby("metric"):
                held = (rows.lower <= truth[metric]) & (truth[metric] <= rows.upper)
                inside[str(metric)].append(float(held.mean()))
    return {metric: float(np.mean(values)) for metric, values in inside.items()}


def test_coverage_where_the_models_are_of_about_one_quality():
    found = coverage(inequality=0.1)
    assert 0.83 <= np.mean(list(found.values())) <= 0.95, found
    assert all(0.77 <= each <= 0.97 for each in found.values()), found


def test_coverage_where_the_models_are_unequal():
    found = coverage(inequality=0.4)
    assert 0.65 <= np.mean(list(found.values())) <= 0.95, found
    assert all(0.6 <= each <= 0.97 for each in found.values()), found
