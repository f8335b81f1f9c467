"""What a page can be made of besides scores: tables of estimates, and folders with the frames of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from ssme.report import RESULT_COLUMNS

NUMBERS = ("estimate", "lower", "upper", "level", "n_labeled", "n_unlabeled")
SWEEP = ("curves", "cscore", "masking", "factors")
SUFFIXES = (".csv", ".parquet")


def is_estimates(path: Path) -> bool:
    """Whether a file is a table that ``ssme estimate`` wrote (and not one of scores)."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        return True
    if suffix not in SUFFIXES or not path.is_file():
        return False
    if suffix == ".parquet":
        from pyarrow.parquet import read_schema

        try:
            return set(RESULT_COLUMNS) <= set(read_schema(path).names)
        except ValueError:  # no parquet file: the reader of scores says so
            return False
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        head = file.readline(100_000)
    return set(RESULT_COLUMNS) <= set(head.strip().split(","))


def read_estimates(path: Path) -> tuple[pd.DataFrame, dict[str, Any], list[str]]:
    """Read a table that ``ssme estimate`` wrote.

    Parameters
    ----------
    path : Path
        .csv, .json or .parquet.

    Returns
    -------
    frame, settings, warnings
        The last two are empty unless the file is JSON.

    Raises
    ------
    ValueError
        Where the file is no such table.
    """
    settings: dict[str, Any] = {}
    notes: list[str] = []
    if path.suffix.lower() == ".json":
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not a JSON document ({error}).") from error
        if not isinstance(document, dict) or document.get("format") != "ssme-estimates/1":
            raise ValueError(f"{path} is not a table that ssme estimate wrote: its format is not ssme-estimates/1.")
        frame = pd.DataFrame(document.get("estimates") or [], columns=list(RESULT_COLUMNS))
        settings, notes = dict(document.get("settings") or {}), [str(n) for n in document.get("warnings") or []]
    else:
        frame = _table(path)
    return checked_estimates(frame, str(path)), settings, notes


def checked_estimates(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """A copy with texts as text and numbers as numbers, refused where it is no table of estimates."""
    missing = [c for c in RESULT_COLUMNS if c not in frame.columns]
    if missing:
        raise ValueError(f"{name} is not a table of estimates: the column {', '.join(missing)} is missing.")
    if frame.empty:
        raise ValueError(f"{name} has no rows, so there is nothing to report.")
    frame = frame[list(RESULT_COLUMNS)].copy()
    for column in RESULT_COLUMNS:
        if column not in NUMBERS:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "").astype(str)
            continue
        values = pd.to_numeric(frame[column], errors="coerce")
        bad = values.isna() & (frame[column].notna() if column in NUMBERS[:3] else True)
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise ValueError(f"{name}: {column} of data row {row + 1} is {frame[column].iloc[row]!r}, not a number.")
        frame[column] = values.astype("int64" if column.startswith("n_") else "float64")
    return frame.reset_index(drop=True)


def read_sweep(folder: Path) -> dict[str, pd.DataFrame]:
    """Read what a folder holds of curves, cscore, masking and factors, each a .csv or .parquet file.

    Raises
    ------
    FileNotFoundError
        Where it holds none of them.
    """
    found = {}
    for name in SWEEP:
        for suffix in SUFFIXES:
            if (folder / f"{name}{suffix}").is_file():
                found[name] = _table(folder / f"{name}{suffix}")
                break
    if not found:
        names = ", ".join(f"{name}.csv" for name in SWEEP)
        raise FileNotFoundError(f"{folder} holds none of {names} (or .parquet), so there is no sweep to report.")
    return found


def _table(path: Path) -> pd.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        # an empty text is a text, and a model may be called NA
        return pd.read_csv(path, keep_default_na=False, na_values=dict.fromkeys(_numeric_names(path), ["", "nan"]))
    except (ValueError, pd.errors.ParserError) as error:
        raise ValueError(f"{path} cannot be read as a table ({' '.join(str(error).split())}).") from error


def _numeric_names(path: Path) -> list[str]:
    """Columns in which an empty cell means that there is no number: all but those that hold names."""
    names = {"metric", "model", "group", "method", "flags", "algorithm", "factor", "verdict", "dataset"}
    return [c for c in pd.read_csv(path, nrows=0).columns if c not in names]
