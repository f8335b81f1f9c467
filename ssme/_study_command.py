"""The command `ssme study`: how many labels are enough, and which method to use, on the user's own labeled scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssme import _options as o
from ssme._console import collected_warnings, exit_codes, put, show

if TYPE_CHECKING:
    import pandas as pd

_BUDGETS = "Numbers of labels to try: 20,50,100."
_METHODS = "Methods to compare, or all: ssme,labeled-only. all-labels is a reference."
_METRICS = "Metrics: a,b; by default accuracy,ece, or for two classes accuracy,ece_positive,roc_auc,average_precision."
_GROUPS = "Columns that are subgroups and no scores: a,b; a study does not split by them."
LEAST_LIMIT_OF_JOBS, JOBS_PER_CORE = 16, 2  # more processes than that only take each other's time and memory
_OUT = "Folder for report, figure, table and finished cells; a study that was stopped goes on from there."


def _budgets(text: str) -> str:
    for part in o.split_names(text):
        if not (part.isascii() and part.isdecimal() and len(part) < 10 and int(part) > 0):
            raise typer.BadParameter(f"budgets are whole numbers of labels, such as 20,50,100; got {part!r}.")
    return text


def _methods(text: str) -> str:
    from ssme.study._methods import check_methods

    names = o.distinct_names(text)
    if names != ["all"]:
        try:
            check_methods(names)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    return text


def _metrics(text: str | None) -> str | None:
    return text if text is None else o.metric_names(text)


def _jobs(value: int) -> int:
    most = max(LEAST_LIMIT_OF_JOBS, JOBS_PER_CORE * (os.cpu_count() or 1))
    if value != -1 and not 1 <= value <= most:
        raise typer.BadParameter(
            f"give a number of processes from 1 to {most}, or -1 for one on each core; got {value}."
        )
    return value


Budgets = Annotated[str, typer.Option(help=_BUDGETS, metavar="NUMBERS", callback=_budgets)]
Seeds = Annotated[int, typer.Option(help="How many random draws of the labels to try.", min=1, max=100_000)]
Methods = Annotated[str, typer.Option(help=_METHODS, metavar="NAMES", callback=_methods)]
StudyMetrics = Annotated[str | None, typer.Option(help=_METRICS, metavar="NAMES", callback=_metrics)]
Unlabeled = Annotated[int, typer.Option(help="Rows without a label beside the labeled ones, at most.", min=0)]
Stratified = Annotated[bool, typer.Option("--stratified", help="Label one row of each class first.")]
StudyGroups = Annotated[str | None, typer.Option("--groups", help=_GROUPS, metavar="COLUMNS", callback=o.checked_names)]
StudyDraws = Annotated[
    int | None,
    typer.Option("--draws", help="Draws of every method; by default its own number.", min=2, max=o.MOST_DRAWS),
]
Folder = Annotated[Path | None, typer.Option(help=_OUT, file_okay=False)]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one on each core.", callback=_jobs)]


@exit_codes
def study(
    files: o.Files,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: StudyGroups = None,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    separator: o.Separator = ":",
    budgets: Budgets = "20,50,100",
    seeds: Seeds = 25,
    methods: Methods = "ssme,labeled-only,all-labels",
    metrics: StudyMetrics = None,
    unlabeled: Unlabeled = 1000,
    level: o.Level = 0.9,
    draws: StudyDraws = None,
    stratified: Stratified = False,
    out: Folder = None,
    jobs: Jobs = -1,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Hide labels that you have, let every method estimate from a few of them, and compare with the truth.

    Half of the labeled rows are the pool that labels are drawn from; the other half gives the truth.

    Example: ssme study scores.csv --label-column y --budgets 20,50,100 --out study
    """
    from ssme._atomic import check_folder
    from ssme.study import method_names, run_study, write_report

    if out is not None:
        check_folder(out)
    names = list(method_names()) if methods == "all" else o.split_names(methods)
    with collected_warnings() as notes:
        table = o.read_table(
            files, labels, id_column, label_column, groups, class_names, models, score_type, layout, separator
        )
        frame = run_study(
            {files[0].name.split(".")[0] if len(files) == 1 else "data": table},
            [int(budget) for budget in o.split_names(budgets)],
            seeds,
            names,
            o.split_names(metrics) or None,
            n_unlabeled=unlabeled,
            level=level,
            n_draws=draws,
            n_jobs=jobs,
            out_dir=out,
            stratified=stratified,
            progress=not (quiet or as_json),
        )
        written = None if out is None else write_report(frame, out)
    _show(frame, written, notes, as_json=as_json, quiet=quiet)


def _show(frame: pd.DataFrame, written: Path | None, notes: list[str], *, as_json: bool, quiet: bool) -> None:
    """Print the study as JSON, or as tables with what they mean."""
    from ssme import report
    from ssme.study import summarize_cells, summarize_methods
    from ssme.study._report import explain, tables_for_terminal

    if as_json:
        cells = summarize_cells(frame)
        parts = {
            "methods": summarize_methods(cells).to_dict(orient="records"),
            "cells": cells.to_dict(orient="records"),
        }
        put(report.to_json({**frame.attrs, **parts, "warnings": notes}))
        return
    after = [*explain(frame), *([] if written is None else [f"The report is {written}."])]
    show(tables_for_terminal(frame), notes, after=after, quiet=quiet, written=written is not None)


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command(no_args_is_help=True)(study)
