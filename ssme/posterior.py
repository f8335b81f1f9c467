"""What a fitted method believes about the label of every row, as draws that the metrics can read.

A posterior is a list of draws. Each draw has responsibilities (n, K) and, for every model, a tilt: log-odds that the
model's own vote gains. Labeled rows are their label in every draw. Nothing of size (D, n, K) is kept: blocks of draws
are computed when they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from ssme.metrics import LabelDraws

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

EDGE = 1e-9
LARGEST_TILT = 30.0


class Node(Protocol):
    """Responsibilities (n, K) by the number of a node, of all rows or of some."""

    def __call__(self, j: int) -> Floats: ...

    def take(self, rows: NDArray[np.int64]) -> Node: ...


@dataclass(frozen=True, eq=False)
class FixedNode:
    """The same responsibilities (n, K) at every node."""

    responsibilities: Floats

    def __call__(self, j: int) -> Floats:
        return self.responsibilities

    def take(self, rows: NDArray[np.int64]) -> FixedNode:
        """The same of some of the rows."""
        return FixedNode(self.responsibilities[rows])


@dataclass(frozen=True, eq=False)
class LabelPosterior:
    """Draws of the labels of n rows.

    Attributes
    ----------
    node : Node
        ``node(j)`` gives the responsibilities (n, K) of node j, before labeled rows are pinned.
    node_of : array (D,)
        The node of each draw, rising.
    codes : array (n,)
        Labels, -1 = unlabeled.
    votes : array (n, M)
        What each model votes for.
    tilt : array (M,)
        Log-odds that each model's vote gains in the point estimate.
    tilt_noise : array (D, M)
        What the tilt deviates by in the draws.
    hard : bool
        Draw one label for each row (as published) where this is set, else use the probabilities themselves.
    exists : bool array (K,), optional
        Which classes occur at all; means over the classes leave out the others. All of them by default.
    """

    node: Node
    node_of: NDArray[np.int64]
    codes: Codes
    votes: NDArray[np.int64]
    tilt: Floats
    tilt_noise: Floats
    hard: bool = False
    exists: NDArray[np.bool_] | None = None

    @property
    def n_draws(self) -> int:
        """Number D of draws."""
        return len(self.node_of)

    def subset(self, rows: NDArray[np.int64]) -> LabelPosterior:
        """The posterior of some of the rows."""
        return replace(self, node=self.node.take(rows), codes=self.codes[rows], votes=self.votes[rows])

    def tilted(self, tilt: Floats, noise: Floats) -> LabelPosterior:
        """The same with further tilt (M,) and noise (D, M)."""
        return replace(self, tilt=self.tilt + tilt, tilt_noise=self.tilt_noise + noise)

    def mean(self) -> Floats:
        """Mean responsibilities (n, K) over the draws, without tilt; labeled rows are not pinned."""
        share = np.bincount(self.node_of) / self.n_draws
        return np.asarray(sum(share[j] * self.node(int(j)) for j in np.flatnonzero(share)))

    def mean_hits(self) -> Floats:
        """P(the vote is right) (n, M) in the mean over the draws, with the tilt; labeled rows are not pinned."""
        share = np.bincount(self.node_of)
        used = np.flatnonzero(share)
        hits = sum(share[j] * np.take_along_axis(self.node(int(j)), self.votes, axis=1) for j in used) / self.n_draws
        return expit(logit(np.clip(hits, EDGE, 1 - EDGE)) + self.tilt)

    def block(self, draws: slice) -> DrawBlock:
        """The responsibilities of a block of draws."""
        numbers, of = np.unique(self.node_of[draws], return_inverse=True)
        return DrawBlock(np.stack([self.node(int(j)) for j in numbers]), of, self.codes, self.votes, self.exists)


class DrawBlock:
    """Responsibilities of a block of B draws: nodes (J, n, K) and the node (B,) of each draw."""

    def __init__(
        self,
        nodes: Floats,
        of: NDArray[np.int64],
        codes: Codes,
        votes: NDArray[np.int64],
        exists: NDArray[np.bool_] | None = None,
    ) -> None:
        self._nodes, self._of, self._codes, self._votes, self._exists = nodes, of, codes, votes, exists
        self._labeled = np.flatnonzero(codes >= 0)
        self._binary = nodes.shape[2] == 2
        self._columns: dict[int, Floats] = {}
        if self._binary:
            self._odds = _odds(nodes[:, :, 1]).T[:, of]

    def view(self, model: int, tilt: Floats, weights: Floats | None) -> LabelDraws:
        """The block as one model sees it: tilts (B,) of its votes, row weights (n, B) or None."""
        vote, factor = self._votes[:, model], np.exp(np.clip(tilt, -LARGEST_TILT, LARGEST_TILT))
        if self._binary:
            second = self._odds * np.stack([1.0 / factor, factor])[vote]
            second /= 1.0 + second
            second[self._labeled] = (self._codes[self._labeled] == 1)[:, None]
            return BinaryDraws(second, weights)
        before = _odds(self._nodes[:, np.arange(len(vote)), vote]).T[:, self._of]
        hit = before * factor
        shrink = (1.0 + before) / (1.0 + hit)
        hit /= 1.0 + hit
        draws = TiltedDraws(self._nodes, self._of, self._codes, vote, hit, shrink, weights, self._columns)
        draws.exists = self._exists
        return draws


def _odds(p: Floats) -> Floats:
    p = np.clip(p, EDGE, 1 - EDGE)
    return p / (1.0 - p)


class BinaryDraws(LabelDraws):
    """Draws of two classes: P(class 1) (n, B)."""

    def __init__(self, second: Floats, weights: Floats | None) -> None:
        self._second = second
        self._set(second.shape[1], second.shape[0], 2, weights)

    def column(self, k: int) -> Floats:
        """Label mass of class k, (n, B), a fresh array."""
        return self._second.copy() if k == 1 else 1.0 - self._second

    @property
    def labels(self) -> Floats:  # type: ignore[override]
        """Label mass (B, n, 2)."""
        return np.stack([1.0 - self._second.T, self._second.T], axis=2)


class TiltedDraws(LabelDraws):
    """Draws of more than two classes with the vote of one model tilted, never stored whole."""

    def __init__(
        self,
        nodes: Floats,
        of: NDArray[np.int64],
        codes: Codes,
        vote: NDArray[np.int64],
        hit: Floats,
        shrink: Floats,
        weights: Floats | None,
        columns: dict[int, Floats] | None = None,
    ) -> None:
        self._columns = {} if columns is None else columns  # before the tilt: the same for every model
        self._nodes, self._of, self._vote, self._hit, self._shrink = nodes, of, vote, hit, shrink
        self._labeled = np.flatnonzero(codes >= 0)
        self._label = codes[self._labeled]
        self._hit[self._labeled] = (vote[self._labeled] == self._label)[:, None]
        self._set(hit.shape[1], hit.shape[0], nodes.shape[2], weights)

    def column(self, k: int) -> Floats:
        """Label mass of class k, (n, B), a fresh array."""
        if k not in self._columns:
            self._columns[k] = np.ascontiguousarray(self._nodes[:, :, k].T)[:, self._of]
        mass = self._columns[k] * self._shrink
        chosen = self._vote == k
        mass[chosen] = self._hit[chosen]
        mass[self._labeled] = (self._label == k)[:, None]
        return mass

    def hits(self, predicted: NDArray) -> Floats:
        """Label mass (n, B) of the predicted class (n,), a fresh array."""
        if np.array_equal(predicted, self._vote):
            return self._hit.copy()
        return super().hits(predicted)

    @property
    def labels(self) -> Floats:  # type: ignore[override]
        """Label mass (B, n, K)."""
        mass = self._nodes[self._of] * self._shrink.T[:, :, None]
        np.put_along_axis(
            mass, np.broadcast_to(self._vote[None, :, None], (*mass.shape[:2], 1)), self._hit.T[:, :, None], 2
        )
        mass[:, self._labeled] = 0.0
        mass[:, self._labeled, self._label] = 1.0
        return mass


def draw_hard(soft: LabelDraws, uniform: Floats, order: NDArray[np.int64] | None = None) -> LabelDraws:
    """One label for each row and draw, by inverse distribution of uniforms (n, B) over the classes in an order (K,).

    An order that belongs to the classes themselves makes the draws the same however the classes are numbered.
    """
    if soft.n_classes == 2:
        turned = order is not None and order[0] == 1
        below = uniform <= soft.column(1) if turned else uniform > soft.column(0)
        return BinaryDraws(below.astype(np.float64), soft.weights)
    order = np.arange(soft.n_classes) if order is None else order
    edge = np.zeros(uniform.shape)
    place = np.zeros(uniform.shape, dtype=np.int64)
    for k in order[:-1]:
        edge += soft.column(int(k))
        place += uniform > edge
    hard = HardDraws(order[place], soft.n_classes, soft.weights)
    hard.exists = soft.exists
    return hard


def draw_codes(edges: Floats, uniform: Floats) -> Codes:
    """Class codes (n, B) by inverse distribution: cumulative probabilities (n, K) that end in 1, uniforms (n, B).

    Examples
    --------
    >>> draw_codes(np.array([[0.5, 1.0], [0.0, 1.0]]), np.array([[0.4, 0.6], [0.0, 0.9]]))
    array([[0, 1],
           [1, 1]])
    """
    n, n_classes = edges.shape
    if n_classes == 2:
        return (uniform >= edges[:, :1]).astype(np.int64)
    row = np.arange(n)[:, None]
    found = np.searchsorted((edges + row).ravel(), uniform + row, side="right") - row * n_classes
    return np.clip(found, 0, n_classes - 1)


class HardDraws(LabelDraws):
    """Labels drawn as class codes (n, B)."""

    def __init__(self, drawn: Codes, n_classes: int, weights: Floats | None = None) -> None:
        self._drawn = drawn
        self._set(drawn.shape[1], drawn.shape[0], n_classes, weights)

    def column(self, k: int) -> Floats:
        """Label mass of class k, (n, B), a fresh array."""
        return (self._drawn == k).astype(np.float64)

    def hits(self, predicted: Codes) -> Floats:
        """Label mass (n, B) of the predicted class (n,), a fresh array."""
        return (self._drawn == predicted[:, None]).astype(np.float64)

    @property
    def labels(self) -> Floats:  # type: ignore[override]
        """Label mass (B, n, K)."""
        return np.eye(self.n_classes)[self._drawn.T]

    def _count(self, weights: Floats | None) -> Floats:
        cells = (self._drawn + self.n_classes * np.arange(self.n_draws)).ravel()
        mass = None if weights is None else np.ascontiguousarray(weights).ravel()
        counts = np.bincount(cells, mass, minlength=self.n_draws * self.n_classes)
        return counts.reshape(self.n_draws, self.n_classes).T.astype(np.float64)
