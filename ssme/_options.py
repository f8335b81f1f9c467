"""Options of the command line: their types, help texts and checks, shared by the commands."""

from __future__ import annotations

import difflib
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ssme._table_io import ReadOptions
    from ssme.score_table import ScoreTable

OUT_SUFFIXES = (".csv", ".json", ".parquet", ".md")
MOST_DRAWS = 100_000

# What messages call the arguments of the Python interface on the command line.
ARGUMENTS = {
    "labels": "--labels",
    "id_column": "--id",
    "label_column": "--label-column",
    "group_columns": "--groups",
    "class_names": "--class-names",
    "models": "--models",
    "score_type": "--score-type",
    "layout": "--layout",
    "write.layout": "--to-layout",
    "separator": "--separator",
    "n_draws": "--draws",
    "row_ids": "the id",
    "model_names": "the names of the models",
    "data": "--data",
    "text_column": "--text",
    "text_pair_column": "--text-pair",
    "image_column": "--image",
    "label_mapping": "--label-mapping",
    "candidate_labels": "--candidate-labels",
    "hypothesis_template": "--template",
    "missing": "--missing",
    "batch_size": "--batch-size",
    "max_length": "--max-length",
    "device": "--device",
    "dtype": "--dtype",
    "cache_dir": "--cache",
    "allow_pickle=True": "--allow-pickle",
    "trust_remote_code=True": "--trust-remote-code",
}


class ScoreType(str, Enum):
    """How the scores of a file are meant."""

    probability = "probability"
    logit = "logit"


class Layout(str, Enum):
    """How the columns of a score file are laid out."""

    auto = "auto"
    wide = "wide"
    binary = "binary"
    model = "model"
    long = "long"


class OutLayout(str, Enum):
    """How the columns of a written score file are laid out."""

    wide = "wide"
    long = "long"


class Density(str, Enum):
    """Which density model the estimator fits."""

    recalibrated = "recalibrated"
    kde = "kde"


def split_names(text: str | None) -> list[str]:
    """Split ``a,b`` into names; an option that is given but names nothing is a usage error.

    Examples
    --------
    >>> split_names("accuracy, ece"), split_names(None)
    (['accuracy', 'ece'], [])
    """
    if text is None:
        return []
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise typer.BadParameter(f"give names with commas between them, such as a,b; got {text!r}.")
    return names


def distinct_names(text: str | None) -> list[str]:
    """Split ``a,b,a`` into its names, each once: of what is asked for twice there is only one.

    Examples
    --------
    >>> distinct_names("ece,accuracy,ece")
    ['ece', 'accuracy']
    """
    return list(dict.fromkeys(split_names(text)))


def checked_names(text: str | None) -> str | None:
    split_names(text)
    return text


def metric_names(text: str) -> str:
    """Check the names of the metrics before anything is read."""
    from ssme.metrics import METRICS

    for name in split_names(text):
        if name not in METRICS:
            close = difflib.get_close_matches(name, METRICS, n=3)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"Choose from {', '.join(METRICS)}."
            raise typer.BadParameter(f"there is no metric {name!r}. {hint}")
    return text


def _inside_unit_interval(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"a level lies between 0 and 1, such as 0.9; got {value}.")
    return value


