"""Metrics that are a mean over the rows, as the value that each row has under each label."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ssme.baselines._common import Codes, Floats
from ssme.metrics import METRICS, MetricSpec

EPS = float(np.finfo(np.float64).eps)


def _accuracy(scores: Floats) -> Floats:
    return (scores.argmax(axis=2)[:, :, None] == np.arange(scores.shape[2])).astype(np.float64)


def _brier(scores: Floats) -> Floats:
    if scores.shape[2] == 2:
        second = scores[:, :, 1]
        return np.stack([second**2, (second - 1.0) ** 2], axis=2)
    squares = scores**2
    return squares.sum(axis=2, keepdims=True) - squares + (1.0 - scores) ** 2


def _log_loss(scores: Floats) -> Floats:
    return -np.log(np.clip(scores, EPS, 1.0 - EPS))


_VALUES: dict[str, Callable[[Floats], Floats]] = {"accuracy": _accuracy, "brier": _brier, "log_loss": _log_loss}


def is_mean(spec: MetricSpec) -> bool:
    """Whether the metric is a mean over the rows of a value of scores and label, and one that is known here.

    Examples
    --------
    >>> [name for name, spec in METRICS.items() if is_mean(spec)]
    ['accuracy', 'brier', 'log_loss']
    """
    return spec.name in _VALUES and spec.prepare is METRICS[spec.name].prepare


def row_values(spec: MetricSpec, scores: Floats) -> Floats:
    """The value (n, M, K) that each row has for each model under each label.

    Examples
    --------
    >>> row_values(METRICS["accuracy"], np.array([[[0.2, 0.8]]]))
    array([[[0., 1.]]])
    """
    return _VALUES[spec.name](scores)


def values_at(values: Floats, codes: Codes) -> Floats:
    """The value (n, M) of each row under its label (n,)."""
    return values[np.arange(len(codes)), :, codes]
