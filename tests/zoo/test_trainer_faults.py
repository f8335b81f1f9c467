"""What can go wrong in a run: NaN, an empty mask, a full disk, too little memory, signals, damaged or foreign files."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _run_helpers import MODEL, POOL, assert_same_state, config, lines, make, state, stop_at

from ssl_zoo._files import read_json
from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult
from ssl_zoo.checkpoint import load_checkpoint
from ssl_zoo.config import RunConfig
from ssl_zoo.registry import register, unregister
from ssl_zoo.run_data import RunData, load_run_data
from ssl_zoo.surroundings import Interrupt, out_of_memory_as_advice
from ssl_zoo.trainer import Trainer


@pytest.fixture(scope="module")
def data() -> RunData:
    return load_run_data(config())


HUNGRY_FOR = {"numbers": 1 << 58}


@pytest.fixture
def strange() -> Any:
    """An algorithm whose loss or weights become NaN, whose mask is always empty, or that wants too much memory."""

    @register("strange")
    class Strange(Algorithm):
        nan_from: float = 2.0
        share: float = 0.0
        hungry_from: float = 2.0
        explode_from: float = 2.0

        def compute(self, ctx: StepContext) -> StepResult:
            if ctx.progress >= self.hungry_from:
                torch.zeros(HUNGRY_FOR["numbers"])
            x_l, u = self.views(ctx)
            loss = torch.nn.functional.cross_entropy(ctx.model(x_l), ctx.batch.y_l)
            bad = torch.tensor(math.nan if ctx.progress >= self.nan_from else 0.0)
            if ctx.progress >= self.explode_from:  # a finite loss with an infinite gradient
                loss = loss + (ctx.model.head.weight.sum() * 0).sqrt()
            return StepResult(loss + bad, loss, loss.new_zeros(()), mask_u=torch.full((len(u),), self.share))

    yield
    unregister("strange")


def strange_config(**options: Any) -> RunConfig:
    return RunConfig.from_dict({
        "algorithm": {"name": "strange", "options": options}, "model": MODEL, "pool": POOL,
        "train": {"steps": 12, "epoch_steps": 4, "batch_size": 4},
    })  # fmt: skip


@pytest.mark.usefixtures("strange")
def test_nan_stops_the_run_before_it_is_saved(tmp_path: Path, data: RunData) -> None:
    trainer = Trainer(strange_config(nan_from=0.5, share=1.0), tmp_path, device="cpu", data=data)
    with pytest.raises(FloatingPointError, match="NaN or infinite at step 7; the state of step 4 is saved and good"):
        trainer.fit()
    assert load_checkpoint(tmp_path, "last")[1]["step"] == 4
    assert all(v.isfinite().all() for k, v in state(tmp_path).items() if k.startswith("student"))


@pytest.mark.usefixtures("strange")
def test_nan_at_once(tmp_path: Path, data: RunData) -> None:
    with pytest.raises(FloatingPointError, match="at step 1; nothing was saved before.*Lower train.lr"):
        Trainer(strange_config(nan_from=0.0), tmp_path, device="cpu", data=data).fit()


@pytest.mark.usefixtures("strange")
def test_an_empty_mask_is_told_once_and_after_saving(tmp_path: Path, data: RunData) -> None:
    trainer = Trainer(strange_config(), tmp_path, device="cpu", data=data)
    with pytest.warns(UserWarning, match="no unlabeled sample has passed the mask in 4 steps") as caught:
        trainer.fit(on_step=stop_at(6))
    assert len(caught) == 1 and load_checkpoint(tmp_path, "last")[1]["warned"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trainer.fit().status == "finished"


def full_disk(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """Writing a file whose name holds a word fails half-way."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if file in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell files apart")
@pytest.mark.parametrize("file", ["last-00000008", "last.json"])
def test_a_full_disk_leaves_the_state_before(
    file: str, tmp_path: Path, data: RunData, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "whole", data).fit()
    make(tmp_path / "full", data).fit(on_step=stop_at(4))
    with monkeypatch.context() as patch:
        full_disk(patch, file)
        with pytest.raises(OSError, match="No space left.*the state saved before it is whole"):
            make(tmp_path / "full", data).fit()
    assert load_checkpoint(tmp_path / "full", "last")[1]["step"] == 4
    assert not list((tmp_path / "full").glob(".*"))
    make(tmp_path / "full", data).fit()
    assert_same_state(tmp_path / "whole", tmp_path / "full")
    assert lines(tmp_path / "whole") == lines(tmp_path / "full")


def test_a_log_line_cut_short_is_written_again(tmp_path: Path, data: RunData) -> None:
    make(tmp_path / "whole", data).fit()
    make(tmp_path / "cut", data).fit(on_step=stop_at(5))
    with open(tmp_path / "cut" / "metrics.jsonl", "a") as stream:
        stream.write('{"step": 8, "tr')
    make(tmp_path / "cut", data).fit()
    assert lines(tmp_path / "whole") == lines(tmp_path / "cut")


def test_a_log_that_cannot_be_written(tmp_path: Path, data: RunData) -> None:
    trainer = make(tmp_path, data)
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(IsADirectoryError, match="metrics.jsonl"):
        trainer.fit()


