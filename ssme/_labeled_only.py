"""The metric on the labeled rows alone.

The draws are those of a Dirichlet process (Ferguson 1973): the Bayesian bootstrap over the labeled rows, and a prior of
one row more. Half of that row is spread over the rows as they are. The other half is spread over rows that are wrong
where these are right: a quarter over the same scores with another label, a quarter over the same label with scores in
which the two classes have changed places. The other label is one that a model votes for, where any votes for another.
The accuracy of a single model then has Jeffreys' posterior Beta(right + 1/2, wrong + 1/2), and no metric of labels that
are all right is taken to be known without error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ssme.intervals import with_jeffreys
from ssme.metrics import Evaluate, LabelDraws, MetricSpec
from ssme.posterior import BinaryDraws, TiltedDraws, draw_codes

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

N_DRAWS = 400
HALF, QUARTER = 0.5, 0.25
EXCHANGED_ROWS = 200  # below, every row changes places with several classes
BLOCK_ELEMENTS = 2**22  # numbers in one block of draws


def labeled_only(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = N_DRAWS,
) -> list[tuple[Floats, Floats]]:
    """Estimates (M,) and draws (D, M) of each metric from the labeled rows.

    The estimates are the metrics of the labels as they are; the draws have a prior of one row, half of it wrong, see
    :class:`LabeledBootstrap`. For accuracy they are those of the Jeffreys posterior Beta(right + 1/2, wrong + 1/2). NaN
    throughout when no row is labeled.

    Parameters
    ----------
    specs : sequence of MetricSpec
    scores : array (n, M, K)
    codes : array (n,)
        Labels, -1 = unlabeled.
    weights : array (n,)
    seed : int
    n_draws : int

    References
    ----------
    .. [1] Rubin, D. B. (1981). "The Bayesian Bootstrap". Annals of Statistics 9(1).
    .. [2] Ferguson, T. S. (1973). "A Bayesian Analysis of Some Nonparametric Problems". Annals of Statistics 1(2).

    Examples
    --------
    >>> from ssme.metrics import get_metric
    >>> scores = np.array([[[0.9, 0.1]], [[0.2, 0.8]], [[0.7, 0.3]]])
    >>> [(point, draws)] = labeled_only([get_metric("accuracy", 2)], scores, np.array([0, 0, -1]), np.ones(3), seed=0)
    >>> point
    array([0.5])
    """
    labeled = np.flatnonzero((codes >= 0) & (weights > 0))
    n_models, n_classes = scores.shape[1:]
    if len(labeled) == 0:
        return [(np.full(n_models, np.nan), np.full((n_draws, n_models), np.nan)) for _ in specs]
    own, w, labels = scores[labeled], weights[labeled], codes[labeled]
    bootstrap = LabeledBootstrap(own, labels, w, seed, n_draws)
    return list(zip([bootstrap.point(spec) for spec in specs], bootstrap.draws(specs), strict=True))


@dataclass(frozen=True, eq=False)
class LabeledBootstrap:
    """Draws of metrics on labeled rows that are a sample, with a prior of one row.

    Attributes
    ----------
    scores : array (n, M, K)
    labels : array (n,)
    weights : array (n,)
        Positive; a row of weight w counts as w rows would.
    seed : int
    n_draws : int
    other : array (n, K)
        P(class) of a label other than the one seen: what the models vote for, else any class alike.
    others : array (E, n)
        Classes drawn from it.
    """

    scores: Floats
    labels: Codes
    weights: Floats
    seed: int
    n_draws: int
    other: Floats = field(init=False)
    others: Codes = field(init=False)

    def __post_init__(self) -> None:
        n, n_models, n_classes = self.scores.shape
        rows, votes = np.arange(n), self.scores.argmax(axis=2)
        other = np.zeros((n, n_classes))
        np.add.at(other, (np.repeat(rows, n_models), votes.ravel()), 1.0)
        other[rows, self.labels] = 0.0
        other[other.sum(axis=1) == 0] = 1.0
        other[rows, self.labels] = 0.0
        other /= other.sum(axis=1, keepdims=True)
        object.__setattr__(self, "other", other)
        several = min(n_classes - 1, max(1, EXCHANGED_ROWS // n))
        uniform = (np.random.default_rng([self.seed, 17]).random(n) + np.arange(several)[:, None] / several) % 1.0
        object.__setattr__(self, "others", draw_codes(np.cumsum(other, axis=1), uniform.T).T)

    def point(self, spec: MetricSpec) -> Floats:
        """The metric (M,) of the labels as they are."""
        even, whole = np.all(self.weights == self.weights[0]), np.all(self.weights == np.rint(self.weights))
        if spec.hard_labels_only and not even and not whole:  # it takes rows: the mean over samples of them
            values = self._of_function(spec, self.weights, prior=False)
            seen = np.isfinite(values)
            total = np.where(seen, values, 0.0).sum(axis=0)
            return np.divide(total, seen.sum(axis=0), out=np.full(len(total), np.nan), where=seen.any(axis=0))
        one_hot = np.eye(self.scores.shape[2])[self.labels][None]
        return spec.prepare(self.scores, self.weights)(one_hot, None if even else self.weights[None])[0]

    def draws(self, specs: Sequence[MetricSpec], factor: Floats | None = None) -> list[Floats]:
        """Draws (D, M) of each metric; factor (n,) multiplies what each row counts for in it."""
        by = np.ones(len(self.labels)) if factor is None else factor
        random, prior = (np.random.default_rng([self.seed, purpose]) for purpose in (3, 18))
        n, n_models, _ = self.scores.shape
        of_rows = [(i, spec) for i, spec in enumerate(specs) if not spec.hard_labels_only]
        evaluate = {i: self._prepared(spec) for i, spec in of_rows}
        out = [np.full((self.n_draws, n_models), np.nan) for _ in specs]
        mass, size = np.empty(self.n_draws), max(1, BLOCK_ELEMENTS // self._elements())
        for start in range(0, self.n_draws if of_rows else 0, size):
            these = slice(start, min(start + size, self.n_draws))
            seen = np.ascontiguousarray(random.standard_gamma(self.weights, size=(these.stop - start, n)).T)
            parts = self.prior_rows(prior, these.stop - start)
            mass[these] = seen.sum(axis=0)
            rows = {kind: self._rows(kind, seen, parts, by) for kind in {_kind(spec) for _, spec in of_rows}}
            for i, spec in of_rows:
                out[i][these] = evaluate[i](rows[_kind(spec)])
        half = random.standard_gamma(HALF, size=(self.n_draws, 2))
        for i, spec in enumerate(specs):
            if spec.share_of_rows:
                out[i] = with_jeffreys(out[i], mass, half)
            if spec.hard_labels_only:
                out[i] = self._of_function(spec, self.weights * by)
        return out

    def prior_rows(self, random: np.random.Generator, n_draws: int) -> tuple[Floats, Floats, Floats]:
        """Weights of the prior: rows as they are (n, B), with another label (n, B), with exchanged scores (E n, B)."""
        share = (self.weights / self.weights.sum())[:, None]
        several = np.tile(share, (len(self.others), 1)) / len(self.others)
        right, wrong, exchanged = (
            random.standard_gamma(shape, size=(len(shape), n_draws))
            for shape in (HALF * share, QUARTER * share, QUARTER * several)
        )
        return right, wrong, exchanged

    def exchanged_scores(self) -> Floats:
        """Scores (E n, M, K) in which the label and another class have changed places."""
        rows, found = np.arange(len(self.labels)), []
        for other in self.others:
            scores = self.scores.copy()
            scores[rows, :, self.labels] = self.scores[rows, :, other]
            scores[rows, :, other] = self.scores[rows, :, self.labels]
            found.append(scores)
        return np.concatenate(found)

    def _elements(self) -> int:
        """Numbers in one draw."""
        n, _, n_classes = self.scores.shape
        return n * (1 + len(self.others)) * (1 if n_classes == 2 else n_classes)

    def _prepared(self, spec: MetricSpec) -> Evaluate:
        if _kind(spec) != "all":
            return spec.prepare(self.scores, self.weights)
        both = np.concatenate([self.scores, self.exchanged_scores()])
        return spec.prepare(both, np.concatenate([self.weights, np.zeros(self.others.size)]))

    def _rows(self, kind: str, seen: Floats, prior: tuple[Floats, Floats, Floats], factor: Floats) -> LabelDraws:
        """The rows, their labels in part other ones, and those of exchanged scores where the kind has any."""
        right, wrong, exchanged = prior
        if kind == "seen":
            right = wrong = np.zeros_like(seen)
        if kind == "calibration":
            wrong = wrong + exchanged.reshape(len(self.others), *wrong.shape).sum(axis=0)
        total, labels = seen + right + wrong, self.labels
        share = np.divide(wrong, total, out=np.zeros_like(total), where=total > 0)
        if kind == "all":
            times = 1 + len(self.others)
            total, labels, factor = np.concatenate([total, exchanged]), np.tile(labels, times), np.tile(factor, times)
            share = np.concatenate([share, np.zeros_like(exchanged)])
        weights, n_classes = total * factor[:, None], self.scores.shape[2]
        if n_classes == 2:
            return BinaryDraws(np.where(labels[:, None] == 1, 1.0 - share, share), weights)
        other = np.tile(self.other, (len(labels) // len(self.other), 1))[None]
        unlabeled, first = np.full(len(labels), -1), np.zeros(share.shape[1], dtype=np.int64)
        return TiltedDraws(other, first, unlabeled, labels, 1.0 - share, share, weights)

    def _of_function(self, spec: MetricSpec, by: Floats, prior: bool = True) -> Floats:
        """Draws (D, M) of a function of the user's, which takes rows and no weights: samples of as many rows."""
        several = len(self.others)
        scores = np.concatenate([self.scores, *[self.scores] * several, self.exchanged_scores()])
        codes = np.concatenate([self.labels, self.others.ravel(), np.tile(self.labels, several)])
        share = by / by.sum() if prior else np.zeros_like(by)
        chance = np.concatenate([by + HALF * share, np.tile(QUARTER * share / several, 2 * several)])
        size = max(int(round(self.weights.sum())), 1)
        random = np.random.default_rng([self.seed, 19])
        counts = random.multinomial(size, chance / chance.sum(), size=self.n_draws).astype(np.float64)
        one_hot = np.eye(self.scores.shape[2])[codes][None]
        every = np.broadcast_to(one_hot, (self.n_draws, *one_hot.shape[1:]))
        return spec.prepare(scores)(every, counts)


def _kind(spec: MetricSpec) -> str:
    """Which rows a metric is drawn on: changed scores would move rows between the bins of a calibration error."""
    if spec.share_of_rows:
        return "seen"
    return "calibration" if spec.rises_with_noise else "all"
