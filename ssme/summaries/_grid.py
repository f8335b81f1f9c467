"""Where to cut: cells of the scores for the order of the rows, knots of the pooled log-odds for the draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ssme.consensus import ConsensusNodes

Floats = NDArray[np.float64]

LARGEST_ODDS = 13.82  # pooled log-odds lie within: probabilities are at least 1e-6 before the logarithm
N_TAIL = 24  # further edges in each tail
TIED = 2.0  # a value that fills this many cells gets one of its own
LEVELS = logit((np.arange(64) + 0.5) / 64)


def score_edges(values: Floats, mass: Floats, n_cells: int, exact: Sequence[float] | Floats = ()) -> Floats:
    """Rising edges for cells (lower, upper] of a sample of scores (n,), of which each row has the mass (n,) of a class.

    Two thirds of the cells hold about the same number of rows, finer in the tails, and one third the same mass of the
    class: where few rows have it, rankings are decided among those. A value that many rows share gets a cell of its
    own; the values in `exact` are edges too.

    Examples
    --------
    >>> score_edges(np.linspace(0, 1, 1001), np.ones(1001), 6, exact=[0.3]).round(2)[::12]
    array([0.  , 0.01, 0.25, 0.93, 1.  ])
    """
    by_rows, by_mass = (np.linspace(0, 1, n + 1)[1:-1] for n in (n_cells - n_cells // 3, n_cells // 3 + 1))
    tails = np.geomspace(1.0 / max(len(values), 2), 1.0 / n_cells, N_TAIL)
    order = np.argsort(values)
    rising, upto = values[order], np.cumsum(mass[order])
    heavy = rising[np.searchsorted(upto, by_mass * upto[-1]).clip(max=len(rising) - 1)]
    distinct, counts = np.unique(rising, return_counts=True)
    tied = distinct[counts * n_cells > TIED * len(values)]
    edges = np.quantile(rising, np.concatenate([by_rows, tails, 1 - tails]))
    edges = np.concatenate([edges, heavy, np.nextafter(heavy, -np.inf), tied, np.nextafter(tied, -np.inf)])
    return np.unique(np.concatenate([edges[np.isfinite(edges)], np.asarray(exact)]))


def pooled_knots(odds: Floats, nodes: ConsensusNodes, pool: int, n_knots: int) -> Floats:
    """Rising knots (C,) for pooled log-odds (n,): where the rows are, and where P(class 1) of the draws turns.

    Between knots P(class 1) of every draw is read as a straight line.
    """
    mine = nodes.pool_of == pool
    turns = (LEVELS - nodes.offset[mine, None]) / np.exp(nodes.log_temperature[mine, None])
    rows = np.quantile(odds, np.linspace(0, 1, turns.size))
    both = np.clip(np.concatenate([rows, turns.ravel()]), -LARGEST_ODDS, LARGEST_ODDS)
    inner = np.quantile(both, np.linspace(0, 1, n_knots - 2))
    return np.unique(np.concatenate([[-LARGEST_ODDS], inner, [LARGEST_ODDS]]))


def place(values: Floats, knots: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The knot (n,) below each value, and the share (n,) of its weight that goes to the knot above.

    Shares are whole multiples of 2^-20: sums of them over rows of whole weights are exact in any order.
    """
    below = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = (values - knots[below]) / (knots[below + 1] - knots[below])
    return below, rounded(np.clip(share, 0.0, 1.0), 20)


def rounded(values: Floats, bits: int = 24) -> Floats:
    """Rounded to multiples of 2^-bits, so that adding up to 2^(53 - bits) of them is exact and order has no effect."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, bits)), -bits))
