"""From the tidy table of a study to what one reads: errors, reductions, cells won, effective sample sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssme.study._methods import ALL_LABELS, ALONE, CURVE, REFERENCES

CELL = ["dataset", "metric", "n_labeled"]
LEAST = 1e-12  # an error of exactly 0 has no logarithm


def summarize_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Condense a study to one row for each data set, metric, budget and method.

    Parameters
    ----------
    frame : DataFrame
        What :func:`ssme.study.run_study` returns.

    Returns
    -------
    DataFrame
        Columns

        - dataset, metric, n_labeled, method
        - abs_err: absolute error, the mean over models and then over seeds; std_error: its standard error over seeds
        - seeds: those with an estimate
        - vs_labeled, vs_all_labels: abs_err over that of labeled-only and of all-labels, on the seeds that both have
        - ess: the effective sample size, the number of labels at which labeled-only has the same abs_err; ess_bound:
          "at least" or "at most" where it lies outside the numbers of labels that the pool allows
        - coverage, width: of the intervals, the mean over seeds and models; seconds: the median of a fit
        - best: the least abs_err of all methods; tied: best, or apart from the best by at most one standard error of
          the difference on the same draws. A method with estimates on fewer than half of the seeds is neither.

    Examples
    --------
    >>> rows = [("d", 20, 0, s, m, "accuracy", "a", e, e, 1.0, 0.1, 0.01)
    ...         for s in (0, 1) for m, e in (("ssme", 0.01), ("labeled-only", 0.04))]
    >>> frame = pd.DataFrame(rows, columns="dataset n_labeled n_unlabeled seed method metric model estimate abs_err \
covered width seconds".split())
    >>> summarize_cells(frame)[["method", "abs_err", "vs_labeled", "best"]]
             method  abs_err  vs_labeled   best
    0          ssme     0.01        0.25   True
    1  labeled-only     0.04        1.00  False
    """
    methods = frame[frame["method"] != CURVE]
    curves = _label_curves(frame)
    columns = ["abs_err", "covered", "width", "seconds"]
    by_seed = methods.groupby([*CELL, "method", "seed"], sort=False)[columns].mean()
    rows = []
    cell: Any
    for (dataset, metric, n_labeled), cell in by_seed.groupby(CELL, sort=False):
        table = cell.droplevel(CELL)
        errors = table["abs_err"].unstack("method", sort=False)
        contest = _contest(errors)
        for method, part in table.groupby("method", sort=False):
            size, bound = _effective_size(curves.get((dataset, metric)), errors[method].mean())
            rows.append(
                {
                    "dataset": dataset,
                    "metric": metric,
                    "n_labeled": n_labeled,
                    "method": method,
                    "abs_err": errors[method].mean(),
                    "std_error": errors[method].sem(),
                    "seeds": int(errors[method].count()),
                    "vs_labeled": _ratio(errors, method, ALONE),
                    "vs_all_labels": _ratio(errors, method, ALL_LABELS),
                    "ess": size,
                    "ess_bound": bound,
                    "coverage": part["covered"].mean(),
                    "width": part["width"].mean(),
                    "seconds": part["seconds"].median(),
                    "best": method == contest[0],
                    "tied": method in contest,
                }
            )
    return pd.DataFrame(rows)


def _contest(errors: Any) -> list[str]:
    """The best method first, then those that tie with it; errors (seeds x methods)."""
    candidates = [m for m in errors if m not in REFERENCES and errors[m].count() >= max(len(errors) / 2, 1)]
    if not candidates:
        return [""]
    best = errors[candidates].mean().idxmin()
    tied = []
    for method in candidates:
        apart = (errors[method] - errors[best]).dropna()
        if method != best and len(apart) and (apart.mean() == 0 or apart.mean() <= apart.sem()):
            tied.append(method)
    return [best, *tied]


def _ratio(errors: pd.DataFrame, method: Any, other: str) -> float:
    """Mean error over that of another method, on the seeds that both have."""
    if other not in errors:
        return float("nan")
    both = errors[method].notna() & errors[other].notna()
    if not both.any():
        return float("nan")
    return float(max(errors.loc[both, method].mean(), LEAST) / max(errors.loc[both, other].mean(), LEAST))


# -- effective sample size ---------------------------------------------------------------------------------------------


def _label_curves(frame: pd.DataFrame) -> dict[Any, pd.Series]:
    """Error of labeled-only by number of labels, never rising, for each data set and metric."""
    from sklearn.isotonic import isotonic_regression

    curve = frame[frame["method"] == CURVE]
    means = curve.groupby(["dataset", "metric", "n_labeled"])["abs_err"].mean().dropna()
    found: dict[Any, pd.Series] = {}
    for key, part in means.groupby(["dataset", "metric"]):
        error = np.log(np.maximum(part.to_numpy(), LEAST))
        sizes = part.index.get_level_values("n_labeled")
        found[key] = pd.Series(isotonic_regression(error, increasing=False), index=np.log(sizes))
    return found


def _effective_size(curve: pd.Series | None, error: float) -> tuple[float, str]:
    """Number of labels at which labeled-only has this error, by log-log interpolation, and which bound it is."""
    if curve is None or np.isnan(error):
        return float("nan"), ""
    sizes, errors = curve.index.to_numpy(), curve.to_numpy()
    value = np.log(max(error, LEAST))
    bound = "at least" if value <= errors[-1] else "at most" if value >= errors[0] else ""
    return float(np.exp(np.interp(-value, -errors, sizes))), bound


# -- over cells --------------------------------------------------------------------------------------------------------


def summarize_methods(cells: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Condense cells to one row a method, or one for each method and value of `by`.

    Parameters
    ----------
    cells : DataFrame
        What :func:`summarize_cells` returns.
    by : sequence of str
        Of "dataset", "metric" and "n_labeled".

    Returns
    -------
    DataFrame
        The columns of `by`, method, and over the cells: cells (their number), given (those with an estimate), best and
        tied (counts), abs_err (mean), vs_labeled and vs_all_labels (geometric means), labels_worth (geometric mean of
        ess over n_labeled: what one label is worth), labels_worth_bound, coverage and width (means), coverage_lowest
        (over the data sets), seconds (median).
    """
    rows = []
    for key, part in cells.groupby([*by, "method"], sort=False):
        coverage = part.groupby("dataset", sort=False)["coverage"].mean()
        bounds = [bound for bound in dict.fromkeys(part["ess_bound"]) if bound]
        rows.append(
            {
                **dict(zip([*by, "method"], key, strict=True)),
                "cells": len(part),
                "given": int(part["abs_err"].notna().sum()),
                "best": int(part["best"].sum()),
                "tied": int(part["tied"].sum()),
                "abs_err": part["abs_err"].mean(),
                "vs_labeled": _geometric_mean(part["vs_labeled"]),
                "vs_all_labels": _geometric_mean(part["vs_all_labels"]),
                "labels_worth": _geometric_mean(part["ess"] / part["n_labeled"]),
                "labels_worth_bound": bounds[0] if len(bounds) == 1 else "about" if bounds else "",
                "coverage": coverage.mean(),
                "coverage_lowest": coverage.min(),
                "width": part["width"].mean(),
                "seconds": part["seconds"].median(),
            }
        )
    return pd.DataFrame(rows)


def _geometric_mean(values: pd.Series) -> float:
    values = values.dropna()
    return float(np.exp(np.log(values).mean())) if len(values) else float("nan")
