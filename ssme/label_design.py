"""Which rows to label next: a random sample with known probabilities that favours the rows that matter.

Labels of rows that all models and the consensus are sure of say little. The rows are therefore drawn with probabilities
in proportion to how far a label may move the metrics, with a floor so that no row is left out, and every row carries
the weight that its label has afterwards. With these weights estimates stay unbiased: a row that is drawn twice as
readily counts half as much.

The label of row i corrects the estimate by what the consensus had wrong there, so the variance of the correction is
``sum_i c_i / P_i`` for the variance c_i of what the label may do; it is least for P_i in proportion to sqrt(c_i)
(Neyman 1934, On the two different aspects of the representative method). Here c_i is the mean over the models of
h (1 - h), h the probability that the model is right: what accuracy and calibration errors ask for. Designs for the area
under the ROC curve and for average precision (c_i from the effect of each label on the metric) gained nothing for these
metrics and cost the others, so one design serves all metrics.

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

from ssme.posterior import LabelPosterior

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FLOOR = 0.2  # share of the labels that is spread evenly, in case that the consensus is sure of itself and wrong
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
    posterior: LabelPosterior,
    weights: Floats,
    k: int,
    *,
    models: Sequence[int] | None = None,
    label_weight: Floats | None = None,
    seed: int | Sequence[int] = 0,
) -> LabelBatch:
    """Draw k rows without a label, those more readily whose labels shrink the intervals more.

    Parameters
    ----------
    posterior : LabelPosterior
        Of all n rows.
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

    Raises
    ------
    ValueError
        Where k is no whole number from 1 to the number of rows without a label.

    Examples
    --------
    >>> from ssme import SSME
    >>> second = np.random.default_rng(0).beta(0.3, 0.3, size=(500, 1))
    >>> model = SSME(random_state=0).fit(second)
    >>> batch = suggest_labels(model._posterior, np.ones(500), 20)
    >>> len(batch), bool(np.abs(second[batch.rows] - 0.5).mean() < np.abs(second - 0.5).mean())
    (20, True)
    """
    counts = weights > 0
    free = counts & (posterior.codes < 0)
    _check_size(k, int(free.sum()))
    before = inclusion_probability(posterior.codes, weights, label_weight)
    added = added_probability(label_effects(posterior, weights, models), before, free, k)
    order = _systematic_order(posterior)
    rows = np.sort(draw_systematic(added, order[free[order]], np.random.default_rng(seed)))
    after = np.where(counts, before + (1 - before) * added, 0.0)
    return LabelBatch(rows, added[rows], label_weights(after))


def label_effects(posterior: LabelPosterior, weights: Floats, models: Sequence[int] | None = None) -> Floats:
    """How far the label of each row (n,) may move the estimates, up to a factor, with the floor."""
    hits = posterior.mean_hits()
    if models is not None:
        hits = hits[:, list(models)]
    deviation = weights * np.sqrt((hits * (1 - hits)).mean(axis=1))
    even = weights / weights.mean()
    return (1 - FLOOR) * deviation / max(deviation.mean(), EDGE) + FLOOR * even


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


def design_weights(codes: Integers, weights: Floats, label_weight: Floats) -> Floats:
    """Row weights (n,) with which the labeled rows alone stand for all rows: w / P, in sum over the labels as before.

    The ratio estimator of Hajek (1971) over the design that the weights of the labels come from.

    Examples
    --------
    >>> codes, even = np.array([0, 1, -1, -1, -1, -1]), np.ones(6)
    >>> design_weights(codes, even, label_weights(np.array([0.8, 0.2, 0.25, 0.25, 0.25, 0.25]))).round(2)
    array([0.4 , 1.6 , 1.28, 1.28, 1.28, 1.28])
    """
    out = weights / np.maximum(inclusion_probability(codes, weights, label_weight), EDGE)
    labeled = (codes >= 0) & (weights > 0)
    if labeled.any():
        out *= weights[labeled].sum() / out[labeled].sum()
    return out


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
