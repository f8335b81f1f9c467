"""Reliability, ROC and precision-recall curves of every model, as joint posterior draws.

Each point of a curve is a metric (:class:`ssme.MetricSpec`), so that a curve has the same posterior, and the same
correction by the labels, as the estimates of a table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssme.intervals import interval
from ssme.metrics import LabelDraws, MetricSpec

Floats = NDArray[np.float64]

KINDS = ("reliability", "roc", "precision_recall")
N_BINS = 10
GRIDS = {"roc": np.linspace(0.0, 1.0, 21) ** 1.5, "precision_recall": np.linspace(0.05, 1.0, 20)}


@dataclass(frozen=True, eq=False)
class CurveDraws:
    """One kind of curve of all models.

    Attributes
    ----------
    kind : {"reliability", "roc", "precision_recall"}
    models : tuple of str
    x : array (M, G)
        Mean confidence of each bin; false positive rates; recalls.
    point : array (M, G)
        Share of right predictions; true positive rates; precisions. NaN where a bin is empty.
    draws : array (D, M, G)
    share : array (M, G) or None
        Share of the rows in each bin of a reliability curve.
    n_labeled, n_unlabeled : int
    """

    kind: str
    models: tuple[str, ...]
    x: Floats
    point: Floats
    draws: Floats
    share: Floats | None
    n_labeled: int
    n_unlabeled: int

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Ends (M, G), (M, G) of the pointwise intervals of a level."""
        n_draws, n_models, n_points = self.draws.shape
        low, high = interval(self.draws.reshape(n_draws, -1), self.point.ravel(), level)
        return low.reshape(n_models, n_points), high.reshape(n_models, n_points)


