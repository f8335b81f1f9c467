"""The three trends of the paper's theory, on its binary Gaussian mixture: what makes the error of the estimates fall.

More unlabeled rows, better classifiers, more classifiers. 20 labels throughout; the classifiers are overconfident by a
factor of two, so that reading their scores as probabilities does not do. Repetitions use the same random numbers in
every setting, and a trend must show in each step: mean errors lower by a stated share, and the paired differences
positive by more than two of their standard errors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssme import SSME

sys.path.insert(0, str(Path(__file__).parent))
from _populations import gaussian_mixture, gaussian_mixture_truth

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:bandwidth rule 'isj'"),  # of 40 rows in two far clusters
    pytest.mark.filterwarnings("ignore:EM cannot move"),
]

N_LABELED = 20
STEP = 0.9  # each step lowers the mean error to this share or less


def error(seed: int, n_unlabeled: int, separation: float, n_models: int, **options: Any) -> float:
    """Error of accuracy and area under the ROC curve, in the mean over both and over the models."""
    n = N_LABELED + n_unlabeled
    scores, y = gaussian_mixture(n, n_models, separation, np.random.default_rng(seed))
    shown = np.where(np.arange(n) < N_LABELED, y, -1)
    table = SSME(random_state=seed, **options).fit(scores, shown).estimate(["accuracy", "roc_auc"])
    found = table.estimate.to_numpy().reshape(2, n_models)
    return float(np.abs(found - gaussian_mixture_truth(separation)[:, None]).mean())


def errors(settings: list[tuple[int, float, int]], repetitions: int, **options: Any) -> np.ndarray:
    """Errors (repetitions, settings)."""
    return np.array([[error(seed, *setting, **options) for setting in settings] for seed in range(repetitions)])


def assert_falls(found: np.ndarray, step: float = STEP) -> None:
    for before, after in zip(found.T[:-1], found.T[1:], strict=True):
        difference = before - after
        standard_error = difference.std(ddof=1) / np.sqrt(len(difference))
        assert difference.mean() > 2 * standard_error, found.mean(axis=0)
        assert after.mean() <= step * before.mean(), found.mean(axis=0)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param([(50, 1.0, 3), (250, 1.0, 3), (1500, 1.0, 3)], id="more-unlabeled-rows"),
        pytest.param([(500, 0.5, 3), (500, 1.25, 3), (500, 2.0, 3)], id="better-classifiers"),
        pytest.param([(1000, 1.0, 1), (1000, 1.0, 2), (1000, 1.0, 4), (1000, 1.0, 8)], id="more-classifiers"),
    ],
)
def test_trends_of_the_default(settings):
    assert_falls(errors(settings, 60))


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param([(20, 1.5, 3), (80, 1.5, 3), (300, 1.5, 3)], id="more-unlabeled-rows"),
        pytest.param([(200, 1.0, 3), (200, 1.5, 3), (200, 2.0, 3)], id="better-classifiers"),
        pytest.param([(200, 1.5, 1), (200, 1.5, 2), (200, 1.5, 4)], id="more-classifiers"),
    ],
)
def test_trends_of_the_kernel_mixture_where_the_classes_are_apart(settings):
    assert_falls(errors(settings, 25, density="kde"))


def test_more_unlabeled_rows_do_harm_to_the_kernel_mixture_where_the_classes_overlap():
    """docs/method.md says why: EM of kernel densities forgets its start. The theory's mixture is parametric."""
    settings = [(50, 1.0, 3), (200, 1.0, 3), (800, 1.0, 3)]
    found = errors(settings, 12, density="kde")
    assert_falls(found[:, ::-1])
    assert errors(settings[-1:], 12).mean() < 0.5 * found[:, 0].mean()
