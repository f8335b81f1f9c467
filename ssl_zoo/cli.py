"""The command line: list, train, eval, export, sweep, curves, demo.

Exit codes: 0 all went well, 1 the input is at fault (one sentence on stderr), 2 the command was used wrongly, 3 a fault
of the program (``--debug`` shows its traceback), 128 + n stopped by signal n and saved (130 after Ctrl-C, 143 after
SIGTERM).
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

P = ParamSpec("P")
R = TypeVar("R")
PACKAGE = Path(__file__).resolve().parent

app = typer.Typer(
    name="ssl-zoo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Train semi-supervised algorithms on contaminated pools, and hand their scores to ssme.",
    epilog="Exit codes: 0 ok, 1 bad input, 2 wrong usage, 3 a fault of the program, 128 + n stopped by signal n.",
)

Folders = Annotated[list[Path], typer.Argument(help="Folders of runs.", show_default=False)]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a fault of the program.")]
Import = Annotated[
    list[Path] | None, typer.Option("--import", help="Python file with algorithms of your own; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


def _exit_codes(command: Callable[P, R]) -> Callable[P, R]:
    """Errors of a command become exit codes; its warnings become lines on stderr."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _warnings_on_stderr():
                _import_files(kwargs.get("files"))
                return command(*args, **kwargs)
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")):
                raise
            if _is_input_error(error):
                _say(f"Error: {_sentence(error)}")
                raise typer.Exit(1) from error
            if kwargs.get("debug"):
                traceback.print_exception(error)
            else:
                _say(f"Unexpected error, a fault of ssl-zoo and not of your input: {type(error).__name__}: "
                     f"{_sentence(error)} (run the command again with --debug to see where it arose)")  # fmt: skip
            raise typer.Exit(3) from error

    return wrapped


def _import_files(files: Any) -> None:
    from ssl_zoo.registry import import_file

    for path in files or []:
        import_file(path)


def _is_input_error(error: BaseException) -> bool:
    """Trouble with files, and what this package or ssme raised on purpose; the rest is a fault."""
    if isinstance(error, OSError):
        return True
    if not isinstance(error, (ValueError, TypeError, ImportError, ArithmeticError, MemoryError)):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = Path(last.filename).resolve().is_relative_to(PACKAGE) or "ssme" in Path(last.filename).parts
    return ours and (last.line or "").lstrip().startswith("raise")


def _sentence(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return where + (" ".join(text.split()) or type(error).__name__)


@contextlib.contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, UserWarning):
            _say(f"Warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@app.command("list")
@_exit_codes
def list_(
    what: Annotated[str, typer.Argument(help="algorithms, models or datasets.")] = "algorithms",
    options: Annotated[bool, typer.Option("--options", help="Show each algorithm's options and defaults.")] = False,
    as_json: AsJson = False,
    files: Import = None,
    debug: Debug = False,
) -> None:
    """Names that a config may hold."""
    from ssl_zoo.data import list_datasets
    from ssl_zoo.models import list_models
    from ssl_zoo.registry import algorithm_class, list_algorithms

    names = {"algorithms": list_algorithms, "models": lambda: list_models(torchvision=True), "datasets": list_datasets}
    if what not in names:
        raise typer.BadParameter(f"{what!r} is none of {', '.join(names)}.")
    if what != "algorithms":
        found = names[what]()
        typer.echo(json.dumps(found) if as_json else "\n".join(found))
        return
    rows = {name: algorithm_class(name) for name in list_algorithms()}
    if as_json:
        facts = {n: {"open_world": c.open_world, "options": c.option_defaults()} for n, c in rows.items()}
        typer.echo(json.dumps(facts))
        return
    for name, cls in rows.items():
        typer.echo(f"{name:12s} {'open world' if cls.open_world else 'closed set'}")
        if options:
            typer.echo("".join(f"    {key} = {value!r}\n" for key, value in cls.option_defaults().items()), nl=False)


@app.command()
@_exit_codes
def train(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Such as algorithm=fixmatch train.steps=200.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="YAML or JSON file.")] = None,
    out: Annotated[Path, typer.Option(help="Folder that gets a folder for the run.")] = Path("runs"),
    device: Device = "auto",
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew where the run's folder holds a state.")] = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Take the network through torch.compile.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write event files too.")] = False,
    files: Import = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    debug: Debug = False,
) -> None:
    """Train a run, or go on with it: the same command again resumes what was stopped."""
    from ssl_zoo.config_files import load_config
    from ssl_zoo.trainer import Trainer

    run = load_config(config, overrides or [])
    trainer = Trainer(run, out / run.run_name, device=device, tensorboard=tensorboard, compiled=compiled)
    with _bar(run.train.steps, quiet=quiet) as on_step:
        result = trainer.fit(resume=not fresh, on_step=on_step)
    if result.status == "stopped":
        _say(f"Stopped at step {result.step} of {run.train.steps} and saved; run the same command again to go on.")
        raise typer.Exit(128 + result.signal)
    typer.echo(f"{result.folder}")
    typer.echo(f"{_in_words(result.metrics)} (step {result.selected_step}, {trainer.reported} model)")