def curve_draws(estimator: Any, kind: str, *, n_bins: int = N_BINS) -> CurveDraws:
    """Draw one kind of curve of all models of a fitted :class:`ssme.SSME`.

    Parameters
    ----------
    estimator : SSME
        Fitted.
    kind : {"reliability", "roc", "precision_recall"}
        Reliability: share of right predictions against the highest score, in bins of equal width. ROC and
        precision-recall: for two classes of class 1; for more, the mean of the one-versus-rest curves at the same false
        positive rate, or recall, over the classes that are present.
    n_bins : int, default=10
        Bins of the reliability curve between 0 and 1.

    Returns
    -------
    CurveDraws

    Raises
    ------
    ValueError
        For another kind.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks; Fawcett (2006), An introduction to ROC analysis.

    Examples
    --------
    >>> from ssme import SSME
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 300)
    >>> p = 1 / (1 + np.exp(-(2 * truth - 1)[:, None] - rng.normal(size=(300, 3))))
    >>> model = SSME(random_state=0).fit(p, np.where(np.arange(300) < 20, truth, -1))
    >>> curve_draws(model, "roc").draws.shape
    (100, 3, 21)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if kind == "reliability" and (not isinstance(n_bins, (int, np.integer)) or n_bins < 1):
        raise ValueError(f"n_bins must be a whole number of at least 1, got {n_bins!r}.")
    if kind == "reliability":
        family = _Family(partial(_hit_rates, n_bins=int(n_bins)), int(n_bins))
    else:
        family = _Family(partial(_ranked, kind=kind), len(GRIDS[kind]))
    with warnings.catch_warnings():  # an empty bin is no fault: its point is left out
        warnings.filterwarnings("ignore", message=".* is undefined for group", category=UserWarning)
        found = estimator.posterior_draws(family.specs())
    point = np.stack([each.point for each in found], axis=1)
    draws = np.stack([each.draws for each in found], axis=2)
    share: Floats | None = None
    if kind == "reliability":
        x, share = _confidence(estimator._rows.scores, estimator._rows.weights, int(n_bins))
    else:
        x = np.repeat(GRIDS[kind][None], point.shape[0], axis=0)
        if kind == "roc":  # a rate never falls along the curve; the correction of each point does not know that
            point, draws = np.maximum.accumulate(point, axis=1), np.maximum.accumulate(draws, axis=2)
    names = estimator.model_names_
    models = tuple(str(m) for m in (range(point.shape[0]) if names is None else names))
    return CurveDraws(kind, models, x, point, draws, share, found[0].n_labeled, found[0].n_unlabeled)


class _Family:
    """The points of a curve as metrics that share their work: a curve is computed once for a model and its draws."""

    def __init__(self, curve: Callable[[Floats], Callable[[LabelDraws], Floats]], n_points: int) -> None:
        self._curve, self._n_points = curve, n_points
        self._last: tuple[Floats, Callable[[LabelDraws], Floats]] | None = None

    def specs(self) -> list[MetricSpec]:
        """One metric for each point."""
        return [MetricSpec(f"point {g}", partial(self._prepare, g), (0.0, 1.0), True) for g in range(self._n_points)]

    def _prepare(self, g: int, scores: Any, weights: Any = None) -> Callable[..., Floats]:
        if self._last is None or not np.array_equal(self._last[0], scores):
            curves = [self._curve(scores[:, m]) for m in range(scores.shape[1])]
            # the draws of a point estimate and of an interval take turns
            of = lru_cache(maxsize=2)(lambda draws: np.stack([curve(draws) for curve in curves], axis=2))
            self._last = scores, of
        of_model = self._last[1]

        def evaluate(labels: Any, weights: Any = None) -> Floats:
            draws = labels if isinstance(labels, LabelDraws) else LabelDraws(labels, weights)
            return of_model(draws)[g]

        return evaluate


def _places(p: Floats, n_bins: int) -> NDArray[np.int64]:
    return np.minimum((p.max(axis=1) * n_bins).astype(np.int64), n_bins - 1)


def _confidence(scores: Floats, weights: Floats, n_bins: int) -> tuple[Floats, Floats]:
    """Mean confidence and share of the rows in each bin, (M, G) each."""
    x, share = np.full((scores.shape[1], n_bins), np.nan), np.zeros((scores.shape[1], n_bins))
    for m in range(scores.shape[1]):
        place = _places(scores[:, m], n_bins)
        mass = np.bincount(place, weights, n_bins)
        total = np.bincount(place, weights * scores[:, m].max(axis=1), n_bins)
        x[m, mass > 0], share[m] = total[mass > 0] / mass[mass > 0], mass / mass.sum()
    return x, share


def _hit_rates(p: Floats, n_bins: int) -> Callable[[LabelDraws], Floats]:
    """Share of right predictions (G, D) in bins of the highest score."""
    place, best = _places(p, n_bins), p.argmax(axis=1)
    member = (place == np.arange(n_bins)[:, None]).astype(np.float64)

    def rates(draws: LabelDraws) -> Floats:
        hits = np.where(best[:, None] == 1, draws.column(1), draws.column(0)) if p.shape[1] == 2 else draws.hits(best)
        mass = member @ (np.ones(hits.shape) if draws.weights is None else draws.weights)
        return np.divide(member @ draws.weighted(hits), mass, out=np.full(mass.shape, np.nan), where=mass > 0)

    return rates


def _ranked(p: Floats, kind: str) -> Callable[[LabelDraws], Floats]:
    """True positive rates at false positive rates, or precisions at recalls, (G, D)."""
    grid = GRIDS[kind]
    classes = [1] if p.shape[1] == 2 else list(range(p.shape[1]))
    orders = {k: np.argsort(-p[:, k], kind="stable") for k in classes}
    ends = {k: np.flatnonzero(np.r_[np.diff(p[orders[k], k]) != 0, True]) for k in classes}  # tied rows enter together

    def curve(draws: LabelDraws) -> Floats:
        total, seen = np.zeros((len(grid), draws.n_draws)), np.zeros(draws.n_draws)
        present = draws.present()[2]
        for k in classes:
            positive = draws.weighted(draws.column(k))[orders[k]]
            whole = np.ones(positive.shape) if draws.weights is None else draws.weights[orders[k]]
            hit = np.cumsum(positive, axis=0)[ends[k]]
            wrong = np.cumsum(whole - positive, axis=0)[ends[k]]
            for d in np.flatnonzero(present[k]):
                total[:, d] += _at(grid, hit[:, d], wrong[:, d], kind)
                seen[d] += 1
        return np.divide(total, seen, out=np.full(total.shape, np.nan), where=seen > 0)

    return curve


def _at(grid: Floats, hit: Floats, wrong: Floats, kind: str) -> Floats:
    """One curve on the grid from the counts of hits and false alarms down the order."""
    tpr, fpr = np.r_[0.0, hit / max(hit[-1], 1e-300)], np.r_[0.0, wrong / max(wrong[-1], 1e-300)]
    if kind == "roc":
        return np.interp(grid, fpr, tpr)
    place = np.searchsorted(tpr[1:], grid * (1 - 1e-12)).clip(max=len(hit) - 1)
    return hit[place] / np.maximum(hit[place] + wrong[place], 1e-300)
