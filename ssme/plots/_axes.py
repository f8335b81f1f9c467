"""What the displays share: axes to draw on, names that fit, checks of frames. Colours are those of the style in use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

MARKERS = "osv^DPX*<>"
LONGEST_NAME = 28


def pyplot() -> Any:
    """matplotlib.pyplot, or a sentence that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'ssme[report]'.") from error
    return plt


def axes(ax: Any, figsize: tuple[float, float] | None = None) -> Any:
    """The axes given, or those of a new figure."""
    return pyplot().subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def fitting(name: Any, longest: int = LONGEST_NAME) -> str:
    """A name as one line of at most so many characters; characters that cannot be printed are left out.

    Examples
    --------
    >>> fitting("a" * 40), fitting("two\\nlines")
    ('aaaaaaaaaaaaaaaaaa…aaaaaaaaa', 'two lines')
    """
    text = "".join(c for c in " ".join(str(name).split()) if c.isprintable())
    tail = longest // 3
    return text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}"


def literal(artist: Any) -> Any:
    """Text that is shown as it is: no dollar sign in a name starts a formula."""
    for each in artist if isinstance(artist, Iterable) else [artist]:
        each.set_parse_math(False)
    return artist


def legend(ax: Any, **settings: Any) -> None:
    """A legend whose names are shown literally."""
    literal(ax.legend(**{"frameon": False, "fontsize": "small", **settings}).get_texts())


def tidy(ax: Any) -> None:
    """Grid, and no frame at the top and on the right."""
    ax.grid(True, linewidth=0.6, alpha=0.25)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def need_columns(frame: Any, columns: Sequence[str], source: str) -> pd.DataFrame:
    """The frame itself where it has rows and the columns."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a DataFrame {source}, got {type(frame).__name__}.")
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise ValueError(f"frame must be {source}; the column {', '.join(missing)} is missing.")
    if frame.empty:
        raise ValueError("frame has no rows, so there is nothing to draw.")
    return frame


def chosen(what: str, asked: Any, there: Sequence[Any]) -> list[Any]:
    """What is asked for (all by default), in that order; an unknown name is an error that shows the others."""
    if asked is None:
        return list(there)
    names = [asked] if isinstance(asked, str) or not isinstance(asked, Iterable) else list(asked)
    unknown = [name for name in names if name not in there]
    if unknown:
        known = ", ".join(map(str, list(there)[:10]))
        raise ValueError(f"there is no {what} {unknown[0]!r}; choose from {known}{', ...' if len(there) > 10 else ''}.")
    return names
