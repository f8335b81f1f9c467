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
