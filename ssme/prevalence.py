"""Shares of the classes, of all rows and of subgroups, from few labels and many scores.

The consensus of the models implies a share for every class. On the labeled rows it is off by r (K,); with C the
covariance of the class indicators of one row that the consensus implies, r has the error C / n_l, and what the
consensus gets wrong has the prior N(0, C / n_0): it is as wrong as shares learned from n_0 rows would be, with n_0 one
of a few values, weighed by their evidence. The posterior mean moves the log-odds of the classes, its spread widens the
intervals, and with many labels both go to what the labels alone say. A subgroup starts from the corrected whole and is
corrected by its own labels in the same way.

With judges as the models, the rows the comparisons of two answers, and a group for each system, the share of "wins" in
a group is that system's win rate, from few human labels and the verdicts of many judges.

References
----------
Saerens, M., Latinne, P., Decaestecker, C. (2002), and, for the exactness that few labels add to many predictions,
Angelopoulos, A. N. et al. (2023). Prediction-powered inference. Science 382. Raking: Deming, W. E., Stephan, F. F.
(1940).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssme.consensus import systematic
from ssme.posterior import LabelPosterior

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WHOLE_ROWS = ((1000.0, 0.5), (300.0, 0.4), (100.0, 0.1))  # n_0 with prior weights
GROUP_ROWS = ((200.0, 0.3), (40.0, 0.4), (10.0, 0.3))  # a group may be of a kind that the models do not see
LARGEST_SPREAD = 1.0  # log-odds: of a class that the consensus hardly ever sees
LEAST_SHARE = 1e-6
RAKING_STEPS = 100
EDGE = 1e-12


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the classes in one group.

    Attributes
    ----------
    group : str
    point : array (K,)
    draws : array (D, K)
        Draws of the shares in the population that the rows came from.
    n_labeled, n_unlabeled : int
    seen : bool array (K,)
        Which classes any label has, in whatever group. The interval of the others starts at 0.
    """

    group: str
    point: Floats
    draws: Floats
    n_labeled: int
    n_unlabeled: int
    seen: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClassTilt:
    """Log-odds that classes gain: in the estimate (K,), and its deviations in the draws (D, K)."""

    mean: Floats
    noise: Floats


def prevalence_draws(
    posterior: LabelPosterior,
    weights: Floats,
    groups: Sequence[tuple[str, Integers]],
    *,
    label_weight: Floats | None = None,
    seed: int = 0,
) -> list[Shares]:
    """Estimate the shares of the classes in every group.

    Parameters
    ----------
    posterior : LabelPosterior
        Of n rows.
    weights : array (n,)
        Row weights.
    groups : sequence of (str, int array)
        Names and row numbers, such as ``[("all", np.arange(n)), ("system=A", ...)]``.
    label_weight : array (n,), optional
        What the label of a row counts for beside that of another, where labels were not drawn at random.
    seed : int, default=0

    Returns
    -------
    list of Shares
    """
    of_labels = weights if label_weight is None else weights * label_weight
    mean = posterior.mean()
    random = np.random.default_rng([seed, 11])
    seen = np.isin(np.arange(mean.shape[1]), posterior.codes[weights > 0])
    whole = class_tilt(mean, posterior.codes, weights, of_labels, WHOLE_ROWS, posterior.n_draws, random)
    out = []
    for name, rows in groups:
        part, w = posterior.subset(rows), weights[rows]
        own = ClassTilt(np.zeros(mean.shape[1]), np.zeros_like(whole.noise))
        if len(rows) < len(mean):
            moved = _tilted(mean[rows], whole.mean)
            own = class_tilt(moved, part.codes, w, of_labels[rows], GROUP_ROWS, posterior.n_draws, random)
        total = ClassTilt(whole.mean + own.mean, whole.noise + own.noise)
        point, draws = _shares(part, mean[rows], total, w, random)
        labeled = int((part.codes >= 0).sum())
        out.append(Shares(name, point, draws, labeled, len(rows) - labeled, seen))
    return out


