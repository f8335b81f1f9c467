"""The mean score of the models as the probability of every label."""

from __future__ import annotations

from collections.abc import Sequence

from ssme.baselines._common import LABEL_DRAWS, Codes, Estimates, Floats
from ssme.baselines._label_draws import metrics_of_shared_labels
from ssme.metrics import MetricSpec
from ssme.transforms import normalize


def mean_score(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = LABEL_DRAWS,
) -> Estimates:
    """Labels drawn from the mean score of the models, read as a probability.

    ``P(y_i = k) = mean_m s_imk``; known labels are kept. It is the start of EM of the published mixture [1]_, and what
    that returns where EM cannot move.

    References
    ----------
    .. [1] Shanmugam, D. et al. (2025). "Evaluating Multiple Models Using Labeled and Unlabeled Data". NeurIPS.
       arXiv:2501.11866.
    """
    p = normalize(scores).mean(axis=1)
    return metrics_of_shared_labels(specs, scores, codes, weights, p, seed=seed, n_draws=n_draws)
