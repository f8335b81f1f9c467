"""A progress bar on stderr, or whatever the caller wants done after every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = bool | Callable[[int, int], None]


@contextmanager
def advancing(total: int, progress: Progress) -> Iterator[Callable[[int], None]]:
    """Yield ``advance(count)``: a bar on a terminal for True, a call ``progress(done, total)`` for a function."""
    done = 0
    if callable(progress):

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress(done, total)

        yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not progress or not console.is_terminal) as bar:
        task = bar.add_task("cells", total=total)
        yield lambda count: bar.advance(task, count)
