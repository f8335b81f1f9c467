"""Which column is the id, the label, a group or a score; and how score columns are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ssme._table_io._parts import ReadOptions
from ssme._validation import argument, at_row, counted, first_few
from ssme._validation._text import did_you_mean, to_text

ID_NAMES = ("id", "row_id", "index", "", "unnamed: 0")
LABEL_NAMES = ("label", "labels", "y", "target")
WEIGHT_NAME = "label_weight"
LONG_NAMES = ("model", "class", "score")
UNNAMED = {"", "unnamed: 0"}  # what pandas and R call the column of their row numbers
SUM_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Roles:
    """Names of the columns by what they hold; `rest` are scores, or columns that nobody declared."""

    id: str | None
    label: str | None
    weight: str | None
    groups: tuple[str, ...]
    rest: list[str]


def clean_header(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn column names into stripped text; a name that comes twice is an error."""
    if frame.columns.nlevels > 1:
        raise ValueError("the columns have several levels; flatten them into names such as 'model:class'.")
    names = [to_text(c) for c in frame.columns]
    check_header(names)
    frame = frame.copy(deep=False)
    frame.columns = pd.Index(names, dtype=object)
    return frame


def check_header(names: Sequence[str]) -> None:
    """Refuse doubled names, and a first line that is data."""
    double = [c for c, n in pd.Series(list(names), dtype=object).value_counts().items() if n > 1]
    if double:
        names_twice = counted(len(double), "column name comes", "column names come")
        raise ValueError(f"{names_twice} twice: {first_few(double)}; rename or drop them.")
    if len(names) <= 1000 and any("." in c for c in names):
        numbers = pd.to_numeric(pd.Series([c for c in names if c], dtype=object), errors="coerce")
        if numbers.notna().all():
            raise ValueError(f"the first line holds numbers ({first_few(names)}), not column names; add a header line.")


def is_fractional(values: pd.Series) -> bool:
    """Whether a column holds numbers and not all of them are whole: scores, then, and neither ids nor labels."""
    if values.dtype.kind in "iub":
        return False
    numbers = pd.to_numeric(values.replace("", np.nan) if values.dtype.kind not in "f" else values, errors="coerce")
    known = numbers[values.notna() & (values != "")].to_numpy(dtype=np.float64, na_value=np.nan)
    return bool(len(known) and np.isfinite(known).all() and (known != np.round(known)).any())


def _named(wanted: str, names: Sequence[str], what: str) -> str:
    if str(wanted).strip() not in set(names):
        known = first_few(names, 8)
        raise ValueError(f"there is no column {wanted!r} for {what} among {known}{did_you_mean(wanted, names)}")
    return str(wanted).strip()


def _default(candidates: Sequence[str], frame: pd.DataFrame, taken: set[str | None]) -> str | None:
    lower: dict[str, str] = {}
    for column in frame.columns:
        lower.setdefault(column.lower(), column)
    for candidate in candidates:
        name = lower.get(candidate)
        if name is not None and name not in taken and not is_fractional(frame[name]):
            return name
    return None


def find_roles(frame: pd.DataFrame, options: ReadOptions) -> Roles:
    """Find the id, label and group columns: those that are named, else the usual names."""
    names = list(frame.columns)
    groups = tuple(_named(c, names, argument("group_columns")) for c in options.group_columns)
    taken: set[str | None] = set(groups)
    label, row_id = (
        None if wanted is None else _named(wanted, names, what)
        for wanted, what in (
            (options.label_column, argument("label_column")),
            (options.id_column, argument("id_column")),
        )
    )
    taken |= {label, row_id}
    if row_id is None:
        row_id = _default(ID_NAMES, frame, taken)
        taken.add(row_id)
    if label is None:
        label = _default(LABEL_NAMES, frame, taken)
    taken.add(label)
    weight = next((c for c in names if c.lower() == WEIGHT_NAME and c not in taken), None)
    used = {*taken, weight}
    return Roles(row_id, label, weight, groups, [c for c in names if c not in used and c.lower() not in UNNAMED])


def long_columns(names: Sequence[str]) -> dict[str, str] | None:
    """Map model, class and score to their columns, in any case; None when one of them is not there."""
    lower = {name.lower(): name for name in names}
    return {key: lower[key] for key in LONG_NAMES} if set(LONG_NAMES) <= set(lower) else None


def wide_grid(columns: Sequence[str], separator: str) -> tuple[list[str], list[str], np.ndarray]:
    """Split `model:class` columns; return the models, the classes and the column number (M, K) of each pair.

    Names may hold the separator, as long as the models or the classes are free of it: the last one splits, and where
    this leaves gaps, the first one.

    Examples
    --------
    >>> wide_grid(["a:no", "a:yes", "b:yes", "b:no"], ":")[2]
    array([[0, 1],
           [3, 2]])
    """
    problem = ""
    for split in (str.rpartition, str.partition):
        pairs = [(left.strip(), right.strip()) for left, _, right in (split(c, separator) for c in columns)]
        models, classes = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
        place = {pair: i for i, pair in enumerate(pairs)}
        if len(place) == len(models) * len(classes) == len(columns):
            order = np.array([[place[m, c] for c in classes] for m in models])
            return models, classes, order
        gap = next((f"{m}{separator}{c}" for m in models for c in classes if (m, c) not in place), None)
        problem = problem or ("two columns are the same pair" if gap is None else f"column {gap!r} is missing")
    raise ValueError(f"the columns are not a full table of models and classes: {problem}.")


def choose_layout(values: np.ndarray, columns: Sequence[str], options: ReadOptions) -> str:
    """Tell one model with a column a class ("model") from one binary model a column ("binary") by the row sums."""
    names = None if options.class_names is None else {to_text(c) for c in options.class_names}
    if len(columns) == 1:
        return "binary"
    if names is not None and names == set(columns):
        return "model"
    if names is not None and len(names) == 2 and len(columns) > 2:
        return "binary"
    if options.score_type == "logit":
        raise ValueError(
            "logits do not show whether the columns are classes of one model or binary models; "
            f"pass {argument('layout', 'model')} or {argument('layout', 'binary')}."
        )
    with np.errstate(invalid="ignore"):
        fits = np.abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE
    if fits.all():
        return "model"
    if fits.mean() < 0.5:
        return "binary"
    row = int(np.argmin(fits))
    raise ValueError(
        f"columns {first_few(columns)} sum to 1 in {int(fits.sum())} of {len(fits)} rows, but to "
        f"{values[row].sum():.6g} in {at_row(row)}: correct it if the columns are classes of one model "
        f"({argument('layout', 'model')}), or pass {argument('layout', 'binary')} if each is P(class 1) of a model."
    )
