"""DoC: the labeled accuracy, moved by the difference of the mean confidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssme.baselines._atc import accuracy_only
from ssme.baselines._common import (
    MANY_DRAWS,
    Codes,
    Estimates,
    Floats,
    all_undefined,
    bootstrap_means,
    labeled_rows,
    undefined,
    unlabeled_rows,
)
from ssme.intervals import with_jeffreys
from ssme.metrics import MetricSpec
from ssme.transforms import normalize


def doc(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = MANY_DRAWS,
) -> Estimates:
    """Difference of confidences: the labeled accuracy plus the mean confidence of unlabeled less that of labeled rows.

    The labeled rows are the reference that the method asks for. The published method may regress the difference of
    accuracies on that of confidences over many reference sets; with one set the slope is 1. Without unlabeled rows it
    is the labeled accuracy. The draws are those of the Bayesian bootstrap.

    References
    ----------
    Guillory, D., Shankar, V., Ebrahimi, S., Darrell, T., Schmidt, L. (2021). "Predicting with Confidence on Unseen
    Distributions". ICCV. arXiv:2107.03315.
    """
    labeled, n_models = labeled_rows(codes, weights), scores.shape[1]
    if len(labeled) == 0:
        return all_undefined(specs, n_models, n_draws)
    others = unlabeled_rows(codes, weights)
    confidence = normalize(scores).max(axis=2)
    right = (scores[labeled].argmax(axis=2) == codes[labeled, None]).astype(np.float64)
    both, w = np.concatenate([right, confidence[labeled]], axis=1), weights[labeled]
    random = np.random.default_rng([seed, 18])
    half = random.standard_gamma(0.5, size=(n_draws, 2))
    means, mass = bootstrap_means(both, w, n_draws, random)
    point, draws = w @ right / w.sum(), with_jeffreys(means[:, :n_models], mass, half)
    if len(others):
        u = weights[others]
        point = point + u @ confidence[others] / u.sum() - w @ confidence[labeled] / w.sum()
        draws = draws + bootstrap_means(confidence[others], u, n_draws, random)[0] - means[:, n_models:]
    found = np.clip(point, 0.0, 1.0), np.clip(draws, 0.0, 1.0)
    return [found if accuracy_only(spec) is None else undefined(n_models, n_draws) for spec in specs]