def _known_suffix(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in OUT_SUFFIXES:
        raise typer.BadParameter(f"{path.name} must end in one of {', '.join(OUT_SUFFIXES)}.")
    return path


def score_suffix(path: Path | None, hint: str | None = None) -> Path | None:
    """Refuse a name to write scores to whose suffix stands for no format."""
    if path is not None:
        from ssme._table_io import suffix_of

        try:
            suffix_of(path)
        except ValueError as error:
            raise typer.BadParameter(f"{path.name}: {error}", param_hint=hint) from error
    return path


def _score_file(path: Path | None) -> Path | None:
    return score_suffix(path)


def _print_version(asked: bool) -> None:
    if asked:
        from ssme import __version__

        print(f"ssme {__version__}")
        raise typer.Exit()


_SCORE_FILES = "Score files (csv, csv.gz, parquet, npz), joined by row id."
_SOURCES = "Score files to read, then the file to write."
_LABEL_FILE = "File with the known labels: an id column and a label column."
_ID = "Name of the id column; by default id, row_id or index."
_LABEL = "Name of the label column; by default label, labels, y or target."
_QUIET = "The tables alone, and nothing where a file is written; warnings go to stderr."
_DRAWS = "Posterior draws behind the estimates; levels near 1 need more."

Files = Annotated[list[Path], typer.Argument(help=_SCORE_FILES, metavar="FILE...")]
InsAndOut = Annotated[list[Path], typer.Argument(help=_SOURCES, metavar="IN... OUT")]
Labels = Annotated[Path | None, typer.Option(help=_LABEL_FILE)]
IdColumn = Annotated[str | None, typer.Option("--id", help=_ID, metavar="COLUMN")]
LabelColumn = Annotated[str | None, typer.Option(help=_LABEL, metavar="COLUMN")]
Groups = Annotated[
    str | None, typer.Option(help="Columns whose values are subgroups: a,b.", metavar="COLUMNS", callback=checked_names)
]
ClassNames = Annotated[
    str | None,
    typer.Option(help="Names of the classes in their order: a,b,c.", metavar="NAMES", callback=checked_names),
]
Models = Annotated[
    str | None, typer.Option(help="Use these models only: a,b.", metavar="NAMES", callback=checked_names)
]
ScoreTypeOption = Annotated[ScoreType, typer.Option(help="Whether the scores are probabilities or logits.")]
LayoutOption = Annotated[Layout, typer.Option(help="How the columns are laid out.")]
ToLayout = Annotated[OutLayout, typer.Option(help="Layout of the written csv or parquet.")]
Separator = Annotated[str, typer.Option(help="What stands between model and class in a wide column name.")]
Metrics = Annotated[str, typer.Option(help="Metrics to estimate: a,b.", metavar="NAMES", callback=metric_names)]
Level = Annotated[float, typer.Option(help="Level of the intervals.", callback=_inside_unit_interval)]
Draws = Annotated[int, typer.Option(help=_DRAWS, min=2, max=MOST_DRAWS)]
LabeledOnly = Annotated[bool, typer.Option("--labeled-only", help="Add the estimates of the labels alone.")]
DensityOption = Annotated[Density, typer.Option(help="kde is the mixture as published.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.", min=0, max=2**32 - 1)]
Out = Annotated[Path | None, typer.Option(help=f"Write the table: {', '.join(OUT_SUFFIXES)}.", callback=_known_suffix)]
_OUT_OF_CORE = "The files are parquet and hold different rows: read them batch by batch, whatever their size."
_SCHEDULER = "Address of a Dask scheduler whose workers read the files; implies --out-of-core."
OutOfCore = Annotated[bool, typer.Option("--out-of-core", help=_OUT_OF_CORE)]
Scheduler = Annotated[str | None, typer.Option(help=_SCHEDULER, metavar="ADDRESS")]
ScoresOut = Annotated[
    Path | None,
    typer.Option(help="Also write the scores and the labels: .csv, .parquet or .npz.", callback=_score_file),
]
Fit = Annotated[bool, typer.Option("--fit/--no-fit", help="Also fit once and show the diagnostics.")]
Force = Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a fault of the program.")]
Version = Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)]


def read_table(
    files: list[Path],
    labels: Path | None,
    id_column: str | None,
    label_column: str | None,
    groups: str | None,
    class_names: str | None,
    models: str | None,
    score_type: ScoreType,
    layout: Layout,
    separator: str,
) -> ScoreTable:
    """Read score files as the options say."""
    from ssme.score_table import read_scores

    return read_scores(
        list(files),
        labels=labels,
        layout=layout.value,
        id_column=id_column,
        label_column=label_column,
        group_columns=distinct_names(groups),
        class_names=split_names(class_names) or None,
        score_type=score_type.value,
        separator=separator,
        models=split_names(models) or None,
    )


def check_out_of_core(groups: str | None, models: str | None, density: Density) -> None:
    """Refuse what needs all rows in memory."""
    for given, name in ((groups, "--groups"), (models, "--models")):
        if given is not None:
            raise typer.BadParameter(f"{name} needs all rows in memory: leave it out.", param_hint="--out-of-core")
    if density is not Density.recalibrated:
        raise typer.BadParameter("--density kde needs all rows in memory.", param_hint="--out-of-core")


def read_options(
    id_column: str | None,
    label_column: str | None,
    groups: str | None,
    class_names: str | None,
    models: str | None,
    score_type: ScoreType,
    layout: Layout,
    separator: str,
) -> ReadOptions:
    """How to read columns, as the options say."""
    from ssme._table_io import ReadOptions

    names = split_names(class_names) or None
    columns = (id_column, label_column, distinct_names(groups))
    return ReadOptions(layout.value, *columns, names, None, score_type.value, separator)


def check_out(out: Path | None, inputs: list[Path | None]) -> None:
    """Refuse early what would fail after the work is done, or would overwrite what was read."""
    if out is None:
        return
    from ssme._atomic import check_writable

    check_writable(out)
    if any(path is not None and path.exists() and out.exists() and out.samefile(path) for path in inputs):
        raise ValueError(f"{out} is one of the files that are read; choose another name to write to.")