@pytest.mark.usefixtures("strange")
def test_weights_that_the_last_step_spoilt_are_not_saved(tmp_path: Path, data: RunData) -> None:
    trainer = Trainer(strange_config(explode_from=7 / 12, share=1.0), tmp_path, device="cpu", data=data)
    with pytest.raises(FloatingPointError, match="the weights of strange .* at step 8; the state of step 4 is saved"):
        trainer.fit()  # the step that ends the second epoch
    assert all(v.isfinite().all() for k, v in state(tmp_path).items() if k.startswith(("student", "ema", "optimizer")))


@pytest.mark.usefixtures("strange")
def test_memory_that_does_not_suffice(tmp_path: Path, data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    hungry = strange_config(hungry_from=0.5, share=1.0)
    with pytest.raises(MemoryError, match="lower train.batch_size.*is whole"):
        Trainer(hungry, tmp_path / "cut", device="cpu", data=data).fit()
    assert load_checkpoint(tmp_path / "cut", "last")[1]["step"] == 4
    monkeypatch.setitem(HUNGRY_FOR, "numbers", 1)  # as if the machine had more
    for name in ("cut", "whole"):
        assert Trainer(hungry, tmp_path / name, device="cpu", data=data).fit().status == "finished"
    assert_same_state(tmp_path / "cut", tmp_path / "whole")
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")


@pytest.mark.parametrize(
    "error",
    [torch.cuda.OutOfMemoryError("no room"), RuntimeError("CUDA error: out of memory"), MemoryError()],
)
def test_kinds_of_too_little_memory(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match="lower train.batch_size"), out_of_memory_as_advice(tmp_path):
        raise error
    with pytest.raises(RuntimeError, match="something else"), out_of_memory_as_advice(tmp_path):
        raise RuntimeError("something else")


@pytest.mark.usefixtures("strange")
def test_a_trainer_whose_first_step_failed_starts_from_the_beginning(tmp_path: Path, data: RunData) -> None:
    trainer = Trainer(strange_config(share=1.0), tmp_path / "again", device="cpu", data=data)
    step = trainer.parts.algorithm.step
    trainer.parts.algorithm.step = lambda *a: (step(*a), 1 / 0)  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        trainer.fit()
    trainer.fit()
    Trainer(strange_config(share=1.0), tmp_path / "once", device="cpu", data=data).fit()
    assert_same_state(tmp_path / "again", tmp_path / "once")


def test_a_second_signal_acts_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)  # to this thread: one sent to the process may reach another one, later
        assert interrupt.signal == signal.SIGINT
        signal.raise_signal(signal.SIGINT)


def test_signals_are_left_alone_outside_the_main_thread() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with Interrupt():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before] and signal.getsignal(signal.SIGTERM) == before


def test_a_folder_of_another_run(tmp_path: Path, data: RunData) -> None:
    make(tmp_path, data).fit(on_step=stop_at(5))
    with pytest.raises(ValueError, match="holds another run"):
        make(tmp_path, data, steps=11).fit()
    assert make(tmp_path, data, steps=11).fit(resume=False).step == 11


def test_files_that_are_not_of_a_run_are_left_alone(tmp_path: Path, data: RunData) -> None:
    weights, theirs = tmp_path / "model.safetensors", tmp_path / "last-layer.safetensors"
    for path in (weights, theirs):
        path.write_bytes(b"precious")
    make(tmp_path, data).fit(resume=False)
    make(tmp_path, data).fit(resume=False)
    assert weights.read_bytes() == theirs.read_bytes() == b"precious"
    (tmp_path / "config.json").write_text('{"architectures": ["Bert"]}')
    for resume in (True, False):
        with pytest.raises(ValueError, match="not the config of a run.*choose another folder"):
            make(tmp_path, data).fit(resume=resume)
    assert "Bert" in (tmp_path / "config.json").read_text() and (tmp_path / "result.json").exists()


def test_a_state_of_another_pool_or_device(tmp_path: Path, data: RunData) -> None:
    make(tmp_path, data).fit(on_step=stop_at(5))
    meta = json.loads((tmp_path / "last.json").read_text())
    (tmp_path / "last.json").write_text(json.dumps({**meta, "pool": "0"}))
    with pytest.raises(ValueError, match="belongs to another pool"):
        make(tmp_path, data).fit()
    (tmp_path / "last.json").write_text(json.dumps({**meta, "device": "cuda"}))
    with pytest.raises(ValueError, match="was trained on a cuda device"):
        make(tmp_path, data).fit()
    make(tmp_path, data).restore_selected()  # to predict, any device will do


def test_damaged_checkpoints(tmp_path: Path, data: RunData) -> None:
    make(tmp_path, data).fit(on_step=stop_at(5))
    tensors = tmp_path / "last-00000005.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-9])
    with pytest.raises(ValueError, match="is damaged"):
        make(tmp_path, data).fit()
    tensors.unlink()
    with pytest.raises(FileNotFoundError, match="which is not there"):
        make(tmp_path, data).fit()
    (tmp_path / "last.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="is of format 'other'"):
        make(tmp_path, data).fit()
    (tmp_path / "last.json").write_text("{")
    with pytest.raises(ValueError, match="no valid JSON"):
        make(tmp_path, data).fit()
    with pytest.raises(FileNotFoundError, match="is this the folder of a run"):
        read_json(tmp_path / "nothing.json")


def test_half_precision_needs_a_gpu(tmp_path: Path, data: RunData) -> None:
    with pytest.raises(ValueError, match="needs a GPU"):
        make(tmp_path, data, precision="bf16")
