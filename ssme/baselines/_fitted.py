"""The estimator itself in its variants, with the signature of the rivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ssme._mixture import fit_mixture
from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats
from ssme.baselines._label_draws import metrics_of_own_classes
from ssme.estimator import SSME
from ssme.metrics import MetricSpec
from ssme.results import MetricDraws
from ssme.transforms import additive_log_ratio, normalize

MAX_ITER = 1000
TOL = 1e-3


def ssme_default(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """The default: consensus of the models, recalibrated by agreement, confidence and labels."""
    return _estimates(default_records(specs, scores, codes, weights, seed=seed, n_draws=n_draws))


def ssme_kde(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """The kernel density mixture as published: EM from the mean score, in the joint log-ratio space.

    References
    ----------
    Shanmugam, D. et al. (2025). "Evaluating Multiple Models Using Labeled and Unlabeled Data". NeurIPS.
    arXiv:2501.11866.
    """
    return _estimates(kde_records(specs, scores, codes, weights, seed=seed, n_draws=n_draws))


def ssme_m(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """SSME-M, the ablation of the paper: one kernel density mixture for each model alone.

    EM starts at the model's own score and ends when no responsibility moves by more than 1e-3, or after 1,000 rounds.
    Labels are drawn from what it ends with.
    """
    p = normalize(scores)
    own = [_own_responsibilities(p[:, [m]], codes, weights) for m in range(p.shape[1])]
    return metrics_of_own_classes(specs, scores, codes, weights, own, seed=seed, n_draws=n_draws)


def default_records(*rows: Any, seed: int, n_draws: int = LABEL_DRAWS) -> list[MetricDraws]:
    """Records of the default estimator, with its flags."""
    return _records(*rows, random_state=seed, n_draws=n_draws)


def kde_records(*rows: Any, seed: int, n_draws: int = LABEL_DRAWS) -> list[MetricDraws]:
    """Records of the published mixture, with its flags."""
    return _records(*rows, density="kde", random_state=seed, n_draws=n_draws)


def _records(
    specs: Sequence[MetricSpec], scores: Floats, codes: Codes, weights: Floats, **options: Any
) -> list[MetricDraws]:
    model = SSME(class_names=range(scores.shape[2]), **options).fit(scores, codes, sample_weight=weights)
    return model.posterior_draws(specs)


def _estimates(records: list[MetricDraws]) -> Estimates:
    return [(each.point, each.draws) for each in records]


def _own_responsibilities(p: Floats, codes: Codes, weights: Floats) -> Floats:
    """P(class) (n, K) of the mixture of one model with probabilities (n, 1, K)."""
    found = fit_mixture(
        additive_log_ratio(p),
        weights,
        codes,
        p[:, 0],
        "isj",
        unlabeled_weight=1.0,
        max_iter=MAX_ITER,
        tol=TOL,
        leave_one_out=False,
    )
    return np.asarray(found.em.responsibilities)
