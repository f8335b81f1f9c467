"""Which rows are labeled, which are unlabeled, and which give the truth."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

STREAM = 20  # keeps these draws apart from those that a method makes from the same seed
SMALLEST, GROWTH = 5, 1.4  # the numbers of labels at which the curve of labeled-only is taken


@dataclass(frozen=True, eq=False)
class LabeledScores:
    """Scores (n, M, K) as probabilities with the label of every row, codes (n,)."""

    scores: Floats
    codes: Codes

    def digest(self) -> str:
        """A fingerprint of the content, by which finished cells are found again."""
        found = hashlib.sha256(repr(self.scores.shape).encode())
        found.update(np.ascontiguousarray(self.scores, dtype=np.float64).data)
        found.update(np.ascontiguousarray(self.codes, dtype=np.int64).data)
        return found.hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class Draw:
    """Row numbers: the pool in the order in which it is labeled, and the rows that give the truth."""

    pool: Codes
    truth: Codes


def draw_rows(codes: Codes, seed: int, stratified: bool) -> Draw:
    """Half of the rows, at random, are the pool; the others give the truth and are shown to no method.

    A larger budget keeps the labels of a smaller one. With `stratified` the first labels are one row of each class.

    Examples
    --------
    >>> draw = draw_rows(np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1]), seed=0, stratified=True)
    >>> len(draw.pool), len(draw.truth), sorted({*draw.pool.tolist(), *draw.truth.tolist()}) == list(range(10))
    (5, 5, True)
    """
    order = np.random.default_rng([seed, STREAM]).permutation(len(codes))
    pool, truth = order[: len(codes) // 2], order[len(codes) // 2 :]
    if stratified:
        first = np.sort(np.unique(codes[pool], return_index=True)[1])
        pool = np.concatenate([pool[first], np.delete(pool, first)])
    return Draw(pool, truth)


def curve_sizes(n_pool: int) -> list[int]:
    """Numbers of labels from a handful to the whole pool, each about 1.4 times the one before.

    Examples
    --------
    >>> curve_sizes(40)
    [5, 7, 10, 14, 19, 27, 38, 40]
    """
    steps = 1 + int(np.log(max(n_pool / SMALLEST, 1)) / np.log(GROWTH))
    sizes = {int(round(SMALLEST * GROWTH**step)) for step in range(steps)}
    return sorted({size for size in sizes if size < n_pool} | {n_pool})
