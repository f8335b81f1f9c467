"""The command `ssme collect`: run Hugging Face classifiers on texts or images and write their scores."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ssme import _options as o
from ssme._console import collected_warnings, exit_codes, put, say

_MODEL = "Id on the hub (id@revision), or folder of a checkpoint; once for each model. NAME=MODEL gives it a name."
_DATA = "File with a row a line (csv, tsv, parquet, jsonl), or folder of .txt files or images."
_MAPPING = (
    'JSON file: {"label": "class"} for all models, or {"model": {"label": "class"}}, or {"model": ["class", ...]}.'
)
_MISSING = "What becomes of rows without text or image."
_CACHE = "Folder for finished outputs; by default $SSME_CACHE or ssme in your cache folder."


class MissingRows(str, Enum):
    """What becomes of rows without content."""

    error = "error"
    drop = "drop"
    empty = "empty"


class Dtype(str, Enum):
    """Precision of the models."""

    auto = "auto"
    float32 = "float32"
    float16 = "float16"
    bfloat16 = "bfloat16"


def _out(path: Path) -> Path:
    o.score_suffix(path)
    return path


Model = Annotated[list[str], typer.Option("--model", "-m", help=_MODEL, metavar="MODEL")]
Data = Annotated[Path, typer.Option(help=_DATA, metavar="PATH")]
Text = Annotated[str | None, typer.Option(help="Column of the texts.", metavar="COLUMN")]
TextPair = Annotated[str | None, typer.Option(help="Column of the second text of a pair.", metavar="COLUMN")]
Image = Annotated[str | None, typer.Option(help="Column of the paths of images.", metavar="COLUMN")]
LabelColumn = Annotated[str | None, typer.Option(help="Column of labels to carry along.", metavar="COLUMN")]
Mapping = Annotated[Path | None, typer.Option("--label-mapping", help=_MAPPING, metavar="FILE")]
Candidates = Annotated[
    str | None, typer.Option(help="Classes of zero-shot models: a,b.", metavar="NAMES", callback=o.checked_names)
]
Template = Annotated[str | None, typer.Option(help="Sentence of zero-shot models, with {} for the class.")]
Missing = Annotated[MissingRows, typer.Option(help=_MISSING)]
BatchSize = Annotated[int, typer.Option(help="Rows at a time.", min=1)]
MaxLength = Annotated[int | None, typer.Option(help="Longest text in tokens; by default what a model takes.", min=1)]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps; auto is a GPU where there is one.")]
DtypeOption = Annotated[Dtype, typer.Option(help="auto is half precision on CUDA.")]
Revision = Annotated[str | None, typer.Option(help="Commit, branch or tag of ids that name none.")]
Cache = Annotated[Path | None, typer.Option("--cache", help=_CACHE, file_okay=False)]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep nothing; a run that is stopped starts anew.")]
Pickle = Annotated[bool, typer.Option("--allow-pickle", help="Also load weights that are no safetensors.")]
RemoteCode = Annotated[bool, typer.Option("--trust-remote-code", help="Also run code that comes with a model.")]
Out = Annotated[Path, typer.Option(help="Scores to write: .parquet, .csv or .npz.", callback=_out)]


@exit_codes
def collect(
    model: Model,
    data: Data,
    out: Out,
    text: Text = None,
    text_pair: TextPair = None,
    image: Image = None,
    id_column: o.IdColumn = None,
    label_column: LabelColumn = None,
    groups: o.Groups = None,
    class_names: o.ClassNames = None,
    label_mapping: Mapping = None,
    candidate_labels: Candidates = None,
    template: Template = None,
    missing: Missing = MissingRows.error,
    batch_size: BatchSize = 32,
    max_length: MaxLength = None,
    device: Device = "auto",
    dtype: DtypeOption = Dtype.auto,
    revision: Revision = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    allow_pickle: Pickle = False,
    trust_remote_code: RemoteCode = False,
    score_type: o.ScoreTypeOption = o.ScoreType.probability,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Run Hugging Face classifiers on your rows and write their scores, for ssme estimate.

    Example: ssme collect --model ./bert --model ./roberta --data reviews.csv --text text --out scores.parquet
    """
    from ssme.adapters.huggingface import collect_scores

    o.check_out(out, [data, label_mapping])
    with collected_warnings() as notes:
        table = collect_scores(
            _models(model),
            data,
            text_column=text,
            text_pair_column=text_pair,
            image_column=image,
            id_column=id_column,
            label_column=label_column,
            group_columns=o.distinct_names(groups),
            class_names=o.split_names(class_names) or None,
            label_mapping=None if label_mapping is None else _read_mapping(label_mapping),
            candidate_labels=o.distinct_names(candidate_labels) or None,
            hypothesis_template=template,
            missing=missing.value,
            batch_size=batch_size,
            max_length=max_length,
            device=device,
            dtype=dtype.value,
            revision=revision,
            cache_dir=False if no_cache else cache,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            score_type=score_type.value,
            progress=not quiet,
        )
        table.write(out)
    for note in notes:
        say(f"Warning: {note}")
    if not quiet:
        kind = " --score-type logit" if table.score_type == "logit" and out.suffix != ".npz" else ""
        labels = "" if table.n_labeled else " --labels labels.csv"
        put(
            f"{out}: {table.n_rows:,} rows ({table.n_labeled:,} labeled), {table.n_models} models, "
            f"{table.n_classes} classes. Go on with: ssme estimate {out}{labels}{kind}"
        )


def _models(given: list[str]) -> Any:
    """A dict where all have names, else a list; a folder whose name has a = in it is a folder."""
    pairs = [("", each) if Path(each).exists() or "=" not in each else each.split("=", 1) for each in given]
    named = [name for name, _ in pairs if name]
    if not named:
        return [spec for _, spec in pairs]
    if len(named) < len(pairs):
        raise typer.BadParameter("give names to all models, or to none.", param_hint="--model")
    if len(set(named)) < len(named):
        raise typer.BadParameter("two models have the same name.", param_hint="--model")
    return {name: spec for name, spec in pairs}


def _read_mapping(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: is not JSON ({error}).") from error


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command(no_args_is_help=True)(collect)
