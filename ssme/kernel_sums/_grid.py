"""Kernel sums in one dimension from a grid: linear in the number of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ssme.kernel_sums._points import GRID_REACH, GRID_STEPS, PRECISIONS, Points

Floats = NDArray[np.float64]

_NO_WEIGHT = PRECISIONS["float64"].no_weight


def grid_log_sums(points: Points, weights: Floats) -> Floats:
    """Sums in one dimension from linearly binned weights; only positive numbers are added: tails keep their digits."""
    y, x = points.y[:, 0], points.x[:, 0]
    low, edge = y.min(), GRID_REACH * GRID_STEPS
    size = int((y.max() - low) * GRID_STEPS) + 2
    position = (y - low) * GRID_STEPS
    left = position.astype(np.int64)
    share = position - left
    at = (x - low) * GRID_STEPS
    taps = np.exp(-0.5 * (np.arange(-edge, edge + 1) / GRID_STEPS) ** 2)
    nodes = np.arange(-edge, size + edge, dtype=np.float64)
    out = np.full((points.q, weights.shape[1]), -np.inf)
    for c in np.flatnonzero(weights.max(axis=0) > 0):
        w = weights[:, c] / weights[:, c].max()
        counts = np.asarray(
            np.bincount(left, w * (1 - share), size) + np.bincount(left + 1, w * share, size), np.float64
        )
        counts[counts < _NO_WEIGHT] = 0.0
        sums = np.convolve(counts, taps)
        near = sums > 1e-190
        logs = np.empty(len(nodes))
        logs[near] = np.log(sums[near])
        logs[~near] = _far_log_sums(nodes[~near], counts)
        outside = (at < nodes[0]) | (at > nodes[-1])
        out[:, c] = np.interp(at, nodes, logs) + np.log(weights[:, c].max())
        out[outside, c] = _far_log_sums(at[outside], counts) + np.log(weights[:, c].max())
    return np.asarray(out + points.log_normalizer)


def _far_log_sums(at: Floats, counts: Floats) -> Floats:
    """Log sums many bandwidths away from all weight: nodes within two bandwidths of the nearest ones are enough."""
    out = np.empty(len(at))
    occupied = np.flatnonzero(counts)
    logs = np.log(np.where(counts > 0, counts, 1.0)) + np.where(counts > 0, 0.0, -np.inf)
    steps = np.arange(2 * GRID_STEPS)
    for start in range(0, len(at), 4096):
        here = at[start : start + 4096]
        right = np.searchsorted(occupied, here)
        before = occupied[np.maximum(right - 1, 0)][:, None] - steps
        after = occupied[np.minimum(right, len(occupied) - 1)][:, None] + steps
        node = np.concatenate([before, after], axis=1)
        once = (node >= 0) & (node < len(counts))
        once[:, len(steps) :] &= after > before[:, :1]  # beyond the last weight both sides are the same node
        terms = np.where(once, logs[np.clip(node, 0, len(counts) - 1)], -np.inf)
        terms -= 0.5 * ((here[:, None] - node) / GRID_STEPS) ** 2
        top = terms.max(axis=1)
        out[start : start + 4096] = top + np.log(np.exp(np.maximum(terms - top[:, None], -700.0)).sum(axis=1))
    return out
