"""The scores of a sweep and a few labels -> curves, robustness, ranking and verdicts, with intervals."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ssl_zoo.curves._layout import read_curves
from ssl_zoo.curves._tables import CurveDraws

if TYPE_CHECKING:
    from ssme import ScoreTable

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CurveEstimates:
    """What `estimate_curves` found: tidy tables, each row with its method, level and numbers of rows.

    Attributes
    ----------
    points : DataFrame
        Acc(r) and other metrics: algorithm, x, n_seeds, metric, estimate, lower, upper, level, n_labeled, n_unlabeled,
        method, flags; and truth where it is known.
    robustness : DataFrame
        Metrics of the curves: algorithm, metric, measure (r_slope, gm, wad, bad, p_ad_nonneg), estimate, lower, upper,
        p_positive (probability above 0), and the rest as above.
    verdicts : DataFrame
        Delta-robustness of accuracy: p_global, p_local, p_both. Empty for a factor without an order.
    ranking : DataFrame
        Algorithms by each measure, the most robust first: rank, p_best, expected_rank, rank_lower, rank_upper.
    masking : DataFrame
        See `masking_table`; empty without diagnostics or a second seed.
    """

    points: pd.DataFrame
    robustness: pd.DataFrame
    verdicts: pd.DataFrame
    ranking: pd.DataFrame
    masking: pd.DataFrame

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every table that has rows as NAME.csv into a folder, which is made; files are replaced whole."""
        from ssl_zoo._files import write_bytes

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        written = []
        for field in fields(self):
            table = getattr(self, field.name)
            if len(table):
                written.append(out / f"{field.name}.csv")
                write_bytes(written[-1], table.to_csv(index=False).encode())
        return written


def estimate_curves(
    table: ScoreTable,
    models: pd.DataFrame,
    y: Any = None,
    *,
    metrics: str | Iterable[str] = ("accuracy",),
    factor: str | None = None,
    ordered: bool = True,
    truth: ArrayLike | None = None,
    level: float = 0.9,
    tolerance: float = 0.0,
    deltas: tuple[float, float, float] = (0.0, 0.0, 0.0),
    margin: float = 3.0,
    over_seeds: bool = False,
    labeled_only: bool = True,
    n_draws: int = 200,
    consensus: str = "discriminant",
    random_state: int | None = None,
) -> CurveEstimates:
    """Robustness curves of a sweep from few labels.

    All models are judged in one joint fit, on the same rows and with the same labels; every draw is a state of all of
    them. The metrics of a curve are taken in every draw of the whole curve, so that their intervals know what the
    points have in common.

    Parameters
    ----------
    table : ScoreTable
        Scores of all models on the same test rows.
    models : DataFrame
        One row a model: "model" (or "run"), "algorithm", the value of the factor ("x", "r" or "value"), perhaps "seed"
        and the diagnostics of training (ple, cci, sem_drift, grad_align, ood_f). A results table of ``ssl-zoo sweep``.
    y : array-like (n,), optional
        Labels, -1 or None where there is none; by default those of the table.
    metrics : str or sequence of str, default=("accuracy",)
        Names of :data:`ssme.metrics.METRICS`.
    factor : str, optional
        Column with the values of the factor.
    ordered : bool, default=True
        False for a factor without an order, such as which class contaminates: GM alone is defined.
    truth : array-like (n,), optional
        All labels, where they are known after all; adds a column "truth".
    level : float, default=0.9
        Probability of the intervals.
    tolerance : float, default=0
        See `ssl_zoo.robustness.curve_metrics`.
    deltas : (delta_g, delta_w, delta_b), default=(0, 0, 0)
        Thresholds of the verdicts; negative where a loss is tolerated.
    margin : float, default=3
        Points of accuracy, for the masking verdicts.
    over_seeds : bool, default=False
        Whether intervals are for the mean over seeds that could have been drawn; otherwise for these very models.
    labeled_only : bool, default=True
        Also estimate from the labeled rows alone, as method "labeled-only".
    n_draws : int, default=200
        Posterior draws.
    consensus : {"discriminant", "mean"}, default="discriminant"
        See :class:`ssme.SSME`.
    random_state : int, optional

    Returns
    -------
    CurveEstimates

    Examples
    --------
    >>> from ssme import ScoreTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 600)
    >>> logits = (2 * truth - 1)[:, None] * [2.0, 1.5, 1.0] + rng.normal(size=(600, 3))
    >>> table = ScoreTable.from_arrays(1 / (1 + np.exp(-2 * logits)), model_names=["r0", "r1", "r2"])
    >>> models = pd.DataFrame({"model": ["r0", "r1", "r2"], "algorithm": "uda", "r": [0, 0.5, 1]})
    >>> y = np.where(np.arange(600) < 40, truth, -1)
    >>> found = estimate_curves(table, models, y, labeled_only=False, random_state=0)
    >>> slope = found.robustness.set_index("measure").loc["r_slope"]
    >>> bool(slope["upper"] < 0), int(slope["n_labeled"])
    (True, 40)
    """
    from ssme import SSME

    names = list(dict.fromkeys([metrics] if isinstance(metrics, str) else metrics))
    curves = read_curves(models, table.model_names, factor=factor, ordered=ordered)
    if over_seeds and min(len(curve.seeds) for curve in curves) < 2:
        raise ValueError("over_seeds=True needs at least 2 seeds of every algorithm.")
    known = {} if truth is None else true_metrics(table, truth, names)
    fitted = SSME(consensus=consensus, n_draws=n_draws, random_state=random_state)
    fitted.fit(table if y is None else table.with_labels(y))
    made = [
        CurveDraws(curves, record, level, known.get(record.metric), tolerance, ordered, over_seeds)
        for record in fitted.posterior_draws(names, labeled_only=labeled_only)
    ]
    of_accuracy = [each for each in made if each.record.metric == "accuracy" and np.isfinite(each.record.point).all()]
    return CurveEstimates(
        points=_joined(each.points() for each in made),
        robustness=_joined(each.robustness() for each in made),
        verdicts=_joined(each.verdicts(*deltas) for each in of_accuracy if ordered),
        ranking=_joined(each.ranking() for each in made),
        masking=_joined(each.masking(models, margin) for each in of_accuracy),
    )


def _joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    found = [table for table in tables if len(table)]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def true_metrics(table: ScoreTable, truth: ArrayLike, names: Iterable[str]) -> dict[str, Floats]:
    """Each metric (M,) of the models on the rows whose class is known, by name.

    Parameters
    ----------
    table : ScoreTable
    truth : array-like (n,)
        Classes, -1 or None where they are not known.
    names : sequence of str
        Of metrics.

    Examples
    --------
    >>> from ssme import ScoreTable
    >>> table = ScoreTable.from_arrays(np.array([[0.9, 0.2], [0.2, 0.1], [0.7, 0.6]]), model_names=["a", "b"])
    >>> true_metrics(table, [1, 0, -1], ["accuracy"])["accuracy"].tolist()
    [1.0, 0.5]
    """
    from ssme.metrics import evaluate_metric

    codes = table.with_labels(truth).labels
    known = codes >= 0
    if not known.any():
        raise ValueError("truth holds no label: leave it out, or give the classes of the rows.")
    scores = table.scores[known]
    if table.score_type == "logit":
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        scores /= scores.sum(axis=2, keepdims=True)
    return {name: evaluate_metric(name, scores, codes[known]) for name in names}
