"""Metrics on draws of labels: of labels that all models share, or of labels that each model has for itself.

A draw carries labels and random row weights, gamma (exponential for weight 1) as in the Bayesian bootstrap. The point
estimate is the mean over the draws without these weights. For accuracy half a right and half a wrong row are added to
the draws, and calibration errors, which any noise raises, are moved back to the estimate, as for the default estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ssme.baselines._common import Codes, Estimates, Floats
from ssme.intervals import row_ranks, with_jeffreys
from ssme.metrics import LabelDraws, MetricSpec
from ssme.posterior import BinaryDraws, HardDraws, TiltedDraws, draw_codes, draw_hard
from ssme.transforms import normalize

BLOCK_ELEMENTS = 2**22  # numbers in one block of draws
EDGE = 1e-12

# numbers of the draws (B,), uniforms (n, B) -> labels in these draws, without row weights
Source = Callable[[Codes, Floats], LabelDraws]


def metrics_of_shared_labels(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    p: Floats,
    *,
    seed: int,
    n_draws: int,
) -> Estimates:
    """Metrics of all models on labels that are drawn from p (n, K); known labels are kept.

    Examples
    --------
    >>> from ssme.metrics import get_metric
    >>> scores = np.array([[[0.9, 0.1]], [[0.2, 0.8]]])
    >>> p = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> codes, ones = np.array([-1, -1]), np.ones(2)
    >>> metrics_of_shared_labels([get_metric("accuracy", 2)], scores, codes, ones, p, seed=0, n_draws=5)[0][0]
    array([0.5])
    """
    whole = [(list(range(scores.shape[1])), _hard_source(p, codes))]
    return metrics_of_draws(specs, scores, codes, weights, whole, seed=seed, n_draws=n_draws)


def metrics_of_own_classes(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    own: Sequence[Floats],
    *,
    seed: int,
    n_draws: int,
) -> Estimates:
    """Metrics of every model on labels drawn for it alone, from own[m] (n, K); known labels are kept."""
    sources = [([m], _hard_source(p, codes)) for m, p in enumerate(own)]
    return metrics_of_draws(specs, scores, codes, weights, sources, seed=seed, n_draws=n_draws)


def _hard_source(p: Floats, codes: Codes) -> Source:
    """Labels drawn from p (n, K), known ones in their place."""
    n_classes, labeled = p.shape[1], np.flatnonzero(codes >= 0)
    pinned = p.copy()
    pinned[labeled] = np.eye(n_classes)[codes[labeled]]
    edges = np.cumsum(pinned / pinned.sum(axis=1, keepdims=True), axis=1)
    edges[:, -1] = 1.0

    def source(numbers: Codes, uniform: Floats) -> LabelDraws:
        return HardDraws(draw_codes(edges, uniform), n_classes)

    return source


def metrics_of_own_labels(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    chance: Callable[[int, Codes], Floats],
    *,
    seed: int,
    n_draws: int,
) -> Estimates:
    """Metrics of every model on label probabilities of its own; known labels are kept.

    Parameters
    ----------
    specs, scores, codes, weights, seed, n_draws
        As every rival takes them.
    chance : callable
        ``chance(m, numbers)`` gives probabilities (n, B) for model m and the draws with these numbers: of class 1 for
        two classes; of the model's vote being right for more. The other classes then share what is left in proportion
        to the model's scores.
    """
    n_models, n_classes = scores.shape[1:]
    p = normalize(scores)

    def source_of(m: int) -> Source:
        own = p[:, m]

        def source(numbers: Codes, uniform: Floats) -> LabelDraws:
            given = chance(m, numbers)
            if n_classes > 2:
                return own_class_draws(own, codes, scores[:, m].argmax(axis=1), given)
            second = given.copy()
            labeled = np.flatnonzero(codes >= 0)
            second[labeled] = (codes[labeled] == 1)[:, None]
            return BinaryDraws(second, None)

        return source

    sources = [([m], source_of(m)) for m in range(n_models)]
    return metrics_of_draws(specs, scores, codes, weights, sources, seed=seed, n_draws=n_draws)


def own_class_draws(own: Floats, codes: Codes, vote: Codes, hit: Floats) -> TiltedDraws:
    """Label probabilities in which the vote (n,) has the chance hit (n, B), the others keep their proportions."""
    rest = 1.0 - own[np.arange(len(vote)), vote]
    lost = rest <= EDGE  # nothing tells the other classes apart: they share alike
    if lost.any():
        own = np.where(lost[:, None], 1.0 / own.shape[1], own)
        rest = np.where(lost, 1.0 - 1.0 / own.shape[1], rest)
    shrink = (1.0 - hit) / rest[:, None]
    return TiltedDraws(own[None], np.zeros(hit.shape[1], dtype=np.int64), codes, vote, hit.copy(), shrink, None)


def metrics_of_draws(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    sources: Sequence[tuple[list[int], Source]],
    *,
    seed: int,
    n_draws: int,
) -> Estimates:
    """Point estimates (M,) and draws (D, M) of each metric; each source gives the labels for some of the models."""
    n, n_models, n_classes = scores.shape
    rank, random = row_ranks(scores, codes, weights), np.random.default_rng([seed, 11])
    prepared = [[spec.prepare(scores[:, models], weights) for spec in specs] for models, _ in sources]
    functions, equal = any(spec.hard_labels_only for spec in specs), bool(np.all(weights == weights[0]))
    by_rank = np.empty_like(weights)
    by_rank[rank] = weights
    point, draws = np.full((2, len(specs), n_draws, n_models), np.nan)
    mass = np.empty(n_draws)
    size = max(1, BLOCK_ELEMENTS // (n * (1 if n_classes == 2 else n_classes)))
    for start in range(0, n_draws, size):
        numbers = np.arange(start, min(start + size, n_draws))
        bootstrap = random.standard_gamma(by_rank[:, None], size=(n, len(numbers)))[rank]
        uniform = random.random((n, len(numbers)))[rank]
        still = None if equal else np.repeat(weights[:, None], len(numbers), axis=1)
        repeats = _repeats(by_rank, len(numbers), random)[rank] if functions else None
        mass[numbers] = bootstrap.sum(axis=0)
        for (models, source), evaluate in zip(sources, prepared, strict=True):
            labels = source(numbers, uniform)
            for i, spec in enumerate(specs):
                used, calm = labels, still
                noisy: Floats | None = bootstrap
                if spec.hard_labels_only:  # a function of the user's: hard labels, whole weights
                    used = labels if isinstance(labels, HardDraws) else draw_hard(labels, uniform)
                    calm, noisy = None if equal else repeats, repeats
                point[i][np.ix_(numbers, np.array(models))] = evaluate[i](used.reweighted(calm))
                draws[i][np.ix_(numbers, np.array(models))] = evaluate[i](used.reweighted(noisy))
    half = random.standard_gamma(0.5, size=(n_draws, 2))
    return [_finished(spec, point[i], draws[i], mass, half) for i, spec in enumerate(specs)]


def _finished(spec: MetricSpec, point: Floats, draws: Floats, mass: Floats, half: Floats) -> tuple[Floats, Floats]:
    mean = mean_of_defined(point)
    if spec.share_of_rows:
        draws = with_jeffreys(draws, mass, half)
    if spec.rises_with_noise:
        draws = np.clip(draws + (mean - mean_of_defined(draws)), *spec.bounds)
    return mean, draws


def mean_of_defined(values: Floats) -> Floats:
    """Mean (M,) over the draws (D, M) that are not NaN; NaN where all are.

    Examples
    --------
    >>> mean_of_defined(np.array([[1.0, np.nan], [3.0, np.nan]]))
    array([ 2., nan])
    """
    defined = np.isfinite(values)
    total = np.where(defined, values, 0.0).sum(axis=0)
    count = defined.sum(axis=0)
    return np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)


def _repeats(weights: Floats, n_draws: int, random: np.random.Generator) -> Floats:
    """How often each row (n, B) is drawn with replacement, for metrics that take no weights."""
    size = max(int(round(weights.sum())), 1)
    return random.multinomial(size, weights / weights.sum(), size=n_draws).T.astype(np.float64)
