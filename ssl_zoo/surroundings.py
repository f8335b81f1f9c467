"""What a run finds around it and leaves as it was: signals, random generators, memory."""

from __future__ import annotations

import contextlib
import signal
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

__all__ = ["Interrupt", "out_of_memory_as_advice", "surroundings"]

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "unable to allocate")


class Interrupt:
    """Ctrl-C and SIGTERM become a wish that the loop reads between two steps; a second one acts at once.

    Outside the main thread signals cannot be caught, and nothing is changed.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _note(self, number: int, _: types.FrameType | None) -> None:
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old = {}


@contextlib.contextmanager
def out_of_memory_as_advice(folder: Path) -> Iterator[None]:
    """Say what to change when the memory of the GPU or of the machine does not suffice."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        full = isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError))
        if not full and not any(words in str(error).lower() for words in _OUT_OF_MEMORY):
            raise
        raise MemoryError(
            "the device has too little memory for a step; lower train.batch_size, algorithm.options.mu, "
            f"train.eval_batch_size or the size of the model. The state that {folder} holds is whole; the same command "
            "goes on from it where there is more memory."
        ) from error


@contextlib.contextmanager
def surroundings(device: torch.device, folder: Path) -> Iterator[Interrupt]:
    """Signals noted, the caller's default generators untouched, and on a GPU convolutions chosen by speed."""
    devices, cudnn = [device] if device.type == "cuda" else [], torch.backends.cudnn
    fastest = cudnn.flags(
        enabled=cudnn.enabled, benchmark=True, deterministic=cudnn.deterministic, allow_tf32=cudnn.allow_tf32
    )  # fmt: skip
    with torch.random.fork_rng(devices=devices), out_of_memory_as_advice(folder), Interrupt() as interrupt:
        with fastest if devices else contextlib.nullcontext():
            yield interrupt
