"""Curves of a sweep as a figure: estimate with its interval, the labels alone, and the truth where it is known."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

OURS, ALONE, TRUE = "#0072B2", "#999999", "#D55E00"  # Okabe and Ito: told apart by colour-blind readers
COLUMNS = 6


def draw_curves(points: pd.DataFrame, robustness: pd.DataFrame, path: Path, metric: str = "accuracy") -> None:
    """Draw one panel for each algorithm; the format is that of the path's suffix.

    Parameters
    ----------
    points, robustness : DataFrame
        Of `CurveEstimates`.
    path : Path
        Replaced whole.
    metric : str

    Raises
    ------
    ImportError
        Where matplotlib is missing.
    """
    from matplotlib.figure import Figure

    from ssl_zoo._files import write_bytes

    points = points[points["metric"] == metric]
    names = list(dict.fromkeys(points["algorithm"]))
    n_columns = min(COLUMNS, len(names))
    n_rows = math.ceil(len(names) / n_columns)
    figure = Figure(figsize=(2.2 * n_columns + 0.8, 1.9 * n_rows + 1.1), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True)
    slopes = robustness[(robustness["metric"] == metric) & (robustness["measure"] == "r_slope")]
    slopes = slopes[slopes["method"] != "labeled-only"].set_index("algorithm")
    for panel, name in zip(panels.flat, names, strict=False):
        _draw_panel(panel, points[points["algorithm"] == name])
        text = name
        if name in slopes.index:
            row = slopes.loc[name]
            text += f"\nslope {row['estimate']:+.3f} [{row['lower']:+.3f}, {row['upper']:+.3f}]"
        panel.set_title(text, fontsize=8)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    known = points[points["method"] != "labeled-only"]
    first = known.iloc[0]
    figure.supxlabel("contamination", fontsize=9)
    figure.supylabel(metric, fontsize=9)
    figure.suptitle(
        f"{first['n_labeled']} labeled and {first['n_unlabeled']} unlabeled rows; {first['level']:.0%} intervals",
        fontsize=9,
    )
    limits = known[["lower", "upper"]].to_numpy()
    panels.flat[0].set_ylim(np.nanmin(limits) - 0.02, np.nanmax(limits) + 0.02)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=3, fontsize=8, frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.lstrip(".") or "png", dpi=150)
    write_bytes(path, buffer.getvalue())


def _draw_panel(panel: Any, points: pd.DataFrame) -> None:
    for method, part in points.groupby("method", sort=False):
        x = part["x"] if pd.api.types.is_numeric_dtype(part["x"]) else np.arange(len(part))
        if method == "labeled-only":
            panel.plot(x, part["estimate"], color=ALONE, linestyle=":", linewidth=1.2, label="labels alone")
            continue
        panel.fill_between(x, part["lower"], part["upper"], color=OURS, alpha=0.2, linewidth=0)
        panel.plot(x, part["estimate"], color=OURS, marker="o", markersize=3, label="estimate")
        if "truth" in part.columns and part["truth"].notna().any():
            panel.plot(x, part["truth"], color=TRUE, linestyle="none", marker="x", markersize=4, label="all labels")