@app.command("eval")
@_exit_codes
def eval_(
    folders: Folders, device: Device = "auto", as_json: AsJson = False, files: Import = None, debug: Debug = False
) -> None:
    """Evaluate trained runs once more, from their checkpoints."""
    from ssl_zoo.scores import load_run

    found = {}
    for folder in folders:
        trainer = load_run(folder, device=device)
        found[str(folder)] = {"step": trainer.step, "whose": trainer.reported, **trainer.evaluate()}
        if not as_json:
            typer.echo(f"{folder.name}: {_in_words(found[str(folder)]['test'][trainer.reported])}")
    if as_json:
        from ssl_zoo._files import finite

        typer.echo(json.dumps(finite(found)))


@app.command()
@_exit_codes
def export(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="A .npz, .csv or .parquet file.")] = Path("scores.npz"),
    score_type: Annotated[str, typer.Option(help="probability or logit.")] = "probability",
    labels: Annotated[bool, typer.Option("--labels/--no-labels", help="Whether to write the true classes too.")] = True,
    device: Device = "auto",
    files: Import = None,
    debug: Debug = False,
) -> None:
    """Write the scores of trained runs on the same test rows into one file for ssme."""
    from ssl_zoo.scores import export_scores

    table = export_scores(folders, score_type=score_type, labels=labels, device=device)
    table.write(out)
    typer.echo(f"{out}: {table.n_rows} rows, {table.n_models} models, {table.n_classes} classes")


@app.command()
@_exit_codes
def sweep(
    config: Annotated[str, typer.Argument(help="YAML or JSON file, or a preset: digits, letter, usps.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Such as seeds=[0,1] base.train.steps=200.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the runs and the tables.")] = Path("sweep"),
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a GPU, or one a core.", min=1)] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler whose workers train.")] = None,
    device: Device = "auto",
    plan_only: Annotated[bool, typer.Option("--plan", help="Only show what would be trained.")] = False,
    files: Import = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    debug: Debug = False,
) -> None:
    """Train algorithms x factors x values x seeds, or go on with them: the same command trains what is not finished.

    Exit code 1 when runs failed; their errors are in results.csv, the tracebacks in the runs' folders.
    """
    from ssl_zoo.sweep import load_sweep, plan_sweep, run_sweep

    loaded = load_sweep(config, overrides or [])
    if plan_only:
        for run in plan_sweep(loaded):
            typer.echo(f"{run.algorithm} {run.factor}={run.value} seed {run.seed}: {run.config.run_name}")
        return
    try:
        with _run_bar(quiet=quiet) as progress:
            frame = run_sweep(
                loaded, out, jobs=jobs, device=device, scheduler=scheduler, files=files or (), progress=progress
            )
    except KeyboardInterrupt:
        _say("Stopped; what is finished is kept, and the same command goes on with the rest.")
        raise typer.Exit(130) from None
    counts = frame["status"].value_counts()
    typer.echo(f"{out / 'results.csv'}: " + ", ".join(f"{n} {status}" for status, n in counts.items()))
    failed = frame[frame["status"] == "failed"]
    for row in failed.head(5).to_dict(orient="records"):
        where = f"{row['algorithm']} at {row['factor']}={row['value']}, seed {row['seed']}"
        _say(f"Error: {where}: {row['error']} ({out / str(row['run'])})")
    if len(failed):
        raise typer.Exit(1)


