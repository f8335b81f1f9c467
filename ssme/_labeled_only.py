"""The metric on the labeled rows alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssme.intervals import with_jeffreys
from ssme.metrics import MetricSpec

Floats = NDArray[np.float64]

N_DRAWS = 400


def labeled_only(
    specs: Sequence[MetricSpec],
    scores: Floats,
    codes: NDArray[np.int64],
    weights: Floats,
    *,
    seed: int,
    n_draws: int = N_DRAWS,
) -> list[tuple[Floats, Floats]]:
    """Estimates (M,) and draws (D, M) of each metric from the labeled rows.

    The draws are those of the Bayesian bootstrap over the labeled rows [1]_. For accuracy half a right and half a wrong
    row are added to the draws, so that they are those of the Jeffreys posterior Beta(right + 1/2, wrong + 1/2) and do
    not shrink to a point when every label is right. NaN throughout when no row is labeled.

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
    one_hot = np.eye(n_classes)[labels][None]
    random = np.random.default_rng([seed, 3])
    gamma = random.standard_gamma(w, size=(n_draws, len(labeled)))
    half = random.standard_gamma(0.5, size=(n_draws, 2))
    counts = random.multinomial(max(int(round(w.sum())), 1), w / w.sum(), size=n_draws).astype(np.float64)
    out = []
    for spec in specs:
        evaluate = spec.prepare(own)
        still = None if np.all(w == w[0]) else w[None]
        point = evaluate(one_hot, still)[0]
        drawn = counts if spec.hard_labels_only else gamma
        draws = evaluate(np.broadcast_to(one_hot, (n_draws, *one_hot.shape[1:])), drawn)
        if spec.share_of_rows:
            draws = with_jeffreys(draws, gamma.sum(axis=1), half)
        out.append((point, draws))
    return out
