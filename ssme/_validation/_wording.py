"""How messages call arguments and rows: in the words of whoever reads them.

A message is written once. In Python an argument is called by its name and a row by its position; a command calls the
argument by its option, and a reader of files calls the row as it stands in the file. Who knows better words lays them
over a block with :func:`calling`, as :func:`decimal.localcontext` lays precision over one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

RowWords = Callable[[int], str]
_NO_ARGUMENTS: Mapping[str, str] = {}

_arguments: ContextVar[Mapping[str, str]] = ContextVar("arguments", default=_NO_ARGUMENTS)
_rows: ContextVar[RowWords | None] = ContextVar("rows", default=None)


@contextmanager
def calling(arguments: Mapping[str, str] | None = None, rows: RowWords | None = None) -> Iterator[None]:
    """Use other words for arguments and rows in the messages of a block; None keeps those that hold outside.

    Parameters
    ----------
    arguments : mapping of str to str, optional
        What an argument is called. The name of an argument that two functions share may be "function.argument".
    rows : callable, optional
        Position of a row, from 0, to what the row is called.

    Examples
    --------
    >>> with calling({"id_column": "--id"}, lambda row: f"line {row + 2}"):
    ...     argument("id_column"), at_row(0)
    ('--id', 'line 2')
    """
    marks: list[tuple[ContextVar[Any], Any]] = []
    if arguments is not None:
        marks.append((_arguments, _arguments.set(arguments)))
    if rows is not None:
        marks.append((_rows, _rows.set(rows)))
    try:
        yield
    finally:
        for variable, mark in marks:
            variable.reset(mark)


def argument(name: str, value: Any = None) -> str:
    """What an argument is called, and with a value how it is passed.

    Examples
    --------
    >>> argument("layout"), argument("layout", "long"), argument("write.layout", "long")
    ('layout', "layout='long'", "layout='long'")
    >>> with calling({"layout": "--layout", "write.layout": "--to-layout"}):
    ...     argument("layout", "long"), argument("write.layout", "long"), argument("row_ids")
    ('--layout long', '--to-layout long', 'row_ids')
    """
    option = _arguments.get().get(name)
    if option is not None:
        return option if value is None else f"{option} {value}"
    bare = name.rpartition(".")[2]
    return bare if value is None else f"{bare}={value!r}"


def at_row(row: int) -> str:
    """What a row is called.

    Examples
    --------
    >>> at_row(3)
    'row 3'
    """
    words = _rows.get()
    return f"row {int(row)}" if words is None else words(int(row))


def counted(count: int, one: str, several: str | None = None) -> str:
    """A number with its noun, and what agrees with it.

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row"), counted(1, "id is doubled", "ids are doubled")
    ('1 row', '2 rows', '1 id is doubled')
    """
    return f"{count} {one if count == 1 else several or one + 's'}"
