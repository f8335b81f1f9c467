"""The rows that teach the consensus: a random sample of all rows, and one of the labeled rows.

Those are kept whose number, from the first row of the first file on, has the lowest hash. So the sample is the same one
however the rows are split into batches and workers. (A hash of the content would keep all copies of some rows and none
of others, and scores of hard votes or of few digits have many copies.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssme._fitting import MOST_LABELED, SAMPLE_SIZE
from ssme.intervals import hashed

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

STEP = np.uint64(0x9E3779B97F4A7C15)  # of the SplitMix64 generator


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows kept of many: keys (k,), rising, scores (k, M, K), codes (k,); and how many rows they were kept of.

    Attributes
    ----------
    n_rows, n_labeled : int
        Of all rows.
    met : array (L,)
        How many rows each outside label was found in.

    Examples
    --------
    >>> scores = np.random.default_rng(0).random((40, 1, 2))
    >>> one = Kept.of(0, scores, np.full(40, -1), np.zeros(0, dtype=np.int64))
    >>> halves = Kept.of(0, scores[:9], np.full(9, -1), one.met) + Kept.of(9, scores[9:], np.full(31, -1), one.met)
    >>> bool(np.array_equal(one.scores, halves.scores)), halves.n_rows
    (True, 40)
    """

    keys: NDArray[np.uint64]
    scores: Floats
    codes: Codes
    n_rows: int
    n_labeled: int
    met: Codes

    @classmethod
    def of(cls, first_row: int, scores: Floats, codes: Codes, met: Codes) -> Kept:
        """Keep of rows (n, M, K) with codes (n,), the first of which has the number `first_row`."""
        keys = hashed(np.arange(first_row + 1, first_row + 1 + len(codes), dtype=np.uint64) * STEP)
        rows = _first_rows(keys, codes)
        return cls(keys[rows], scores[rows], codes[rows], len(codes), int((codes >= 0).sum()), met)

    def __add__(self, other: Kept) -> Kept:
        keys, scores, codes = (
            np.concatenate([a, b])
            for a, b in ((self.keys, other.keys), (self.scores, other.scores), (self.codes, other.codes))
        )
        rows = _first_rows(keys, codes)
        counts = self.n_rows + other.n_rows, self.n_labeled + other.n_labeled
        return Kept(keys[rows], scores[rows], codes[rows], *counts, self.met + other.met)


def _first_rows(keys: NDArray[np.uint64], codes: Codes) -> NDArray[np.int64]:
    order = np.argsort(keys)
    labeled = order[codes[order] >= 0][:MOST_LABELED]
    keep = np.zeros(len(order), dtype=bool)
    keep[order[:SAMPLE_SIZE]] = keep[labeled] = True
    return order[keep[order]]
