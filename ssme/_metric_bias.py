"""What the labels say about each metric beyond the consensus.

The consensus, with the bias of each model's accuracy corrected, still implies areas under curves, losses and
calibration errors that may be wrong in ways that no accuracy shows. On the labeled rows that can be seen: the metric of
the labels less the metric of labels that are drawn from the consensus there, r (M,). If the consensus is right, r has
the variance V = s^2 / n_l of such draws. What it has wrong gets the prior N(0, s^2 / n_0), as wrong as what n_0 labels
alone would leave, with n_0 one of a few values, weighed by their evidence. The expected bias is then the share
n_l / (n_l + n_0) of r: next to nothing of 20 labels, nearly all of 5,000. It is what makes every metric consistent as
labels are added. The models share one share: their residuals have the errors of the labels in common.

Draws are compared with draws: calibration errors are biased upward by the noise of labels, on both sides alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ssme.metrics import MetricSpec
from ssme.posterior import FixedNode, LabelPosterior, draw_hard

Floats = NDArray[np.float64]

ROWS_OF_PRIOR = ((10_000.0, 0.55), (3_000.0, 0.2), (1_000.0, 0.15), (300.0, 0.08), (100.0, 0.02))
ROWS_OF_GROUP = ((1_000.0, 0.4), (300.0, 0.4), (100.0, 0.2))  # a group may be of a kind that the whole does not show
LEAST_LABELS = 5
MOST_REPEATS = 10
BLOCK_ELEMENTS = 2**22
EDGE = 1e-15


@dataclass(frozen=True, eq=False)
class MetricBias:
    """Expected bias (M,) of a metric on rows without a label, and deviations (D, M) from it."""

    expected: Floats
    noise: Floats

    @classmethod
    def none(cls, n_draws: int, n_models: int) -> MetricBias:
        """No bias, known to be none."""
        return cls(np.zeros(n_models), np.zeros((n_draws, n_models)))


def metric_biases(
    specs: Sequence[MetricSpec],
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    of_labels: Floats,
    rank: NDArray[np.int64],
    *,
    seed: Sequence[int],
    before: Sequence[MetricBias] | None = None,
) -> list[MetricBias]:
    """The bias of each metric, from the labeled rows.

    Parameters
    ----------
    specs : sequence of MetricSpec
        Those of shares of rows have no bias: the tilt of the posterior has seen to it.
    scores : array (n, M, K)
    posterior : LabelPosterior
        Of the same rows.
    weights : array (n,)
        Row weights.
    of_labels : array (n,)
        What the label of each row counts for, row weight included.
    rank : array (n,)
        Place of every row in an order that does not depend on how the rows are given.
    seed : sequence of int
    before : sequence of MetricBias, optional
        The biases of the whole, for a subgroup: it has them too, until its own labels say otherwise.

    Returns
    -------
    list of MetricBias
    """
    n_models, n_draws = scores.shape[1], posterior.n_draws
    start = list(before) if before is not None else [MetricBias.none(n_draws, n_models) for _ in specs]
    labeled = np.flatnonzero((posterior.codes >= 0) & (of_labels > 0))
    open_specs = [i for i, spec in enumerate(specs) if not spec.share_of_rows]
    if len(labeled) < LEAST_LABELS or not open_specs:
        return start
    labeled = _in_order(labeled, posterior, rank)
    labeled, counts = _as_rows(labeled, weights[labeled])
    own, codes, speaks = scores[labeled], posterior.codes[labeled], of_labels[labeled] * counts / weights[labeled]
    # A row that counts for w stands for w rows with labels of their own, and is drawn as one.
    independent = (speaks @ (speaks / counts)) / (speaks @ speaks)
    size = speaks.sum() ** 2 / (speaks @ (speaks / counts))
    part = posterior.subset(labeled)
    blind = replace(part, node=FixedNode(part.mean()), codes=np.full(len(labeled), -1))
    rows_of_prior = ROWS_OF_PRIOR if before is None else ROWS_OF_GROUP
    asked = [specs[i] for i in open_specs]
    implied = _drawn_metrics(asked, own, blind, speaks, np.random.default_rng(seed))
    one_hot = np.eye(scores.shape[2])[codes][None]
    for i, spec, drawn in zip(open_specs, asked, implied, strict=True):
        found = spec.prepare(own)(one_hot, _row_weights(spec, speaks))[0]
        drawn = drawn.mean(axis=0) + np.sqrt(independent) * (drawn - drawn.mean(axis=0))
        start[i] = _posterior_bias(found, drawn, size, start[i], rows_of_prior, n_draws)
    return start


def shifted(
    spec: MetricSpec, found: tuple[Floats, Floats], bias: MetricBias, unlabeled: float
) -> tuple[Floats, Floats]:
    """Estimates (M,) and draws (D, M) with the bias of the share of the rows that have no label, inside the bounds."""
    point, draws = found
    moved = point + unlabeled * bias.expected, draws + unlabeled * (bias.expected + bias.noise)
    return np.clip(moved[0], *spec.bounds), np.clip(moved[1], *spec.bounds)


def _posterior_bias(
    found: Floats,
    drawn: Floats,
    size: float,
    before: MetricBias,
    rows_of_prior: Sequence[tuple[float, float]],
    n_draws: int,
) -> MetricBias:
    """The bias given the metric (M,) of the labels and its draws (B, M) under the consensus."""
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    if len(drawn) < 2 or not np.isfinite(found).all():
        return before
    center = drawn.mean(axis=0)
    residual = found - center - before.expected
    variance = drawn.var(axis=0, ddof=1) * (1 + 1 / len(drawn)) + EDGE
    log_weight, shares = [], []
    for rows, weight in rows_of_prior:
        total = variance * (1 + size / rows)
        log_weight.append(np.log(weight) - 0.5 * np.mean(residual**2 / total + np.log(total)))
        shares.append(size / (size + rows))
    posterior = np.exp(np.array(log_weight) - max(log_weight))
    share = float(posterior @ shares / posterior.sum())
    noise = np.sqrt(share) * np.resize(drawn - center, (n_draws, len(found)))
    return MetricBias(before.expected + share * residual, np.sqrt(1 - share) * before.noise + noise)


def _drawn_metrics(
    specs: Sequence[MetricSpec], scores: Floats, posterior: LabelPosterior, weights: Floats, random: np.random.Generator
) -> list[Floats]:
    """Each metric (D, M) of labels drawn from the posterior, the same random numbers for all models."""
    n, n_models, n_classes = scores.shape
    n_draws = posterior.n_draws
    prepared = [[spec.prepare(scores[:, [m]]) for spec in specs] for m in range(n_models)]
    out: list[Floats] = [np.full((n_draws, n_models), np.nan) for _ in specs]
    size = max(1, BLOCK_ELEMENTS // (n * n_classes))
    order = np.argsort(weights @ posterior.node(0), kind="stable")
    for start in range(0, n_draws, size):
        these = slice(start, min(start + size, n_draws))
        block, width = posterior.block(these), these.stop - these.start
        uniform = random.random((width, n)).T
        fixed = np.repeat(weights[:, None], width, axis=1)
        for m in range(n_models):
            hard = draw_hard(block.view(m, np.full(width, posterior.tilt[m]), fixed), uniform, order)
            for i, spec in enumerate(specs):
                known = _row_weights(spec, weights)
                again = hard if known is not None else hard.reweighted(None)
                out[i][these, m] = prepared[m][i](again)[:, 0]
    return out


def _in_order(rows: NDArray[np.int64], posterior: LabelPosterior, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows by how sure the consensus is of them: an order that rounding of the scores does not change."""
    found = posterior.subset(rows).mean()
    main = found[:, int(np.argmax(found.sum(axis=0)))]
    return rows[np.lexsort((rank[rows], main.round(9), found.max(axis=1).round(9)))]


def _as_rows(rows: NDArray[np.int64], weights: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Rows of whole weights as that many rows, and what each of them counts for; others as they are."""
    whole = weights.round()
    if np.array_equal(whole, weights) and whole.sum() <= MOST_REPEATS * len(rows):
        return np.repeat(rows, whole.astype(np.int64)), np.ones(int(whole.sum()))
    return rows, weights


def _row_weights(spec: MetricSpec, weights: Floats) -> Floats | None:
    """Row weights (1, n) for a metric, or None where they are all alike; a function of the user's takes none."""
    return None if spec.hard_labels_only or np.all(weights == weights[0]) else weights[None]
