"""Choose the reader and the writer of a file by its suffix, and check that the content is what the suffix says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssme._atomic import atomic_path
from ssme._table_io._columns import (
    ID_NAMES,
    LABEL_NAMES,
    UNNAMED,
    check_header,
    clean_header,
    find_roles,
    long_columns,
)
from ssme._table_io._csv import line_of_row, read_csv_frame, write_csv_frame
from ssme._table_io._frames import frame_to_parts, parts_to_frame, weight_column
from ssme._table_io._npz import label_texts, load_arrays, read_npz, write_npz
from ssme._table_io._parts import LabelParts, ReadOptions, TableParts
from ssme._table_io._rows import RowWords, by_index, by_line
from ssme._validation import argument, as_text, calling, first_few

SUFFIXES = (".npz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
MAGIC = {".npz": b"PK", ".gz": b"\x1f\x8b", ".parquet": b"PAR1"}
KINDS = {
    b"PK": "a zip archive (npz or xlsx)",
    b"\x1f\x8b": "gzip-compressed",
    b"PAR1": "parquet",
    b"\x93N": "a npy array",
}


@contextmanager
def naming(path: Any) -> Iterator[None]:
    """Put the file's name in front of what is wrong with it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def suffix_of(path: Path) -> str:
    """Return the known suffix of a file name."""
    found = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default=None)
    if found is None:
        raise ValueError(f"the suffix {path.suffix!r} is unknown; use one of {', '.join(SUFFIXES)}.")
    return found


def stem_of(path: Path) -> str:
    """Return the file name without its suffix: the name of a model that has a file of its own."""
    return path.name[: -len(suffix_of(path))] or path.name


def _check_content(path: Path) -> str:
    """Return the suffix of an existing, non-empty file whose first bytes agree with it."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; check the path.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the files in it.")
    suffix = suffix_of(path)
    with open(path, "rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError("the file is empty (0 bytes); write or copy it again.")
    expected = MAGIC.get("." + suffix.rsplit(".", 1)[-1])
    kind = next((text for magic, text in KINDS.items() if start.startswith(magic)), "of another kind")
    if expected is None and kind != "of another kind":
        raise ValueError(f"the file is {kind}, not {suffix[1:]} text; correct its suffix.")
    if expected is not None and not start.startswith(expected):
        raise ValueError(f"the content is not {suffix[1:]}, it is {kind}; correct its suffix or write it again.")
    return suffix


def _read_frame(path: Path, suffix: str, text_columns: Any) -> pd.DataFrame:
    if suffix != ".parquet":
        return read_csv_frame(path, text_columns)
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        reason = str(error).rpartition("': ")[2]  # without the path, which stands in front of the message already
        raise ValueError(f"the parquet file is truncated or damaged ({reason}); write or copy it again.") from error


def _row_words(path: Path, suffix: str) -> RowWords:
    """What errors call a row of the file."""
    return by_index if suffix in (".npz", ".parquet") else by_line(lambda row: line_of_row(path, row))


def _score_text_columns(names: list[str], options: ReadOptions) -> set[str]:
    """Columns of a score file that are not to be read as numbers."""
    usual = {n for n in names if n.lower() in {*ID_NAMES, *LABEL_NAMES}}
    named = {options.id_column, options.label_column, *options.group_columns}
    declared = {n for n in names if n in named}
    long = long_columns(names) if options.layout in ("auto", "long") else None
    if long:
        return set(names) - {long["score"]}
    marked = {n for n in names if options.separator in n and n.lower() not in UNNAMED}
    if marked and options.layout in ("auto", "wide"):
        return {*(set(names) - marked), *declared}
    return usual | declared


def read_parts(path: str | os.PathLike[str], options: ReadOptions) -> TableParts:
    """Read one file of scores.

    Columns that `options` names need not be in every file: a label or group column that this file lacks is left out.
    """
    path = Path(path)
    with naming(path):
        suffix = _check_content(path)
        options = replace(options, model_name=options.model_name or stem_of(path))
        words = _row_words(path, suffix)
        with calling(rows=words):
            parts = read_npz(path, options) if suffix == ".npz" else _frame_parts(path, suffix, options)
        return replace(parts, call_row=parts.call_row or words)


def _frame_parts(path: Path, suffix: str, options: ReadOptions) -> TableParts:
    frame = clean_header(_read_frame(path, suffix, lambda names: _score_text_columns(names, options)))
    has = set(frame.columns)
    groups = tuple(c for c in options.group_columns if c in has)
    if options.label_column is None or options.label_column in has:
        return frame_to_parts(frame, replace(options, group_columns=groups))
    parts = frame_to_parts(frame, replace(options, label_column=None, group_columns=groups))
    return replace(parts, labels=None)  # the caller wants another column, not one of the usual name


def read_labels(path: str | os.PathLike[str], options: ReadOptions) -> LabelParts:
    """Read a file of labels: row ids or None, labels, and the group columns that it has."""
    path = Path(path)
    with naming(path):
        suffix = _check_content(path)
        with calling(rows=_row_words(path, suffix)):
            found = _label_arrays(path) if suffix == ".npz" else _label_columns(path, suffix, options)
        if np.shape(found.labels)[:1] == (0,):
            raise ValueError(f"the file holds not one label; add labels, or leave {argument('labels')} out.")
        return found


def _label_arrays(path: Path) -> LabelParts:
    arrays = load_arrays(path)
    if "labels" not in arrays:
        raise ValueError(f"the file has no array called labels, but {first_few(arrays)}.")
    ids = arrays.get("row_ids")
    texts = None if ids is None else as_text(ids, "row_ids")
    return LabelParts(texts, label_texts(arrays), {}, _row_words(path, ".npz"), arrays.get("label_weight"))


def _label_columns(path: Path, suffix: str, options: ReadOptions) -> LabelParts:
    frame = clean_header(_read_frame(path, suffix, set))
    has = set(frame.columns)
    own_id = options.id_column if options.id_column in has else None
    groups = tuple(c for c in options.group_columns if c in has)
    roles = find_roles(frame, replace(options, id_column=own_id, group_columns=groups))
    label = roles.label or (roles.rest[0] if len(roles.rest) == 1 else None)
    if label is None:
        names = first_few(roles.rest, 8)
        raise ValueError(f"which column holds the labels? Name one of {names} in {argument('label_column')}.")
    ids = None if roles.id is None else as_text(frame[roles.id], f"column {roles.id!r}")
    own_groups = {c: frame[c] for c in groups}
    weight = None if roles.weight is None else weight_column(frame[roles.weight])
    return LabelParts(ids, frame[label], own_groups, _row_words(path, suffix), weight)


def write_parts(
    path: str | os.PathLike[str], parts: TableParts, codes: np.ndarray, names: np.ndarray, layout: str, separator: str
) -> None:
    """Write a table in the format of the suffix; the file appears whole or not at all."""
    with naming(path):
        suffix = suffix_of(Path(path))
    if suffix == ".npz":
        with atomic_path(path) as temp:
            write_npz(temp, parts, codes)
        return
    assert parts.row_ids is not None
    frame = parts_to_frame(parts, names, parts.row_ids, layout=layout, separator=separator)
    check_header(list(frame.columns))
    with atomic_path(path) as temp:
        if suffix == ".parquet":
            frame.to_parquet(temp, index=False)
        else:
            write_csv_frame(temp, frame, "\t" if suffix.startswith(".tsv") else ",")
