"""Active testing: the metric on the labeled rows, weighted for how they were chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ssme._labeled_only import LabeledBootstrap, labeled_only
from ssme.baselines._common import MANY_DRAWS, Codes, Estimates, Floats, labeled_rows
from ssme.baselines._label_draws import mean_of_defined
from ssme.baselines._means import is_mean, row_values, values_at
from ssme.metrics import MetricSpec


def active_testing(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: Codes,
    weights: Floats,
    *,
    seed: int,
    n_draws: int = MANY_DRAWS,
    sampling_weight: Floats | None = None,
) -> Estimates:
    """The metric on the labeled rows, each weighted for the probability with which it was chosen to be labeled.

    A mean over the rows is ``sum_i v_i f_i / n_l``, unbiased for the weights of :func:`lure_weights` [1]_ [2]_; other
    metrics are computed on rows of weight v. The draws are those of labeled-only: a Bayesian bootstrap over the labeled
    rows, with a prior of one row.
    Where all weights are equal, as for rows chosen at random, it is labeled-only.

    Parameters
    ----------
    specs, scores, codes, weights, seed, n_draws
        As every rival takes them.
    sampling_weight : array (n,), optional
        v of each row; read where there is a label.

    References
    ----------
    .. [1] Kossen, J., Farquhar, S., Gal, Y., Rainforth, T. (2021). "Active Testing: Sample-Efficient Model Evaluation".
       ICML. arXiv:2103.05331.
    .. [2] Farquhar, S., Gal, Y., Rainforth, T. (2021). "On Statistical Bias in Active Learning: How and When to Fix
       It". ICLR. arXiv:2101.11665.
    """
    labeled = labeled_rows(codes, weights)
    v = np.ones(len(labeled)) if sampling_weight is None else np.asarray(sampling_weight, np.float64)[labeled]
    if len(labeled) == 0 or np.all(v == v[0]):
        return labeled_only(specs, scores, codes, weights, seed=seed, n_draws=n_draws)
    own, w, labels = scores[labeled], weights[labeled], codes[labeled]
    bootstrap = LabeledBootstrap(own, labels, w, seed, n_draws)
    random = np.random.default_rng([seed, 16])
    seen = random.standard_gamma(w, size=(n_draws, len(labeled)))
    right, *others = bootstrap.prior_rows(random, n_draws)
    seen += right.T
    wrong = sum(part.reshape(-1, *right.shape).sum(axis=0).T for part in others)
    one_hot = np.eye(scores.shape[2])[labels][None]
    out = []
    for spec in specs:
        if is_mean(spec):
            values = row_values(spec, own)
            f = v[:, None] * values_at(values, labels)
            f_wrong = v[:, None] * np.einsum("nmk,nk->nm", values, bootstrap.other)
            draws = (seen @ f + wrong @ f_wrong) / (seen + wrong).sum(axis=1, keepdims=True)
            point = np.average(f, axis=0, weights=w)
            out.append((np.clip(point, *spec.bounds), np.clip(draws, *spec.bounds)))
            continue
        [draws] = bootstrap.draws([spec], v)
        if spec.hard_labels_only:  # a function of the user's takes no weights: rows are drawn by them instead
            out.append((mean_of_defined(draws), draws))
        else:
            out.append((spec.prepare(own, w * v)(one_hot, (w * v)[None])[0], draws))
    return out


def lure_weights(probability: ArrayLike, n_pool: int) -> Floats:
    """Weights of labeled rows, in the order in which they were chosen, from the probability of each choice.

    ``v_j = 1 + (N - n) / (N - j) (1 / ((N - j + 1) q_j) - 1)`` for the j-th of n rows chosen, without replacement, from
    a pool of N, q_j the probability among the rows then left.

    Parameters
    ----------
    probability : array-like (n,)
        In (0, 1].
    n_pool : int
        N, the labeled rows among them.

    Returns
    -------
    array (n,)

    Examples
    --------
    >>> lure_weights([1 / 4, 1 / 3], n_pool=4).round(9)
    array([1., 1.])
    """
    q = np.asarray(probability, dtype=np.float64)
    if q.ndim != 1 or not np.all((q > 0) & (q <= 1)):
        raise ValueError("probability must be a list of numbers above 0 and at most 1, one for each labeled row.")
    if len(q) > n_pool:
        raise ValueError(f"n_pool is {n_pool}, but {len(q)} rows were chosen from it.")
    left = n_pool - np.arange(1, len(q) + 1)
    share = np.divide(n_pool - len(q), left, out=np.zeros(len(q)), where=left > 0)
    return 1.0 + share * (1.0 / ((left + 1) * q) - 1.0)
