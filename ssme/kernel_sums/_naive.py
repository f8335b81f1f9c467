"""Kernel sums straight from the definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def naive_log_kernel_sums(
    X: ArrayLike, centers: ArrayLike, weights: ArrayLike, bandwidth: ArrayLike, *, exclude_self: bool = False
) -> Floats:
    """The same numbers row by row, straight from the definition: slow, and the oracle of the tests.

    Examples
    --------
    >>> naive_log_kernel_sums([[0.0]], [[0.0], [1.0]], [[0.5], [0.5]], [1.0]).round(4).tolist()
    [[-1.138]]
    """
    X, centers = np.asarray(X, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    weights, h = np.asarray(weights, dtype=np.float64), np.broadcast_to(np.asarray(bandwidth, np.float64), X.shape[1:])
    weights = weights[:, None] if weights.ndim == 1 else weights
    out = np.full((len(X), weights.shape[1]), -np.inf)
    for i, x in enumerate(X):
        density = -0.5 * (((x - centers) / h) ** 2).sum(axis=1) - np.log(h).sum() - 0.5 * len(h) * np.log(2 * np.pi)
        for c in range(weights.shape[1]):
            use = weights[:, c] > 0
            if exclude_self:
                use[i] = False
            if use.any():
                terms = density[use] + np.log(weights[use, c])
                out[i, c] = np.logaddexp.reduce(terms)
    return out
