"""What errors call a row of a file: as its reader counts, and in a text file with its line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

RowWords = Callable[[int], str]


def by_line(line_of: Callable[[int], int | None]) -> RowWords:
    """Data rows from 1 with their lines; `line_of` is asked only when a row is named."""

    def words(row: int) -> str:
        line = line_of(row)
        return f"data row {row + 1}" + (f" (line {line})" if line is not None else "")

    return words


def by_index(row: int) -> str:
    """Rows of a file of arrays: the first is 1, its index 0.

    Examples
    --------
    >>> by_index(0)
    'data row 1 (index 0)'
    """
    return f"data row {row + 1} (index {row})"


def by_id(ids: Sequence[str]) -> RowWords:
    """Rows that are spread over several lines have their id alone.

    Examples
    --------
    >>> by_id(["x", "y"])(1)
    "the row of id 'y'"
    """
    return lambda row: f"the row of id {ids[row]!r}"
