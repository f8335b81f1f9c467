"""Tables of numbers and categories -> float features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

TABLE_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_MAX_CATEGORIES = 64


def read_csv(path: Path, *, separator: str | None = None, header: bool = True) -> pd.DataFrame:
    """A csv or tsv file, gzipped or not; column names are strings, and without a header x0, x1, ..."""
    sep = separator or ("\t" if ".tsv" in path.name.lower() else ",")
    try:
        frame = pd.read_csv(path, sep=sep, header=0 if header else None, encoding="utf-8-sig", low_memory=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError, EOFError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    frame.columns = [str(c) if header else f"x{c}" for c in frame.columns]
    return frame


@dataclass(frozen=True)
class TableEncoder:
    """Columns of a table as float features, with what was learned from the rows of the train split.

    A column of numbers stays one feature; a missing number becomes the median, and a column that misses numbers in the
    train split gets a second feature that says where. A column of text or truth values becomes one feature for each
    category; a category that the train split lacks is 0 in all of them.

    Examples
    --------
    >>> train = pd.DataFrame({"age": [20.0, None, 40.0], "town": ["a", "b", "a"]})
    >>> encoder = TableEncoder.fit(train)
    >>> encoder.feature_names
    ('age', 'age missing', 'town=a', 'town=b')
    >>> encoder.transform(train).tolist()
    [[20.0, 0.0, 1.0, 0.0], [30.0, 1.0, 0.0, 1.0], [40.0, 0.0, 1.0, 0.0]]
    """

    medians: dict[str, float]
    with_missing: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    columns: tuple[str, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame) -> TableEncoder:
        """Learn medians and categories."""
        medians: dict[str, float] = {}
        categories: dict[str, tuple[str, ...]] = {}
        with_missing = []
        for name in frame.columns:
            column = frame[name]
            if _is_number(column):
                values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
                known = values[np.isfinite(values)]
                medians[name] = float(np.median(known)) if known.size else 0.0
                if known.size < len(values):
                    with_missing.append(name)
                continue
            found = tuple(sorted({str(v) for v in column.dropna()}))
            if len(found) > _MAX_CATEGORIES:
                raise ValueError(
                    f"column {name!r} holds {len(found)} different texts, more than {_MAX_CATEGORIES}; "
                    "drop it with drop_columns=, or name it with text_column= if it is the text to learn from"
                )
            categories[name] = found
        return cls(medians, tuple(with_missing), categories, tuple(str(c) for c in frame.columns))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of every feature."""
        names: list[str] = []
        for name in self.columns:
            if name in self.medians:
                names += [name] + [f"{name} missing"] * (name in self.with_missing)
            else:
                names += [f"{name}={value}" for value in self.categories[name]]
        return tuple(names)

    def transform(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Features (N, F) of the rows."""
        lacking = [name for name in self.columns if name not in frame.columns]
        if lacking:
            raise ValueError(f"the table lacks the columns {', '.join(lacking[:5])}, which the train split has")
        parts: list[NDArray[Any]] = []
        for name in self.columns:
            if name in self.categories:
                text = frame[name].astype(str).to_numpy(dtype=object)
                parts += [(text == value) & frame[name].notna().to_numpy() for value in self.categories[name]]
                continue
            try:
                values = pd.to_numeric(frame[name]).to_numpy(dtype=np.float64, na_value=np.nan)
            except (ValueError, TypeError) as error:
                raise ValueError(f"column {name!r} held numbers in the train split: {error}") from error
            missing = ~np.isfinite(values)
            parts.append(np.where(missing, self.medians[name], values))
            if name in self.with_missing:
                parts.append(missing)
        return np.stack([np.asarray(p, dtype=np.float32) for p in parts], axis=1)


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
