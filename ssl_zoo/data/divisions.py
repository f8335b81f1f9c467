"""Dividing samples among classes, so that a larger part always holds the smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def even_counts(total: int, capacity: Sequence[int], name: str) -> list[int]:
    """`total` spread evenly, the first classes taking what is left over."""
    k = len(capacity)
    counts = [total // k + (i < total % k) for i in range(k)]
    if any(n > room for n, room in zip(counts, capacity, strict=True)):
        largest = min(room * k + i for i, room in enumerate(capacity))
        raise ValueError(f"{name}={total}, spread over {k} classes, exceeds a class; it can be at most {largest}")
    return counts


def shortest_decimal(low: Fraction, high: Fraction) -> str:
    """The shortest decimal number in [low, high)."""
    for digits in range(1, 18):
        step = 10**digits
        value = Fraction(-((-low * step) // 1), step)
        if value < high:
            return f"{float(value):.{digits}f}".rstrip("0").rstrip(".") or "0"
    return str(float(low))


def allocate(size: int, weights: Sequence[float], ties: Sequence[int]) -> list[int]:
    """`size` divided in proportion to weights; a larger size never takes from a class (Sainte-Lague).

    Largest remainders would be simpler, but there a class can lose a sample when the total grows, and then the pool at
    a small r would not lie inside the one at a larger r.

    Examples
    --------
    >>> allocate(10, [3.0, 1.0, 1.0], [0, 1, 2])
    [6, 2, 2]
    """
    share = shares(weights)
    # what every division of this kind gives at least; the few samples that are left go one by one
    counts = np.maximum(np.floor(share * (size - len(share) / 2) + 0.5 - 1e-9), 0).astype(np.int64)
    while counts.sum() < size:
        counts[np.lexsort((np.asarray(ties), (counts + 0.5) / share))[0]] += 1
    return [int(n) for n in counts]


def merge(groups: Sequence[Rows], weights: Sequence[float], ties: Sequence[int]) -> Rows:
    """One order out of the classes' orders, every beginning of which is divided in proportion to the weights."""
    if not sum(len(part) for part in groups):
        return np.zeros(0, dtype=np.int64)
    share = np.maximum(shares(weights), 1e-300)  # a class without weight has no rows either
    key = np.concatenate([(np.arange(len(part)) + 0.5) / s for part, s in zip(groups, share, strict=True)])
    rank = np.repeat(ties, [len(part) for part in groups])
    return np.concatenate(groups)[np.lexsort((rank, key))]


def shares(weights: Sequence[float]) -> NDArray[np.float64]:
    """Weights that sum to 1."""
    return np.asarray(weights, dtype=np.float64) / np.sum(weights)
