"""More than two classes: a few draws, the anchors, are summed over all rows exactly.

A draw moves with the temperature of the consensus, and how a sample of rows differs from all rows hardly depends on the
draw. So the anchors, spread evenly over the draws, tell by how much the values on the sample are off, and the sample
tells how the draws differ. With as many anchors as draws this is the exact sum over all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssme.consensus import ConsensusNodes, votes_of
from ssme.metrics._calibration import N_BINS
from ssme.metrics._draws import bin_matrix
from ssme.metrics._linear import EPS
from ssme.posterior import DrawBlock
from ssme.summaries._grid import rounded, score_edges
from ssme.summaries._ranking import CellCounts
from ssme.summaries._summary import Summary
from ssme.summaries._values import LINEAR, RANKED, ModelSums

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

N_CELLS = 768
LEAST_CELLS = 32
TABLE_BYTES = 2**28
BLOCK_ELEMENTS = 2**22  # numbers in the responsibilities of a block of rows
OF_CLASSES = frozenset({"balanced_accuracy", "precision", "recall", "f1", "roc_auc", "average_precision"})


@dataclass(frozen=True, eq=False)
class ClassesPlan:
    """How the rows of M models of K classes are summed at A anchors.

    Attributes
    ----------
    nodes : ConsensusNodes
        The distinct ones.
    anchors : array (A,)
        Nodes.
    tilt : array (M,)
        Log-odds that the vote of each model gains.
    edges : list of list of array
        Of the cells of the score, by model and class; empty where no metric needs cells.
    linear : tuple of str
    by_class : bool
        Whether a metric needs the weight of every class.
    exists : bool array (K,), optional
        Which classes occur at all.
    """

    nodes: ConsensusNodes
    anchors: NDArray[np.int64]
    tilt: Floats
    edges: list[list[Floats]]
    linear: tuple[str, ...]
    by_class: bool
    exists: NDArray[np.bool_] | None = None

    def count(self, scores: Floats, pooled: Sequence[Floats], codes: Codes, weights: Floats) -> Summary:
        """The summary of rows: scores (n, M, K), log scores (n, K) of each pool, codes (n,), weights (n,)."""
        out = Summary(self._empty(*scores.shape[1:]))
        if self.edges:
            size = out.sums["cells"].shape
            out.low["score"], out.high["score"] = np.full(size, np.inf), np.full(size, -np.inf)
            out.high["weight"] = np.array([weights.max(initial=0.0)])
        step = max(1, BLOCK_ELEMENTS // (len(self.anchors) * scores.shape[2]))
        for start in range(0, len(scores), step):
            rows = slice(start, start + step)
            self._count_block(out, scores[rows], [log[rows] for log in pooled], codes[rows], weights[rows])
        return out

    def sums(self, summary: Summary, m: int) -> ModelSums:
        """What the metrics of model m need, at the anchors."""
        s = summary.sums
        n_classes, n_anchors = s["true"].shape[1:]
        shape = (n_classes, N_BINS)
        cells = []
        for k, edges in enumerate(self.edges[m] if self.edges else []):
            own = slice(0, len(edges) + 1)
            tied = summary.low["score"][m, k, own] == summary.high["score"][m, k, own]
            counts = s["cells"][m, k, own]
            heaviest = float(summary.high["weight"][0])
            positives, squares = s["positives"][m, k, own], s["squares"][m, k, own]
            n_rows = s["counts"][m, k, own]
            cells.append(CellCounts(counts, np.zeros_like(counts), positives, tied, None, heaviest, squares, n_rows))
        return ModelSums(
            s["rows"][m].reshape(shape),
            s["confidence"][m].reshape(shape),
            s["hits"][m].reshape(*shape, n_anchors),
            s["true"][m],
            s["support"][m],
            self.exists,
            {name: s[name][m] for name in self.linear},
            cells,
        )

    def _empty(self, n_models: int, n_classes: int) -> dict[str, NDArray]:
        n_anchors, n_keys = len(self.anchors), n_classes * N_BINS
        sums = {name: np.zeros((n_models, n_keys)) for name in ("rows", "confidence")}
        sums["hits"] = np.zeros((n_models, n_keys, n_anchors))
        sums |= {name: np.zeros((n_models, n_classes, n_anchors)) for name in ("true", "support")}
        sums |= {name: np.zeros((n_models, n_anchors)) for name in self.linear}
        if self.edges:
            n_cells = max(len(e) + 1 for of_model in self.edges for e in of_model)
            sums["cells"] = np.zeros((n_models, n_classes, n_cells))
            sums["counts"] = np.zeros((n_models, n_classes, n_cells))
            sums |= {name: np.zeros((n_models, n_classes, n_cells, n_anchors)) for name in ("positives", "squares")}
        return sums

    def _count_block(self, out: Summary, scores: Floats, pooled: list[Floats], codes: Codes, weights: Floats) -> None:
        votes = votes_of(scores)
        numbers = np.arange(len(self.anchors))
        responsibilities = np.stack([self.nodes.at(int(j), pooled) for j in self.anchors])
        block = DrawBlock(responsibilities, numbers, codes, votes)
        for m in range(scores.shape[1]):
            view = block.view(m, np.full(len(numbers), self.tilt[m]), None)
            self._count_model(out, m, scores[:, m], votes[:, m], weights, view)

    def _count_model(
        self, out: Summary, m: int, scores: Floats, vote: NDArray[np.int64], weights: Floats, view: object
    ) -> None:
        s, n_keys = out.sums, scores.shape[1] * N_BINS
        confidence = scores.max(axis=1)
        key = vote * N_BINS + np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
        w = weights[:, None]
        s["rows"][m] += np.bincount(key, weights, n_keys)
        s["confidence"][m] += np.bincount(key, rounded(confidence) * weights, n_keys)
        s["hits"][m] += bin_matrix(key[:, None], n_keys) @ (rounded(view.hits(vote)) * w)  # type: ignore[attr-defined]
        terms = {name: _linear_terms(name, scores) for name in self.linear}
        if not (terms or self.by_class):
            return
        up = np.ceil(weights)
        for name, (base, _) in terms.items():
            s[name][m] += base @ weights
        for k in range(scores.shape[1]):
            mass = rounded(view.column(k))  # type: ignore[attr-defined]
            s["true"][m, k] += weights @ mass
            s["support"][m, k] += up @ mass
            for name, (_, step) in terms.items():
                s[name][m] += rounded(mass * step[:, [k]], 20).T @ weights
            if self.edges:
                self._count_cells(out, m, k, scores[:, k], weights, mass)

    def _count_cells(self, out: Summary, m: int, k: int, score: Floats, weights: Floats, mass: Floats) -> None:
        n_cells = out.sums["cells"].shape[2]
        cell = np.searchsorted(self.edges[m][k], score)
        out.sums["cells"][m, k] += np.bincount(cell, weights, n_cells)
        out.sums["counts"][m, k] += np.bincount(cell, minlength=n_cells)
        to_cells, weighted = bin_matrix(cell[:, None], n_cells), mass * weights[:, None]
        out.sums["positives"][m, k] += to_cells @ weighted
        out.sums["squares"][m, k] += to_cells @ rounded(mass * weighted)
        np.minimum.at(out.low["score"][m, k], cell, score)
        np.maximum.at(out.high["score"][m, k], cell, score)


def plan_classes(
    scores: Floats,
    mass: Floats,
    nodes: ConsensusNodes,
    anchors: NDArray[np.int64],
    tilt: Floats,
    names: Iterable[str],
    exists: NDArray[np.bool_] | None = None,
) -> ClassesPlan:
    """A plan from a sample of scores (n, M, K) and P(class) (n, K), anchors (A,) among the nodes, names of metrics."""
    wanted = frozenset(names)
    edges: list[list[Floats]] = []
    n_models, n_classes = scores.shape[1:]
    if wanted & RANKED:
        n_cells = TABLE_BYTES // (8 * len(anchors) * n_models * n_classes)
        n_cells = int(np.clip(n_cells, LEAST_CELLS, N_CELLS))
        classes = range(n_classes)
        edges = [[score_edges(scores[:, m, k], mass[:, k], n_cells) for k in classes] for m in range(n_models)]
    return ClassesPlan(nodes, anchors, tilt, edges, tuple(sorted(wanted & LINEAR)), bool(wanted & OF_CLASSES), exists)


def _linear_terms(name: str, scores: Floats) -> tuple[Floats, Floats]:
    """What a row adds whatever its label (n,), and what it adds for each class (n, K)."""
    if name == "brier":
        return rounded((scores**2).sum(axis=1) + 1.0, 20), rounded(-2.0 * scores, 20)
    return np.zeros(len(scores)), rounded(-np.log(np.clip(scores, EPS, 1.0 - EPS)), 20)
