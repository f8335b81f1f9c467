"""Train what a sweep has not trained yet: in this process, in processes, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssl_zoo._files import write_json
from ssl_zoo.sweep._config import SweepConfig
from ssl_zoo.sweep._plan import PlannedRun, plan_sweep
from ssl_zoo.sweep._results import sweep_results, write_tables
from ssl_zoo.sweep._train import is_finished, train_run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run_sweep"]

PATIENCE = "10s"  # for a scheduler to answer
LOST_WORKERS = 5  # a run whose worker died so often is given up
Progress = Callable[[int, int], None]  # runs done, runs in all


def run_sweep(
    sweep: SweepConfig,
    folder: str | Path,
    *,
    jobs: int | None = None,
    device: str = "auto",
    scheduler: str | None = None,
    files: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Train the runs of a sweep that are not finished, and write its tables.

    A run has a folder of its own, named by its content: what is finished is never trained again, by whichever sweep it
    was asked for. The folder may be killed at any moment: what was finished stays, and a run that was under way goes on
    from its last epoch, to the same result. A run that fails is a row of the table with its error; it is tried again
    when the sweep is started again.

    Parameters
    ----------
    sweep : SweepConfig
    folder : path
        Gets the folders of the runs, sweep.json, results.csv, results.parquet and diagnostics.parquet.
    jobs : int, optional
        Processes; by default one for each GPU, or for each core of a CPU. Each has one thread, or one GPU.
    device : str, default="auto"
        "auto" is a GPU that is free, or the CPU.
    scheduler : str, optional
        Address of a Dask scheduler: its workers train, and must see the folder under the same path.
    files : sequence of paths
        Python files with algorithms of your own.
    progress : callable, optional
        ``f(done, total)`` after every run.

    Returns
    -------
    DataFrame
        See :func:`sweep_results`.

    Examples
    --------
    >>> import tempfile
    >>> sweep = SweepConfig.from_dict({
    ...     "algorithms": ["supervised"], "factors": {"r": {"key": "pool.r", "values": [0, 1]}},
    ...     "base": {"data": "digits", "model": "mlp", "train": {"steps": 4}, "pool": {"seen_classes": 5}}})
    >>> frame = run_sweep(sweep, tempfile.mkdtemp(), jobs=1, device="cpu")
    >>> frame["status"].tolist(), frame["accuracy"].nunique()
    (['finished', 'finished'], 1)
    """
    from ssl_zoo.registry import import_file

    where = Path(folder).absolute()
    for file in files:
        import_file(file)
    plan = plan_sweep(sweep)
    where.mkdir(parents=True, exist_ok=True)
    write_json(where / "sweep.json", sweep.to_dict())
    todo = list({run.config.run_name: run for run in plan if not is_finished(where / run.config.run_name)}.values())
    total = len({run.config.run_name for run in plan})
    done = total - len(todo)
    if progress:
        progress(done, total)
    own = [str(Path(file).absolute()) for file in files]
    with _sigterm_as_interrupt():
        trained = _on_cluster(scheduler, todo, where, device, own) if scheduler else _here(
            todo, where, device, own, _processes(jobs, device)
        )  # fmt: skip
        for _ in trained:
            done += 1
            if progress:
                progress(done, total)
    frame = sweep_results(sweep, where)
    write_tables(sweep, where, frame)
    return frame


def _processes(jobs: int | None, device: str) -> int:
    if jobs is not None:
        if jobs < 1:
            raise ValueError(f"jobs is {jobs}; it must be at least 1.")
        return jobs
    import torch

    n_gpus = torch.cuda.device_count()
    if device == "auto" and n_gpus:
        return n_gpus
    return 1 if device.startswith("cuda") else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _here(runs: Sequence[PlannedRun], where: Path, device: str, files: list[str], jobs: int) -> Iterator[str]:
    """Statuses as runs end; with one job in this process, so that Ctrl-C saves the run under way."""
    if jobs == 1 or len(runs) < 2:
        for run in runs:
            status = train_run(run.config.to_dict(), str(where / run.config.run_name), device, files)
            if status == "stopped":
                raise KeyboardInterrupt
            yield status
        return
    from joblib import Parallel, delayed

    tasks = (
        delayed(train_run)(run.config.to_dict(), str(where / run.config.run_name), device, files, os.getpid())
        for run in runs
    )
    for status in Parallel(n_jobs=jobs, return_as="generator_unordered", backend="loky", batch_size=1)(tasks):
        if status == "stopped":
            raise KeyboardInterrupt
        yield status


def _on_cluster(
    scheduler: str | None, runs: Sequence[PlannedRun], where: Path, device: str, files: list[str]
) -> Iterator[str]:
    """The same on the workers of a Dask cluster; a run whose worker dies is given to another one."""
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise ImportError("a cluster needs dask: pip install 'ssme[cluster]'") from error
    try:
        client = Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {scheduler} ({error}).") from error
    with client:
        futures = {
            client.submit(
                train_run, run.config.to_dict(), str(where / run.config.run_name), device, files, pure=False
            ): run
            for run in runs
        }
        lost: dict[str, int] = {}
        queue = as_completed(futures)
        for future in queue:
            run = futures[future]
            if isinstance(future.exception(), KilledWorker) and lost.get(run.config.run_id, 0) < LOST_WORKERS:
                lost[run.config.run_id] = lost.get(run.config.run_id, 0) + 1
                again = client.submit(
                    train_run, run.config.to_dict(), str(where / run.config.run_name), device, files, pure=False
                )
                futures[again] = run
                queue.add(again)
                continue
            yield future.result()


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM ends a sweep as Ctrl-C does: workers are stopped, and the tables of before stay."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
