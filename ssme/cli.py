"""The command line: parse, load, fit, report. Every number comes from the Python interface, to the last digit.

Exit codes: 0 all went well, 1 the input is at fault (one sentence on stderr), 2 the command was used wrongly,
3 a fault of the program (with ``--debug`` its traceback), 130 Ctrl-C, 141 nobody reads the output any more.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from ssme import _collect_command, _doctor_command, _question_commands, _report_command, _study_command, report
from ssme import _options as o
from ssme._console import EXIT_BAD_INPUT, collected_warnings, exit_codes, progress, put, say, show, write_table

if TYPE_CHECKING:
    from ssme.partitioned import FilesEstimate
    from ssme.score_table import ScoreTable

PURPOSE = "Judge several classifiers with many unlabeled rows and few labels: any metric, with intervals."

app = typer.Typer(
    name="ssme",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=PURPOSE,
    epilog="Exit codes: 0 ok, 1 bad input, 2 wrong usage, 3 a fault of the program, 130 Ctrl-C.",
)


@app.callback()
def _root(version: o.Version = False) -> None:
    pass


def _size(table: ScoreTable | FilesEstimate) -> str:
    rows = "1 row" if table.n_rows == 1 else f"{table.n_rows:,} rows"
    models = "1 model" if table.n_models == 1 else f"{table.n_models:,} models"
    return f"{rows} ({table.n_labeled:,} labeled), {models}, {table.n_classes} classes"


def _metric_notes() -> dict[str, str]:
    """What each metric is and which direction is better."""
    from ssme.metrics import METRICS

    return {
        name: f"{' '.join(spec.description.split()).rstrip('.')} "
        f"({'higher' if spec.greater_is_better else 'lower'} is better)."
        for name, spec in METRICS.items()
    }


@app.command(no_args_is_help=True)
@exit_codes
def estimate(
    files: o.Files,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: o.Groups = None,
    metrics: o.Metrics = "accuracy,ece",
    level: o.Level = 0.9,
    labeled_only: o.LabeledOnly = False,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    separator: o.Separator = ":",
    density: o.DensityOption = o.Density.recalibrated,
    draws: o.Draws = 100,
    seed: o.Seed = 0,
    out_of_core: o.OutOfCore = False,
    scheduler: o.Scheduler = None,
    out: o.Out = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Estimate metrics of every model from score files and a few labels.

    Example: ssme estimate bert.csv roberta.csv --labels labels.csv --metrics accuracy,ece
    """
    from ssme.estimator import SSME
    from ssme.metrics import get_metric

    o.check_out(out, [*files, labels])
    names, columns = o.distinct_names(metrics), o.distinct_names(groups)
    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    if scheduler is not None or out_of_core:
        o.check_out_of_core(groups, models, density)
    with progress(quiet=quiet or as_json) as step, collected_warnings() as notes:
        table: ScoreTable | FilesEstimate
        if scheduler is not None or out_of_core:
            from ssme.partitioned import estimate_files

            model, options = SSME(n_draws=draws, random_state=seed), o.read_options(*reading[1:])
            with_labels = (labels, names, options, model)
            table = estimate_files(
                files, *with_labels, level=level, labeled_only=labeled_only, scheduler=scheduler, note=step
            )
            frame = table.frame
        else:
            step("reading the scores")
            table = o.read_table(files, *reading)
            for name in names:  # a metric that this number of classes does not allow is refused before the fit
                get_metric(name, table.n_classes)
            step("fitting")
            model = SSME(density=density.value, score_type=table.score_type, n_draws=draws, random_state=seed)
            model.fit(table)
            step("estimating")
            frame = model.estimate(names, level=level, groups=columns or None, labeled_only=labeled_only)
    settings = {
        "files": [str(f) for f in files],
        "labels": None if labels is None else str(labels),
        "rows": table.n_rows,
        "labeled": table.n_labeled,
        "models": list(table.model_names),
        "classes": list(table.class_names),
        "score_type": table.score_type,
        "density": density.value,
        "level": level,
        "draws": draws,
        "seed": seed,
    }
    document = report.estimates_to_json(frame, settings=settings, warnings=notes)
    if out is not None:
        write_table(out, frame, document, report.estimates_to_markdown)
    if as_json:
        put(document)
        return
    show(
        [report.estimates_to_table(frame)],
        notes,
        before=[f"{_size(table)}; density {density.value}, seed {seed}"],
        after=report.explain(frame, _metric_notes()),
        quiet=quiet,
        written=out is not None,
    )


