"""Accuracy masking found without a labeled test set: the detector of `ssl_zoo.masking` on estimated accuracies."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ssl_zoo.curves._draws import share_of
from ssl_zoo.curves._layout import CurveModels
from ssl_zoo.masking import DIAGNOSTICS, MaskingVerdict, detect_masking

Floats = NDArray[np.float64]
LAST_EPOCHS = 10
RUN_COLUMNS = ("run", "model", "algorithm", "factor", "value", "x", "r", "seed")
COLUMNS = ("algorithm", "x", "verdict", "accuracy_drop", "drop_lower", "drop_upper", "p_drop_beyond_margin",
           "accuracy_p", "detectable_drop", "worsened", "n_seeds", "level", "method")  # fmt: skip


def masking_table(
    curves: list[CurveModels],
    models: pd.DataFrame,
    point: Floats,
    draws: Floats,
    *,
    method: str,
    margin: float = 3.0,
    alpha: float = 0.05,
    level: float = 0.9,
) -> pd.DataFrame:
    """Verdict on every algorithm and point beside its first point.

    Parameters
    ----------
    curves : list of CurveModels
    models : DataFrame
        With columns of diagnostics: ple, cci, sem_drift, grad_align, ood_f.
    point : array (M,), draws : array (D, M)
        Accuracies of the models, as shares.
    method : str
        Where these come from.
    margin : float, default=3
        Points of accuracy that count as about equal.
    alpha, level : float

    Returns
    -------
    DataFrame
        The verdict is `detect_masking` of the estimated accuracies, paired by seed. It treats them as known; what the
        few labels leave open is in drop_lower, drop_upper and p_drop_beyond_margin, the probability that accuracy
        fell by more than the margin. No row for algorithms with a single seed: nothing can be tested there.
    """
    names = [name for name in DIAGNOSTICS if name in models.columns]
    rows = []
    for curve in curves:
        if len(curve.seeds) < 2 or not names:
            continue
        for j in range(1, len(curve.x)):
            at = curve.models[:, 0], curve.models[:, j]
            if (at[0] == at[1]).all():
                continue  # the very same models: nothing to compare
            clean, other = (_side(point[m], models, names, curve.rows[:, i]) for m, i in zip(at, (0, j), strict=True))
            found = detect_masking(clean, other, margin=margin, alpha=alpha, paired=_can_pair(clean, other))
            drop = 100 * (draws[:, at[0]] - draws[:, at[1]]).mean(axis=1)
            tails = np.quantile(drop, [(1 - level) / 2, (1 + level) / 2])
            rows.append(_row(curve, j, found, drop, tails, margin, level, method))
    if not rows and names:
        warnings.warn("accuracy masking needs at least 2 seeds of an algorithm; no verdict is given.", stacklevel=3)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def add_diagnostics(models: pd.DataFrame, log: pd.DataFrame, *, last: int = LAST_EPOCHS) -> pd.DataFrame:
    """Diagnostics of training as columns of the table of models: means over the last epochs, NaN left out.

    Parameters
    ----------
    models : DataFrame
    log : DataFrame
        A row for each run and epoch: "epoch", diagnostics, and columns that it shares with `models` and that name the
        run: those of run, model, algorithm, factor, value, x, r and seed that are in both.
    last : int, default=10
        Epochs that count, as in the protocol of C-Score.

    Examples
    --------
    >>> models = pd.DataFrame({"model": ["a", "b"], "algorithm": "uda", "r": [0, 1]})
    >>> log = pd.DataFrame({"r": [0, 0, 1], "epoch": [0, 1, 0], "cci": [0.1, 0.2, 0.5]})
    >>> add_diagnostics(models, log, last=1)["cci"].tolist()
    [0.2, 0.5]
    """
    keys = [name for name in RUN_COLUMNS if name in models.columns and name in log.columns]
    names = [name for name in DIAGNOSTICS if name in log.columns]
    if not keys or not names or "epoch" not in log.columns:
        raise ValueError(
            "the log of diagnostics needs a column epoch, one of " + ", ".join(DIAGNOSTICS) + ", and the columns that "
            "name a run in models; it has " + ", ".join(map(str, log.columns)) + "."
        )
    late = log.sort_values("epoch").groupby(keys, sort=False).tail(last)
    means = late.groupby(keys, sort=False)[names].mean().reset_index()
    return models.drop(columns=names, errors="ignore").merge(means, on=keys, how="left", validate="many_to_one")


def _row(
    curve: CurveModels, j: int, found: MaskingVerdict, drop: Floats, tails: Floats, margin: float, level: float,
    method: str,
) -> dict[str, Any]:  # fmt: skip
    return {
        "algorithm": curve.algorithm,
        "x": curve.x[j],
        "verdict": found.verdict,
        "accuracy_drop": found.accuracy_drop,
        "drop_lower": min(float(tails[0]), found.accuracy_drop),
        "drop_upper": max(float(tails[1]), found.accuracy_drop),
        "p_drop_beyond_margin": share_of(drop > margin),
        "accuracy_p": found.accuracy_p,
        "detectable_drop": found.detectable_drop,
        "worsened": ",".join(found.worsened),
        "n_seeds": len(curve.seeds),
        "level": level,
        "method": method,
    }


def _side(accuracy: Floats, models: pd.DataFrame, names: list[str], rows: NDArray[np.int64]) -> dict[str, Floats]:
    values = {name: pd.to_numeric(models[name].iloc[rows], errors="coerce").to_numpy(np.float64) for name in names}
    return {"accuracy": 100 * accuracy, **values}


def _can_pair(clean: dict[str, Floats], other: dict[str, Floats]) -> bool:
    """Whether what is known in two seeds on either side is known in the same two."""
    known = [(np.isfinite(clean[name]), np.isfinite(other[name])) for name in clean]
    return all((a & b).sum() >= 2 for a, b in known if min(a.sum(), b.sum()) >= 2)
