"""The page of a sweep: robustness curves, diagnostics of training, masking verdicts, factors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from ssme._format import format_number
from ssme.html_report._figures import N_COLOURS, Figure, draw
from ssme.html_report._page import render, shade
from ssme.plots import CScoreDisplay, RobustnessCurvesDisplay

VERDICTS = {
    "masked": "training was harmed, and accuracy does not show it",
    "open collapse": "training was harmed, and accuracy shows it",
    "stable": "no diagnostic worsened significantly",
}


def sweep_page(
    curves: pd.DataFrame | None = None,
    *,
    cscore: pd.DataFrame | None = None,
    masking: pd.DataFrame | None = None,
    factors: pd.DataFrame | None = None,
    title: str = "Robustness sweep",
    warnings: Sequence[str] = (),
) -> str:
    """Write the page of a sweep from its tidy frames; sections without a frame are left out.

    Parameters
    ----------
    curves : DataFrame, optional
        Columns algorithm, value, estimate, lower, upper; truth where it is known; factor and metric where there are
        several: a figure is drawn for each.
    cscore : DataFrame, optional
        Columns epoch and one for each indicator; algorithm, value, seed.
    masking : DataFrame, optional
        Columns algorithm and verdict ("stable", "masked", "open collapse"); others are shown as they are.
    factors : DataFrame, optional
        Columns algorithm, factor and score: the heat map.
    title : str
    warnings : sequence of str
        Shown at the top.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    ValueError
        Where no frame is given, or one lacks a column.

    Examples
    --------
    >>> frame = pd.DataFrame({"algorithm": "fixmatch", "value": [0.0, 0.5], "estimate": [0.9, 0.7],
    ...                       "lower": [0.88, 0.66], "upper": [0.92, 0.75]})
    >>> sweep_page(frame).startswith("<!doctype html>")
    True
    """
    if curves is None and cscore is None and masking is None and factors is None:
        raise ValueError("give at least one frame: curves, cscore, masking or factors.")
    number = itertools.count(1)
    return render(
        "sweep.html",
        title=title,
        warnings=list(warnings),
        curves=[] if curves is None else _curve_figures(curves, number),
        panels=[] if cscore is None else _panels(cscore, number),
        masking=None if masking is None else _masking(masking),
        verdicts=VERDICTS,
        heat=None if factors is None else _heat(factors),
    )


def _curve_figures(frame: pd.DataFrame, number: itertools.count[int]) -> list[Figure]:
    """A figure for each factor and metric, with so many algorithms as there are colours."""
    RobustnessCurvesDisplay.from_frame(frame)
    keys = [c for c in ("dataset", "factor", "metric") if c in frame]
    parts = frame.groupby(keys, sort=False, dropna=False) if keys else [((), frame)]
    figures = []
    for key, part in parts:
        names = list(dict.fromkeys(part["algorithm"]))
        for start in range(0, len(names), N_COLOURS):
            some = names[start : start + N_COLOURS]
            said = ", ".join(str(k) for k in key) or "Robustness curve"
            plot = partial(RobustnessCurvesDisplay.from_frame(part).plot, algorithms=some)
            figures.append(draw(plot, said, number, height=3.4))
    return figures


def _panels(frame: pd.DataFrame, number: itertools.count[int]) -> list[Figure]:
    display = CScoreDisplay.from_frame(frame)
    return [
        draw(partial(display.plot, indicators=[name]), str(name), number, height=3.0) for name in display.indicators
    ]


def _masking(frame: pd.DataFrame) -> dict[str, Any]:
    _need(frame, ("algorithm", "verdict"), "masking")
    rows = [[_cell(v) for v in row] for row in frame.itertuples(index=False)]
    return {"columns": [str(c).replace("_", " ") for c in frame.columns], "rows": rows}


def _heat(frame: pd.DataFrame) -> dict[str, Any]:
    _need(frame, ("algorithm", "factor", "score"), "factors")
    table = frame.pivot_table(index="algorithm", columns="factor", values="score", aggfunc="mean", sort=False)
    values = table.to_numpy(float)
    low, high = float(frame["score"].min()), float(frame["score"].max())
    cells = [[(format_number(v), shade(v, low, high)) for v in row] for row in values]
    return {
        "columns": [str(c) for c in table.columns],
        "rows": list(zip([str(a) for a in table.index], cells, strict=True)),
        "low": format_number(low),
        "high": format_number(high),
    }


def _need(frame: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise ValueError(f"{name} must have the columns {', '.join(columns)}; {', '.join(missing)} is missing.")
    if frame.empty:
        raise ValueError(f"{name} has no rows.")


def _cell(value: Any) -> str:
    return format_number(value) if isinstance(value, float) else str(value)
