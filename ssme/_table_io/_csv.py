"""CSV and TSV files -> frames. Ids, labels and groups stay text ("007", "NA"); scores become exact floats."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from ssme._table_io._columns import check_header
from ssme._table_io._frames import MISSING_NUMBERS
from ssme._validation import at_row, counted

# pandas keeps one block a column: with many columns a plain reader is up to fifty times faster.
WIDE = 2000
QUOTED = re.compile(r'"[^"]*"')
TextColumns = Callable[[list[str]], set[str]]


def _open(path: Path) -> IO[str]:
    binary: IO[bytes] = gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb")  # type: ignore[assignment]
    # utf-8-sig drops the byte order mark that spreadsheets write; newline="" leaves CRLF to the csv reader.
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what the readers raise on damaged files into one sentence each."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"the file is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8.") from error
    except EOFError as error:
        raise ValueError("the file is truncated: its gzip stream stops early; write or copy it again.") from error
    except gzip.BadGzipFile as error:
        raise ValueError("the file is not gzip, though its name ends in .gz; rename it.") from error
    except pd.errors.ParserError as error:
        text = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if "EOF inside string" in text:
            raise ValueError(f"a quoted cell is never closed ({text}); the file may be truncated.") from error
        raise ValueError(f"the lines do not have one cell for each column: {text}; correct that line.") from error
    except csv.Error as error:
        raise ValueError(f"the file is not well-formed CSV: {error}.") from error


def _header(path: Path) -> tuple[list[str], str]:
    """Return the column names and the delimiter; semicolons and tabs are used where there is no comma."""
    with _open(path) as file:
        start = file.read(4096)
        if "\0" in start:
            raise ValueError("the file is binary or UTF-16, not CSV in UTF-8; save it again or correct its suffix.")
        bare = QUOTED.sub("", start.lstrip("\r\n ")).split("\n")[0]  # what stands in quotes delimits nothing
        choices = "\t" if ".tsv" in path.suffixes else ",;\t"
        delimiter = next((d for d in choices if d in bare), choices[0])
        file.seek(0)
        names = next((row for row in csv.reader(file, delimiter=delimiter, skipinitialspace=True) if row), [])
    names = [n.strip() for n in names]
    if not any(names):
        raise ValueError("the file is empty; it needs a header line and rows.")
    check_header(names)
    return names, delimiter


def read_csv_frame(path: Path, text_columns: TextColumns) -> pd.DataFrame:
    """Read a file; `text_columns` gets the header and says which columns are to stay text."""
    with _readable(path):
        names, delimiter = _header(path)
        text = text_columns(names)
        read = _read_narrow if len(names) <= WIDE else _read_wide
        return read(path, names, delimiter, text)


def line_of_row(path: Path, row: int) -> int | None:
    """The line of the file on which a data row starts, counted from 1; blank lines are no rows."""
    names, delimiter = _header(path)
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        seen, start = -2, 1  # the header is the row before the first
        for cells in reader:
            seen += bool(cells) and (len(cells) == len(names) > 1 or any(cell.strip() for cell in cells))
            if seen == row:
                return start
            start = reader.line_num + 1
    return None


def _count_cells(path: Path, names: list[str], delimiter: str) -> None:
    """Refuse a line with too few cells: pandas would fill it up, and a file cut off in a line would pass for whole."""
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        for row in reader:
            if len(row) < len(names) and any(row):
                raise ValueError(_uneven(reader.line_num, len(row), len(names)))


def _uneven(line: int, found: int, wanted: int) -> str:
    cells = counted(found, "cell")
    return f"line {line} has {cells}, but the header has {wanted}; correct that line (the file may be truncated)."


def _read_narrow(path: Path, names: list[str], delimiter: str, text: set[str]) -> pd.DataFrame:
    # Older versions of pandas are off by one unit in the last place unless told; newer ones are exact and say so.
    old = tuple(int(v) for v in pd.__version__.split(".")[:2]) < (3, 1)
    precision: dict[str, Any] = {"float_precision": "round_trip"} if old else {}
    with warnings.catch_warnings(), _open(path) as file:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                file,
                sep=delimiter,
                header=0,
                names=names,
                index_col=False,  # else a first cell too many would silently become the index
                dtype=dict.fromkeys(text, str),
                na_filter=False,  # "NA" may be an id or a class
                low_memory=False,
                skipinitialspace=True,
                **precision,
            )
        except pd.errors.ParserWarning as error:
            message = "the lines have more cells than the header has names; correct the header or the delimiter."
            raise ValueError(message) from error
    _count_cells(path, names, delimiter)
    return frame


def _read_wide(path: Path, names: list[str], delimiter: str, text: set[str]) -> pd.DataFrame:
    """Read row by row, all columns of a row at once: such files have many columns and few rows."""
    is_text = [n in text for n in names]
    is_number = [not t for t in is_text]
    numbers: list[np.ndarray] = []
    texts: list[list[str]] = []
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        rows = (row for row in reader if row)
        next(rows)
        for row in rows:
            if len(row) != len(names):
                raise ValueError(_uneven(reader.line_num, len(row), len(names)))
            texts.append(list(itertools.compress(row, is_text)))
            numbers.append(_floats(list(itertools.compress(row, is_number)), names, is_number, len(numbers)))
    block = np.array(numbers).reshape(len(numbers), sum(is_number))
    frame = pd.DataFrame(block, columns=list(itertools.compress(names, is_number)))
    heads = pd.DataFrame(np.array(texts, dtype=object).reshape(len(texts), sum(is_text)))
    heads.columns = pd.Index(list(itertools.compress(names, is_text)), dtype=object)
    return pd.concat([heads, frame], axis=1)


def _floats(cells: list[str], names: list[str], is_number: list[bool], row: int) -> np.ndarray:
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        pass
    values = np.empty(len(cells))
    for i, (cell, column) in enumerate(zip(cells, itertools.compress(names, is_number), strict=True)):
        try:
            values[i] = math.nan if cell.strip().lower() in MISSING_NUMBERS else float(cell)
        except ValueError:
            message = f"column {column!r} holds {cell!r} at {at_row(row)}, which is not a number; correct it."
            raise ValueError(message) from None
    return values


def write_csv_frame(path: Path, frame: pd.DataFrame, delimiter: str) -> None:
    """Write a frame; floats are written so that reading gives the same bits back, an absent label is an empty cell."""
    texts = frame.select_dtypes(exclude="number")
    cells = itertools.chain(frame.columns, *(texts[column].unique() for column in texts))
    returns = any("\r" in str(cell) for cell in cells)
    ending = "\r\n" if returns else "\n"  # the writer quotes a carriage return only where it ends lines
    with open(path, "wb") as file:
        # No file name and no time in the gzip header: the same table gives the same bytes.
        packed: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.suffix.lower() == ".gz" else file
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as text:
            frame.to_csv(text, sep=delimiter, index=False, na_rep="", lineterminator=ending)
