"""The commands `ssme compare`, `ssme suggest` and `ssme prevalence`: what one asks beside the estimates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssme import _options as o
from ssme._console import collected_warnings, exit_codes, progress, put, show, write_table
from ssme._format import frame_to_markdown, frame_to_table

if TYPE_CHECKING:
    import pandas as pd

    from ssme.estimator import SSME
    from ssme.label_design import LabelBatch
    from ssme.score_table import ScoreTable

_METRIC = "The metric to compare by."
_PAIRS = "Also compare every two models."
_K = "How many rows to label next."
_NEXT = "File of all rows, those to label first: id, label, label_weight, next (.csv or .parquet)."
_FOR = "Choose rows for these models alone: a,b."
MOST_PAIRS = 200  # lines of a table that somebody reads


def _one_metric(text: str) -> str:
    if len(o.split_names(text)) != 1:
        raise typer.BadParameter(f"give one metric; got {text!r}.")
    return o.metric_names(text)


def _table_suffix(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in (".csv", ".parquet"):
        raise typer.BadParameter(f"{path.name} must end in .csv or .parquet.")
    return path


OneMetric = Annotated[str, typer.Option(help=_METRIC, metavar="NAME", callback=_one_metric)]
Pairs = Annotated[bool, typer.Option("--pairs", help=_PAIRS)]
Number = Annotated[int, typer.Option("-k", "--number", help=_K, min=1)]
NextOut = Annotated[Path | None, typer.Option("--out", help=_NEXT, callback=_table_suffix)]
ForModels = Annotated[str | None, typer.Option("--for", help=_FOR, metavar="NAMES", callback=o.checked_names)]


def _fitted(table: ScoreTable, draws: int, seed: int) -> SSME:
    from ssme.estimator import SSME

    return SSME(score_type=table.score_type, n_draws=draws, random_state=seed).fit(table)


@exit_codes
def compare(
    files: o.Files,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: o.Groups = None,
    metric: OneMetric = "accuracy",
    level: o.Level = 0.9,
    pairs: Pairs = False,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    separator: o.Separator = ":",
    draws: o.Draws = 400,
    seed: o.Seed = 0,
    out: o.Out = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Rank the models, say which one to take, and what that may cost.

    Example: ssme compare bert.csv roberta.csv --labels labels.csv --metric accuracy
    """
    from ssme import report

    o.check_out(out, [*files, labels])
    columns = o.distinct_names(groups) or None
    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    with progress(quiet=quiet or as_json) as step, collected_warnings() as notes:
        step("reading the scores")
        table = o.read_table(files, *reading)
        step("fitting")
        model = _fitted(table, draws, seed)
        step("comparing")
        ranking = model.rank(metric, level=level, groups=columns)
        best = model.select_best(metric, level=level)
        compared = model.compare(metric, level=level, groups=columns)
    parts: dict[str, Any] = {"select": str(best), "ranking": ranking.to_dict(orient="records")}
    parts["pairs"] = compared.to_dict(orient="records")
    counts = {"rows": table.n_rows, "labeled": table.n_labeled, "metric": metric, "level": level, "draws": draws}
    document = report.to_json({**counts, "seed": seed, **parts, "warnings": notes})
    if out is not None:
        write_table(out, compared if pairs else ranking, document, frame_to_markdown)
    if as_json:
        put(document)
        return
    tables = [frame_to_table(ranking, hide=("metric", "level"))]
    if pairs:
        tables.append(frame_to_table(compared.head(MOST_PAIRS), hide=("metric", "level")))
    if pairs and len(compared) > MOST_PAIRS:
        notes.append(f"{MOST_PAIRS} of {len(compared)} pairs are shown; --out and --json give all of them.")
    before = f"{metric}: {table.n_labeled:,} of {table.n_rows:,} rows labeled, {draws} draws, seed {seed}"
    show(tables, notes, before=[before], after=[str(best), _meaning(level)], quiet=quiet, written=out is not None)


