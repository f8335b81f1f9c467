"""Names, row ids and groups: whatever holds them becomes plain text, the same text for 7, 7.0 and "7 "."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from ssme._validation._wording import at_row, counted


def first_few(names: Iterable[Any], limit: int = 3) -> str:
    """Quote the first few names and say how many more there are.

    Examples
    --------
    >>> first_few(["a", "b", "c", "d"])
    "'a', 'b', 'c' and 1 more"
    """
    names = [str(n) for n in names]
    rest = len(names) - limit
    return ", ".join(repr(n) for n in names[:limit]) + (f" and {rest} more" if rest > 0 else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Name the closest known name in a half sentence, or nothing."""
    close = get_close_matches(str(name), list(known)[:1000], n=1)  # it is slow on very many
    return f"; did you mean {close[0]!r}?" if close else "."


def to_python(value: Any) -> Any:
    """Turn a numpy scalar into the Python number or text that it stands for; bytes into text."""
    if isinstance(value, np.generic) and value.dtype.kind not in "Mm":  # item() of a datetime64 is a bare integer
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def to_text(value: Any) -> str:
    """Write one name as text: stripped, and whole numbers without a decimal point.

    Examples
    --------
    >>> to_text(7.0), to_text(np.int64(7)), to_text(" 7 "), to_text(True)
    ('7', '7', '7', 'True')
    """
    value = to_python(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def to_column(values: Any, name: str, n_rows: int | None = None) -> Any:
    """Bring one column into a one-dimensional form that pandas can factorize, without copying where possible.

    Lists become object arrays: numpy would turn `["a", nan]` into the text "nan", and `["a", 1]` into "1".
    """
    import pandas as pd

    column: Any
    if isinstance(values, (pd.Series, pd.Index)):
        column = values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array
    elif isinstance(values, pd.api.extensions.ExtensionArray):
        column = values
    elif isinstance(values, np.ma.MaskedArray):
        column = np.where(
            np.ma.getmaskarray(values), np.array(None, dtype=object), np.ma.getdata(values).astype(object)
        )
    elif isinstance(values, (np.ndarray, pd.DataFrame)) or hasattr(values, "__array__"):
        column = np.asarray(values)
    elif isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a one-dimensional array or list, got {type(values).__name__}.")
    else:
        values = list(values)
        column = np.empty(len(values), dtype=object)
        column[:] = values
    if column.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {column.shape}; for one column pass {name}.ravel().")
    if n_rows is not None and len(column) != n_rows:
        entries, there = counted(len(column), "entry", "entries"), "is 1 row" if n_rows == 1 else f"are {n_rows} rows"
        raise ValueError(f"{name} has {entries}, but there {there}; pass one for each row.")
    if isinstance(column, np.ndarray) and column.dtype.kind in "fcS":  # float16 and bytes are strange to pandas
        column = column.astype({"f": np.float64, "c": object, "S": object}[column.dtype.kind])
    return column


def factorize(values: Any, name: str, n_rows: int | None = None) -> tuple[np.ndarray, list[Any]]:
    """Return codes (n,), -1 where missing, and the distinct values in order of appearance."""
    import pandas as pd

    try:
        codes, distinct = pd.factorize(to_column(values, name, n_rows))
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        raise TypeError(f"{name} must hold text or numbers, but it holds lists or dicts.") from None
    return codes, [to_python(v) for v in distinct]


def as_text(values: Any, name: str = "values", n_rows: int | None = None) -> np.ndarray:
    """Turn a column into text.

    Parameters
    ----------
    values : array-like of shape (n,)
        Text, numbers, booleans, dates, missing values.
    name : str
        How errors call it.
    n_rows : int, optional
        The length that it must have.

    Returns
    -------
    ndarray of shape (n,), object
        Stripped text, and None where the value is missing or blank.

    Examples
    --------
    >>> as_text([1.0, " a", None, ""])
    array(['1', 'a', None, None], dtype=object)
    """
    codes, distinct = factorize(values, name, n_rows)
    texts = np.empty(len(distinct) + 1, dtype=object)  # the last one, None, is what code -1 picks
    texts[:-1] = [to_text(v) or None for v in distinct]
    return texts[codes]


def check_names(names: Any, count: int, name: str) -> tuple[str, ...]:
    """Check names of models or classes: `count` of them, none blank, none twice; return them as text.

    Examples
    --------
    >>> check_names(["bert", "gpt"], 2, "model_names")
    ('bert', 'gpt')
    """
    texts = as_text(names, name)
    if len(texts) != count:
        raise ValueError(
            f"{name} has {counted(len(texts), 'name')}, but the scores have {count}; pass one name for each."
        )
    blank = [i for i, text in enumerate(texts) if text is None]
    if blank:
        raise ValueError(f"{name}[{blank[0]}] is empty; give it a name.")
    return _distinct(texts, name)


def _distinct(texts: np.ndarray, name: str) -> tuple[str, ...]:
    seen: set[str] = set()
    double = [t for t in texts if t in seen or seen.add(t)]  # type: ignore[func-returns-value]
    if double:
        names = list(dict.fromkeys(double))
        rest = "comes twice; rename it" if len(names) == 1 else "come twice; rename them"
        raise ValueError(f"{name} must differ from each other, but {first_few(names)} {rest}.")
    return tuple(texts)


def check_row_ids(row_ids: Any, n_rows: int, name: str = "row_ids") -> np.ndarray:
    """Check the ids of the rows: one for each, none missing, none twice; None numbers the rows "0", "1", ...

    Examples
    --------
    >>> check_row_ids([7, 8], 2)
    array(['7', '8'], dtype=object)
    """
    import pandas as pd

    if row_ids is None:
        return np.arange(n_rows).astype(str).astype(object)
    ids = as_text(row_ids, name, n_rows)
    missing = pd.isna(ids)
    if missing.any():
        row = int(missing.argmax())
        count = int(missing.sum())
        where = f"{counted(count, 'row')}, the first is {at_row(row)}"
        raise ValueError(f"{name} is missing in {where}; give every row an id.")
    double = pd.Index(ids).duplicated()
    if double.any():
        names = list(dict.fromkeys(ids[double]))
        raise ValueError(
            f"{name} must differ from row to row, but {counted(len(names), 'id is', 'ids are')} doubled: "
            f"{first_few(names)}; drop the extra rows or choose another id column."
        )
    return ids


def check_groups(groups: Any, n_rows: int) -> dict[str, np.ndarray]:
    """Bring groups of rows into one form.

    Parameters
    ----------
    groups : None, array-like of shape (n_rows,), dict of such, or DataFrame
        One array is called "group", or by its own name when it is a named Series. Columns are taken in the order of
        the rows; the index of a DataFrame plays no part.
    n_rows : int
        Number of rows of the scores.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,), object
        Group names as text; "missing" where there is none.

    Examples
    --------
    >>> check_groups(["a", None], 2)
    {'group': array(['a', 'missing'], dtype=object)}
    """
    import pandas as pd

    if groups is None:
        return {}
    if isinstance(groups, (pd.DataFrame, Mapping)):
        columns = {to_text(name): groups[name] for name in groups}
        if len(columns) != len(list(groups)):
            raise ValueError("groups has two columns of the same name; rename one.")
    else:
        own = groups.name if isinstance(groups, pd.Series) else None
        columns = {"group" if own is None else to_text(own): groups}
    checked = {}
    for name, values in columns.items():
        if not name:
            raise ValueError("a column of groups has no name; give it one.")
        texts = as_text(values, f"groups[{name!r}]", n_rows)
        checked[name] = np.where(pd.isna(texts), "missing", texts).astype(object)
    return checked
