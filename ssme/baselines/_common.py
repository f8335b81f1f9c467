"""What the rivals share: the type of their answer, labeled rows, row weights of the Bayesian bootstrap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssme.metrics import MetricSpec

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Estimates = list[tuple[Floats, Floats]]

LABEL_DRAWS = 100  # draws of a method that computes every metric on draws of labels
MANY_DRAWS = 400  # draws of a method in closed form


def labeled_rows(codes: Codes, weights: Floats) -> Codes:
    """Numbers of the rows that have a label and count."""
    return np.flatnonzero((codes >= 0) & (weights > 0))


def unlabeled_rows(codes: Codes, weights: Floats) -> Codes:
    """Numbers of the rows that have no label and count."""
    return np.flatnonzero((codes < 0) & (weights > 0))


def undefined(n_models: int, n_draws: int) -> tuple[Floats, Floats]:
    """The answer to a metric that cannot be given."""
    return np.full(n_models, np.nan), np.full((n_draws, n_models), np.nan)


def all_undefined(specs: Sequence[MetricSpec], n_models: int, n_draws: int) -> Estimates:
    """The answer of a method that needs labels and has none."""
    return [undefined(n_models, n_draws) for _ in specs]


def bootstrap_means(values: Floats, weights: Floats, n_draws: int, random: np.random.Generator) -> tuple[Floats, ...]:
    """Means (D, M) of values (n, M) under Bayesian bootstrap weights, and the total weight (D,) of each draw.

    A row of weight w counts as w rows would.
    """
    drawn = random.standard_gamma(weights, size=(n_draws, len(weights)))
    mass = drawn.sum(axis=1)
    return (drawn @ values) / mass[:, None], mass
