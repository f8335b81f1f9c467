"""From a posterior of labels to draws of a metric, and from draws to an interval.

The target is the metric on the population that the rows came from. A draw therefore carries three things: labels (a
draw of the consensus, with the bias of each model), and random row weights, exponential as in the Bayesian bootstrap
(Rubin 1981, The Bayesian bootstrap), for the rows being a sample. Weights belong to the content of a row and not to its
position, so that the order of the rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssme.metrics import MetricSpec
from ssme.posterior import LabelPosterior, draw_hard

Floats = NDArray[np.float64]

BLOCK_ELEMENTS = 2**22  # numbers in one block of draws of two classes
CLASSES_BLOCK_ELEMENTS = 2**24  # of more classes: the metrics go through them one by one, a part of the block each


def draw_metrics(
    specs: Sequence[MetricSpec],
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    rank: NDArray[np.int64],
    seed: int,
) -> list[tuple[Floats, Floats]]:
    """Point estimates (M,) and draws (D, M) of each metric.

    Parameters
    ----------
    specs : sequence of MetricSpec
    scores : array (n, M, K)
    posterior : LabelPosterior
        Of the same rows.
    weights : array (n,)
        Row weights.
    rank : array (n,)
        Place of every row in an order that does not depend on how the rows are given.
    seed : int

    Notes
    -----
    The point estimate is the mean over the draws without row weights and without noise in the tilt.
    """
    n, n_models, n_classes = scores.shape
    prepared = [[spec.prepare(scores[:, [m]], weights) for spec in specs] for m in range(n_models)]
    n_draws, functions = posterior.n_draws, any(spec.hard_labels_only for spec in specs)
    alike = posterior.hard and not posterior.tilt.any() and not posterior.tilt_noise.any()
    point: Floats = np.full((len(specs), n_draws, n_models), np.nan)
    draws: Floats = np.full((len(specs), n_draws, n_models), np.nan)
    mass: Floats = np.empty(n_draws)
    size = max(1, BLOCK_ELEMENTS // n if n_classes == 2 else CLASSES_BLOCK_ELEMENTS // (n * n_classes))
    even = bool(np.all(weights == weights[0]))
    for start in range(0, n_draws, size):
        these = slice(start, min(start + size, n_draws))
        numbers = range(these.start, these.stop)
        block = posterior.block(these)
        bootstrap = _columns([_bootstrap_weights(weights, rank, seed, d) for d in numbers])
        mass[these] = bootstrap.sum(axis=0)
        fixed = None if even else np.repeat(weights[:, None], len(numbers), axis=1)
        uniform = repeats = None
        if posterior.hard or functions:
            uniform = _columns([_generator(seed, d, 2).random((n,))[rank] for d in numbers])
        if functions:
            repeats = _columns([_repeats(weights, rank, seed, d) for d in numbers])
        tilt = posterior.tilt + np.zeros((len(numbers), 1))
        for m in range(n_models):
            if m == 0 or not alike:  # else every model sees the labels that were drawn for the first
                calm = block.view(m, tilt[:, m], fixed)
                noisy = block.view(m, tilt[:, m] + posterior.tilt_noise[these, m], bootstrap)
                if uniform is not None:
                    calm_hard = draw_hard(calm, uniform)
                    noisy_hard = calm_hard.reweighted(bootstrap) if alike else draw_hard(noisy, uniform)
            for i, spec in enumerate(specs):
                hard = posterior.hard or spec.hard_labels_only
                point[i, these, m] = prepared[m][i](calm_hard if hard else calm)[:, 0]
                drawn = noisy_hard if hard else noisy
                draws[i, these, m] = prepared[m][i](drawn.reweighted(repeats) if spec.hard_labels_only else drawn)[:, 0]
    half = np.random.default_rng([seed, 4]).standard_gamma(0.5, size=(n_draws, 2))
    found = [with_jeffreys(draws[i], mass, half) if spec.share_of_rows else draws[i] for i, spec in enumerate(specs)]
    return [centered(spec, point[i], found[i]) for i, spec in enumerate(specs)]


def _columns(vectors: Sequence[Floats]) -> Floats:
    """Vectors (n,) as the columns of an array, turned at once: writing them one by one strides through memory."""
    return np.ascontiguousarray(np.stack(vectors).T)


def with_jeffreys(draws: Floats, mass: Floats, half: Floats) -> Floats:
    """Shares (D, M) of rows of total weight mass (D,) with half a right and half a wrong row (D, 2) of weights added.

    Bootstrap draws of a share are then those of Beta(right + 1/2, wrong + 1/2) when every label is known: a sample in
    which all are right does not leave an interval of no width.
    """
    right = np.where(mass[:, None] > 0, draws * mass[:, None], 0.0)  # where no row has weight the share is undefined
    return (right + half[:, :1]) / (mass + half.sum(axis=1))[:, None]


def interval(draws: Floats, point: Floats, level: float) -> tuple[Floats, Floats]:
    """Equal-tailed interval (M,), (M,) of draws (D, M), widened to hold the point estimate; NaN without draws."""
    low, high = np.full(draws.shape[1], np.nan), np.full(draws.shape[1], np.nan)
    for m in range(draws.shape[1]):
        finite = draws[np.isfinite(draws[:, m]), m]
        if len(finite) and np.isfinite(point[m]):
            tails = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
            low[m], high[m] = min(tails[0], point[m]), max(tails[1], point[m])
    return low, high


def row_ranks(scores: Floats, codes: NDArray[np.int64], weights: Floats) -> NDArray[np.int64]:
    """Place (n,) of every row in an order given by content: the same for any order of rows, models and classes.

    Rows that differ only in the order of their classes or models are told apart by a second key.
    """
    first, second = row_keys(scores, codes, weights)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[np.lexsort((second, first))] = np.arange(len(codes))
    return rank


def spread_ranks(scores: Floats, codes: NDArray[np.int64], weights: Floats) -> NDArray[np.int64]:
    """Like :func:`row_ranks`, with rows of the same scores spread over the order: those of lowest rank are a sample.

    The first of several rows of the same scores keeps its place, each other one goes where the hash of its scores and
    its number among them says. Content alone decides, as there.

    Examples
    --------
    >>> scores = np.repeat([[[0.2, 0.8]], [[0.6, 0.4]]], [900, 100], axis=0)
    >>> lowest = spread_ranks(scores, np.full(1000, -1), np.ones(1000)) < 100
    >>> bool(5 <= lowest[900:].sum() <= 15)
    True
    """
    first, second = row_keys(scores, codes, weights)
    order = np.lexsort((second, first))
    starts = np.flatnonzero(np.r_[True, np.diff(first[order]) != 0])
    copy = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    if copy.any():
        number = np.empty(len(order), dtype=np.uint64)
        number[order] = copy
        with np.errstate(over="ignore"):
            first = np.where(number > 0, hashed(first + number * np.uint64(0x9E3779B97F4A7C15)), first)
        order = np.lexsort((second, first))
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes))
    return rank


def row_keys(
    scores: Floats, codes: NDArray[np.int64], weights: Floats
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two hashes (n,) of the content of every row, by which :func:`row_ranks` sorts: the first one, then the second."""
    bits = hashed(scores.view(np.uint64) if scores.flags.c_contiguous else np.ascontiguousarray(scores).view(np.uint64))
    by_model = hashed(bits.sum(axis=2, dtype=np.uint64))
    first = by_model.sum(axis=1, dtype=np.uint64)
    places = np.arange(1, bits[0].size + 1, dtype=np.uint64).reshape(bits.shape[1:]) * np.uint64(0x9E3779B97F4A7C15)
    second = hashed(bits ^ places).sum(axis=(1, 2), dtype=np.uint64)
    second += hashed(codes.astype(np.uint64)) + hashed(np.ascontiguousarray(weights).view(np.uint64))
    return first, second


