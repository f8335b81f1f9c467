"""The tables of a study as headings and rows of text, for the terminal and for markdown alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ssme._format import format_level
from ssme.study._methods import ALL_LABELS, ALONE
from ssme.study._summary import summarize_methods

NOTHING = "-"
MARK = {"at least": "≥", "at most": "≤", "about": "~"}


@dataclass(frozen=True)
class TextTable:
    """A table ready to be laid out; every column but the `names` first ones is numbers."""

    title: str
    heading: list[str]
    rows: list[list[str]]
    note: str = ""
    names: int = 1


def _text(value: float, pattern: str) -> str:
    return NOTHING if pd.isna(value) else pattern.format(value)


def _error(value: float) -> str:
    """An error with three significant decimals, as small ones matter.

    Examples
    --------
    >>> _error(0.0213456), _error(0.000123456), _error(1.5)
    ('0.0213', '0.000123', '1.50')
    """
    if pd.isna(value):
        return NOTHING
    return f"{value:.{max(2, 2 - int(np.floor(np.log10(max(abs(value), 1e-9)))))}f}"


def _times(ratio: float) -> str:
    """An error ratio as "so many times lower"."""
    return NOTHING if pd.isna(ratio) else f"{1 / ratio:.1f}x"


def method_table(cells: pd.DataFrame, level: float) -> TextTable:
    """Everything about a method in one row, over all cells."""
    rows = []
    for row in summarize_methods(cells).to_dict(orient="records"):
        reference = row["method"] == ALL_LABELS
        rows.append(
            [
                row["method"],
                _times(row["vs_labeled"]),
                _text(row["vs_all_labels"], "{:.2f}"),
                NOTHING if reference else f"{row['best']} of {row['cells']}",
                NOTHING if reference else f"{row['tied']} of {row['cells']}",
                MARK.get(row["labels_worth_bound"], "") + _text(row["labels_worth"], "{:.1f}"),
                _text(row["coverage"], "{:.2f}"),
                _text(row["coverage_lowest"], "{:.2f}"),
                _text(row["width"], "{:.3f}"),
                _text(row["seconds"], "{:.3f}"),
            ]
        )
    heading = ["method", f"lower than {ALONE}", f"error / {ALL_LABELS}", "best", "best or tied"]
    heading += ["one label is worth", "coverage", "lowest coverage", "width", "seconds"]
    note = (
        f"Lower than {ALONE}: the absolute error of {ALONE} over that of the method (below 1x the method's is higher); "
        f"error / {ALL_LABELS}: that of the method over that of {ALL_LABELS}. Both are geometric means over the cells "
        "(data set, metric, budget). Best: the least error of a cell; tied: apart from it by at most one standard "
        "error of the difference, on the same draws. One label is worth: effective sample size over the labels used "
        f"(≥ and ≤: a bound, ~: bounds of both kinds). Coverage of the {format_level(level)} intervals: the mean, and "
        "that of the data set where it is lowest. Seconds: the median of one fit with all metrics."
    )
    return TextTable("All cells", heading, rows, note)


def _by_metric_and_budget(cells: pd.DataFrame, title: str, note: str, write: Callable[[Any], str]) -> list[TextTable]:
    """A table for each metric: methods down, budgets across."""
    found = summarize_methods(cells, ["metric", "n_labeled"])
    tables = []
    for metric, part in found.groupby("metric", sort=False):
        budgets = list(dict.fromkeys(part["n_labeled"]))
        written = {(row["method"], row["n_labeled"]): write(row) for row in part.to_dict(orient="records")}
        methods = list(dict.fromkeys(part["method"]))
        rows = [[method, *(written.get((method, budget), NOTHING) for budget in budgets)] for method in methods]
        tables.append(TextTable(f"{title}: {metric}", ["method", *(f"{b:,} labels" for b in budgets)], rows, note))
        note = ""
    return tables


def error_tables(cells: pd.DataFrame) -> list[TextTable]:
    """Absolute errors and reductions by metric and budget."""
    note = (
        "Absolute error, the mean over models, seeds and data sets; in brackets how many times lower it is than that "
        f"of {ALONE} (geometric mean over the data sets)."
    )

    def write(row: dict[str, Any]) -> str:
        times = "" if row["method"] == ALONE or pd.isna(row["vs_labeled"]) else f" ({_times(row['vs_labeled'])})"
        return _error(row["abs_err"]) + times

    return _by_metric_and_budget(cells, "Absolute error", note, write)


def size_tables(cells: pd.DataFrame) -> list[TextTable]:
    """Effective sample sizes by metric and budget."""
    note = (
        f"The number of labels at which {ALONE} has the same mean absolute error (geometric mean over the data sets). "
        "≥: its error stays above even with the whole pool labeled; ~: so in one data set, and the opposite in another."
    )

    def write(row: dict[str, Any]) -> str:
        size = row["labels_worth"] * row["n_labeled"]
        return NOTHING if pd.isna(size) else f"{MARK.get(row['labels_worth_bound'], '')}{size:,.0f}"

    return _by_metric_and_budget(cells, "Effective sample size", note, write)


def interval_tables(cells: pd.DataFrame, level: float) -> list[TextTable]:
    """Coverage and width by metric and budget."""
    note = f"Share of the {format_level(level)} intervals that hold the truth / their mean width."

    def write(row: dict[str, Any]) -> str:
        return NOTHING if pd.isna(row["coverage"]) else f"{row['coverage']:.2f} / {row['width']:.3f}"

    return _by_metric_and_budget(cells, "Intervals", note, write)


def cell_table(cells: pd.DataFrame) -> TextTable:
    """The error of every method in every cell."""
    methods = list(dict.fromkeys(cells["method"]))
    rows = []
    for (dataset, metric, budget), part in cells.groupby(["dataset", "metric", "n_labeled"], sort=False):
        written = dict.fromkeys(methods, NOTHING)
        for row in part.to_dict(orient="records"):
            mark = "*" if row["best"] else "=" if row["tied"] else ""
            written[row["method"]] = _error(row["abs_err"]) + mark
        rows.append([str(dataset), str(metric), f"{budget:,}", *written.values()])
    note = "Mean absolute error in every cell. *: the least; =: tied with it."
    return TextTable("Every cell", ["data set", "metric", "labels", *methods], rows, note, names=2)
