"""The figure of a study: error and coverage against the number of labels, a panel for each metric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssme._format import format_level
from ssme.study._methods import ALL_LABELS, ALONE

OURS = "ssme"
# Okabe and Ito's colours, which colour-blind readers can tell apart, without the three that are given away below.
COLOURS = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31")
MARKERS = "osv^DPX"
FIXED: dict[str, dict[str, Any]] = {
    OURS: {"color": "#0072B2", "linewidth": 2.6, "marker": "o", "markersize": 6, "zorder": 5},
    ALONE: {"color": "black", "linewidth": 1.8, "marker": "s", "markersize": 5, "zorder": 4},
    ALL_LABELS: {"color": "0.5", "linewidth": 1.4, "linestyle": (0, (4, 2)), "zorder": 3},
}


def styles(methods: list[str]) -> dict[str, dict[str, Any]]:
    """How each method is drawn: SSME, the labels alone and all labels always alike, rivals by colour and marker."""
    rivals = [method for method in methods if method not in FIXED]
    found = dict(FIXED)
    for i, method in enumerate(rivals):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        found[method] = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.1, "alpha": 0.9}
    return {method: found[method] for method in methods}


def draw_figure(cells: pd.DataFrame, level: float, path: Path) -> None:
    """Draw the figure of the cells of :func:`ssme.study.summarize_cells` to a file.

    Raises
    ------
    ImportError
        Where matplotlib is missing.
    """
    from matplotlib.figure import Figure

    metrics, methods = list(dict.fromkeys(cells["metric"])), list(dict.fromkeys(cells["method"]))
    drawn = styles(methods)
    columns, n_sets = max(len(metrics), 1), cells["dataset"].nunique()
    figure = Figure(figsize=(3.1 * columns + 1.9, 5.8), layout="constrained")
    panels = figure.subplots(2, columns, squeeze=False, sharex=True)
    for j, metric in enumerate(metrics):
        of_metric = cells[cells["metric"] == metric]
        for method in methods:
            part = of_metric[of_metric["method"] == method].groupby("n_labeled")
            error = np.exp(part["abs_err"].apply(lambda e: np.log(np.maximum(e, 1e-12)).mean()))
            panels[0, j].plot(error.index, error, label=method, **drawn[method])
            if method != ALL_LABELS:
                coverage = part["coverage"].mean()
                panels[1, j].plot(coverage.index, coverage, **drawn[method])
        panels[1, j].axhline(level, color="0.3", linewidth=1, linestyle=":")
        of_sets = of_metric["dataset"].nunique()
        title = f"{metric}\n{of_sets} of {n_sets} data sets" if n_sets > 1 else str(metric)
        _lay_axes(panels[0, j], panels[1, j], title, sorted(set(of_metric["n_labeled"])))
    several = "\n(geometric mean of the data sets)" if n_sets > 1 else ""
    panels[0, 0].set_ylabel(f"mean absolute error{several}")
    panels[1, 0].set_ylabel(f"coverage of {format_level(level)} intervals")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    figure.savefig(path, dpi=150, format="png")


def _lay_axes(top: Any, bottom: Any, title: str, budgets: list[int]) -> None:
    """Logarithmic error, coverage from 0 to 1, the budgets as ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    top.set_title(title, fontsize=10)
    top.set_xscale("log")
    top.set_yscale("log")
    top.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    top.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    top.yaxis.set_minor_locator(NullLocator())
    bottom.set_ylim(-0.02, 1.02)
    bottom.set_xlabel("labels")
    bottom.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    bottom.xaxis.set_minor_locator(NullLocator())
    for panel in (top, bottom):
        panel.grid(True, color="0.9", linewidth=0.7)
        panel.spines[["top", "right"]].set_visible(False)
