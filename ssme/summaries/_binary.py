"""Two classes: one pass over the rows serves every draw.

P(class 1) of an unlabeled row is, in every draw, a function of its pooled log-odds u and of the model's vote v:
``expit(exp(g) u + a + t)`` for v = 1 and ``expit(exp(g) u + a - t)`` for v = 0. The rows are therefore counted once in
tables of (bin of the score, vote) by knots of u, each row shared between the two knots beside it. A draw is then a
product of the tables with P(class 1) at the knots. Reading P between knots as a straight line is the only approximation
for sums over rows; the order of the rows within a cell of the score is the only one for rankings. Labeled rows are
counted beside, with their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ssme.consensus import ConsensusNodes
from ssme.metrics._calibration import N_BINS
from ssme.metrics._linear import EPS
from ssme.summaries._grid import place, pooled_knots, rounded, score_edges
from ssme.summaries._ranking import CellCounts
from ssme.summaries._summary import Summary
from ssme.summaries._values import LINEAR, RANKED, ModelSums

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

N_KNOTS = 400
N_CELLS = 1536
LEAST_CELLS = 64
TABLE_BYTES = 2**28  # of all tables of a summary together
LARGEST_ODDS = 20.72  # of a row in a draw, as in `ssme.posterior`: P is at least 1e-9
LARGEST_TILT = 30.0
MIXED = (0.49, 0.51)  # scores sum to 1 within .01: only between these P(class 1) does not tell the vote


@dataclass(frozen=True, eq=False)
class BinaryPlan:
    """How the rows of M models of two classes are counted. Plans are small; every process that counts rows has one.

    Attributes
    ----------
    nodes : ConsensusNodes
        The distinct ones.
    knots : list of array (C,)
        Of the pooled log-odds, for each pool.
    edges : list of array (S - 1,)
        Of the cells of P(class 1), for each model; empty where no metric needs cells.
    mass_edges : array (9, M), optional
        Edges of the bins of `ece_positive`, which are among the edges of the cells.
    linear : tuple of str
    whole_weights : bool
        Whether row weights are whole numbers.
    """

    nodes: ConsensusNodes
    knots: list[Floats]
    edges: list[Floats]
    mass_edges: Floats | None
    linear: tuple[str, ...]
    whole_weights: bool

    def count(self, scores: Floats, pooled: Sequence[Floats], codes: Codes, weights: Floats) -> Summary:
        """The summary of rows: scores (n, M, 2), log scores (n, 2) of each pool, codes (n,), weights (n,)."""
        n_models, free = scores.shape[1], np.flatnonzero(codes < 0)
        out = Summary(self._empty(n_models))
        if self.edges:
            size = out.sums["cells"].shape
            out.low["score"], out.high["score"] = np.full(size, np.inf), np.full(size, -np.inf)
            out.high["weight"] = np.array([weights.max(initial=0.0)])
        w = weights[free]
        odds = [(log[:, 1] - log[:, 0])[free] for log in pooled]
        spread = [_Spread(*place(u, k), w, len(k)) for u, k in zip(odds, self.knots, strict=True)]
        ceiling = None
        if not self.whole_weights:
            up = np.ceil(w)
            ceiling = [_Spread(s.below, s.share, up, s.n_knots) for s in spread]
        for m in range(n_models):
            self._count_model(out, m, scores[:, m], codes, weights, free, spread, ceiling)
        return out

    def sums(self, summary: Summary, m: int, node_of: NDArray[np.int64], tilt: Floats) -> ModelSums:
        """What the metrics of model m need, in draws of given nodes (D,) and tilts (D,)."""
        s = summary.sums
        p = [self._at_knots(q, node_of, tilt) for q in range(len(self.knots))]
        free: Floats = np.zeros((2 * N_BINS, len(node_of)))
        support, linear = np.zeros(len(node_of)), {name: s[name][m] + np.zeros(len(node_of)) for name in self.linear}
        positives = np.zeros((2, len(self.edges[m]) + 1, len(node_of))) if self.edges else None
        for q, (draws, at) in enumerate(p):
            free[:, draws] = _by_vote(s[f"table{q}"][m].reshape(2, N_BINS, -1), at)
            if not self.whole_weights:
                support[draws] = np.einsum("vc,vcd->d", s[f"ceiling{q}"][m], at)
            for name in self.linear:
                linear[name][draws] += np.einsum("vc,vcd->d", s[f"{name}{q}"][m], at)
            if positives is not None:
                for power in (1, 2):
                    positives[power - 1][:, draws] = self._cell_masses(s[f"cells{q}"][m], m, at**power)
        rows = s["rows"][m].reshape(2, N_BINS)
        labeled, hit = s["labeled"][m].reshape(2, N_BINS), s["labeled_hits"][m].reshape(2, N_BINS)
        by_vote = free.reshape(2, N_BINS, -1)
        hits = np.stack([(rows - labeled)[0, :, None] - by_vote[0], by_vote[1]]) + hit[:, :, None]
        second = by_vote.sum(axis=(0, 1)) + s["labeled_true"][1]
        true = np.stack([rows.sum() - second, second])
        if self.whole_weights:
            up = true
        else:
            up = np.stack([s["ceiling"][0] - support, support + s["ceiling"][1]])
        cells = [] if positives is None else [self._cells(summary, m, positives)]
        confidence = s["confidence"][m].reshape(2, N_BINS)
        return ModelSums(rows, confidence, hits, true, up, linear=linear, cells=cells)

    # -- counting ------------------------------------------------------------------------------------------------------

    def _empty(self, n_models: int) -> dict[str, NDArray]:
        sums: dict[str, NDArray] = {
            name: np.zeros((n_models, 2 * N_BINS)) for name in ("rows", "confidence", "labeled", "labeled_hits")
        }
        sums["labeled_true"] = np.zeros(2)
        sums |= {name: np.zeros(n_models) for name in self.linear}
        if not self.whole_weights:
            sums["ceiling"] = np.zeros(2)  # all that is not class 1 by its label; class 1 by its label
        n_cells = max((len(e) + 1 for e in self.edges), default=0)
        if n_cells:
            sums |= {name: np.zeros((n_models, n_cells)) for name in ("cells", "counts", "scores", "labeled_cells")}
        n_places = max((_places(e) for e in self.edges), default=0)
        for q, knots in enumerate(self.knots):
            sums[f"table{q}"] = np.zeros((n_models, 2 * N_BINS, len(knots)))
            sums |= {f"{name}{q}": np.zeros((n_models, 2, len(knots))) for name in self.linear}
            if not self.whole_weights:
                sums[f"ceiling{q}"] = np.zeros((n_models, 2, len(knots)))
            if n_places:
                sums[f"cells{q}"] = np.zeros((n_models, n_places, len(knots)))
        return sums

    def _count_model(
        self,
        out: Summary,
        m: int,
        scores: Floats,
        codes: Codes,
        weights: Floats,
        free: NDArray[np.int64],
        spread: list[_Spread],
        ceiling: list[_Spread] | None,
    ) -> None:
        s = out.sums
        second, vote = scores[:, 1], (scores[:, 1] > scores[:, 0]).astype(np.int64)
        confidence = scores.max(axis=1)
        key = vote * N_BINS + np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
        labeled = np.flatnonzero(codes >= 0)
        of_labels, positive = weights[labeled], codes[labeled] == 1
        s["rows"][m] += np.bincount(key, weights, 2 * N_BINS)
        s["confidence"][m] += np.bincount(key, rounded(confidence) * weights, 2 * N_BINS)
        s["labeled"][m] += np.bincount(key[labeled], of_labels, 2 * N_BINS)
        s["labeled_hits"][m] += np.bincount(key[labeled], of_labels * (vote[labeled] == positive), 2 * N_BINS)
        if m == 0:
            s["labeled_true"] += np.bincount(positive, of_labels, 2)
            if ceiling is not None:
                up = np.ceil(weights)
                s["ceiling"] += [up.sum() - up[labeled][positive].sum(), up[labeled][positive].sum()]
        for q, each in enumerate(spread):
            each.add(s[f"table{q}"][m], key[free])
            if ceiling is not None:
                ceiling[q].add(s[f"ceiling{q}"][m], vote[free])
        for name in self.linear:
            base, step = _linear_terms(name, scores)
            s[name][m] += base @ weights + step[labeled] @ (of_labels * positive)
            for q, each in enumerate(spread):
                each.add(s[f"{name}{q}"][m], vote[free], step[free])
        if self.edges:
            edges = self.edges[m]
            cell = np.searchsorted(edges, second)  # a score on an edge belongs to the cell below
            s["cells"][m] += np.bincount(cell, weights, s["cells"].shape[1])
            s["counts"][m] += np.bincount(cell, minlength=s["cells"].shape[1])
            s["scores"][m] += np.bincount(cell, rounded(second) * weights, s["cells"].shape[1])
            s["labeled_cells"][m] += np.bincount(cell[labeled], of_labels * positive, s["cells"].shape[1])
            np.minimum.at(out.low["score"][m], cell, second)
            np.maximum.at(out.high["score"][m], cell, second)
            place_of = _place_of(edges, vote[free], cell[free])
            for q, each in enumerate(spread):
                each.add(s[f"cells{q}"][m], place_of)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def _at_knots(self, pool: int, node_of: NDArray[np.int64], tilt: Floats) -> tuple[NDArray[np.int64], Floats]:
        """The draws of a pool, and P(class 1) (2, C, D) there for either vote."""
        draws = np.flatnonzero(self.nodes.pool_of[node_of] == pool)
        j = node_of[draws]
        odds = self.knots[pool][:, None] * np.exp(self.nodes.log_temperature[j]) + self.nodes.offset[j]
        odds = np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS)
        t = np.clip(tilt[draws], -LARGEST_TILT, LARGEST_TILT)
        return draws, expit(np.stack([odds - t, odds + t]))

    def _cell_masses(self, table: Floats, m: int, at: Floats) -> Floats:
        """Mass of class 1 (S, D) in the cells, from the table (places, C) of cells by vote."""
        edges = self.edges[m]
        first, last = _mixed_cells(edges)
        out = np.zeros((len(edges) + 1, at.shape[2]))
        out[: last + 1] = table[: last + 1] @ at[0]
        out[first:] += table[last + 1 : _places(edges)] @ at[1]
        return out

    def _cells(self, summary: Summary, m: int, positives: Floats) -> CellCounts:
        s, n_cells = summary.sums, len(self.edges[m]) + 1
        bins = None
        if self.mass_edges is not None:
            upper = np.append(self.edges[m], np.inf)
            bins = np.searchsorted(self.mass_edges[:, m], upper)
        return CellCounts(
            s["cells"][m, :n_cells],
            s["scores"][m, :n_cells],
            positives[0] + s["labeled_cells"][m, :n_cells, None],
            summary.low["score"][m, :n_cells] == summary.high["score"][m, :n_cells],
            bins,
            float(summary.high["weight"][0]),
            positives[1] + s["labeled_cells"][m, :n_cells, None],
            s["counts"][m, :n_cells],
        )


@dataclass(frozen=True, eq=False)
class _Spread:
    """Rows shared between knots: the knot below, the share of the one above, and the weight, each (n,)."""

    below: NDArray[np.int64]
    share: Floats
    weight: Floats
    n_knots: int

    def add(self, table: Floats, row: NDArray[np.int64], factor: Floats | None = None) -> None:
        """Add the rows to the rows (n,) of a table (R, C), times a factor (n,)."""
        at = row * self.n_knots + self.below
        w = self.weight if factor is None else self.weight * factor
        upper = w * self.share if factor is None else rounded(w * self.share, 20)
        flat = table.reshape(-1)
        np.add.at(flat, at + 1, upper)
        np.add.at(flat, at, w - upper)


def plan_binary(
    scores: Floats,
    pooled: Sequence[Floats],
    mass: Floats,
    nodes: ConsensusNodes,
    names: Iterable[str],
    mass_edges: Floats | None = None,
    whole_weights: bool = True,
) -> BinaryPlan:
    """A plan from a sample of the rows: scores (n, M, 2), log scores (n, 2) of each pool, and P(class) (n, 2).

    `mass_edges` (9, M) are the deciles of P(class 1) over all rows, where they are known; without them the bins of
    `ece_positive` end at the nearest edges of cells.
    """
    wanted = frozenset(names)
    n_models = scores.shape[1]
    knots = [pooled_knots(log[:, 1] - log[:, 0], nodes, q, N_KNOTS) for q, log in enumerate(pooled)]
    edges: list[Floats] = []
    if wanted & RANKED:
        n_cells = TABLE_BYTES // (8 * N_KNOTS * len(knots) * n_models)
        n_cells = int(np.clip(n_cells, LEAST_CELLS, N_CELLS))
        exact = np.empty((0, n_models)) if mass_edges is None else mass_edges
        edges = [score_edges(scores[:, m, 1], mass[:, 1], n_cells, exact[:, m]) for m in range(n_models)]
    return BinaryPlan(nodes, knots, edges, mass_edges, tuple(sorted(wanted & LINEAR)), whole_weights)


def _by_vote(table: Floats, at: Floats) -> Floats:
    return np.concatenate([table[0] @ at[0], table[1] @ at[1]])


def _linear_terms(name: str, scores: Floats) -> tuple[Floats, Floats]:
    """The summand of a row at label 0, and what label 1 adds, each (n,)."""
    if name == "brier":
        base, other = scores[:, 1] ** 2, (scores[:, 1] - 1.0) ** 2
    else:
        base, other = (-np.log(np.clip(scores[:, k], EPS, 1.0 - EPS)) for k in (0, 1))
    return rounded(base, 20), rounded(other - base, 20)


def _mixed_cells(edges: Floats) -> tuple[int, int]:
    """First cell that may hold votes for class 1, last cell that may hold votes for class 0."""
    first, last = np.searchsorted(edges, MIXED)
    return int(first), int(last)


def _places(edges: Floats) -> int:
    first, last = _mixed_cells(edges)
    return last + 1 + len(edges) + 1 - first


def _place_of(edges: Floats, vote: NDArray[np.int64], cell: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the table for each row's vote and cell: cells of votes for class 0, then cells of votes for class 1."""
    first, last = _mixed_cells(edges)
    return np.where(vote == 0, np.minimum(cell, last), np.maximum(cell, first) - first + last + 1)
