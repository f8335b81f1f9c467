"""Numbers as text, and plain tables that rich can print: the small pieces that `report` is made of."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

UNDEFINED = "undefined"
MOST_SHOWN = 20  # names in one line, or rows of a table that could be very long


def format_number(value: float, digits: int = 3) -> str:
    """Write a number with a fixed count of decimals; NaN is said in a word.

    Examples
    --------
    >>> format_number(0.98765), format_number(float("nan"))
    ('0.988', 'undefined')
    """
    return UNDEFINED if value is None or math.isnan(value) else f"{value:.{digits}f}"


def format_interval(lower: float, upper: float, digits: int = 3) -> str:
    """Write an interval as ``lower to upper``.

    Examples
    --------
    >>> format_interval(0.9, 0.95)
    '0.900 to 0.950'
    >>> format_interval(float("nan"), float("nan"))
    'undefined'
    """
    if math.isnan(lower) or math.isnan(upper):
        return UNDEFINED
    return f"{lower:.{digits}f} to {upper:.{digits}f}"


def format_level(level: float) -> str:
    """Write a level as a percentage without trailing zeros.

    Examples
    --------
    >>> format_level(0.9), format_level(0.975)
    ('90%', '97.5%')
    """
    return f"{100 * level:.6g}%"


def plain(value: Any) -> Any:
    """Turn numpy scalars, arrays and NaN into what JSON can hold (NaN and infinities become None).

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.array([0.5, np.nan]), "b": np.int64(3)})
    {'a': [0.5, None], 'b': 3}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def rich_table(
    heading: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    starts: Sequence[bool] = (),
    numeric: Iterable[str] = (),
) -> RenderableType:
    """A plain table; cells are shown literally, so that no name of a model or group is read as markup."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    numeric = set(numeric)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for name in heading:
        justify: Literal["left", "right"] = "right" if name in numeric else "left"
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=name.endswith("interval"))
    for i, row in enumerate(rows):
        if i and i < len(starts) and starts[i]:
            table.add_section()
        table.add_row(*(Text(cell) for cell in row))
    # A title of the table itself would be folded to the width of the table; a line above it is not.
    return Group(Text(title, style="bold"), table, Text()) if title else table


def frame_cells(frame: pd.DataFrame, hide: Iterable[str] = ()) -> tuple[list[str], list[list[str]], list[str]]:
    """Heading, cells and the names of the numeric columns of a frame; lower and upper are one interval.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_cells(pd.DataFrame({"model": ["a"], "rank": [1], "p_best": [0.5], "level": [0.9]}), hide=["level"])
    (['model', 'rank', 'p best'], [['a', '1', '0.500']], ['rank', 'p best'])
    """
    hidden, columns, numeric = {*hide}, {}, []  # type: set[str], dict[str, list[str]], list[str]
    for name in frame.columns:
        values = frame[name]
        if name in hidden or str(name).endswith("upper"):
            continue
        label = str(name).replace("_", " ")
        if str(name).endswith("lower"):
            ends = zip(values, frame[f"{str(name)[:-5]}upper"], strict=True)
            columns[f"{label[:-5]}interval"] = [format_interval(low, high) for low, high in ends]
            continue
        if values.dtype.kind in "fiu" and name not in ("model", "class", "group", "model_a", "model_b"):
            numeric.append(label)
        number = format_number if values.dtype.kind == "f" else (lambda value: f"{value:,}")
        columns[label] = [number(value) if label in numeric else str(value) for value in values]
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)], numeric


def frame_to_table(frame: pd.DataFrame, *, hide: Iterable[str] = (), title: str | None = None) -> RenderableType:
    """Any tidy frame as a table for the terminal; columns in `hide` are left out."""
    heading, rows, numeric = frame_cells(frame, hide)
    return rich_table(heading, rows, title=title, numeric=numeric)


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[str]) -> str:
    """A table of markdown; hostile names are escaped.

    Examples
    --------
    >>> print(markdown_table(["model", "n"], [["a|b", "1"]], ["n"]))
    | model | n |
    |---|---:|
    | a\\|b | 1 |
    """
    right = {*numeric}
    lines = ["| " + " | ".join(heading) + " |"]
    lines.append("|" + "|".join("---:" if name in right else "---" for name in heading) + "|")
    lines += ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _markdown_cell(text: str) -> str:
    """Escape what would end a cell or be read as markup or as HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\|`*_[]":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def frame_to_markdown(frame: pd.DataFrame) -> str:
    """Any tidy frame as a table of markdown."""
    heading, rows, numeric = frame_cells(frame)
    return markdown_table(heading, rows, numeric)


def mapping_to_table(values: Mapping[str, Any], *, title: str | None = None) -> RenderableType:
    """Two columns, name and value, for the counts and settings of a file or a fit."""
    return rich_table(("what", "value"), [(str(k), str(v)) for k, v in values.items()], title=title)


def matrix_to_table(matrix: pd.DataFrame, *, title: str | None = None, digits: int = 2) -> RenderableType:
    """A square matrix of numbers with its names; columns are numbered so that long names do not widen the table."""
    heading = ["", "model", *(str(i + 1) for i in range(matrix.shape[1]))]
    rows = [
        [str(i + 1), str(name), *(format_number(v, digits) for v in values)]
        for i, (name, values) in enumerate(zip(matrix.index, matrix.to_numpy(), strict=True))
    ]
    return rich_table(heading, rows, title=title, numeric=[h for h in heading if h.isdigit()])


def shortened(pieces: Sequence[str]) -> str:
    """Pieces in one line; of many, the first and the number of the others.

    Examples
    --------
    >>> shortened(["a", "b"]), shortened(["a"] * 1000)[-15:]
    ('a, b', ' and 980 others')
    """
    rest = len(pieces) - MOST_SHOWN
    return ", ".join(pieces[:MOST_SHOWN]) + (f" and {rest:,} others" if rest > 0 else "")


def to_text(renderable: Any, *, width: int | None = None) -> str:
    """Render a table as plain text, as wide as it needs to be unless a width is given."""
    from rich.console import Console
    from rich.measure import Measurement

    text = io.StringIO()
    console = Console(file=text, width=width or 10_000, color_system=None, highlight=False)
    if width is None:
        console.width = max(1, Measurement.get(console, console.options, renderable).maximum)
    console.print(renderable)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
