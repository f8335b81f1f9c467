"""AutoEval: the labeled mean, corrected by what the model says of the unlabeled rows (PPI++ with power tuning)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssme.baselines._common import (
    MANY_DRAWS,
    Codes,
    Estimates,
    Floats,
    all_undefined,
    labeled_rows,
    undefined,
    unlabeled_rows,
)
from ssme.baselines._means import is_mean, row_values, values_at
from ssme.metrics import MetricSpec
from ssme.transforms import normalize


def autoeval_gives(spec: MetricSpec) -> str | None:
    """Why AutoEval cannot give a metric; None where it can."""
    return None if is_mean(spec) else "prediction-powered inference is for means over the rows, and this is none"


def autoeval(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = MANY_DRAWS,
) -> Estimates:
    """The labeled mean, corrected by what the model's own confidence says of the unlabeled rows, with power tuning.

    For a metric ``mean_i f(s_i, y_i)``, with ``g_i = sum_k s_ik f(s_i, k)`` the value that the model expects [1]_,

        estimate = mean_labeled(f - lambda g) + lambda mean_unlabeled(g),
        lambda = cov(f, g) / ((1 + n / N) var(g)), kept within 0 and 1,

    n labeled and N unlabeled rows [2]_, for each model on its own. The draws are normal with the covariance of the
    estimates of all models. A single label has no variance: the estimate then has no interval.

    References
    ----------
    .. [1] Boyeau, P., Angelopoulos, A. N., Yosef, N., Malik, J., Jordan, M. I. (2024). "AutoEval Done Right: Using
       Synthetic Data for Model Evaluation". arXiv:2403.07008.
    .. [2] Angelopoulos, A. N., Duchi, J. C., Zrnic, T. (2023). "PPI++: Efficient Prediction-Powered Inference".
       arXiv:2311.01453.
    """
    labeled, others = labeled_rows(codes, weights), unlabeled_rows(codes, weights)
    n_models = scores.shape[1]
    if len(labeled) == 0:
        return all_undefined(specs, n_models, n_draws)
    p = normalize(scores)
    normal = np.random.default_rng([seed, 13]).standard_normal((n_draws, n_models))
    out = []
    for spec in specs:
        if not is_mean(spec):
            out.append(undefined(n_models, n_draws))
            continue
        values = row_values(spec, scores)
        expected = np.einsum("nmk,nmk->nm", p, values)
        seen = values_at(values[labeled], codes[labeled])
        point, covariance = prediction_powered_mean(
            seen, expected[labeled], expected[others], weights[labeled], weights[others]
        )
        draws = np.clip(point + normal @ _root(covariance), *spec.bounds)
        if len(labeled) == 1:
            draws[:] = np.nan
        out.append((np.clip(point, *spec.bounds), draws))
    return out


def prediction_powered_mean(
    seen: Floats, expected: Floats, expected_elsewhere: Floats, weights: Floats, weights_elsewhere: Floats
) -> tuple[Floats, Floats]:
    """Means (M,) and their covariance (M, M) from values (n, M), and expected values here (n, M) and elsewhere (N, M).

    Examples
    --------
    >>> ones = np.ones(3)
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> point, _ = prediction_powered_mean(x, x, np.array([[4.0]]), ones, ones[:1])
    >>> point.round(3)
    array([1.171])
    """
    n, n_other = weights.sum(), weights_elsewhere.sum()
    power = _power(seen, expected, expected_elsewhere, weights, weights_elsewhere)
    rest = seen - power * expected
    point = np.average(rest, axis=0, weights=weights)
    covariance = _covariance(rest, rest, weights) / n
    if n_other > 0:
        imputed = power * expected_elsewhere
        point = point + np.average(imputed, axis=0, weights=weights_elsewhere)
        covariance = covariance + _covariance(imputed, imputed, weights_elsewhere) / n_other
    return point, covariance


def _power(seen: Floats, expected: Floats, elsewhere: Floats, weights: Floats, weights_elsewhere: Floats) -> Floats:
    """The power lambda (M,) of least variance, between 0 and 1; 0 without rows elsewhere."""
    n, n_other = weights.sum(), weights_elsewhere.sum()
    if n_other == 0:
        return np.zeros(seen.shape[1])
    both, mass = np.concatenate([expected, elsewhere]), np.concatenate([weights, weights_elsewhere])
    spread = np.diag(_covariance(both, both, mass)) * (n + n_other) / max(n + n_other - 1, 1.0)
    shared = np.diag(_covariance(seen, expected, weights))
    power = np.divide(shared, (1 + n / n_other) * spread, out=np.zeros(len(spread)), where=spread > 1e-15)
    return np.clip(power, 0.0, 1.0)


def _covariance(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Covariance (M, M) of the columns of a and b, divided by n."""
    w = weights / weights.sum()
    return ((a - w @ a) * w[:, None]).T @ (b - w @ b)


def _root(covariance: Floats) -> Floats:
    """Symmetric square root: it turns with the models, whatever their order."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
