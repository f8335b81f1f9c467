"""CBPE: each model's own score taken for the probability of the label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssme.baselines._bayesian_calibration import own_score
from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats, undefined
from ssme.baselines._label_draws import metrics_of_own_labels
from ssme.metrics import MetricSpec

OF_CALIBRATION = ("ece", "ece_positive")


def cbpe_gives(spec: MetricSpec) -> str | None:
    """Why CBPE cannot give a metric; None where it can."""
    if spec.name in OF_CALIBRATION:
        return "it takes the scores for calibrated, so their calibration error is 0 by assumption"
    return None


def cbpe(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """Confidence-based performance estimation: the model's own score is the probability of the label.

    The expected accuracy of a row is its confidence, and every metric is computed on expected counts. Labels are not
    needed; known ones are kept in their rows. NannyML [1]_ can calibrate the scores on a labeled reference first, which
    takes many labels and is not done here: see bayesian-calibration. The intervals know of the rows being a
    sample, and not that a model may be over- or underconfident.

    References
    ----------
    .. [1] NannyML, "Confidence-based Performance Estimation (CBPE)".
       https://nannyml.readthedocs.io/en/stable/how_it_works/performance_estimation.html
    """
    score, _ = own_score(scores, codes)

    def chance(m: int, numbers: Codes) -> Floats:
        return np.repeat(score[:, m, None], len(numbers), axis=1)

    possible = [spec for spec in specs if cbpe_gives(spec) is None]
    found = iter(metrics_of_own_labels(possible, scores, codes, weights, chance, seed=seed, n_draws=n_draws))
    return [next(found) if cbpe_gives(spec) is None else undefined(scores.shape[1], n_draws) for spec in specs]
