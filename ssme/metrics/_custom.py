"""A function of the user's, ``f(y_true, y_score)``, as a metric of hard labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._draws import LabelDraws
from ._specs import Evaluate, FloatArray, MetricSpec, check_draws, check_scores_shape


def spec_of(function: Callable[..., Any]) -> MetricSpec:
    """The specification of ``function(y_true (n,), y_score)``; y_score is P(class 1) (n,) for K = 2, else (n, K)."""
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    name = str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")
    description = (getattr(inner, "__doc__", None) or "").strip().partition("\n")[0]
    return MetricSpec(name, partial(_prepare, function, name), hard_labels_only=True, description=description)


def _prepare(function: Callable[..., Any], name: str, scores: ArrayLike, weights: ArrayLike | None = None) -> Evaluate:
    """The weights of the rows in the data move nothing here; the draws bring how often each row is repeated."""
    scores = check_scores_shape(scores, name)
    y_score = scores[:, :, 1] if scores.shape[2] == 2 else scores

    def evaluate(labels: ArrayLike | LabelDraws, weights: ArrayLike | None = None) -> FloatArray:
        if isinstance(labels, LabelDraws):
            weights = None if labels.weights is None else labels.weights.T
            labels = labels.labels
        labels, weights = check_draws(labels, weights, scores.shape, name)
        out = np.empty((len(labels), scores.shape[1]))
        for d, draw in enumerate(labels):
            y_true = _hard(draw, name)
            rows = np.arange(len(draw)) if weights is None else _repeated(weights[d], name)
            for m in range(scores.shape[1]):
                # indexing copies: a function that sorts its arguments in place does not spoil the next call
                out[d, m] = _number(_called(function, name, y_true[rows], y_score[rows, m]), name)
        return out

    return evaluate


def _called(function: Callable[..., Any], name: str, y_true: NDArray, y_score: NDArray) -> Any:
    """What the function returns; its own exceptions stay visible behind one that says where they come from."""
    try:
        return function(y_true, y_score)
    except Exception as error:
        raise ValueError(
            f"metric {name!r} failed on drawn labels ({type(error).__name__}: {error}); let it return NaN where it is "
            "undefined, as where a class is absent."
        ) from error


def _hard(labels: NDArray, name: str) -> NDArray:
    """Class indices (n,) of one-hot labels (n, K)."""
    if not (np.all(labels.max(axis=1) == 1) and np.count_nonzero(labels) == len(labels)):
        raise ValueError(
            f"metric {name!r} is a function of hard labels: pass one-hot labels, drawn from the soft ones."
        )
    return labels.argmax(axis=1)


def _repeated(weights: FloatArray, name: str) -> NDArray:
    """Row numbers, each as often as its weight says."""
    if np.any(weights != np.rint(weights)) or np.any(weights < 0):
        raise ValueError(f"metric {name!r} takes no weights: pass whole numbers, how often each row is repeated.")
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def _number(value: Any, name: str) -> float:
    what = type(value).__name__
    if value is not None and not isinstance(value, (str, bytes)):
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            pass
        else:
            if array.ndim == 0:
                return float(array)
            what = f"an array of shape {array.shape}"
    raise ValueError(f"metric {name!r} must return one number for f(y_true, y_score), got {what}.")
