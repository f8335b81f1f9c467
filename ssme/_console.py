"""What every command shares: where text goes, what an error becomes, which warnings are shown, and progress."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ssme._options import ARGUMENTS

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, RenderableType

P = ParamSpec("P")
R = TypeVar("R")

EXIT_BAD_INPUT, EXIT_BUG = 1, 3
EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 130, 141  # what a shell reports of a process that SIGINT or SIGPIPE ended
PACKAGE = Path(__file__).resolve().parent
# Warnings that speak to the authors of libraries and tell the user of a command nothing.
DEVELOPER_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)


def stdout_console() -> Console:
    """Console for results; text that is piped is never wrapped to the width of a terminal that is not there."""
    from rich.console import Console

    class Results(Console):
        def on_broken_pipe(self) -> None:  # rich would end the process by itself, with an exit code of its own
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    console = Results(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 10_000
    return console


def say(message: str) -> None:
    """Write one line to stderr, where somebody still listens."""
    with contextlib.suppress(OSError):
        print(message, file=sys.stderr)


class _StdoutError(OSError):
    """Standard output takes no more: it is full, or nobody reads it."""


@contextlib.contextmanager
def _stdout_failures() -> Iterator[None]:
    """Tell a stdout that fails from other files, and let it go, so that the end of the process is silent."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # a stdout that is no file has no number
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise _StdoutError(error.errno, f"cannot write to standard output ({error.strerror})") from error


def show(
    results: Sequence[RenderableType],
    notes: Sequence[str],
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    quiet: bool,
    written: bool = False,
) -> None:
    """Print what a command found: lines before it, the results, what they mean, and warnings.

    Under ``quiet`` the results alone are printed, and nothing where they were written to a file; warnings go to stderr.
    This is what ``--quiet`` means in every command.
    """
    if quiet:
        for note in notes:
            say(f"Warning: {note}")
    with _stdout_failures():
        console = stdout_console()
        for line in () if quiet else before:
            console.print(line, markup=False)
        for result in () if quiet and written else results:
            console.print(result)
        for line in () if quiet else [*after, *(f"Warning: {note}" for note in notes)]:
            console.print(line, markup=False)


def put(text: str) -> None:
    """Print text as it is."""
    with _stdout_failures():
        print(text)


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


def _exit_code_of(error: BaseException, *, debug: bool) -> int:
    """Say what went wrong, and return the exit code that stands for it."""
    if isinstance(error, KeyboardInterrupt):
        say("Interrupted.")
        return EXIT_INTERRUPTED
    if isinstance(error, _StdoutError) and error.errno == errno.EPIPE:
        return EXIT_BROKEN_PIPE  # whoever read the output has seen enough
    if isinstance(error, MemoryError):
        say(f"Error: there is not enough memory ({_sentence(error)}); use fewer rows, or fewer models with --models.")
        return EXIT_BAD_INPUT
    if is_input_error(error):
        say(f"Error: {_sentence(error)}")
        return EXIT_BAD_INPUT
    if debug:
        traceback.print_exception(error)
    else:
        say(
            f"Unexpected error, a fault of ssme and not of your input: {type(error).__name__}: "
            f"{_sentence(error)} (run the command again with --debug to see where it arose)"
        )
    return EXIT_BUG


def exit_codes(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors of a command into exit codes: 1 bad input, 3 a fault of the program; usage errors (2) pass.

    The command must take a keyword ``debug``: with it, faults are shown with their traceback. Errors and warnings call
    arguments by their options.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        import typer

        from ssme._validation import calling

        try:
            with calling(arguments=ARGUMENTS):
                return command(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            if type(error).__module__.startswith(("typer", "click")):
                raise
            raise typer.Exit(_exit_code_of(error, debug=bool(kwargs.get("debug")))) from error

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


# How --out writes a table: (frame, JSON document, what makes markdown of the frame, path of the temporary file).
WRITERS: dict[str, Callable[[pd.DataFrame, str, Callable[[pd.DataFrame], str], Path], Any]] = {
    ".csv": lambda frame, document, markdown, path: frame.to_csv(path, index=False),
    ".json": lambda frame, document, markdown, path: path.write_text(document + "\n", encoding="utf-8"),
    ".parquet": lambda frame, document, markdown, path: frame.to_parquet(path, index=False),
    ".md": lambda frame, document, markdown, path: path.write_text(markdown(frame) + "\n", encoding="utf-8"),
}


def write_table(path: Path, frame: pd.DataFrame, document: str, markdown: Callable[[pd.DataFrame], str]) -> None:
    """Write a table in the format of the suffix: the frame itself, or what stands for it as JSON or markdown."""
    write_atomically(path, functools.partial(WRITERS[path.suffix.lower()], frame, document, markdown))
