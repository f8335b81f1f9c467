"""DataFrame -> scores (n, M, K) with names, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ssme._table_io._columns import (
    ID_NAMES,
    LABEL_NAMES,
    LONG_NAMES,
    WEIGHT_NAME,
    Roles,
    choose_layout,
    clean_header,
    find_roles,
    is_fractional,
    long_columns,
    wide_grid,
)
from ssme._table_io._ids import class_order
from ssme._table_io._parts import ReadOptions, TableParts
from ssme._table_io._rows import by_id
from ssme._validation import argument, as_text, at_row, counted, first_few
from ssme._validation._text import to_text

# A lone column of such a name says nothing about its model: the file's name does.
GENERIC_SCORES = {"score", "scores", "p", "p1", "prob", "probs", "proba", "probability", "pred", "prediction", "1"}
MISSING_NUMBERS = {"", "nan", "na", "n/a", "<na>", "none", "null"}


def frame_to_parts(frame: pd.DataFrame, options: ReadOptions) -> TableParts:
    """Read scores, labels, ids and groups out of a frame in any of the four layouts."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a DataFrame, got {type(frame).__name__}; for arrays use from_arrays.")
    frame = _index_to_column(clean_header(frame), options)
    if len(frame) == 0:
        raise ValueError("there is a header but not one row below it; add the rows.")
    if options.layout == "long" or (options.layout == "auto" and long_columns(list(frame.columns))):
        return _from_long(frame, options)
    roles = find_roles(frame, options)
    if not roles.rest:
        raise ValueError(f"no column of scores is left; the columns are {first_few(frame.columns, 8)}.")
    marked = [c for c in roles.rest if options.separator in c]
    if options.layout == "auto" and not marked and options.separator != ReadOptions().separator:
        raise ValueError(
            f"no column of scores holds the separator {options.separator!r}; the columns are "
            f"{first_few(roles.rest, 8)}: correct {argument('separator')}, or leave it out."
        )
    if options.layout == "wide" or (options.layout == "auto" and marked):
        return _from_wide(frame, roles, marked, options)
    return _from_columns(frame, roles, options)


def _index_to_column(frame: pd.DataFrame, options: ReadOptions) -> pd.DataFrame:
    """Take a telling index (named, or not 0..n-1) for the ids where no column holds them."""
    index = frame.index
    wanted = options.id_column
    if index.nlevels > 1 or (wanted is not None and (wanted in frame.columns or wanted != str(index.name))):
        return frame
    if wanted is None and any(c.lower() in ID_NAMES for c in frame.columns):
        return frame
    if index.name is None and (not index.is_unique or index.equals(pd.RangeIndex(len(frame)))):
        return frame
    frame = frame.reset_index(drop=True)
    frame.insert(0, wanted or "id", index)
    return frame


