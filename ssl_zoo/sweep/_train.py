"""One run of a sweep in a worker process: locked, with what went wrong as a file beside it."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssl_zoo._files import write_json

if TYPE_CHECKING:
    from ssl_zoo.run_data import RunData

__all__ = ["FAILURE", "is_finished", "train_run"]

FAILURE = "failure.json"
_loaded: RunData | None = None  # of this process: a sweep reads its data set once for each worker


def is_finished(folder: Path) -> bool:
    """Whether the run of a folder has its result."""
    return (folder / "result.json").exists()


def train_run(
    config: dict[str, Any], folder: str, device: str = "auto", files: Sequence[str] = (), owner: int | None = None
) -> str:
    """Train a run, or go on with it, unless its result is there.

    Parameters
    ----------
    config : dict
        Of the run, as `RunConfig.to_dict` gives it.
    folder : str
        Of the run. A lock beside it keeps two sweeps from training the same run at once: the second waits and finds it.
    device : str
        "auto" takes the first GPU that no other worker of this machine is using, or the CPU with one thread.
    files : sequence of str
        Python files with algorithms of the user's own.
    owner : int, optional
        Process that this one shall not outlive.

    Returns
    -------
    {"finished", "stopped", "failed"}
        "failed": the traceback is in the folder's ``failure.json``.
    """
    from filelock import FileLock

    from ssl_zoo.registry import import_file

    if owner is not None:
        from ssme.study._workers import end_with

        end_with(owner)
    for file in files:
        import_file(file)
    where = Path(folder)
    locks = where.parent / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{where.name}.lock"):
        if is_finished(where):
            return "finished"
        try:
            return _train(config, where, device)
        except Exception as error:
            where.mkdir(parents=True, exist_ok=True)
            said = " ".join(str(error).split()) or type(error).__name__
            found = {"error": f"{type(error).__name__}: {said}", "traceback": traceback.format_exc()}
            write_json(where / FAILURE, found)
            return "failed"


def _train(config: dict[str, Any], folder: Path, device: str) -> str:
    global _loaded
    import torch

    from ssl_zoo.config import RunConfig
    from ssl_zoo.run_data import load_run_data
    from ssl_zoo.trainer import Trainer

    run = RunConfig.from_dict(config)
    _loaded = load_run_data(run, reuse=_loaded)
    with _device(device, folder) as chosen:
        before = torch.get_num_threads()
        if chosen == "cpu":  # small runs side by side: threads of one would only wait for those of the other
            torch.set_num_threads(1)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = Trainer(run, folder, device=chosen, data=_loaded).fit()
        finally:
            torch.set_num_threads(before)
    said = sorted({str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)})
    if said:
        write_json(folder / "warnings.json", {"warnings": said})
    if result.status == "finished":
        (folder / FAILURE).unlink(missing_ok=True)
    return result.status


class _device:
    """The device of a run; "auto" holds the lock of a GPU while it trains on it."""

    def __init__(self, asked: str, folder: Path) -> None:
        self.asked, self.locks, self.held = asked, folder.parent / ".locks", None

    def __enter__(self) -> str:
        import time

        import torch
        from filelock import FileLock, Timeout

        n = torch.cuda.device_count() if self.asked == "auto" else 0
        if self.asked != "auto" or not n:
            return "cpu" if self.asked == "auto" else self.asked
        while True:
            for k in range(n):
                lock: Any = FileLock(self.locks / f"gpu-{os.uname().nodename}-{k}.lock", timeout=0)
                try:
                    lock.acquire()
                except Timeout:
                    continue
                self.held = lock
                return f"cuda:{k}"
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        if self.held is not None:
            self.held.release()
