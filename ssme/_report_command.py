"""``ssme report``: one HTML page of scores, of a table of estimates, or of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssme import _options as o
from ssme._console import collected_warnings, exit_codes, progress, put, say, write_atomically

if TYPE_CHECKING:
    from ssme.estimator import SSME
    from ssme.score_table import ScoreTable

_SOURCES = "Score files, or one table that ssme estimate wrote, or one folder with the frames of a sweep."


def _html(path: Path) -> Path:
    if path.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{path.name} must end in .html.")
    return path


Sources = Annotated[list[Path], typer.Argument(help=_SOURCES, metavar="FILE...")]
Page = Annotated[Path, typer.Option("--out", help="The page to write: .html.", callback=_html)]
Title = Annotated[str | None, typer.Option(help="Heading of the page.", metavar="TEXT")]


def report(
    files: Sources,
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
    out: Page = Path("report.html"),
    title: Title = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Write results as one HTML page that opens from disk and needs no network.

    Example: ssme report scores.csv --labels labels.csv --out report.html
    """
    from ssme import html_report

    o.check_out(out, [*files, labels])
    titled = {} if title is None else {"title": title}
    reading = (labels, id_column, label_column, groups, class_names, models, score_type, layout, separator)
    with progress(quiet=quiet) as step:
        step("reading")
        if len(files) == 1 and files[0].is_dir():
            with collected_warnings() as notes:
                page = html_report.sweep_page(**html_report.read_sweep(files[0]), **titled)  # type: ignore[arg-type]
        elif len(files) == 1 and html_report.is_estimates(files[0]):
            frame, settings, notes = html_report.read_estimates(files[0])
            page = html_report.estimates_page(frame, settings=settings, warnings=notes, **titled)
        else:
            settings = {"level": level, "density": density.value, "draws": draws, "seed": seed}
            with collected_warnings() as notes:
                table, model = _fitted(files, reading, o.distinct_names(metrics), settings, step)
            step("drawing")
            with collected_warnings() as more:
                page = html_report.scores_page(
                    model,
                    table,
                    o.distinct_names(metrics),
                    level=level,
                    groups=o.distinct_names(groups) or None,
                    labeled_only=labeled_only,
                    settings={"files": [f.name for f in files], **settings},
                    warnings=notes,
                    **titled,
                )
            notes = list(dict.fromkeys([*notes, *more]))
    write_atomically(out, lambda path: path.write_text(page, encoding="utf-8"))
    for note in notes:
        say(f"Warning: {note}")
    if not quiet:
        put(f"{out}: {len(page.encode()) / 1e6:.2f} MB.")


def _fitted(
    files: list[Path],
    reading: tuple[Any, ...],
    metrics: list[str],
    settings: dict[str, Any],
    step: Callable[[str], None],
) -> tuple[ScoreTable, SSME]:
    """The scores, and an estimator fitted to them; metrics that they do not allow are refused before the fit."""
    from ssme.estimator import SSME
    from ssme.metrics import get_metric

    table = o.read_table(files, *reading)
    for name in metrics:
        get_metric(name, table.n_classes)
    step("fitting")
    model = SSME(
        density=settings["density"],
        score_type=table.score_type,
        n_draws=settings["draws"],
        random_state=settings["seed"],
    )
    return table, model.fit(table)


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command(no_args_is_help=True)(exit_codes(report))