def _meaning(level: float) -> str:
    return (
        "p_best: probability that no other model is better. p_better_than_next: probability that the model is better "
        f"than the one below it. Ranks and differences come with intervals that hold with probability {level:g}."
    )


@exit_codes
def suggest(
    files: o.Files,
    number: Number,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: o.Groups = None,
    for_models: ForModels = None,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    separator: o.Separator = ":",
    seed: o.Seed = 0,
    out: NextOut = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Choose the rows to label next, and write the file to fill in.

    The file has every row: those to label first (next = 1, no label), then the others with the labels that there are.
    Fill in the labels and give the file to --labels, here or in estimate: label_weight keeps the estimates unbiased.

    Example: ssme suggest scores.csv --labels labels.csv -k 40 --out labels2.csv
    """
    from ssme import report

    o.check_out(out, [*files, labels])
    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    with progress(quiet=quiet or as_json) as step, collected_warnings() as notes:
        step("reading the scores")
        table = o.read_table(files, *reading)
        step("fitting")
        model = _fitted(table, 100, seed)
        batch = model.suggest_labels(number, models=o.split_names(for_models) or None)
    frame = labels_to_fill_in(table, batch)
    first = frame.head(number)
    if out is not None:
        write_table(out, frame, "", frame_to_markdown)
    if as_json:
        counts = {"rows": table.n_rows, "labeled": table.n_labeled, "seed": seed, "warnings": notes}
        put(report.to_json({**counts, "next": first[["id", "label_weight"]].to_dict(orient="records")}))
        return
    shown = frame_to_table(first[["id", "label_weight"]])
    after = ["Without --out nothing is kept: the weights of all rows belong to the labels."] if out is None else []
    show([shown], notes, before=[f"{number} rows to label next"], after=after, quiet=quiet, written=out is not None)


def labels_to_fill_in(table: ScoreTable, batch: LabelBatch) -> pd.DataFrame:
    """Every row of a table, those of the batch first: id, label (empty where there is none), label_weight, next."""
    import numpy as np
    import pandas as pd

    names = np.array([*table.class_names, ""], dtype=object)
    chosen = np.zeros(table.n_rows, dtype=np.int64)
    chosen[batch.rows] = 1
    frame = pd.DataFrame(
        {"id": table.row_ids, "label": names[table.labels], "label_weight": batch.label_weight, "next": chosen}
    )
    return frame.iloc[np.lexsort((np.arange(table.n_rows), 1 - chosen))].reset_index(drop=True)


@exit_codes
def prevalence(
    files: o.Files,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: o.Groups = None,
    level: o.Level = 0.9,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    separator: o.Separator = ":",
    draws: o.Draws = 400,
    seed: o.Seed = 0,
    out: o.Out = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Estimate the share of every class, of all rows and of subgroups; warn where labeled rows are not like the rest.

    With judges as the models and a group for each system, the share of "win" is the win rate of that system.

    Example: ssme prevalence judges.csv --labels people.csv --groups system
    """
    from ssme import report

    o.check_out(out, [*files, labels])
    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    with progress(quiet=quiet or as_json) as step, collected_warnings() as notes:
        step("reading the scores")
        table = o.read_table(files, *reading)
        step("fitting")
        model = _fitted(table, draws, seed)
        step("estimating")
        frame = model.prevalence(level=level, groups=o.distinct_names(groups) or None)
        shift = model.check_shift()
    counts = {"rows": table.n_rows, "labeled": table.n_labeled, "level": level, "draws": draws, "seed": seed}
    parts = {"shares": frame.to_dict(orient="records"), "shift": str(shift), "warnings": notes}
    document = report.to_json({**counts, **parts})
    if out is not None:
        write_table(out, frame, document, frame_to_markdown)
    if as_json:
        put(document)
        return
    after = [
        f"Intervals hold with probability {level:g} for the share in the population that the rows came from.",
        *([] if shift.shifted else [str(shift)]),
    ]
    show([frame_to_table(frame, hide=("level",))], notes, after=after, quiet=quiet, written=out is not None)


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    for command in (compare, suggest, prevalence):
        app.command(no_args_is_help=True)(command)
