"""Parquet files with one row a row: which columns are what, and their rows as checked arrays, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ssme._table_io import ReadOptions, class_order, frame_to_parts, naming, read_labels
from ssme._table_io._columns import choose_layout, clean_header, find_roles, long_columns, wide_grid
from ssme._table_io._frames import numeric_block, two_classes
from ssme._table_io._rows import by_index
from ssme._validation import argument, as_text, calling, check_labels, check_scores, counted, first_few
from ssme._validation._text import to_text

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

WEIGHTS_NEED_MEMORY = (
    "a column of label weights is not supported batch by batch; read the table into memory, or leave the column out."
)
PART_ROWS = 500_000  # row groups are put together to parts of about this size
HEAD_ROWS = 10_000  # the layout is judged by these
BUFFER_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class LabelIndex:
    """Labels by row id: ids (L,), texts, and codes (L,)."""

    ids: pd.Index
    codes: Codes


class Part(NamedTuple):
    """Row groups of a file, the number of the first row in it, and the number of rows in the files before."""

    path: str
    groups: tuple[int, ...]
    first_row: int
    rows_before: int


class Batch(NamedTuple):
    """Scores (n, M, K), codes (n,), and the entries of the label index that were met."""

    first_row: int
    scores: Floats
    codes: Codes
    met: Codes


@dataclass(frozen=True, eq=False)
class Source:
    """What is read of every file, and how: settled once, so that no batch is read in another way.

    Attributes
    ----------
    score_columns : list of str
    order : array (M, K), optional
        The place of each model and class among the score columns; None where each is P(class 1) of a model.
    id_column, label_column : str, optional
        The id where the labels are not in the files, else the label.
    model_names, class_names : list
    score_type : str
    labels : LabelIndex, optional
        Labels that are not in the files.
    batch_rows : int
    """

    score_columns: list[str]
    order: NDArray[np.int64] | None
    id_column: str | None
    label_column: str | None
    model_names: list[str]
    class_names: list[Any]
    score_type: str
    labels: LabelIndex | None
    batch_rows: int

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [c for c in (self.id_column, self.label_column) if c is not None] + self.score_columns

    def batches(self, part: Part) -> Iterator[Batch]:
        """The rows of a part."""
        row = part.first_row
        with naming(part.path):
            for frame in _frames(part.path, part.groups, self.columns, self.batch_rows):
                with calling(rows=partial(_shifted_words, row)):
                    batch = self._checked(frame, part.rows_before + row)
                yield batch
                row += len(frame)

    def _checked(self, frame: pd.DataFrame, first_row: int) -> Batch:
        values = numeric_block(frame, self.score_columns)
        laid = two_classes(values, self.score_type) if self.order is None else values[:, self.order]
        scores = check_scores(laid, score_type=self.score_type)
        if self.labels is None:
            y = None if self.label_column is None else frame[self.label_column]
            names = self.class_names
            codes, _ = check_labels(y, len(scores), len(names), class_names=names, name="labels")
            return Batch(first_row, scores, codes, np.zeros(0, dtype=np.int64))
        found = self.labels.ids.get_indexer(pd.Index(as_text(frame[self.id_column], f"column {self.id_column!r}")))
        return Batch(first_row, scores, np.append(self.labels.codes, -1)[found], found[found >= 0])


def _shifted_words(first: int, row: int) -> str:
    return by_index(first + row)


def parquet_files(paths: Any) -> list[str]:
    """Files of one path or several; a folder stands for the parquet files in it, in the order of their names."""
    single = isinstance(paths, (str, os.PathLike))
    given = [paths] if single else list(paths)
    if not given:
        raise ValueError("paths is empty; name at least one parquet file or folder.")
    found: list[str] = []
    for each in given:
        if not isinstance(each, (str, os.PathLike)):
            raise TypeError(f"paths must be a path or a list of paths, got {type(each).__name__}.")
        path = Path(each)
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}; check the path.")
        inside = [path]
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.parquet") if not p.name.startswith(("_", ".")))
        if not inside:
            raise ValueError(f"{path}: the folder holds no file that ends in .parquet.")
        found += [str(p) for p in inside]
    twice = [f for i, f in enumerate(found) if f in found[:i]]
    if twice:
        raise ValueError(f"{twice[0]} is given twice; name each file once.")
    return found


def parts_of(files: Sequence[str], columns: Sequence[str]) -> list[Part]:
    """All rows of the files as parts; every file must have the columns."""
    parts: list[Part] = []
    before = 0
    for path in files:
        with naming(path), _opened(path) as file:
            missing = [c for c in columns if c not in file.schema_arrow.names]
            if missing:
                raise ValueError(
                    f"the file lacks {counted(len(missing), 'column')} of the first one: {first_few(missing)}."
                )
            groups: list[int] = []
            rows = first = 0
            for number in range(file.num_row_groups):
                groups.append(number)
                rows += file.metadata.row_group(number).num_rows
                if rows >= PART_ROWS or number == file.num_row_groups - 1:
                    parts += [Part(path, tuple(groups), first, before)] if rows else []
                    groups, first, rows = [], first + rows, 0
            before += first
    return parts


def describe(
    files: Sequence[str], options: ReadOptions, labels: Any, ignore_columns: Sequence[str], batch_rows: int
) -> Source:
    """Settle columns and layout on the first rows, and lay the labels in an index."""
    first = next((f for f in files if _n_rows(f)), None)
    if first is None:
        raise ValueError(f"{first_few(files)}: there is not one row; add the rows.")
    with naming(first), calling(rows=by_index):
        head = clean_header(next(_frames(first, None, None, HEAD_ROWS)))
        absent = [c for c in ignore_columns if c not in head.columns]
        if absent:
            raise ValueError(f"there is no column {absent[0]!r} to ignore among {first_few(head.columns, 8)}.")
        head = head.drop(columns=list(ignore_columns))
        if options.layout == "long" or (options.layout == "auto" and long_columns(list(head.columns))):
            raise ValueError("the long layout cannot be read batch by batch; convert the file to the wide layout.")
        options = replace(options, model_name=options.model_name or Path(first).stem)
        roles, parts = find_roles(head, options), frame_to_parts(head, options)
        if roles.weight is not None:
            raise ValueError(WEIGHTS_NEED_MEMORY)
        if labels is not None and roles.id is None:
            raise ValueError(f"there is no id column by which labels are matched; name it in {argument('id_column')}.")
        columns, order = _score_columns(head, roles.rest, options)
    classes = list(parts.class_names or ())
    index = None if labels is None else _label_index(labels, options, classes)
    return Source(
        score_columns=columns,
        order=order,
        id_column=roles.id if index is not None else None,
        label_column=roles.label if index is None else None,
        model_names=[str(m) for m in parts.model_names or ()],
        class_names=classes,
        score_type=options.score_type,
        labels=index,
        batch_rows=batch_rows,
    )


def _score_columns(
    head: pd.DataFrame, rest: list[str], options: ReadOptions
) -> tuple[list[str], NDArray[np.int64] | None]:
    """The columns that hold scores, and where the models (M) and classes (K) are among them."""
    marked = [c for c in rest if options.separator in c]
    if options.layout == "wide" or (options.layout == "auto" and marked):
        _, classes, order = wide_grid(marked, options.separator)
        columns = marked
    elif options.layout == "binary" or choose_layout(numeric_block(head, rest), rest, options) == "binary":
        return rest, None
    else:
        columns, classes, order = rest, rest, np.arange(len(rest))[None]
    if options.class_names is not None:
        wanted = [to_text(c) for c in options.class_names]
        order = order[:, class_order(wanted, classes, argument("class_names"), "the columns")]
    return columns, order


def check_met(labels: LabelIndex, times: Codes) -> None:
    """Every label belongs to one row; `times` (L,) is how many rows each label was met in."""
    for bad, what in ((times == 0, "that the scores lack"), (times > 1, "that several rows of the scores have")):
        if bad.any():
            ids = labels.ids[bad]
            raise ValueError(f"labels has {counted(len(ids), 'row id')} {what}: {first_few(list(ids))}; correct that.")


def _label_index(labels: Any, options: ReadOptions, classes: list[Any]) -> LabelIndex:
    if isinstance(labels, (str, os.PathLike)):
        ids, values, _, words, weight = read_labels(labels, options)
        if weight is not None:
            raise ValueError(f"{labels}: {WEIGHTS_NEED_MEMORY}")
        name, where = str(labels), calling(rows=words)
        if ids is None:
            raise ValueError(f"{labels}: there is no id column; add one, or name it in {argument('id_column')}.")
    else:
        series = pd.Series(labels)
        ids, values, name, where = as_text(series.index, "the index of labels"), series.to_numpy(), "labels", calling()
    with naming(name), where:
        index = pd.Index(ids)
        if not index.is_unique:
            raise ValueError(f"the row id {index[index.duplicated()][0]!r} comes twice; drop one of its labels.")
        codes, _ = check_labels(values, len(index), len(classes), class_names=classes, name="labels")
    return LabelIndex(index[codes >= 0], codes[codes >= 0])


class _opened:
    """A parquet file that streams its columns; what is wrong with it in one sentence."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> ParquetFile:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            self._file = ParquetFile(self._path, pre_buffer=False, buffer_size=BUFFER_BYTES)
        except FileNotFoundError:
            raise
        except (ArrowException, OSError) as error:
            raise ValueError(
                f"this is no parquet file, or it is truncated ({_reason(error)}); write it again."
            ) from error
        return self._file

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _frames(
    path: str, groups: Sequence[int] | None, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pd.DataFrame]:
    from pyarrow import ArrowException

    with _opened(path) as file:
        wanted = None if columns is None else list(columns)
        batches = file.iter_batches(batch_rows, row_groups=None if groups is None else list(groups), columns=wanted)
        while True:
            try:
                batch = next(batches, None)
            except (ArrowException, OSError) as error:
                raise ValueError(f"the parquet file is damaged ({_reason(error)}); write it again.") from error
            if batch is None:
                return
            if batch.num_rows:
                frame = batch.to_pandas()
                yield frame if wanted is None else frame[wanted].reset_index(drop=True)


def _n_rows(path: str) -> int:
    with naming(path), _opened(path) as file:
        return int(file.metadata.num_rows)


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
