"""With more labels the estimates go to the truth, whatever is wrong with the classifiers, whatever the metric."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ssme import SSME
from ssme.metrics import evaluate_metric

sys.path.insert(0, str(Path(__file__).parent))
from _populations import KINDS, five_models

pytestmark = pytest.mark.slow

METRICS = ["accuracy", "roc_auc", "ece", "ece_positive"]
BUDGETS = (50, 200, 800, 3200)
N_UNLABELED, N_TRUTH, REPETITIONS = 1000, 300_000, 6


def mean_errors(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Errors of SSME and of the labels alone (budgets, metrics), in the mean over repetitions and models."""
    scores, y = five_models(kind, N_TRUTH, np.random.default_rng(99))
    truth = np.stack([evaluate_metric(metric, scores, y) for metric in METRICS])
    ours, labels = np.empty((2, REPETITIONS, len(BUDGETS), len(METRICS)))
    for seed in range(REPETITIONS):
        scores, y = five_models(kind, max(BUDGETS) + N_UNLABELED, np.random.default_rng([seed, 1]))
        for i, budget in enumerate(BUDGETS):
            n = budget + N_UNLABELED
            shown = np.where(np.arange(n) < budget, y[:n], -1)
            found = SSME(random_state=seed).fit(scores[:n], shown).estimate(METRICS).estimate.to_numpy()
            alone = np.stack([evaluate_metric(metric, scores[:budget], y[:budget]) for metric in METRICS])
            ours[seed, i] = np.abs(found.reshape(truth.shape) - truth).mean(axis=1)
            labels[seed, i] = np.abs(alone - truth).mean(axis=1)
    return ours.mean(axis=0), labels.mean(axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_fall_towards_the_truth(kind):
    ours, labels = mean_errors(kind)
    # 64 times the labels: an error that goes with 1 / sqrt(n) falls to an eighth, one that is small to begin with less.
    assert (ours[-1] <= 0.5 * ours[0]).all(), ours
    assert (ours[1:] <= ours[:-1]).all(), ours
    # In the end it is what the labels leave: about .6 of a point of accuracy at 3,200.
    assert (ours[-1] <= 1.2 * labels[-1]).all(), (ours, labels)
    assert (ours[-1] <= 0.0125).all(), ours
