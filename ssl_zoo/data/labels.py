"""Labels as files hold them -> classes 0, 1, ... with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

LABEL_NAMES = ("label", "labels", "y", "target", "class", "fine_label")


def encode_labels(
    values: Any, class_names: Sequence[str] | None = None, *, where: str = "labels"
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Classes of `values`, and their names; a missing value is the unknown class -1.

    Integers that start at 0 are taken as they are, and so is a -1 among them (unknown, as in the unlabeled split of
    STL-10); anything else gets the order of its sorted distinct values. With `class_names`, integers in range are
    positions unless they are names themselves, and every other value is looked up by name.

    Examples
    --------
    >>> codes, names = encode_labels(["cat", "ant", None, "cat"])
    >>> codes.tolist(), names
    ([1, 0, -1, 1], ('ant', 'cat'))
    >>> encode_labels([1, 2, 7])[0].tolist()
    [0, 1, 2]
    >>> encode_labels([0, 2])[1]
    ('0', '1', '2')
    """
    series = pd.Series(values).reset_index(drop=True)
    if series.dtype.kind == "f" and (series.dropna() % 1 == 0).all():
        series = series.astype("Int64")  # integers beside a missing value are read as floats
    whole = pd.api.types.is_integer_dtype(series)
    text = series.astype(str).str.strip().to_numpy(dtype=object)
    missing = series.isna().to_numpy() | (text == "")
    known = set(text[~missing])
    if class_names is None:
        found = sorted(known, key=int) if whole else sorted(known)
        if whole and "0" in known and int(found[0]) >= -1:
            found = [str(k) for k in range(int(found[-1]) + 1)]
        class_names = found
    names = tuple(str(name) for name in class_names)
    index = {name: k for k, name in enumerate(names)}
    if whole and not known - {"-1"} <= index.keys():
        index = {str(k): k for k in range(len(names))}  # positions, not names
    if whole:
        index.setdefault("-1", -1)
    codes = np.array([-1 if gone else index.get(t, -2) for t, gone in zip(text, missing, strict=True)], dtype=np.int64)
    if (codes == -2).any():
        row = int(np.flatnonzero(codes == -2)[0])
        raise ValueError(
            f"{where}: row {row} holds {text[row]!r}, which is none of the {len(names)} classes {', '.join(names[:10])}"
        )
    return codes, names


def find_label_column(columns: Sequence[str], wanted: str | int | None, where: str) -> str:
    """The column of the labels: the one asked for, or the one that carries a usual name."""
    names = [str(c) for c in columns]
    if isinstance(wanted, int):
        if not -len(names) <= wanted < len(names):
            raise ValueError(f"label_column={wanted}, but {where} has {len(names)} columns")
        return names[wanted]
    if wanted is not None:
        if wanted not in names:
            raise ValueError(f"label_column={wanted!r} is not in {where}; its columns are {', '.join(names[:10])}")
        return wanted
    found = [name for name in names if name.lower() in LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    why = "has no column with a usual name for labels" if not found else f"has several: {', '.join(found)}"
    raise ValueError(f"{where} {why}; name it with label_column=. Its columns are {', '.join(names[:10])}")
