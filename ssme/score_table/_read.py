"""Files -> one ScoreTable: read each, join them by row id, lay the labels on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ssme import _table_io as io
from ssme._table_io import ReadOptions
from ssme._validation import argument, calling, counted, first_few
from ssme.score_table._table import Layout, ScoreTable

PathLike = str | os.PathLike[str]


def read_scores(
    paths: PathLike | Sequence[PathLike],
    *,
    labels: PathLike | None = None,
    layout: Layout = "auto",
    id_column: str | None = None,
    label_column: str | None = None,
    group_columns: Sequence[str] = (),
    class_names: Sequence[Any] | None = None,
    score_type: str = "probability",
    separator: str = ":",
    models: Any = None,
) -> ScoreTable:
    """Read score files.

    Parameters
    ----------
    paths : path or sequence of paths
        Files .npz, .csv, .csv.gz, .tsv, .tsv.gz or .parquet. Several files are joined by row id, never by position;
        all must hold the same rows, and the rows keep the order of the first file.
    labels : path, optional
        A file with an id and a label column (or an npz with `labels` and `row_ids`). It may name some rows only; the
        others are unlabeled. It takes the place of labels in the score files. A column `label_weight` says what each
        label counts for, where rows were chosen for labeling.
    layout : {"auto", "wide", "binary", "model", "long"}
        - "wide": columns `model:class`; other columns become groups.
        - "binary": one column a model, P(class 1).
        - "model": the file is one model, called like the file; the columns are the classes.
        - "long": columns id, model, class, score; others that are constant for an id become groups.

        "auto" takes "long" where these columns are, "wide" where column names carry the separator, "model" where
        two or more columns sum to 1 in every row, else "binary"; an error where it cannot tell.
    id_column, label_column : str, optional
        By default id, row_id, index or an unnamed column; label, labels, y or target. A single file may go without
        ids: its rows are then "0", "1", ...
    group_columns : sequence of str
        Columns that split the rows into groups, in the score files or in the file of labels.
    class_names : sequence, optional
        The classes, in the order that the table is to have. Needed for layout "binary" when the labels are not 0
        and 1: `class_names=["no", "yes"]` says that the scores are P("yes").
    score_type : {"probability", "logit"}
    separator : str
    models : sequence of str or int, optional
        Keep these models only, in this order.

    Returns
    -------
    ScoreTable

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a, b = pathlib.Path(folder) / "bert.csv", pathlib.Path(folder) / "gpt.csv"
    ...     _ = a.write_text("id,no,yes\\nx,0.1,0.9\\ny,0.7,0.3\\n")
    ...     _ = b.write_text("id,yes,no\\ny,0.4,0.6\\nx,1.0,0.0\\n")
    ...     table = read_scores([a, b])
    >>> table.model_names, table.class_names, table.row_ids.tolist()
    (('bert', 'gpt'), ('no', 'yes'), ['x', 'y'])
    >>> table.scores[:, :, 1]
    array([[0.9, 1. ],
           [0.3, 0.4]])
    """
    files = _paths(paths)
    if labels is not None and not isinstance(labels, (str, os.PathLike)):
        raise TypeError(
            f"labels must be the path of a file, got {type(labels).__name__}; labels that are not in a file "
            "go in with ScoreTable.with_labels."
        )
    options = ReadOptions(layout, id_column, label_column, group_columns, class_names, None, score_type, separator)
    tables, has_ids = _read_tables(files, options, with_labels=labels is None)
    table = ScoreTable.join(tables, names=[str(f) for f in files])
    if labels is not None:
        table = _lay_labels(table, labels, options, has_ids)
    missing = [c for c in options.group_columns if c not in table.groups]
    if missing:
        raise ValueError(f"no file has the group column {first_few(missing)}; correct {argument('group_columns')}.")
    return table if models is None else table.select(models=models)


def _paths(paths: Any) -> list[PathLike]:
    """The paths as a list, whether one or several are given."""
    single = isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable)
    files = [paths] if single else list(paths)
    wrong = [f for f in files if not isinstance(f, (str, os.PathLike))]
    if wrong:
        raise TypeError(f"paths must be a path or a list of paths, got {type(wrong[0]).__name__}.")
    if not files:
        raise ValueError("paths is empty; name at least one file of scores.")
    twice = [f for i, f in enumerate(files) if f in files[:i]]
    if twice:
        raise ValueError(f"{twice[0]} is given twice; name each file once.")
    return files


def _read_tables(
    files: Sequence[PathLike], options: ReadOptions, *, with_labels: bool
) -> tuple[list[ScoreTable], bool]:
    """Read every file; also say whether the rows have ids of their own."""
    parts = [io.read_parts(f, options if with_labels else replace(options, label_column=None)) for f in files]
    bare = [f for f, p in zip(files, parts, strict=True) if p.row_ids is None]
    if bare and len(files) > 1:
        raise ValueError(
            f"{bare[0]}: there is no id column, and several files are joined by row id alone; "
            f"add an id column or name it in {argument('id_column')}."
        )
    if with_labels and options.label_column is not None and all(p.labels is None for p in parts):
        raise ValueError(f"no file has the label column {options.label_column!r}; correct {argument('label_column')}.")
    tables = []
    for file, part in zip(files, parts, strict=True):
        with io.naming(file):
            table = ScoreTable._from_parts(part if with_labels else replace(part, labels=None))
            tables.append(table if options.class_names is None else table.order_classes(options.class_names))
    return tables, not bare


def _lay_labels(table: ScoreTable, path: PathLike, options: ReadOptions, has_ids: bool) -> ScoreTable:
    ids, values, groups, call_row, weight = io.read_labels(path, options)
    with io.naming(path), calling(rows=call_row):
        if ids is None:
            if has_ids or len(values) != table.n_rows:
                raise ValueError(
                    f"there is no id column, so its {counted(len(values), 'label')} cannot be matched to the "
                    f"{counted(table.n_rows, 'row')} of the scores; add an id column or name it in "
                    f"{argument('id_column')}."
                )
            ids = np.arange(len(values)).astype(str)
        table = table.with_labels(values, row_ids=ids, label_weight=weight)
        if table.n_labeled == 0:
            message = (
                f"{path}: the file names {counted(len(values), 'row')} and labels none of them; no row is labeled."
            )
            warnings.warn(message, UserWarning, stacklevel=3)
        new = {name: column for name, column in groups.items() if name not in table.groups}
        return table.with_groups(new, row_ids=ids) if new else table