def prevalence_table(
    found: Sequence[Shares], classes: Sequence[Hashable] | NDArray, level: float = 0.9
) -> pd.DataFrame:
    """One row for each group and class: group, class, estimate, lower, upper, level, n_labeled, n_unlabeled.

    Examples
    --------
    >>> both = np.array([True, True])
    >>> shares = Shares("all", np.array([0.25, 0.75]), np.array([[0.2, 0.8], [0.3, 0.7]]), 20, 100, both)
    >>> prevalence_table([shares], ["no", "yes"])[["class", "estimate", "lower", "upper"]]
      class  estimate  lower  upper
    0    no      0.25  0.205  0.295
    1   yes      0.75  0.705  0.795
    """
    import pandas as pd

    frames = []
    for each in found:
        low, high = np.quantile(each.draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        high = np.maximum(high, _without_unseen(each, (1 + level) / 2))
        frames.append(
            pd.DataFrame(
                {
                    "group": each.group,
                    "class": list(classes),
                    "estimate": each.point,
                    "lower": np.where(each.seen, np.minimum(low, each.point), 0.0),
                    "upper": np.maximum(high, each.point),
                    "level": level,
                    "n_labeled": each.n_labeled,
                    "n_unlabeled": each.n_unlabeled,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _without_unseen(found: Shares, at: float) -> Floats:
    """Greatest quantile (K,) of a class where one class that no label shows does not occur: the others share its part.

    A lower end of 0 for that class asks for it: in two classes the other one is then all there is.
    """
    high = np.zeros(found.draws.shape[1])
    for absent in np.flatnonzero(~found.seen):
        draws = found.draws.copy()
        draws[:, absent] = 0.0
        left = draws.sum(axis=1, keepdims=True)
        high = np.maximum(high, np.quantile(np.divide(draws, left, out=draws, where=left > 0), at, axis=0))
    return high


def class_tilt(
    mean: Floats,
    codes: Integers,
    weights: Floats,
    of_labels: Floats,
    rows_of_prior: Sequence[tuple[float, float]],
    n_draws: int,
    random: np.random.Generator,
) -> ClassTilt:
    """What the labels say about the shares beyond P(class) (n, K): as log-odds for every class.

    Parameters
    ----------
    mean : array (n, K)
    codes : array (n,)
    weights, of_labels : array (n,)
        Row weights, and weights of the labels.
    rows_of_prior : sequence of (n_0, prior weight)
    n_draws : int
    random : Generator
    """
    w = weights / max(weights.sum(), EDGE)
    shares = w @ mean
    covariance = np.diag(shares) - (mean * w[:, None]).T @ mean
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    residual, n_labeled = _residual(mean, codes, of_labels)
    used = values > EDGE
    scaled = np.where(used, vectors.T @ residual / np.sqrt(np.where(used, values, 1.0)), 0.0)  # error I / n_labeled
    rows = np.array([each for each, _ in rows_of_prior])
    log_share = np.log([share for _, share in rows_of_prior])
    gain = n_labeled / (n_labeled + rows)
    if n_labeled > 0:
        spread = 1 / rows + 1 / n_labeled
        log_share += -0.5 * ((scaled**2).sum() / spread + used.sum() * np.log(spread))
    share = np.exp(log_share - log_share.max())
    share /= share.sum()
    bias = vectors @ (np.sqrt(values) * scaled) * (share @ gain)
    tilt = _rake(mean, shares + bias, w)
    component = random.permutation(systematic(share, n_draws))
    half = random.standard_normal(((n_draws + 1) // 2, len(shares)))
    normal = random.permutation(np.concatenate([half, -half])[:n_draws])
    off_mean = (gain[component] - share @ gain)[:, None] * scaled
    deviation = off_mean + normal / np.sqrt(n_labeled + rows[component])[:, None]
    root = np.sqrt(np.where(used, values, np.inf))
    noise = np.clip(deviation / root, -2 * LARGEST_SPREAD, 2 * LARGEST_SPREAD) @ vectors.T
    return ClassTilt(tilt, noise)


def _residual(mean: Floats, codes: Integers, of_labels: Floats) -> tuple[Floats, float]:
    """Share of each class less what was expected on the labeled rows (K,), and the number of labels."""
    labeled = np.flatnonzero((codes >= 0) & (of_labels > 0))
    if len(labeled) == 0:
        return np.zeros(mean.shape[1]), 0.0
    u = of_labels[labeled] / of_labels[labeled].sum()
    return u @ (np.eye(mean.shape[1])[codes[labeled]] - mean[labeled]), float(len(labeled))


def _rake(mean: Floats, target: Floats, w: Floats) -> Floats:
    """Log-odds (K,) that classes must gain so that the mean of P(class) (n, K) is the target (K,)."""
    target = np.maximum(target, LEAST_SHARE / len(target))
    target = target / target.sum()
    tilt: Floats = np.zeros(len(target))
    for _ in range(RAKING_STEPS):
        step = np.log(target) - np.log(np.maximum(w @ _tilted(mean, tilt), LEAST_SHARE / len(target)))
        tilt = tilt + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    return np.clip(tilt - tilt.mean(), -20.0, 20.0)


def _tilted(p: Floats, tilt: Floats) -> Floats:
    moved = np.maximum(p, EDGE) * np.exp(tilt - tilt.max())
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _shares(
    posterior: LabelPosterior, mean: Floats, tilt: ClassTilt, weights: Floats, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Shares (K,) and draws (D, K), with labeled rows pinned and the rows reweighted in every draw."""
    labeled = np.flatnonzero(posterior.codes >= 0)
    pinned = np.eye(mean.shape[1])[posterior.codes[labeled]]

    def of(p: Floats, move: Floats, w: Floats) -> Floats:
        p = _tilted(p, move)
        p[labeled] = pinned
        total = w @ p
        return np.asarray(total / total.sum())

    draws: Floats = np.empty((posterior.n_draws, mean.shape[1]))
    number, current = -1, mean
    for d in range(posterior.n_draws):
        if posterior.node_of[d] != number:
            number = int(posterior.node_of[d])
            current = posterior.node(number)
        bootstrap: Floats = random.standard_gamma(weights)
        draws[d] = of(current, tilt.mean + tilt.noise[d], bootstrap)
        # one row, spread over the classes: a sample without a class does not say that its share is 0 exactly
        extra: Floats = random.standard_gamma(1 / mean.shape[1], size=mean.shape[1])
        draws[d] = (draws[d] * bootstrap.sum() + extra) / (bootstrap.sum() + extra.sum())
    return of(mean, tilt.mean, weights), draws