@app.command(no_args_is_help=True)
@exit_codes
def inspect(
    files: o.Files,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: o.Groups = None,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    separator: o.Separator = ":",
    density: o.DensityOption = o.Density.recalibrated,
    fit: o.Fit = True,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Show what is in score files, what is wrong with them, how far the models agree, and how a fit goes.

    Example: ssme inspect scores.csv
    """
    from ssme import inspection

    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    with progress(quiet=quiet or as_json) as step, collected_warnings() as notes:
        step("reading the scores")
        table = o.read_table(files, *reading)
        content, agreement = inspection.describe(table), inspection.agreement(table)
        found = inspection.findings(table)
        diagnostics: dict[str, Any] = {}
        if fit:
            from ssme.estimator import SSME

            step("fitting")
            model = SSME(density=density.value, score_type=table.score_type, random_state=seed).fit(table)
            diagnostics = inspection.fit_diagnostics(model)
    if as_json:
        document = {
            "format": "ssme-inspection/1",
            "content": content,
            "findings": found,
            "agreement": inspection.agreement_record(agreement),
            "fit": diagnostics,
            "warnings": notes,
        }
        put(report.to_json(document))
        return
    tables = report.inspection_to_tables(content, agreement, diagnostics)
    show([*tables, report.findings_to_text(found)], notes, quiet=quiet)


@app.command(no_args_is_help=True)
@exit_codes
def convert(
    paths: o.InsAndOut,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    groups: o.Groups = None,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    layout: o.LayoutOption = o.Layout.auto,
    class_names: o.ClassNames = None,
    models: o.Models = None,
    separator: o.Separator = ":",
    to_layout: o.ToLayout = o.OutLayout.wide,
    force: o.Force = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Join score files by row id and write them as one csv, parquet or npz file.

    Example: ssme convert bert.csv roberta.csv scores.npz --labels labels.csv
    """
    if len(paths) < 2:
        raise typer.BadParameter("give at least one file to read and then the file to write.", param_hint="IN... OUT")
    *sources, out = paths
    o.score_suffix(out, "OUT")
    o.check_out(out, [*sources, labels])
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists; pass --force to replace it.")
    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    with progress(quiet=quiet) as step, collected_warnings() as notes:
        step("reading the scores")
        table = o.read_table(sources, *reading)
        step("writing")
        table.write(out, layout=to_layout.value)
    for note in notes:
        say(f"Warning: {note}")
    if not quiet:
        put(f"{out}: {_size(table)}.")


@app.command()
@exit_codes
def demo(
    seed: o.Seed = 0,
    out: o.ScoresOut = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Train seven classifiers on handwritten digits, hide all but 20 labels, and compare estimates with the truth."""
    from ssme import demo as story

    o.check_out(out, [])
    with progress(quiet=quiet or as_json) as step, collected_warnings() as notes:
        step("training seven classifiers")
        scores = story.make_scores(seed)
        if out is not None:
            scores.table.write(out)
        step("estimating")
        frame = story.compare(scores, seed)
    if as_json:
        comparison = frame.to_dict(orient="records")
        put(report.to_json({**story.summary(frame), "comparison": comparison, "warnings": notes}))
        return
    after = story.verdict(frame)
    if out is not None:
        after.append(f"The scores and the labels are in {out}; go on with: ssme estimate {out} --labeled-only")
    show(
        story.to_tables(frame),
        notes,
        before=story.introduction(scores),
        after=after,
        quiet=quiet,
        written=out is not None,
    )


_collect_command.register(app)
_question_commands.register(app)
_study_command.register(app)
_report_command.register(app)
_doctor_command.register(app)


def main() -> None:
    """Entry point of the ``ssme`` command."""
    try:
        app(prog_name="ssme")
    except OSError as error:  # commands see to their own errors; help and version are written outside of them
        say(f"Error: cannot write to standard output ({error.strerror}).")
        sys.exit(EXIT_BAD_INPUT)
