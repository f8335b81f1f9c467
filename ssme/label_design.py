"""Which rows to label next: a random sample with known probabilities that favours the rows that matter.

Labels of rows that all models and the consensus are sure of say little. The rows are therefore drawn with probabilities
in proportion to how far a label may move the metrics, with a floor so that no row is left out, and every row carries
the weight that its label has afterwards. With these weights estimates stay unbiased: a row that is drawn twice as
readily counts half as much.

The label of row i corrects the estimate by what the consensus had wrong there, so the variance of the correction is
``sum_i c_i / P_i`` for the variance c_i of what the label may do; it is least for P_i in proportion to sqrt(c_i)
(Neyman 1934, On the two different aspects of the representative method). For accuracy c_i is the mean over the models
of h (1 - h), h the probability that the model is right.

P_i is cumulative: the probability that row i is labeled by now, over all batches. The first labels, drawn at random,
are part of the design, and a new batch adds where the sum falls short of its aim. The label of row i stands for
``(1 - P_i) / P_i`` rows without one, scaled so that a label drawn at random has weight 1; a row that was certain to be
labeled stands for itself alone and has weight 0.

References
----------
Horvitz, D. G., Thompson, D. J. (1952). A generalization of sampling without replacement from a finite universe. Madow,
W. G. (1949). On the theory of systematic sampling, II. Kossen, J. et al. (2021). Active testing: sample-efficient model
evaluation. ICML. Veach, E., Guibas, L. (1995). Optimally combining sampling techniques (weights for several batches).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssme.metrics import MetricSpec
from ssme.posterior import BinaryDraws, LabelPosterior, TiltedDraws

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FLOOR = 0.2  # share of the labels that is spread evenly, in case that the consensus is sure of itself and wrong
LOOKED_AT = (100, 2000)  # fewest and most rows whose effect is computed label by label; others take their neighbours'
WORK = 2e7  # rows^2 x models x classes that this may cost
BLOCK_ELEMENTS = 2**22
OF_HITS = {"accuracy", "ece", "ece_positive"}  # the label of a row moves these by whether the vote is right alone
EDGE = 1e-12


@dataclass(frozen=True, eq=False)
class LabelBatch:
    """Rows to label next.

    Attributes
    ----------
    rows : array (k,)
        Row numbers, rising.
    probability : array (k,)
        How likely each of them was to be in this batch.
    label_weight : array (n,)
        For every row of the data: the weight that its label has once this batch is labeled. Pass it to the next fit.
    """

    rows: Integers
    probability: Floats
    label_weight: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def to_frame(self, row_ids: ArrayLike | None = None) -> pd.DataFrame:
        """One line a row to label: row, id (where given), probability, label_weight."""
        import pandas as pd

        frame = pd.DataFrame(
            {"row": self.rows, "probability": self.probability, "label_weight": self.label_weight[self.rows]}
        )
        if row_ids is not None:
            frame.insert(1, "id", np.asarray(row_ids)[self.rows])
        return frame


def suggest_labels(
    specs: Sequence[MetricSpec],
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    k: int,
    *,
    models: Sequence[int] | None = None,
    label_weight: Floats | None = None,
    seed: int | Sequence[int] = 0,
) -> LabelBatch:
    """Draw k rows without a label, those more readily whose labels shrink the intervals of the metrics more.

    Parameters
    ----------
    specs : sequence of MetricSpec
        What is to be estimated; several count alike.
    scores : array (n, M, K)
    posterior : LabelPosterior
        Of the same rows.
    weights : array (n,)
        Row weights; rows of weight 0 are never suggested.
    k : int
        Size of the batch.
    models : sequence of int, optional
        The models that matter; all of them by default.
    label_weight : array (n,), optional
        The weights of the last batch, if there was one. Without it, the labels that there are were drawn at random.
    seed : int or sequence of int, default=0

    Returns
    -------
    LabelBatch
    """
    codes, random = posterior.codes, np.random.default_rng(seed)
    counts = weights > 0
    free = counts & (codes < 0)
    _check_size(k, int(free.sum()))
    before = inclusion_probability(codes, weights, label_weight)
    order = _systematic_order(posterior)
    chosen = list(range(scores.shape[1])) if models is None else list(models)
    effect = _effects(specs, scores, posterior, weights, chosen, order, random)
    added = added_probability(effect, before, free, k)
    rows = np.sort(draw_systematic(added, order[free[order]], random))
    after = np.where(counts, before + (1 - before) * added, 0.0)
    return LabelBatch(rows, added[rows], label_weights(after))


def inclusion_probability(codes: Integers, weights: Floats, label_weight: Floats | None = None) -> Floats:
    """How likely every row (n,) was to be labeled by now, from the weights that labels have.

    Inverse of :func:`label_weights`: the scale is found from the number of labels.

    Examples
    --------
    >>> inclusion_probability(np.array([0, 1, -1, -1]), np.ones(4))
    array([0.5, 0.5, 0.5, 0.5])
    """
    counts = weights > 0
    n_labeled = int((counts & (codes >= 0)).sum())
    found: Floats = np.zeros(len(codes))
    if n_labeled == 0:
        return found
    v = np.ones(len(codes)) if label_weight is None else np.maximum(label_weight, EDGE)
    low, high = np.log(EDGE), np.log(1 / EDGE)
    for _ in range(100):
        middle = (low + high) / 2
        found = np.where(counts, 1 / (1 + v * np.exp(-middle)), 0.0)
        low, high = (middle, high) if found.sum() < n_labeled else (low, middle)
    return found


def label_weights(probability: Floats) -> Floats:
    """Weight (n,) of the label of every row for its probability of being labeled: 1 where labels are drawn at random.

    Proportional to (1 - P) / P, with mean 1 over the labels that are expected. Rows of probability 0 get 1: there is no
    label to weigh.

    Examples
    --------
    >>> label_weights(np.array([0.5, 0.5, 0.2, 0.2])).round(3)
    array([0.538, 0.538, 2.154, 2.154])
    """
    left = (1 - probability)[probability > 0].sum()
    out: Floats = np.ones(len(probability))
    if left > EDGE:
        scale = probability.sum() / left
        np.divide(scale * (1 - probability), probability, out=out, where=probability > 0)
    return out


def added_probability(effect: Floats, before: Floats, free: NDArray[np.bool_], k: int) -> Floats:
    """Probabilities (n,) of a batch of k free rows, so that all batches together come near to min(1, t effect).

    Rows that are not free get the probability that they would have.

    Examples
    --------
    >>> added_probability(np.array([3.0, 1.0, 1.0, 1.0]), np.zeros(4), np.ones(4, dtype=bool), 2)
    array([1.        , 0.33333333, 0.33333333, 0.33333333])
    """
    past = np.minimum(before, 1 - EDGE)

    def at(log_scale: float) -> Floats:
        aim = np.minimum(np.exp(log_scale) * effect, 1.0)
        return np.asarray(np.clip((aim - past) / (1 - past), 0.0, 1.0))

    top = effect[free & (effect > 0)]
    if len(top) < k:
        raise ValueError(f"k is {k}, but only {len(top)} rows have an effect on the metrics: ask for fewer.")
    low, high = -np.log(effect.max()) - 60.0, -np.log(top.min()) + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[free].sum() < k else (low, middle)
    return at(high)


def draw_systematic(probability: Floats, order: Integers, random: np.random.Generator) -> Integers:
    """Rows drawn with the given probabilities by one random start, evenly along the order.

    The sum of the probabilities of the rows in `order` is the size of the sample, rounded.

    Examples
    --------
    >>> draw_systematic(np.array([0.5, 0.5, 1.0, 0.5, 0.5]), np.arange(5), np.random.default_rng(0))
    array([1, 2, 4])
    """
    edges = np.cumsum(probability[order])
    size = int(round(edges[-1]))
    edges *= size / edges[-1]
    return order[np.minimum(np.searchsorted(edges, random.random() + np.arange(size), side="right"), len(order) - 1)]


def _check_size(k: int, free: int) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {k!r}.")
    if k > free:
        raise ValueError(f"k is {k}, but {free} rows have no label yet: ask for at most {free}.")


def _systematic_order(posterior: LabelPosterior) -> Integers:
    """Order of the rows in which neighbours are alike: by class, and in a class by how sure it is."""
    middle = posterior.node(int(posterior.node_of[posterior.n_draws // 2]))
    if middle.shape[1] == 2:
        return np.argsort(middle[:, 1], kind="stable")
    return np.lexsort((middle.max(axis=1), middle.argmax(axis=1)))


def _effects(
    specs: Sequence[MetricSpec],
    scores: Floats,
    posterior: LabelPosterior,
    weights: Floats,
    models: Sequence[int],
    order: Integers,
    random: np.random.Generator,
) -> Floats:
    """How far a label of each row (n,) may move the metrics, with the floor; in proportion to the aim of the design."""
    hits = posterior.mean_hits()[:, models]
    uncertain = weights**2 * (hits * (1 - hits)).mean(axis=1)
    total: Floats = np.zeros(len(weights))
    for spec in specs:
        variance = uncertain
        if spec.name not in OF_HITS and not spec.hard_labels_only:
            size = np.clip(int(np.sqrt(WORK / (len(models) * scores.shape[2]))), *LOOKED_AT)
            seen = np.sort(random.permutation(len(weights))[:size])
            part = posterior.subset(seen)
            exact = np.mean([_label_variance(spec, scores[seen], part, weights[seen], m) for m in models], axis=0)
            variance = _spread_to_all(exact, seen, uncertain, order)
        if variance.sum() > 0:
            total += variance / variance.mean()
    size = np.sqrt(total)
    even = weights / weights.mean()
    return (1 - FLOOR) * size / size.mean() + FLOOR * even if size.sum() > 0 else even


def _spread_to_all(exact: Floats, seen: Integers, uncertain: Floats, order: Integers) -> Floats:
    """Variances (n,) from those of the rows seen: the ratio to the uncertainty is that of neighbours in the order."""
    if len(seen) == len(order):
        return exact
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    along = np.argsort(place[seen])
    ratio = exact / np.maximum(uncertain[seen], EDGE)
    found = uncertain * np.interp(place, place[seen][along], ratio[along])
    found[seen] = exact
    return found


def _label_variance(spec: MetricSpec, scores: Floats, posterior: LabelPosterior, weights: Floats, model: int) -> Floats:
    """Variance (n,) of the metric of a model over the label of each row: the vote is right with probability h, or not.

    The metric is computed with the row's vote right and with it wrong, the other labels as they are expected.
    """
    n = len(weights)
    hit = posterior.mean_hits()[:, model]
    evaluate = spec.prepare(scores[:, [model]])
    mean = _mean_node(posterior)
    gap: Floats = np.zeros(n)
    size = max(1, BLOCK_ELEMENTS // n)
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        values = []
        for right in (1.0, 0.0):
            mass = np.repeat(hit[:, None], len(rows), axis=1)
            mass[rows, np.arange(len(rows))] = right
            values.append(evaluate(_with_hits(mass, mean, posterior, weights, model))[:, 0])
        gap[rows] = np.nan_to_num(values[0] - values[1])
    return gap**2 * hit * (1 - hit)


def _mean_node(posterior: LabelPosterior) -> Floats:
    share = np.bincount(posterior.node_of) / posterior.n_draws
    return np.asarray(sum(share[j] * posterior.node(int(j)) for j in np.flatnonzero(share)))


def _with_hits(
    mass: Floats, mean: Floats, posterior: LabelPosterior, weights: Floats, model: int
) -> BinaryDraws | TiltedDraws:
    """Label draws in which the vote of a model is right with the given probability (n, B); labeled rows are pinned."""
    vote, codes = posterior.votes[:, model], posterior.codes
    row_weights = None if np.all(weights == 1) else np.repeat(weights[:, None], mass.shape[1], axis=1)
    if mean.shape[1] == 2:
        second = np.where((vote == 1)[:, None], mass, 1 - mass)
        labeled = np.flatnonzero(codes >= 0)
        second[labeled] = (codes[labeled] == 1)[:, None]
        return BinaryDraws(second, row_weights)
    rest = 1 - mean[np.arange(len(vote)), vote]
    shrink = (1 - mass) / np.maximum(rest, EDGE)[:, None]
    return TiltedDraws(mean[None], np.zeros(mass.shape[1], dtype=np.int64), codes, vote, mass, shrink, row_weights)
