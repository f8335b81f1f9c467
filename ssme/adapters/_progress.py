"""A progress bar on stderr, or whatever the caller wants done after every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = bool | Callable[[str, int, int], None]
Advance = Callable[[str, int], None]


@contextmanager
def advancing(total: int, progress: Progress) -> Iterator[Advance]:
    """Yield ``advance(model, rows)``: a bar on a terminal for True; a function is called (model, done, total)."""
    if callable(progress):
        done = 0

        def advance(model: str, count: int) -> None:
            nonlocal done
            done += count
            progress(model, done, total)

        yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not progress or not console.is_terminal) as bar:
        task = bar.add_task("loading", total=total)
        yield lambda model, count: bar.update(task, description=model, advance=count)
