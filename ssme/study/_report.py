"""A study as a page of markdown with its figure, and as tables for the terminal."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ssme._atomic import atomic_path
from ssme._format import rich_table
from ssme.study import _tables
from ssme.study._methods import ALL_LABELS, ALONE
from ssme.study._summary import summarize_cells

if TYPE_CHECKING:
    from rich.console import RenderableType

REPORT, FIGURE = "report.md", "figure.png"


def write_report(frame: pd.DataFrame, folder: str | os.PathLike[str]) -> Path:
    """Write report.md and figure.png into a folder.

    Parameters
    ----------
    frame : DataFrame
        What :func:`ssme.study.run_study` returns, with its ``attrs``.
    folder : path
        Made where it is missing.

    Returns
    -------
    Path
        The report. Without matplotlib it has no figure, and a warning says so.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cells = summarize_cells(frame)
    figure: str | None = FIGURE
    try:
        from ssme.study._figure import draw_figure

        with atomic_path(folder / FIGURE) as temporary:
            draw_figure(cells, _info(frame)["settings"]["level"], temporary)
    except ImportError:
        figure = None
        warnings.warn("the report has no figure: pip install 'ssme[report]' for matplotlib.", UserWarning, stacklevel=2)
    with atomic_path(folder / REPORT) as temporary:
        temporary.write_text(report_to_markdown(frame, figure=figure), encoding="utf-8")
    return folder / REPORT


def _info(frame: pd.DataFrame) -> Mapping[Any, Any]:
    if "settings" not in frame.attrs:
        raise ValueError("frame has lost its attrs, the record of the study; pass what run_study returned or wrote.")
    return frame.attrs


def report_to_markdown(frame: pd.DataFrame, *, figure: str | None = None) -> str:
    """Write a study as markdown.

    Parameters
    ----------
    frame : DataFrame
        What :func:`ssme.study.run_study` returns, with its ``attrs``.
    figure : str, optional
        Where the figure is, as seen from the report.
    """
    info, cells = _info(frame), summarize_cells(frame)
    level = info["settings"]["level"]
    lines = ["# Label-budget study", "", *_what_was_done(info), ""]
    lines += _to_lines(_tables.method_table(cells, level))
    if figure is not None:
        lines += [f"![Error and coverage against the number of labels]({figure})", ""]
    for table in [
        *_tables.error_tables(cells),
        *_tables.size_tables(cells),
        *_tables.interval_tables(cells, level),
        _tables.cell_table(cells),
    ]:
        lines += _to_lines(table)
    return "\n".join([*lines, *_what_went_wrong(info), *_how_it_ran(info)]) + "\n"


def tables_for_terminal(frame: pd.DataFrame) -> list[RenderableType]:
    """The method table and the errors by metric and budget, for rich."""
    cells = summarize_cells(frame)
    tables = [_tables.method_table(cells, _info(frame)["settings"]["level"]), *_tables.error_tables(cells)]
    return [rich_table(t.heading, t.rows, title=t.title, numeric=t.heading[t.names :]) for t in tables]


def explain(frame: pd.DataFrame) -> list[str]:
    """What the tables for the terminal mean, and what went wrong, in sentences."""
    info, cells = _info(frame), summarize_cells(frame)
    tables = [_tables.method_table(cells, info["settings"]["level"]), *_tables.error_tables(cells)]
    lines = [*_what_was_done(info), *(table.note for table in tables if table.note)]
    return [line for line in [*lines, *_what_went_wrong(info)] if line and not line.startswith("#")]


# -- parts -------------------------------------------------------------------------------------------------------------


def _cell(text: str) -> str:
    """Escape what would end a cell or be read as markup or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\|`*_[]":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def _to_lines(table: _tables.TextTable) -> list[str]:
    lines = [f"## {_cell(table.title)}", ""]
    if table.note:
        lines += [_cell(table.note), ""]
    lines.append("| " + " | ".join(map(_cell, table.heading)) + " |")
    lines.append("|" + "---|" * table.names + "---:|" * (len(table.heading) - table.names))
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in table.rows]
    return [*lines, ""]


def _what_was_done(info: Mapping[Any, Any]) -> list[str]:
    settings, data = info["settings"], info["data"]
    budgets = ", ".join(f"{budget:,}" for budget in settings["budgets"])
    first = "one label of each class first, then at random" if settings["stratified"] else "at random"
    lines = [
        f"{len(settings['seeds'])} seeds. For each, half of the labeled rows of a data set are the pool: {budgets} of "
        f"its rows show their label (drawn {first}), up to {settings['n_unlabeled']:,} others do not. Truth: the "
        f"metric on the other half, which no method sees. {ALONE} uses the labels shown and nothing else; {ALL_LABELS} "
        "is the same with the label of every row drawn: its error is what is left when all labels are known. A truth "
        "from few rows is itself uncertain, so that intervals, which are for the population, hold it less often than "
        "the value of the population.",
        "",
    ]
    for name, facts in data.items():
        left_out = facts["unlabeled_rows_left_out"]
        lines.append(
            f"- {_cell(name)}: {facts['rows']:,} labeled rows ({facts['truth_rows']:,} for the truth), "
            f"{facts['models']} models, {facts['classes']} classes"
            + (f"; {left_out:,} rows without a label left out" if left_out else "")
        )
    return lines


def _what_went_wrong(info: Mapping[Any, Any]) -> list[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for facts in info["data"].values():
        for method, metrics in facts["cannot_give"].items():
            for metric, reason in metrics.items():
                known = reasons.setdefault((method, reason), [])
                known += [metric] if metric not in known else []
    lines = [f"- {method} gives no {', '.join(names)}: {_cell(reason)}" for (method, reason), names in reasons.items()]
    lines += [
        f"- {each['method']} failed in {each['fits']:,} fits on {_cell(each['dataset'])}, which count as no estimate: "
        f"{_cell(each['error'])}"
        for each in info["failures"]
    ]
    return ["## Without an estimate", "", *lines, ""] if lines else []


def _how_it_ran(info: Mapping[Any, Any]) -> list[str]:
    hardware = info["hardware"]
    memory = f", {hardware['memory_gib']} GiB" if "memory_gib" in hardware else ""
    return [
        "## How it ran",
        "",
        f"- trials: {info['trials']} seeds for every data set, budget and method",
        f"- versions: {', '.join(f'{name} {number}' for name, number in info['versions'].items())}",
        f"- commit: {info['commit'] or 'not known'}; fingerprint of the code: {info['code']}",
        f"- hardware: {hardware['processor'] or hardware['machine']}, {hardware['cores']} cores{memory}, "
        f"{hardware['system']}; processes: {hardware['processes']}, one thread each",
    ]