def hashed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each number (unsigned, 64 bits) as one that looks random.

    Finaliser of the SplitMix64 generator (Steele et al. 2014): neighbouring numbers become unlike ones.
    """
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _generator(seed: int, draw: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, draw, purpose])))


def _bootstrap_weights(weights: Floats, rank: NDArray[np.int64], seed: int, draw: int) -> Floats:
    """Gamma(w) weights: exponential for w = 1, and what w repeated rows would get together."""
    random = _generator(seed, draw, 0)
    if np.all(weights == 1):
        return random.standard_exponential(len(rank))[rank]
    shape = np.empty_like(weights)
    shape[rank] = weights
    return random.standard_gamma(shape)[rank]


def _repeats(weights: Floats, rank: NDArray[np.int64], seed: int, draw: int) -> Floats:
    """How often each row is drawn with replacement, for metrics that take no weights."""
    shape = np.empty_like(weights)
    shape[rank] = weights
    counts = _generator(seed, draw, 1).multinomial(int(round(weights.sum())), shape / shape.sum())
    return counts[rank].astype(np.float64)


def centered(spec: MetricSpec, point: Floats, draws: Floats) -> tuple[Floats, Floats]:
    """Mean point (M,), and draws that noise has not pushed away from the estimate."""
    seen = np.isfinite(point)
    total = np.where(seen, point, 0.0).sum(axis=0)
    mean = np.divide(total, seen.sum(axis=0), out=np.full(point.shape[1], np.nan), where=seen.any(axis=0))
    if spec.rises_with_noise:
        defined = np.isfinite(draws)
        of_draws = np.where(defined, draws, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
        draws = np.clip(draws + (mean - of_draws), *spec.bounds)
    return mean, draws
