"""Labels of any kind -> class codes, with -1 for unlabeled rows."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from ssme._validation._text import check_names, factorize, first_few, to_python, to_text
from ssme._validation._wording import argument, at_row, counted

# Text that stands for "no label", unless a class has that very name.
MISSING_TEXT = {"", "-1", "-1.0", "nan", "NaN", "NAN", "NA", "N/A", "<NA>", "None", "null", "NULL"}
WHOLE_NUMBER = re.compile(r"[+-]?\d+(\.0*)?")
SHOWN = 10


def check_class_names(class_names: Any, n_classes: int) -> np.ndarray | None:
    """Check the names of the classes, in the order of the score columns; return them in their own type.

    Examples
    --------
    >>> check_class_names([3, 1], 2)
    array([3, 1])
    """
    if class_names is None:
        return None
    check_names(class_names, n_classes, argument("class_names"))
    return np.asarray(class_names)


def check_labels(
    y: Any, n_rows: int, n_classes: int, *, class_names: Any = None, name: str = "y"
) -> tuple[np.ndarray, np.ndarray]:
    """Turn labels into class codes.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or None
        Labels. Unlabeled rows hold -1, None, NaN, a pandas NA or "" (and, in text, words like "nan" and "NA" unless a
        class is called so). None: no row is labeled.
    n_rows, n_classes : int
        Shape of the scores.
    class_names : array-like of shape (n_classes,), optional
        The class of each score column. A label belongs to the class that equals it, or that is written like it: 1,
        1.0, "1" and "1.0" are all class "1". Where no class is called by a number, integer labels are positions
        0 .. n_classes - 1.
    name : str
        How errors call the labels.

    Returns
    -------
    codes : ndarray of shape (n_rows,), int64
        Score column of each row's class; -1 where unlabeled.
    classes : ndarray of shape (n_classes,)
        `class_names`; without them 0 .. n_classes - 1 for integer labels in that range, else the n_classes distinct
        labels in ascending order, which is the column order of scikit-learn.

    Examples
    --------
    >>> check_labels(["spam", None, "ham"], 3, 2)
    (array([ 1, -1,  0]), array(['ham', 'spam'], dtype='<U4'))
    >>> check_labels(["spam", "", "ham"], 3, 2, class_names=["spam", "ham"])[0]
    array([ 0, -1,  1])
    """
    names = check_class_names(class_names, n_classes)
    if y is None:
        return np.full(n_rows, -1, dtype=np.int64), np.arange(n_classes) if names is None else names
    positions, distinct = factorize(y, name, n_rows)
    distinct = [v.strip() if isinstance(v, str) else v for v in distinct]
    if names is None:
        names = _classes_of([v for v in distinct if not _is_missing(v)], n_classes, name)
    found = _match(distinct, [to_python(c) for c in names])
    unknown = [i for i, code in enumerate(found) if code is None]
    if unknown:
        row = int(np.argmax(positions == unknown[0]))
        raise ValueError(_unknown_message(name, [distinct[i] for i in unknown], row, names))
    lookup = np.array([*found, -1], dtype=np.int64)  # the last one is for missing rows, position -1
    return lookup[positions], names


def _is_missing(value: Any) -> bool:
    return value in MISSING_TEXT if isinstance(value, str) else bool(value == -1)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (bool, int)) or (isinstance(value, float) and value.is_integer())


def _plain(value: Any) -> str:
    """Text with whole numbers in one spelling: "1.0" and "+1" are "1"."""
    text = to_text(value)
    return str(int(text.split(".")[0])) if WHOLE_NUMBER.fullmatch(text) else text


def _spellings(value: Any) -> list[str]:
    """The ways in which a label may be written as a class name, the closest first."""
    spellings = [to_text(value), _plain(value)]
    if spellings[0].lower() in {"true", "false"}:
        spellings.append(str(int(spellings[0].lower() == "true")))
    return spellings


def _match(distinct: list[Any], classes: list[Any]) -> list[int | None]:
    """Code of each distinct label: its class, -1 for an unlabeled marker, None when nothing fits."""
    by_value = {c: k for k, c in enumerate(classes)}
    by_text = {_plain(c): k for k, c in enumerate(classes)}
    if len(by_text) < len(classes):  # classes "1" and "1.0": only the exact spelling tells them apart
        by_text = {}
    by_text.update({to_text(c): k for k, c in enumerate(classes)})
    numbered = any(WHOLE_NUMBER.fullmatch(str(c)) for c in by_text)
    by_position = not numbered and all(_is_whole(v) or _is_missing(v) for v in distinct)
    found: list[int | None] = []
    for value in distinct:
        code = by_value.get(value)
        if code is None:
            code = next((by_text[s] for s in _spellings(value) if s in by_text), None)
        if code is None and _is_missing(value):
            code = -1
        elif code is None and by_position and 0 <= value < len(classes):
            code = int(value)
        elif code is not None and _is_missing(value) and to_text(value) == "-1":
            warnings.warn(
                "a class is called -1, so labels of -1 belong to it; mark unlabeled rows as None or NaN.", stacklevel=3
            )
        found.append(code)
    return found


def _classes_of(present: list[Any], n_classes: int, name: str) -> np.ndarray:
    """Infer the classes from the distinct labels that are present."""
    if n_classes == 2 and present and all(isinstance(v, bool) for v in present):
        return np.array([False, True])
    texts = [v for v in present if isinstance(v, str)]
    numbers = [v for v in present if not isinstance(v, str)]
    if texts and numbers:
        raise ValueError(f"{name} mixes text such as {texts[0]!r} with numbers such as {numbers[0]!r}; use one kind.")
    fractions = [v for v in numbers if not _is_whole(v)]
    if fractions:
        raise ValueError(
            f"Unknown label type: continuous. {name} holds {fractions[0]!r}; labels must be integers or text, "
            "and -1, None, NaN or '' where a row is unlabeled."
        )
    values: list[Any] = sorted(texts or {int(v) for v in numbers})
    if not texts and all(0 <= v < n_classes for v in values):
        return np.arange(n_classes)
    if len(values) != n_classes:
        raise ValueError(
            f"{name} holds {counted(len(values), 'label')} ({first_few(values)}), but the scores have {n_classes} "
            f"classes; pass {argument('class_names')} in the order of the score columns."
        )
    return np.array(values)


def _unknown_message(name: str, unknown: list[Any], row: int, classes: np.ndarray) -> str:
    more = f" ({len(unknown)} distinct labels match none)" if len(unknown) > 1 else ""
    return (
        f"{name} holds {unknown[0]!r} at {at_row(row)}, which matches no class{more}; the classes are "
        f"{first_few(classes, SHOWN)}: correct the label, or pass {argument('class_names')} in the order of the "
        "score columns."
    )
