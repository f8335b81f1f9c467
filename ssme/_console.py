"""What every command shares: where text goes, what an error becomes, which warnings are shown, and progress."""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")
R = TypeVar("R")

EXIT_BAD_INPUT, EXIT_BUG = 1, 3
PACKAGE = Path(__file__).resolve().parent
# Warnings that speak to the authors of libraries and tell the user of a command nothing.
DEVELOPER_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)


def stdout_console() -> Console:
    """Console for results; text that is piped is never wrapped to the width of a terminal that is not there."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 10_000
    return console


def say(message: str) -> None:
    """Write one line to stderr."""
    print(message, file=sys.stderr)


def is_input_error(error: BaseException) -> bool:
    """Tell a complaint about the input from a fault of the program.

    Trouble with a file is the input's. A ValueError or TypeError is a complaint only where this package itself raised
    it on purpose (the last line of the traceback is a ``raise`` in one of its files); one that a library raised in the
    middle of a computation is a fault that must stay visible.
    """
    if isinstance(error, OSError):
        return True
    if not isinstance(error, (ValueError, TypeError, ImportError)):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    on_purpose = (last.line or "").lstrip().startswith("raise")
    return on_purpose and PACKAGE in Path(last.filename).resolve().parents


def _sentence(error: BaseException) -> str:
    """The message of an error in one line; for trouble with a file, its name and what the system says."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


def exit_codes(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors of a command into exit codes: 1 bad input, 3 a fault of the program; usage errors (2) pass.

    The command must take a keyword ``debug``: with it, faults are shown with their traceback.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        import typer

        try:
            return command(*args, **kwargs)
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")):
                raise
            if is_input_error(error):
                say(f"Error: {_sentence(error)}")
                raise typer.Exit(EXIT_BAD_INPUT) from error
            if kwargs.get("debug"):
                traceback.print_exception(error)
            else:
                say(
                    f"Unexpected error, a fault of ssme and not of your input: {type(error).__name__}: "
                    f"{_sentence(error)} (run the command again with --debug to see where it arose)"
                )
            raise typer.Exit(EXIT_BUG) from error

    return wrapped


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect warnings as plain sentences, each once; those for developers of libraries are left out."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield messages
        finally:
            for entry in caught:
                text = " ".join(str(entry.message).split())
                if not issubclass(entry.category, DEVELOPER_WARNINGS) and text not in messages:
                    messages.append(text)


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show on stderr what is being done and for how long; silent under ``quiet`` or when stderr is no terminal.

    Yields
    ------
    callable
        ``step(text)`` names the current step.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def step(text: str) -> None:
            bar.update(task, description=text)

        yield step


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file through a temporary one beside it, so that a failure leaves an old file whole."""
    from ssme._atomic import atomic_path

    with atomic_path(path) as temporary:
        write(Path(temporary))
