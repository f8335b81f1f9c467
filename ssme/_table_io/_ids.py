"""Match rows by id, classes and models by name; never by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssme._validation import argument, as_text, check_row_ids, counted, first_few
from ssme._validation._text import did_you_mean


def align(reference: np.ndarray, ids: np.ndarray, reference_name: str, name: str) -> np.ndarray:
    """Find the order that brings `ids` into the order of `reference`; both hold the same ids, each once.

    Examples
    --------
    >>> align(np.array(["a", "b"], dtype=object), np.array(["b", "a"], dtype=object), "one.csv", "two.csv")
    array([1, 0])
    """
    order = pd.Index(ids).get_indexer(pd.Index(reference))
    missing = reference[order < 0]
    extra = ids[~pd.Index(ids).isin(reference)]
    if len(missing) or len(extra):
        lacks = (
            [f"lacks {counted(len(missing), 'row id')} of {reference_name} ({first_few(missing)})"]
            if len(missing)
            else []
        )
        adds = (
            [f"has {counted(len(extra), 'row id')} that {reference_name} lacks ({first_few(extra)})"]
            if len(extra)
            else []
        )
        raise ValueError(f"{name} {' and '.join(lacks + adds)}; the tables must hold the same rows.")
    return order


def rows_of(reference: np.ndarray, row_ids: Any, name: str) -> np.ndarray:
    """Find the row of each id; an id that no row has, or that comes twice, is an error.

    Examples
    --------
    >>> rows_of(np.array(["a", "b"], dtype=object), ["b"], "labels")
    array([1])
    """
    ids = as_text(row_ids, f"{argument('row_ids')} of {name}")
    ids = check_row_ids(ids, len(ids), f"the row id of {name}")
    rows = pd.Index(reference).get_indexer(pd.Index(ids))
    unknown = ids[rows < 0]
    if len(unknown):
        raise ValueError(
            f"{name} has {counted(len(unknown), 'row id')} that the scores lack: {first_few(unknown)}; correct or "
            f"remove {'it' if len(unknown) == 1 else 'them'}."
        )
    return rows


def class_order(reference: Sequence[str], names: Sequence[str], reference_name: str, name: str) -> list[int]:
    """Find where each class of `reference` stands in `names`.

    Examples
    --------
    >>> class_order(["cat", "dog"], ["dog", "cat"], "one.csv", "two.csv")
    [1, 0]
    """
    if set(reference) != set(names):
        lacks = [c for c in reference if c not in set(names)]
        extra = [c for c in names if c not in set(reference)]
        parts = [f"lacks {first_few(lacks)}"] * bool(lacks) + [f"has {first_few(extra)} as well"] * bool(extra)
        differs = " and ".join(parts)
        raise ValueError(f"the classes of {name} are not those of {reference_name}: it {differs}; rename them.")
    place = {c: k for k, c in enumerate(names)}
    return [place[c] for c in reference]


def pick_names(wanted: Any, known: Sequence[str], what: str) -> list[int]:
    """Turn names or positions into positions; an unknown name is an error that names the closest one.

    Examples
    --------
    >>> pick_names(["gpt", 0], ["bert", "gpt"], "model")
    [1, 0]
    """
    wanted = [wanted] if isinstance(wanted, (str, int, np.integer)) else wanted
    if not isinstance(wanted, Iterable):
        raise TypeError(f"a {what} is named by text or a whole number, got {wanted!r}.")
    place = {name: i for i, name in enumerate(known)}
    found = []
    for item in wanted:
        if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
            if not -len(known) <= item < len(known):
                raise ValueError(f"there is no {what} {item}; the positions are 0 to {len(known) - 1}.")
            found.append(int(item) % len(known))
        elif str(item).strip() in place:
            found.append(place[str(item).strip()])
        else:
            raise ValueError(
                f"there is no {what} {str(item)!r} among {first_few(known, 10)}{did_you_mean(str(item), known)}"
            )
    if not found:
        raise ValueError(f"no {what} is selected; name at least one.")
    return found


def pick_rows(wanted: Any, row_ids: np.ndarray) -> Any:
    """Turn a mask, positions, a slice or ids into what indexes the rows.

    Examples
    --------
    >>> pick_rows(["b"], np.array(["a", "b"], dtype=object))
    [1]
    """
    if isinstance(wanted, slice):
        return wanted
    wanted = [wanted] if isinstance(wanted, (str, int, np.integer)) else wanted
    if not isinstance(wanted, Iterable):
        raise TypeError(f"rows must be a mask, positions, a slice or ids, got {wanted!r}.")
    wanted = np.asarray(wanted) if hasattr(wanted, "dtype") else list(wanted)
    if len(wanted) and isinstance(wanted[0], str):
        return pick_names(wanted, row_ids.tolist(), "row id")
    rows = np.asarray(wanted) if len(wanted) else np.zeros(0, dtype=np.int64)
    n = len(row_ids)
    if rows.dtype.kind not in "biu" or rows.ndim != 1:
        raise TypeError(f"rows must be a mask, positions, a slice or ids, got {rows.dtype} of the shape {rows.shape}.")
    if rows.dtype.kind == "b" and len(rows) != n:
        raise ValueError(f"the mask of rows has {counted(len(rows), 'entry', 'entries')}, but the table has {n}.")
    if rows.dtype.kind != "b" and len(rows) and not (-n <= rows.min() and rows.max() < n):
        raise ValueError(
            f"rows names positions from {rows.min()} to {rows.max()}, but those of the table end at {n - 1}."
        )
    return rows
