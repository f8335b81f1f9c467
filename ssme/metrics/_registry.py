"""The metrics by name, and how to ask for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._calibration import ece, ece_positive
from ._confusion import balanced_accuracy, f1, precision, recall
from ._custom import spec_of
from ._linear import accuracy, brier, log_loss
from ._ranking import average_precision, roc_auc
from ._specs import FloatArray, MetricSpec, check_scores_shape, guard

UNIT = (0.0, 1.0)
# what people type for a metric that has another name here; used in the error message alone
OTHER_NAMES = {
    "acc": "accuracy",
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "rocauc": "roc_auc",
    "auprc": "average_precision",
    "pr_auc": "average_precision",
    "ap": "average_precision",
    "nll": "log_loss",
    "cross_entropy": "log_loss",
    "brier_score": "brier",
    "ace": "ece_positive",
    "f1_score": "f1",
}


def _row(
    function: Callable,
    bounds: tuple[float, float],
    greater_is_better: bool,
    reference: str,
    *,
    binary_only: bool = False,
    binary_bounds: tuple[float, float] | None = None,
    rises_with_noise: bool = False,
    share_of_rows: bool = False,
    reads_weights: bool = False,
) -> MetricSpec:
    return MetricSpec(
        name=function.__name__,
        prepare=guard(function, bounds, binary_only, reads_weights),
        bounds=bounds,
        greater_is_better=greater_is_better,
        binary_only=binary_only,
        reference=reference,
        description=(function.__doc__ or "").strip().partition("\n")[0],
        binary_bounds=binary_bounds,
        rises_with_noise=rises_with_noise,
        share_of_rows=share_of_rows,
    )


_ROWS = (
    _row(accuracy, UNIT, True, "sklearn.metrics.accuracy_score", share_of_rows=True),
    _row(balanced_accuracy, UNIT, True, "Brodersen et al. (2010)"),
    _row(precision, UNIT, True, "sklearn.metrics.precision_score"),
    _row(recall, UNIT, True, "sklearn.metrics.recall_score"),
    _row(f1, UNIT, True, "van Rijsbergen (1979)"),
    _row(roc_auc, UNIT, True, "Hanley and McNeil (1982)"),
    _row(average_precision, UNIT, True, "Zhu (2004)"),
    _row(ece, UNIT, False, "Guo et al. (2017)", rises_with_noise=True),
    _row(
        ece_positive,
        UNIT,
        False,
        "Nguyen and O'Connor (2015)",
        binary_only=True,
        rises_with_noise=True,
        reads_weights=True,
    ),
    _row(brier, (0.0, 2.0), False, "Brier (1950)", binary_bounds=UNIT),
    _row(log_loss, (0.0, np.inf), False, "Good (1952)"),
)
METRICS: dict[str, MetricSpec] = {spec.name: spec for spec in _ROWS}


def get_metric(metric: str | MetricSpec | Callable[..., Any], n_classes: int) -> MetricSpec:
    """The specification of a metric for ``n_classes`` classes.

    Parameters
    ----------
    metric : str, MetricSpec or callable
        A name in ``METRICS``, a specification, or a function ``f(y_true, y_score)`` that returns one number, NaN where
        it is undefined. It gets class indices (n,) and scores: P(class 1) (n,) for two classes, else (n, K).
    n_classes : int

    Returns
    -------
    MetricSpec

    Examples
    --------
    >>> from ssme.metrics import get_metric
    >>> get_metric("brier", n_classes=2).bounds
    (0.0, 1.0)
    >>> get_metric("auroc", n_classes=2)
    Traceback (most recent call last):
    ...
    ValueError: unknown metric 'auroc', did you mean 'roc_auc'? Known are accuracy, ...
    """
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ValueError(_unknown(metric))
        spec = METRICS[metric]
    elif isinstance(metric, MetricSpec):
        spec = metric
    elif callable(metric):
        spec = spec_of(metric)
    else:
        raise TypeError(f"a metric is a name or a function f(y_true, y_score), got {metric!r}.")
    if spec.binary_only and n_classes != 2:
        raise ValueError(f"metric {spec.name!r} is defined for two classes, and the scores have {n_classes}.")
    if spec.binary_bounds is not None and n_classes == 2:
        return replace(spec, bounds=spec.binary_bounds)
    return spec


def _unknown(name: str) -> str:
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    matches = [OTHER_NAMES[key]] if key in OTHER_NAMES else get_close_matches(key, METRICS, n=3)
    hint = ", did you mean " + " or ".join(repr(m) for m in matches) + "?" if matches else "."
    return f"unknown metric {name!r}{hint} Known are {', '.join(METRICS)}, or any function f(y_true, y_score)."


def evaluate_metric(
    metric: str | MetricSpec | Callable[..., Any],
    scores: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """The value of a metric for each model, from labels that are known.

    Parameters
    ----------
    metric : str, MetricSpec or callable
    scores : array-like (n, M, K)
    y : array-like (n,)
        Class indices 0 to K - 1.
    sample_weight : array-like (n,), optional

    Returns
    -------
    array (M,)

    Examples
    --------
    >>> from ssme.metrics import evaluate_metric
    >>> scores = [[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.7, 0.3]]]
    >>> evaluate_metric("accuracy", scores, [0, 1])
    array([1., 0.])
    """
    array = check_scores_shape(scores, metric if isinstance(metric, str) else "of the function given")
    n, _, n_classes = array.shape
    spec = get_metric(metric, n_classes)
    if not np.isfinite(array).all():
        raise ValueError(f"scores must be finite; {int((~np.isfinite(array)).sum())} of them are not.")
    codes = np.asarray(y)
    if codes.shape != (n,):
        raise ValueError(f"y must have one label a row, shape ({n},), got {codes.shape}.")
    one_hot = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
    bad = np.flatnonzero(one_hot.sum(axis=1) != 1)
    if bad.size:
        raise ValueError(
            f"y must hold class indices 0 to {n_classes - 1}, and {bad.size} rows do not: "
            f"row {bad[0]} has {codes[bad[0]]!r}."
        )
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return spec.prepare(array, weights)(one_hot[None], None if weights is None else weights[None])[0]
