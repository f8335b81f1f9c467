"""The estimator itself in its variants, with the signature of the rivals."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssme.estimator import SSME
from ssme.metrics import MetricSpec

Floats = NDArray[np.float64]
Draws = list[tuple[Floats, Floats]]


def ssme_default(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    *,
    seed: int,
    n_draws: int = 100,
) -> Draws:
    """The default: consensus of the models, recalibrated by agreement, confidence and labels."""
    return _fit(specs, scores, codes, weights, random_state=seed, n_draws=n_draws)


def ssme_kde(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    *,
    seed: int,
    n_draws: int = 100,
) -> Draws:
    """The kernel density mixture as published: EM from the mean score, in the joint log-ratio space."""
    return _fit(specs, scores, codes, weights, density="kde", random_state=seed, n_draws=n_draws)


def ssme_m(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    *,
    seed: int,
    n_draws: int = 100,
) -> Draws:
    """SSME-M, the ablation of the paper: one kernel density mixture for each model alone."""
    alone = [
        ssme_kde(specs, scores[:, [m]], codes, weights, seed=seed, n_draws=n_draws) for m in range(scores.shape[1])
    ]
    return [
        (np.concatenate([found[i][0] for found in alone]), np.concatenate([found[i][1] for found in alone], axis=1))
        for i in range(len(specs))
    ]


def _fit(
    specs: Sequence[MetricSpec], scores: Floats, codes: NDArray[np.int64], weights: Floats, **options: Any
) -> Draws:
    with warnings.catch_warnings():
        # a study runs these by the thousand; what the warnings say is the subject of docs/method.md
        warnings.simplefilter("ignore", UserWarning)
        model = SSME(class_names=range(scores.shape[2]), **options).fit(scores, codes, sample_weight=weights)
        return [(each.point, each.draws) for each in model.posterior_draws(specs)]