def numeric_block(frame: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Return score columns as floats (n, C); a cell that is no number is an error that names its row and column."""
    block = frame[list(columns)]
    odd = [c for c, dtype in block.dtypes.items() if not (isinstance(dtype, np.dtype) and dtype.kind in "fiu")]
    if odd:
        block = block.copy()
        for column in odd:
            block[column] = _to_numbers(block[column], str(column))
    values = block.to_numpy(dtype=np.float64)
    blank = np.isnan(values)
    if blank.any():
        row, place = np.unravel_index(int(blank.argmax()), values.shape)
        missing = counted(int(blank.sum()), "score is", "scores are")
        raise ValueError(
            f"{missing} missing or NaN in {int(blank.any(axis=1).sum())} of {len(values)} rows, the first in column "
            f"{columns[int(place)]!r}, {at_row(int(row))}: mend or drop these rows (none is dropped in silence); a "
            "file that ends there may be truncated."
        )
    return values


def _to_numbers(cells: pd.Series, column: str) -> np.ndarray:
    if not isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "fiu":  # pandas' own Float64 and Int64
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = pd.to_numeric(cells.astype(object), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    texts = as_text(cells, column)
    suspect = np.isnan(numbers) & ~pd.isna(texts)
    bad = [i for i in np.flatnonzero(suspect).tolist() if texts[i].lower() not in MISSING_NUMBERS]
    if cells.dtype.kind == "b":  # to_numeric takes True for 1
        bad = [0]
    if bad:
        raise ValueError(
            f"column {column!r} holds {texts[bad[0]]!r} at {at_row(bad[0])}, which is not a number; correct it, or if "
            f"the column is not a score, leave it out or name it in {argument('group_columns')}, "
            f"{argument('id_column')} or {argument('label_column')}."
        )
    return numbers


def _parts(frame: pd.DataFrame, roles: Roles, scores: np.ndarray, options: ReadOptions, **names: Any) -> TableParts:
    """Put the columns beside the scores into the record."""
    return TableParts(
        scores=scores,
        labels=None if roles.label is None else frame[roles.label],
        row_ids=None if roles.id is None else as_text(frame[roles.id], f"column {roles.id!r}"),
        groups={c: frame[c] for c in roles.groups},
        score_type=options.score_type,
        label_weight=None if roles.weight is None else weight_column(frame[roles.weight]),
        **names,
    )


def weight_column(cells: pd.Series) -> np.ndarray:
    """Weights of labels as floats (n,); NaN where a cell is empty."""
    return _to_numbers(cells, str(cells.name))


def _ordered(scores: np.ndarray, classes: list[str], options: ReadOptions) -> tuple[np.ndarray, list[Any]]:
    """Bring the classes (last axis) into the order that the caller asked for, by name."""
    if options.class_names is None:
        return scores, classes
    wanted = [to_text(c) for c in options.class_names]
    return scores[:, :, class_order(wanted, classes, argument("class_names"), "the columns")], list(options.class_names)


def _from_wide(frame: pd.DataFrame, roles: Roles, marked: list[str], options: ReadOptions) -> TableParts:
    if not marked:
        raise ValueError(
            f"no column is called 'model{options.separator}class' ({first_few(roles.rest)}); "
            f"rename them, or pass {argument('separator')} or {argument('layout')}."
        )
    plain = [c for c in roles.rest if options.separator not in c]
    scores_too = [c for c in plain if is_fractional(frame[c])]
    if scores_too:
        raise ValueError(
            f"columns {first_few(marked)} carry the separator {options.separator!r}, but {first_few(scores_too)} does "
            f"not: call a score 'model:class', and name what is no score in {argument('group_columns')} or leave it "
            "out."
        )
    models, classes, order = wide_grid(marked, options.separator)
    scores = numeric_block(frame, marked)[:, order.ravel()].reshape(len(frame), *order.shape)
    scores, classes = _ordered(scores, classes, options)
    roles = replace(roles, groups=(*roles.groups, *plain))
    return _parts(frame, roles, scores, options, model_names=models, class_names=classes)


def _from_columns(frame: pd.DataFrame, roles: Roles, options: ReadOptions) -> TableParts:
    """Read the layouts "model" and "binary", whose columns are bare names."""
    values = numeric_block(frame, roles.rest)
    layout = choose_layout(values, roles.rest, options) if options.layout == "auto" else options.layout
    model = options.model_name or "model"
    if layout == "model":
        scores, classes = _ordered(values[:, None, :], roles.rest, options)
        return _parts(frame, roles, scores, options, model_names=[model], class_names=classes)
    names = roles.rest
    called_label = [c for c in names if c.lower() in LABEL_NAMES]  # it holds fractions, else it would be the label
    if options.layout == "auto" and roles.label is None and called_label:
        raise ValueError(
            f"column {called_label[0]!r} is called like labels but holds fractions: correct its values if they are "
            f"labels, or rename it (or pass {argument('layout', 'binary')}) if it holds the scores of a model."
        )
    if len(names) == 1 and options.model_name and names[0].lower() in GENERIC_SCORES:
        names = [model]
    classes = list(options.class_names) if options.class_names is not None else ["0", "1"]
    scores = two_classes(values, options.score_type)
    return _parts(frame, roles, scores, options, model_names=names, class_names=classes)


def two_classes(values: np.ndarray, score_type: str) -> np.ndarray:
    """Put the other class beside P(class 1) or its log-odds; what cannot be either is left for the checks to refuse."""
    if score_type == "probability" and not ((values >= 0) & (values <= 1)).all():
        return values
    return np.stack([1 - values if score_type == "probability" else np.zeros_like(values), values], axis=2)


def _from_long(frame: pd.DataFrame, options: ReadOptions) -> TableParts:
    columns = long_columns(list(frame.columns))
    if columns is None:
        got = first_few(frame.columns, 8)
        raise ValueError(f"the long layout needs the columns id, model, class and score, but the columns are {got}.")
    roles = find_roles(frame.drop(columns=list(columns.values())), options)
    if roles.id is None:
        raise ValueError(
            f"the long layout needs an id column, which says what belongs together; name it in {argument('id_column')}."
        )
    keys = [as_text(frame[c], f"column {c!r}") for c in (roles.id, columns["model"], columns["class"])]
    codes, names = zip(*(pd.factorize(k) for k in keys), strict=True)
    for column, code in zip((roles.id, columns["model"], columns["class"]), codes, strict=True):
        if (code < 0).any():
            raise ValueError(f"column {column!r} is empty at {at_row(int((code < 0).argmax()))}; fill it in.")
    flat = _check_cells(codes, names)
    scores = np.empty(len(frame))
    scores[flat] = numeric_block(frame, [columns["score"]])[:, 0]
    scores, classes = _ordered(scores.reshape([len(n) for n in names]), list(names[2]), options)
    first = np.unique(codes[0], return_index=True)[1]  # codes count ids in order of appearance
    steady = tuple(c for c in roles.rest if _is_steady(frame[c], codes[0], first))
    for column in [*roles.groups, *(c for c in (roles.label, roles.weight) if c)]:
        if not _is_steady(frame[column], codes[0], first):
            raise ValueError(f"column {column!r} differs between rows of one {roles.id!r}; give each id one value.")
    roles = replace(roles, groups=(*roles.groups, *steady))
    heads = frame.iloc[first]
    ids = by_id(list(names[0]))
    return _parts(heads, roles, scores, options, model_names=list(names[1]), class_names=classes, call_row=ids)


def _check_cells(codes: Sequence[np.ndarray], names: Sequence[np.ndarray]) -> np.ndarray:
    """Return the flat place of each row in (n, M, K); every place must be filled once."""
    shape = tuple(len(n) for n in names)
    flat = np.ravel_multi_index(tuple(codes), shape)
    distinct, counts = np.unique(flat, return_counts=True)

    def spell(place: int) -> str:
        where = np.unravel_index(place, shape)
        return ", ".join(f"{what} {n[i]!r}" for what, n, i in zip(("id", "model", "class"), names, where, strict=True))

    if (counts > 1).any():
        example = spell(int(distinct[counts.argmax()]))
        twice = counted(int((counts > 1).sum()), "score comes", "scores come")
        raise ValueError(f"{twice} twice, such as {example}; drop the extra rows.")
    if len(distinct) < np.prod(shape, dtype=np.int64):
        gap = np.flatnonzero(distinct != np.arange(len(distinct)))
        example = spell(int(gap[0]) if len(gap) else len(distinct))
        missing = counted(int(np.prod(shape, dtype=np.int64)) - len(distinct), "score is", "scores are")
        raise ValueError(f"{missing} missing, such as {example}; each id needs a score for every model and class.")
    return flat


def _is_steady(column: pd.Series, row: np.ndarray, first: np.ndarray) -> bool:
    code = pd.factorize(column)[0]
    return bool((code == code[first][row]).all())


def parts_to_frame(
    parts: TableParts, label_texts: np.ndarray, row_ids: np.ndarray, *, layout: str = "wide", separator: str = ":"
) -> pd.DataFrame:
    """Lay a table out as a frame: id, label, the groups, then the scores."""
    models, classes = list(parts.model_names or ()), list(parts.class_names or ())
    if layout not in ("wide", "long"):
        raise ValueError(f"{argument('write.layout')} must be 'wide' or 'long' for writing, got {layout!r}.")
    reserved = {*ID_NAMES, *LABEL_NAMES, WEIGHT_NAME, *(LONG_NAMES if layout == "long" else ())}
    clash = [g for g in parts.groups if g.lower() in reserved or (layout == "wide" and separator in g)]
    if clash:
        raise ValueError(f"the group {clash[0]!r} cannot be told from another column of the file; rename it.")
    head = pd.DataFrame({"id": row_ids, "label": label_texts, **parts.groups}, dtype=object)
    if parts.label_weight is not None:
        head.insert(2, WEIGHT_NAME, parts.label_weight)
    if layout == "wide":
        columns = [f"{m}{separator}{c}" for m in models for c in classes]
        if wide_grid(columns, separator)[:2] != (models, classes):
            raise ValueError(
                f"model and class names both hold the separator {separator!r}: rename them, pass another "
                f"one, or write {argument('write.layout', 'long')} or an npz file."
            )
        block = pd.DataFrame(parts.scores.reshape(len(row_ids), -1), columns=columns)
        return pd.concat([head, block], axis=1)
    pairs = len(models) * len(classes)
    long = head.loc[np.repeat(np.arange(len(head)), pairs)].reset_index(drop=True)
    long.insert(1, "model", np.tile(np.repeat(np.array(models, dtype=object), len(classes)), len(head)))
    long.insert(2, "class", np.tile(np.array(classes, dtype=object), len(head) * len(models)))
    long.insert(3, "score", parts.scores.ravel())
    return long
