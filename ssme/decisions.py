"""Decisions between models from joint posterior draws: which of two is better, in what order they stand, which to take.

All models are judged on the same rows with the same draws of labels and row weights, so their errors go together and
largely cancel in a difference. The functions here therefore read the joint draws (D, M), never the intervals of the
models one by one.

References
----------
Goldstein, H., Spiegelhalter, D. (1996). League tables and their limitations. J. R. Statist. Soc. A 159 (ranks with
their uncertainty). Berger, J. O. (1985). Statistical Decision Theory and Bayesian Analysis (expected loss).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssme.results import MetricDraws

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """The model to take, and what taking it may cost.

    Attributes
    ----------
    model : hashable
        Name, or number where models have no names.
    index : int
    metric, group : str
    p_best : float
        Probability that no other model is better.
    expected_regret, regret_lower, regret_upper : float
        By how much the best model is better than this one, in units of the metric: expectation and interval.
    level : float
    runner_up : hashable or None
        The model with the second best estimate; None when there is a single one.
    p_better_than_runner_up : float
    """

    model: Hashable
    index: int
    metric: str
    group: str
    p_best: float
    expected_regret: float
    regret_lower: float
    regret_upper: float
    level: float
    runner_up: Hashable | None
    p_better_than_runner_up: float

    def __str__(self) -> str:
        text = (
            f"{self.model} has the best {self.metric}{'' if self.group == 'all' else f' in {self.group}'} with "
            f"probability {self.p_best:.2f}; taking it costs {self.expected_regret:.4f} in expectation, and at most "
            f"{self.regret_upper:.4f} with probability {(1 + self.level) / 2:.2f}."
        )
        if self.runner_up is not None:
            text += f" It is better than {self.runner_up} with probability {self.p_better_than_runner_up:.2f}."
        return text


def compare_models(
    found: MetricDraws,
    names: Sequence[Hashable] | None = None,
    *,
    level: float = 0.9,
    greater_is_better: bool | None = None,
) -> pd.DataFrame:
    """Compare every two models: the difference with its interval, and the probability that the first is better.

    Parameters
    ----------
    found : MetricDraws
        Joint draws of one metric on one group, from :meth:`ssme.SSME.posterior_draws`.
    names : sequence of M names, optional
        Numbers 0, 1, ... without it.
    level : float, default=0.9
        Probability of the interval.
    greater_is_better : bool, optional
        Needed where the metric does not say so, as a function of yours.

    Returns
    -------
    DataFrame
        One row a pair, columns metric, group, model_a, model_b, difference, lower, upper, level, p_a_better. Model a is
        the one with the better estimate; `difference` is the metric of a less that of b. Models whose metric is
        undefined are left out.

    Notes
    -----
    ``p_a_better = (wins + ties / 2 + 1 / 2) / (D + 1)`` of D draws: a probability from 100 draws is never exactly 1.

    Examples
    --------
    >>> found = MetricDraws("accuracy", "all", np.array([0.8, 0.9]), np.array([[0.78, 0.9], [0.82, 0.88], [0.8, 0.91]]),
    ...                     (0.0, 1.0), True, 20, 100, "ssme")
    >>> table = compare_models(found, ["bert", "gpt"])
    >>> print(table.loc[0, "model_a"], table.loc[0, "model_b"], table.loc[0, "p_a_better"])
    gpt bert 0.875
    """
    import pandas as pd

    names = _names(found, names)
    draws, point, sign = _joint(found, greater_is_better)
    order = [m for m in _best_first(point) if np.isfinite(point[m])]
    rows = []
    for place, a in enumerate(order):
        others = order[place + 1 :]
        gap = draws[:, [a]] - draws[:, others]
        tails = np.quantile(sign * gap, [(1 - level) / 2, (1 + level) / 2], axis=0)
        for b, low, high, chance in zip(others, *tails, _share(gap), strict=True):
            gain = sign * (point[a] - point[b])
            rows.append((names[a], names[b], gain, min(low, gain), max(high, gain), level, chance))
    columns = ["model_a", "model_b", "difference", "lower", "upper", "level", "p_a_better"]
    table = pd.DataFrame(rows, columns=columns)
    table.insert(0, "metric", found.metric)
    table.insert(1, "group", found.group)
    return table


def p_better(found: MetricDraws, *, greater_is_better: bool | None = None) -> Floats:
    """P(model i better than model j) as a matrix (M, M); 1/2 on the diagonal, NaN for a model without the metric.

    Examples
    --------
    >>> found = MetricDraws("ece", "all", np.array([0.1, 0.2]), np.array([[0.1, 0.2], [0.1, 0.2], [0.2, 0.1]]),
    ...                     (0.0, 1.0), False, 20, 100, "ssme")
    >>> p_better(found)
    array([[0.5  , 0.625],
           [0.375, 0.5  ]])
    """
    draws, point, _ = _joint(found, greater_is_better)
    matrix = np.full((len(point), len(point)), np.nan)
    for i in np.flatnonzero(np.isfinite(point)):
        matrix[i] = np.where(np.isfinite(point), _share(draws[:, [i]] - draws), np.nan)
    return matrix


def rank_models(
    found: MetricDraws,
    names: Sequence[Hashable] | None = None,
    *,
    level: float = 0.9,
    greater_is_better: bool | None = None,
) -> pd.DataFrame:
    """Rank the models, best first, with what is known of every rank.

    Parameters
    ----------
    found, names, level, greater_is_better
        As in :func:`compare_models`.

    Returns
    -------
    DataFrame
        Columns metric, group, rank, model, estimate, p_best, expected_rank, rank_lower, rank_upper, level,
        p_better_than_next. Rank 1 is the best estimate; models without the metric come last with rank <NA>. In a draw,
        models that tie share the best place, and their ranks are the mean of the places that they take.

    Examples
    --------
    >>> found = MetricDraws("accuracy", "all", np.array([0.8, 0.9]), np.array([[0.78, 0.9], [0.82, 0.88], [0.8, 0.7]]),
    ...                     (0.0, 1.0), True, 20, 100, "ssme")
    >>> rank_models(found, ["bert", "gpt"])[["rank", "model", "p_best", "expected_rank"]].round(3)
       rank model  p_best  expected_rank
    0     1   gpt   0.667          1.333
    1     2  bert   0.333          1.667
    """
    import pandas as pd

    names = _names(found, names)
    draws, point, sign = _joint(found, greater_is_better)
    order = _best_first(point)
    known = [m for m in order if np.isfinite(point[m])]
    ranks = np.full((len(draws), len(point)), np.nan)
    if known:
        ranks[:, known] = _ranks(draws[:, known])
    best = _best_shares(draws, known)
    tails = np.full((2, len(point)), np.nan)
    mean, following = np.full(len(point), np.nan), np.full(len(point), np.nan)
    if len(draws) and known:
        tails[:, known] = np.quantile(ranks[:, known], [(1 - level) / 2, (1 + level) / 2], axis=0)
        mean[known] = ranks[:, known].mean(axis=0)
    for a, b in zip(known, known[1:], strict=False):
        following[a] = _share(draws[:, [a]] - draws[:, [b]])[0]
    return pd.DataFrame(
        {
            "metric": found.metric,
            "group": found.group,
            "rank": pd.array([i + 1 if m in known else None for i, m in enumerate(order)], dtype="Int64"),
            "model": [names[m] for m in order],
            "estimate": sign * point[order],
            "p_best": best[order],
            "expected_rank": mean[order],
            "rank_lower": np.floor(tails[0, order]),
            "rank_upper": np.ceil(tails[1, order]),
            "level": level,
            "p_better_than_next": following[order],
        }
    )


def select_best(
    found: MetricDraws,
    names: Sequence[Hashable] | None = None,
    *,
    level: float = 0.9,
    greater_is_better: bool | None = None,
) -> Selection:
    """Take the model of least expected regret, and say what that may cost.

    The regret of a model is by how much the best model is better. Its expectation is least for the model with the best
    estimate, which need not be the one that is most often the best.

    Parameters
    ----------
    found, names, level, greater_is_better
        As in :func:`compare_models`. Raises ValueError where no model has an estimate.

    Returns
    -------
    Selection

    Examples
    --------
    >>> found = MetricDraws("accuracy", "all", np.array([0.8, 0.9]), np.array([[0.75, 0.9], [0.75, 0.95], [0.9, 0.85]]),
    ...                     (0.0, 1.0), True, 20, 100, "ssme")
    >>> best = select_best(found, ["bert", "gpt"])
    >>> print(best.model, round(best.p_best, 3), round(best.expected_regret, 4))
    gpt 0.667 0.0167
    """
    names = _names(found, names)
    draws, point, _ = _joint(found, greater_is_better)
    order = [m for m in _best_first(point) if np.isfinite(point[m])]
    if not order or not len(draws):
        raise ValueError(
            f"{found.metric} is undefined for every model in group {found.group!r}, so none can be selected: label "
            "more rows, or choose another metric."
        )
    best = order[0]
    regret = draws[:, order].max(axis=1) - draws[:, best]
    low, high = np.quantile(regret, [(1 - level) / 2, (1 + level) / 2])
    second = order[1] if len(order) > 1 else None
    return Selection(
        model=names[best],
        index=int(best),
        metric=found.metric,
        group=found.group,
        p_best=float(_best_shares(draws, order)[best]),
        expected_regret=float(regret.mean()),
        regret_lower=float(low),
        regret_upper=float(high),
        level=level,
        runner_up=None if second is None else names[second],
        p_better_than_runner_up=1.0 if second is None else float(_share(draws[:, [best]] - draws[:, [second]])[0]),
    )


def _joint(found: MetricDraws, greater_is_better: bool | None) -> tuple[Floats, Floats, float]:
    """Draws (D', M) and estimates (M,) in which more is better, and the sign that was applied.

    Draws in which a model with an estimate is undefined are left out. The others are moved so that their mean is the
    estimate: a table of estimates and what is decided from it then agree.
    """
    greater = found.greater_is_better if greater_is_better is None else greater_is_better
    if greater is None:
        raise ValueError(
            f"whether more of {found.metric} is better is not known; pass greater_is_better=True or False."
        )
    sign = 1.0 if greater else -1.0
    known = np.isfinite(found.point)
    draws = sign * found.draws[np.isfinite(found.draws[:, known]).all(axis=1)]
    if len(draws):
        draws[:, known] += sign * found.point[known] - draws[:, known].mean(axis=0)
    return draws, sign * found.point, sign


def _names(found: MetricDraws, names: Sequence[Hashable] | None) -> Sequence[Hashable]:
    n_models = len(found.point)
    if names is None:
        return range(n_models)
    if len(names) != n_models:
        raise ValueError(f"names has {len(names)} entries, but there are {n_models} models: pass one name for each.")
    return names


def _best_first(point: Floats) -> list[int]:
    """Model numbers from the best estimate to the worst, those without one last; the first of tied ones first."""
    return [int(m) for m in np.argsort(np.where(np.isfinite(point), -point, np.inf), kind="stable")]


def _share(gap: Floats) -> Floats:
    """Share of draws (D, P) above zero, ties by half, with half a draw more on either side."""
    wins = (gap > 0).sum(axis=0) + 0.5 * (gap == 0).sum(axis=0)
    return (wins + 0.5) / (len(gap) + 1)


def _best_shares(draws: Floats, models: Sequence[int]) -> Floats:
    """P(best) of the models, NaN for the others; models that tie for the best place share it."""
    share = np.full(draws.shape[1], np.nan)
    if len(models) and len(draws):
        at_top = draws[:, list(models)] == draws[:, list(models)].max(axis=1, keepdims=True)
        share[list(models)] = (at_top / at_top.sum(axis=1, keepdims=True)).mean(axis=0)
    return share


def _ranks(draws: Floats) -> Floats:
    """Rank (D, M) of every model in every draw, 1 for the greatest value, the mean place for ties."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-draws, axis=1), dtype=np.float64)