@contextlib.contextmanager
def _run_bar(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Runs done and the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@app.command()
@_exit_codes
def curves(
    scores: Annotated[list[Path], typer.Argument(help="Score files of all models.", show_default=False)],
    models: Annotated[Path, typer.Option(help="Table (csv, parquet): model or run, algorithm, x or r, seed.")],
    labels: Annotated[Path | None, typer.Option(help="File with the few labels; by default those of SCORES.")] = None,
    diagnostics: Annotated[Path | None, typer.Option(help="Diagnostics by run and epoch, for masking.")] = None,
    truth: Annotated[Path | None, typer.Option(help="File with all labels, to compare with.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path("curves"),
    metrics: Annotated[str, typer.Option(help="Metrics with commas between them.")] = "accuracy",
    factor: Annotated[str | None, typer.Option(help="Column with its values, or which of several factors.")] = None,
    unordered: Annotated[bool, typer.Option("--unordered", help="The factor has no order.")] = False,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.9,
    deltas: Annotated[str, typer.Option(help="delta_g,delta_w,delta_b: losses that are tolerated.")] = "0,0,0",
    margin: Annotated[float, typer.Option(help="Points of accuracy that count as about equal (masking).")] = 3.0,
    over_seeds: Annotated[bool, typer.Option("--over-seeds", help="Intervals over seeds that could be drawn.")] = False,
    draws: Annotated[int, typer.Option(help="Posterior draws.", min=20)] = 200,
    seed: Annotated[int, typer.Option(help="Of every random draw.", min=0)] = 0,
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the curves (needs matplotlib).")] = True,
    debug: Debug = False,
) -> None:
    """Robustness curves of a sweep from few labels: estimates with intervals, ranking and verdicts."""
    from ssl_zoo.curves._command import read_deltas, run_curves

    options = {"factor": factor, "ordered": not unordered, "level": level, "margin": margin, "over_seeds": over_seeds}
    asked = [part.strip() for part in metrics.split(",") if part.strip()]
    words = run_curves(scores, labels, models, out, diagnostics=diagnostics, truth=truth, figure=figure, metrics=asked,
                       n_draws=draws, random_state=seed, deltas=read_deltas(deltas), **options)  # fmt: skip
    typer.echo(words)


@app.command()
@_exit_codes
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the runs, tables and figures.")] = Path("ssl-zoo-demo"),
    jobs: Annotated[int, typer.Option(help="Processes that train, of one thread each.", min=1)] = 2,
    seed: Annotated[int, typer.Option(help="Of the runs, the labels and every draw.", min=0)] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    debug: Debug = False,
) -> None:
    """A small sweep on digits, judged with twenty labels: curves, C-Score and masking verdicts beside the truth.

    The same command again trains only what is not finished.
    """
    from rich.console import Console

    from ssl_zoo._demo_command import to_tables, write_demo
    from ssl_zoo.demo import run_demo

    try:
        with _run_bar(quiet=quiet) as progress:
            found = run_demo(out, jobs=jobs, seed=seed, progress=progress)
    except KeyboardInterrupt:
        _say("Stopped; what is finished is kept, and the same command goes on with the rest.")
        raise typer.Exit(130) from None
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # a file has no edge at which to fold
    for part in to_tables(found):
        console.print(part, markup=False)
    written, missing = write_demo(found, out)
    for note in missing:
        _say(f"Warning: {note}.")
    typer.echo(f"written to {out}: " + ", ".join(path.name for path in written))


def _in_words(metrics: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in metrics.items() if value is not None)


@contextlib.contextmanager
def _bar(steps: int, *, quiet: bool) -> Iterator[Callable[[Any, Any], None] | None]:
    """Steps, loss, pass rate and samples per second; numbers are read once a second, so that the device runs on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=steps)
        seen: list[float] = []

        def on_step(trainer: Any, result: Any) -> None:
            now = time.perf_counter()
            if seen and now - seen[0] < 1.0 and trainer.step < steps:
                return
            rate = (trainer.step - seen[1]) * trainer.parts.samples_per_step / max(now - seen[0], 1e-9) if seen else 0.0
            passed = result.logs.get("pass_rate")
            words = f"loss {float(result.loss):.3f}" + ("" if passed is None else f", pass rate {float(passed):.2f}")
            bar.update(task, completed=trainer.step, description=f"{words}, {rate:,.0f} samples/s")
            seen[:] = [now, trainer.step]

        yield on_step


def main() -> None:
    """Entry point of ``ssl-zoo``."""
    app()


if __name__ == "__main__":
    main()
