"""What a metric is: the specification, and the guard that checks shapes once for all metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._draws import FloatArray, LabelDraws


class Evaluate(Protocol):
    """The prepared metric: labels (D, n, K) and weights (D, n) or None to values (D, M).

    Instead of both it takes :class:`LabelDraws`, which carry their weights.
    """

    def __call__(self, labels: ArrayLike | LabelDraws, weights: ArrayLike | None = None) -> FloatArray: ...


class Prepare(Protocol):
    """Scores (n, M, K) and the weights (n,) of the rows in the data, or None, to what evaluates draws.

    These weights place what belongs to the data, as the edges of bins. What a row counts for in a draw is said there.
    """

    def __call__(self, scores: ArrayLike, weights: ArrayLike | None = None) -> Evaluate: ...


@dataclass(frozen=True)
class MetricSpec:
    """One metric, by name.

    Parameters
    ----------
    name : str
    prepare : callable
        ``prepare(scores, weights=None)`` of scores (n, M, K) and the rows' own weights (n,) returns
        ``evaluate(labels, weights=None)``, see :class:`Prepare` and :class:`Evaluate`.
    bounds : tuple of float
        Least and greatest possible value; infinite where there is none.
    greater_is_better : bool or None
        None when it is not known (a function of the user's).
    binary_only : bool
        The metric is defined for two classes alone.
    hard_labels_only : bool
        ``evaluate`` accepts one-hot labels alone (a function of the user's).
    reference, description : str
    binary_bounds : tuple of float, optional
        The bounds for two classes, where they are narrower.
    rises_with_noise : bool
        A sum of absolute gaps: noise in the labels or the weights raises it, so the draws lie above the estimate.
    share_of_rows : bool
        A share of the rows, each right or wrong: draws add half a right and half a wrong row (Jeffreys).

    Examples
    --------
    >>> import numpy as np
    >>> from ssme.metrics import get_metric
    >>> scores = np.array([[[0.2, 0.8]], [[0.6, 0.4]]])
    >>> evaluate = get_metric("accuracy", n_classes=2).prepare(scores)
    >>> soft = np.array([[[0.1, 0.9], [0.5, 0.5]]])
    >>> evaluate(soft)
    array([[0.7]])
    """

    name: str
    prepare: Prepare
    bounds: tuple[float, float] = (-np.inf, np.inf)
    greater_is_better: bool | None = None
    binary_only: bool = False
    hard_labels_only: bool = False
    reference: str = ""
    description: str = ""
    binary_bounds: tuple[float, float] | None = None
    rises_with_noise: bool = False
    share_of_rows: bool = False


def check_scores_shape(scores: ArrayLike, name: str, binary_only: bool = False) -> FloatArray:
    """The scores as float64 (n, M, K); not copied when they are that already."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 3 or array.shape[0] == 0 or array.shape[2] < 2:
        raise ValueError(f"metric {name!r} needs scores of shape (n, M, K) with n >= 1 and K >= 2, got {array.shape}.")
    if binary_only and array.shape[2] != 2:
        raise ValueError(f"metric {name!r} is defined for two classes, and the scores have {array.shape[2]}.")
    return array


def check_draws(
    labels: ArrayLike, weights: ArrayLike | None, shape: tuple[int, ...], name: str
) -> tuple[NDArray, FloatArray | None]:
    """Labels (D, n, K) and weights (D, n) that fit scores of the shape (n, M, K)."""
    labels = np.asarray(labels)
    n, _, k = shape
    if labels.ndim != 3 or labels.shape[1:] != (n, k):
        raise ValueError(f"metric {name!r} needs labels of shape (D, {n}, {k}), got {labels.shape}.")
    if weights is None:
        return labels, None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != labels.shape[:2]:
        raise ValueError(f"metric {name!r} needs weights of shape {labels.shape[:2]}, got {weights.shape}.")
    return labels, weights


def check_row_weights(weights: ArrayLike | None, n_rows: int, name: str) -> FloatArray | None:
    """Weights (n,) of the rows in the data, or None."""
    if weights is None:
        return None
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_rows,):
        raise ValueError(f"metric {name!r} needs row weights of shape ({n_rows},), got {array.shape}.")
    return array


def guard(
    metric: Callable[..., Callable[[LabelDraws], FloatArray]],
    bounds: tuple[float, float],
    binary_only: bool = False,
    reads_weights: bool = False,
) -> Prepare:
    """The ``prepare`` of a metric function: checks the shapes, and clips to the bounds what rounding left outside."""
    name = metric.__name__

    @wraps(metric)
    def prepare(scores: ArrayLike, weights: ArrayLike | None = None) -> Evaluate:
        array = check_scores_shape(scores, name, binary_only)
        own = check_row_weights(weights, len(array), name)
        of_draws = metric(array, own) if reads_weights else metric(array)

        def evaluate(labels: ArrayLike | LabelDraws, weights: ArrayLike | None = None) -> FloatArray:
            if not isinstance(labels, LabelDraws):
                labels = LabelDraws(*check_draws(labels, weights, array.shape, name))
            return np.clip(of_draws(labels), *bounds)

        return evaluate

    return prepare
