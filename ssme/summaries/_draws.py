"""Posterior draws of metrics over many rows: sums over all rows, and a thinned sample for what needs single rows.

The random row weights of a draw (Bayesian bootstrap) are drawn on a sample in which each row stands for many: a row
that stands for w gets a Gamma(w) weight, which is what w rows would get together. The sample is the same for all models
and metrics, so that differences between them keep their spread.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssme.consensus import PooledNodes
from ssme.intervals import centered, draw_metrics, with_jeffreys
from ssme.metrics import MetricSpec
from ssme.metrics._calibration import mass_edges
from ssme.posterior import LabelPosterior
from ssme.summaries._binary import BinaryPlan, plan_binary
from ssme.summaries._classes import ClassesPlan, plan_classes
from ssme.summaries._summary import Summary
from ssme.summaries._values import ModelSums, error_bound, is_summable, values_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

PLAN_ROWS = 200_000  # rows by which cells and knots are laid
WIDE = 0.05  # a bound of the error of a ranking that is worth a warning
SAMPLE_ROWS = 50_000  # rows for metrics that are no sums
THIN_BINARY, THIN_CLASSES = 4_000, 8_000  # unlabeled rows, and labeled ones, in the thinned sample
N_ANCHORS = 8
MOST_CLASSES = 50  # with more, rows are thinned evenly
BLOCK_ROWS = 2**17
BLOCK_ELEMENTS = 2**22


@dataclass(frozen=True, eq=False)
class Thinned:
    """Rows that stand for all rows: scores (n, M, K), their posterior, and what each row counts for (n,)."""

    scores: Floats
    posterior: LabelPosterior
    weights: Floats

    def values(self, specs: Sequence[MetricSpec], tilt: Floats, weights: Floats | None) -> Floats:
        """Values (I, D, M) of the metrics in all draws for tilts (D, M); weights (n, D) in the place of the own."""
        n, n_models, n_classes = self.scores.shape
        n_draws = self.posterior.n_draws
        prepared = [[spec.prepare(self.scores[:, [m]]) for spec in specs] for m in range(n_models)]
        out = np.full((len(specs), n_draws, n_models), np.nan)
        step = max(1, BLOCK_ELEMENTS // (n * (1 if n_classes == 2 else n_classes)))
        for start in range(0, n_draws, step):
            these = slice(start, min(start + step, n_draws))
            block = self.posterior.block(these)
            size = these.stop - these.start
            w = np.repeat(self.weights[:, None], size, axis=1) if weights is None else weights[:, these]
            for m in range(n_models):
                view = block.view(m, tilt[these, m], w)
                for i in range(len(specs)):
                    out[i, these, m] = prepared[m][i](view)[:, 0]
        return out

    def bootstrap(self, seed: int) -> Floats:
        """Random weights (n, D)."""
        random = np.random.default_rng([seed, 14])
        return random.standard_gamma(self.weights, size=(self.posterior.n_draws, len(self.weights))).T


def thin(
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    rank: NDArray[np.int64],
    weight_of: tuple[float, float] | None = None,
) -> Thinned:
    """Some of the unlabeled and of the labeled rows, more readily those of a rare class, in the order of their rank.

    Parameters
    ----------
    scores : array (n, M, K)
    posterior : LabelPosterior
        Of these rows.
    weights, rank : array (n,)
    weight_of : tuple of float, optional
        Weight of all unlabeled and of all labeled rows, where there are more rows than these.
    """
    size = THIN_BINARY if scores.shape[2] == 2 else THIN_CLASSES
    order = np.argsort(rank)
    order = order[weights[order] > 0]
    strata = [order[posterior.codes[order] < 0], order[posterior.codes[order] >= 0]]
    chosen, stands_for = [], []
    for number, rows in enumerate(strata):
        if len(rows):
            chance = _chances(_class_mass(posterior, rows), size)
            taken = (np.arange(len(rows)) + 0.5) / len(rows) < chance  # by rank, which is random
            own = weights[rows[taken]] / chance[taken]
            total = weights[rows].sum() if weight_of is None else weight_of[number]
            chosen.append(rows[taken])
            stands_for.append(own * (total / own.sum()))
    rows, w = np.concatenate(chosen), np.concatenate(stands_for)
    by_rank = np.argsort(rank[rows])
    rows = rows[by_rank]
    return Thinned(scores[rows], posterior.subset(rows), w[by_rank])


def _chances(mass: Floats, size: int) -> Floats:
    """Chance (n,) of each of n rows in random order to be among about `size`: even for half of them, else by class.

    The rows of the half are the first ones. Of each class those are taken for which place / mass (n, K) is least, as
    many as its share of the other half. Rows that would be taken for two reasons are there once.

    Examples
    --------
    >>> common = np.array([[0.9, 0.1]] * 18 + [[0.1, 0.9]] * 2)
    >>> _chances(common, 8).round(2)[[0, -1]]
    array([0.2 , 0.93])
    """
    n, n_classes = mass.shape
    place = (np.arange(n) + 0.5) / n
    chance = np.full(n, min(1.0, size / 2 / n))
    of_class = max(1, size // 2 // n_classes)
    if n_classes <= MOST_CLASSES and of_class < n:
        for column in mass.T:
            ratio = place / np.maximum(column, 1e-12)
            chance = np.maximum(chance, np.minimum(np.partition(ratio, of_class)[of_class] * column, 1.0))
    return chance if size < n else np.ones(n)


def _class_mass(posterior: LabelPosterior, rows: NDArray[np.int64]) -> Floats:
    """P(class) (n, K) of rows in a draw of the middle, known where they are labeled."""
    mass = posterior.node.take(rows)(int(posterior.node_of[posterior.n_draws // 2])).copy()
    labeled = np.flatnonzero(posterior.codes[rows] >= 0)
    mass[labeled] = 0.0
    mass[labeled, posterior.codes[rows[labeled]]] = 1.0
    return mass


def make_plan(
    specs: Sequence[MetricSpec],
    scores: Floats,
    node: PooledNodes,
    posterior: LabelPosterior,
    *,
    mass_edges_of: Floats | None = None,
    whole_weights: bool = True,
) -> BinaryPlan | ClassesPlan:
    """How to count rows, from a sample of scores (n, M, K) and the nodes at the same rows; see `plan_binary`."""
    names, mass = [spec.name for spec in specs], node(len(node.nodes.offset) // 2)
    if scores.shape[2] == 2:
        return plan_binary(scores, node.pooled, mass, node.nodes, names, mass_edges_of, whole_weights)
    n_draws = posterior.n_draws
    n_anchors = min(N_ANCHORS, n_draws)
    at = ((np.arange(n_anchors) + 0.5) * n_draws / n_anchors).astype(np.int64)
    return plan_classes(scores, mass, node.nodes, posterior.node_of[at], posterior.tilt, names, posterior.exists)


def draws_of_summary(
    specs: Sequence[MetricSpec],
    plan: BinaryPlan | ClassesPlan,
    summary: Summary,
    posterior: LabelPosterior,
    thinned: Thinned,
    seed: int,
) -> list[tuple[Floats, Floats]]:
    """Point estimates (M,) and draws (D, M) of each metric, as :func:`ssme.intervals.draw_metrics` gives them."""
    n_draws, n_models = posterior.tilt_noise.shape
    calm_tilt = posterior.tilt + np.zeros((n_draws, 1))
    noisy_tilt = calm_tilt + posterior.tilt_noise
    drawn = thinned.values(specs, noisy_tilt, thinned.bootstrap(seed))
    if isinstance(plan, BinaryPlan):
        sums, noisy = (
            [plan.sums(summary, m, posterior.node_of, t[:, m]) for m in range(n_models)]
            for t in (calm_tilt, noisy_tilt)
        )
        point = _over_models(specs, sums)
        drawn += _over_models(specs, noisy) - thinned.values(specs, noisy_tilt, None)
    else:
        sample = thinned.values(specs, calm_tilt, None)
        sums = [plan.sums(summary, m) for m in range(n_models)]
        anchors = _over_models(specs, sums)
        at = [int(np.searchsorted(posterior.node_of, j)) for j in plan.anchors]
        off = _mean_over_draws(anchors - sample[:, at])
        point, drawn = sample + off, drawn + off
    _warn_of_wide_cells(specs, sums)
    mass = np.full(n_draws, summary.sums["rows"][0].sum())
    half = np.random.default_rng([seed, 4]).standard_gamma(0.5, size=(n_draws, 2))
    out = []
    for i, spec in enumerate(specs):
        values, bounded = np.clip(point[i], *spec.bounds), np.clip(drawn[i], *spec.bounds)
        out.append(centered(spec, values, with_jeffreys(bounded, mass, half) if spec.share_of_rows else bounded))
    return out


def _warn_of_wide_cells(specs: Sequence[MetricSpec], sums: Sequence[ModelSums]) -> None:
    for spec in specs:
        bound = max(error_bound(spec, each) for each in sums)
        if bound > WIDE:
            warnings.warn(
                f"{spec.name} is computed from cells of the scores that bound it to within {bound:.2g} only; with "
                "max_exact_rows above the number of rows it is computed row by row.",
                UserWarning,
                stacklevel=2,
            )


def draw_metrics_of_many(
    specs: Sequence[MetricSpec],
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    rank: NDArray[np.int64],
    seed: int,
) -> list[tuple[Floats, Floats]]:
    """Like :func:`ssme.intervals.draw_metrics`, from one pass over the rows; n may be many millions.

    Metrics that are no sums over rows and cells, functions of the caller's among them, are drawn as there, on the
    `SAMPLE_ROWS` rows of lowest rank.

    Parameters
    ----------
    specs : sequence of MetricSpec
    scores : array (n, M, K)
        As given.
    posterior : LabelPosterior
        Of these rows, with nodes of the consensus.
    weights, rank : array (n,)
    seed : int
    """
    summed = [spec for spec in specs if is_summable(spec)]
    others = [spec for spec in specs if not is_summable(spec)]
    found = iter(_draw_summed(summed, scores, posterior, weights, rank, seed) if summed else [])
    some = np.flatnonzero(rank < SAMPLE_ROWS)
    part = (scores[some], posterior.subset(some), weights[some], rank[some])
    of_others = iter(draw_metrics(others, *part, seed) if others else [])
    return [next(found) if is_summable(spec) else next(of_others) for spec in specs]


def _draw_summed(
    specs: Sequence[MetricSpec],
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    rank: NDArray[np.int64],
    seed: int,
) -> list[tuple[Floats, Floats]]:
    sample, node = np.flatnonzero(rank < PLAN_ROWS), posterior.node
    assert isinstance(node, PooledNodes)
    by_mass = any(spec.name == "ece_positive" for spec in specs)
    plan = make_plan(
        specs,
        scores[sample],
        node.take(sample),
        posterior,
        mass_edges_of=mass_edges(scores[:, :, 1], weights) if by_mass else None,
        whole_weights=bool(np.all(weights == np.rint(weights))),
    )
    summary = Summary()
    for start in range(0, len(scores), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        pooled = [log[rows] for log in node.pooled]
        summary += plan.count(scores[rows], pooled, posterior.codes[rows], weights[rows])
    return draws_of_summary(specs, plan, summary, posterior, thin(scores, posterior, weights, rank), seed)


def _over_models(specs: Sequence[MetricSpec], sums: Sequence[ModelSums]) -> Floats:
    return np.stack([np.stack([values_of(spec, each) for each in sums], axis=1) for spec in specs])


def _mean_over_draws(values: Floats) -> Floats:
    """Mean (I, 1, M) over the draws (I, A, M) of what is defined."""
    defined = np.isfinite(values)
    total = np.where(defined, values, 0.0).sum(axis=1, keepdims=True)
    return np.asarray(total / np.maximum(defined.sum(axis=1, keepdims=True), 1))
