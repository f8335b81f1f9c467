"""The loop: it learns, logs, saves, goes on bit for bit, never waits, and never looks at the test rows."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import NoWaiting
from _run_helpers import POOL, assert_same_state, config, lines, make, state, stop_at

from ssl_zoo.algorithms.base import StepResult
from ssl_zoo.config import RunConfig
from ssl_zoo.data import ArrayDataset, ContaminationSpec, build_pool
from ssl_zoo.registry import list_algorithms
from ssl_zoo.run_data import RunData, load_run_data
from ssl_zoo.trainer import Trainer

NAMES = [*list_algorithms(), "ds3l-centroid"]


@pytest.fixture(scope="module")
def data() -> RunData:
    return load_run_data(config())


@pytest.mark.parametrize("name", NAMES)
def test_resume_is_bit_for_bit(name: str, tmp_path: Path, data: RunData) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    before = torch.get_rng_state()
    assert make(whole, data, name).fit().status == "finished"
    assert torch.equal(before, torch.get_rng_state())
    stopped = make(parts, data, name).fit(on_step=stop_at(5))  # in the middle of an epoch
    assert (stopped.status, stopped.step, stopped.signal) == ("stopped", 5, signal.SIGTERM)
    assert not (parts / "result.json").exists()
    resumed = make(parts, data, name).fit()
    assert (resumed.status, resumed.step) == ("finished", 10)
    assert_same_state(whole, parts)
    assert lines(whole) == lines(parts)
    assert (whole / "result.json").read_text() == (parts / "result.json").read_text()


def test_the_same_trainer_can_go_on(tmp_path: Path, data: RunData) -> None:
    make(tmp_path / "a", data).fit()
    trainer = make(tmp_path / "b", data)
    assert trainer.fit(on_step=stop_at(8, signal.SIGINT)).signal == signal.SIGINT  # at an epoch's end
    trainer.fit()
    assert_same_state(tmp_path / "a", tmp_path / "b")
    assert trainer.fit().step == 10  # nothing is left to do


def test_starting_anew_gives_the_same_run(tmp_path: Path, data: RunData) -> None:
    trainer = make(tmp_path / "a", data)
    trainer.fit()
    first = state(tmp_path / "a")
    trainer.fit(resume=False)
    assert all(torch.equal(first[k].nan_to_num(7.0), v.nan_to_num(7.0)) for k, v in state(tmp_path / "a").items())
    assert [r["step"] for r in lines(tmp_path / "a")] == [4, 8, 10]


def test_run_folder_and_log(tmp_path: Path, data: RunData) -> None:
    trainer = make(tmp_path, data)
    result = trainer.fit()
    files = {p.name for p in tmp_path.iterdir()}
    assert files == {"config.json", "manifest.json", "metrics.jsonl", "last.json", "last-00000010.safetensors",
                     "result.json", "scores.npz"}  # fmt: skip
    assert RunConfig.from_dict(json.loads((tmp_path / "config.json").read_text())) == trainer.config
    assert json.loads((tmp_path / "manifest.json").read_text())["hash"] == data.pool.hash
    record = lines(tmp_path)[-1]
    assert {"loss", "loss_l", "loss_u", "pass_rate", "ple", "cci", "cci_pooled", "sem_drift"} <= set(record["train"])
    assert {"grad_align", "ood_f"} <= set(record["train"])
    assert set(record["test"]) == {"student", "ema"} and "validation" in record
    assert result.metrics == record["test"]["ema"] and result.selected_step == 10
    logged = [r["lr"] for r in lines(tmp_path)]
    assert logged[0] == pytest.approx(0.03 * math.cos(7 * math.pi * 3 / 160))  # the rate of step 3, the fourth


def test_it_learns(tmp_path: Path) -> None:
    run = RunConfig.from_dict({
        "algorithm": {"name": "fixmatch", "options": {"tau": 0.7, "mu": 2}}, "model": "mlp", "pool": {"n_labeled": 100},
        "train": {"steps": 120, "epoch_steps": 60, "batch_size": 32, "diagnostics_every": 0},
    })  # fmt: skip
    assert Trainer(run, tmp_path, device="cpu").fit().metrics["accuracy"] > 0.85


def test_supervised_is_constant_over_contamination(tmp_path: Path) -> None:
    found = []
    for r in (0.0, 0.6):
        run = config("supervised", pool={"r": r})
        Trainer(run, tmp_path / str(r), device="cpu").fit()
        found.append({k: v for k, v in state(tmp_path / str(r)).items() if k.startswith(("student", "ema"))})
    assert all(torch.equal(found[0][k], v) for k, v in found[1].items())


def test_the_open_world_has_a_column_for_each_unseen_class(tmp_path: Path, data: RunData) -> None:
    trainer = make(tmp_path, data, "sorl")
    result = trainer.fit()
    assert trainer.parts.algorithm.n_outputs == 10 and set(result.metrics) == {"accuracy", "seen", "unseen"}
    assert len(trainer.test.rows) == len(data.test)


def test_best_on_validation(tmp_path: Path, data: RunData) -> None:
    trainer = make(tmp_path, data, "meanteacher", select="validation", epoch_steps=2)
    result = trainer.fit()
    values = [r["validation"]["ema"]["accuracy"] for r in lines(tmp_path)]
    chosen = lines(tmp_path)[int(np.argmax(values))]
    assert result.selected_step == chosen["step"] and result.metrics == chosen["test"]["ema"]
    again = make(tmp_path, data, "meanteacher", select="validation", epoch_steps=2)
    again.restore_selected()
    assert again.step == chosen["step"] and again.evaluate()["test"]["ema"] == chosen["test"]["ema"]
    assert json.loads((tmp_path / "result.json").read_text())["selection"] == "validation"


def test_biases_and_batch_norm_do_not_decay(tmp_path: Path, data: RunData) -> None:
    decayed, plain = make(tmp_path, data, "openmatch").parts.optimizer.param_groups
    assert decayed["weight_decay"] == 5e-4 and {p.ndim for p in decayed["params"]} == {2}
    assert plain["weight_decay"] == 0 and {p.ndim for p in plain["params"]} == {1}


@pytest.fixture(scope="module")
def flat(data: RunData) -> RunData:
    """The digits as feature vectors: on a CPU their augmentation never asks which rows were drawn."""

    def flatten(part: ArrayDataset) -> ArrayDataset:
        x = part.x.reshape(len(part), -1).astype(np.float32)
        return ArrayDataset(x, part.y, part.class_names, "tabular", "flat digits")

    train, test = flatten(data.train), flatten(data.test)
    spec = ContaminationSpec(**POOL)
    return RunData(train, test, build_pool(spec, train, seed=0))


@pytest.mark.parametrize("name", NAMES)
def test_no_step_waits_and_batch_norm_takes_in_one_batch_a_step(name: str, tmp_path: Path, flat: RunData) -> None:
    trainer, watch = make(tmp_path, flat, name, epoch_steps=10), NoWaiting()

    def on_step(_: Trainer, result: StepResult) -> None:
        assert not result.loss.requires_grad  # nothing of an old step is kept alive
        if trainer.step == 1:
            watch.__enter__()
        elif trainer.step == 9:  # the tenth ends the epoch, and then values are read
            watch.__exit__(None, None, None)

    trainer.fit(on_step=on_step)
    counts = [v for k, v in state(tmp_path).items() if k.startswith(("student", "ema")) and "batches_tracked" in k]
    assert len(counts) == 2 and all(int(v) == 10 for v in counts)


def test_the_average_is_that_of_the_students_of_all_steps(tmp_path: Path, data: RunData) -> None:
    trainer, students = make(tmp_path, data), []
    students.append({k: v.clone() for k, v in trainer.parts.ema.model.state_dict().items()})
    trainer.fit(on_step=lambda t, _: students.append({k: v.clone() for k, v in t.parts.student.state_dict().items()}))
    average = students[0]
    for k, student in enumerate(students[1:]):
        d = min(0.999, (1 + k) / (10 + k))
        average = {key: d * v + (1 - d) * student[key] for key, v in average.items()}
    for key, value in trainer.parts.ema.model.state_dict().items():
        if value.is_floating_point():  # running statistics included
            torch.testing.assert_close(value, average[key])


@pytest.mark.parametrize("select", ["last", "validation"])
def test_the_test_rows_decide_nothing(select: str, tmp_path: Path, data: RunData) -> None:
    """With other classes and inputs in the test split, the same states are kept and the same step is reported."""
    rng = np.random.default_rng(0)
    x, y = rng.permutation(255 - data.test.x), rng.permutation(data.test.y)
    other = dataclasses.replace(data, test=dataclasses.replace(data.test, x=x, y=y))
    steps = []
    for folder, given in (("a", data), ("b", other)):
        steps.append(make(tmp_path / folder, given, "uasd", select=select, epoch_steps=1).fit().selected_step)
    assert steps[0] == steps[1] and lines(tmp_path / "a")[-1]["test"] != lines(tmp_path / "b")[-1]["test"]
    assert_same_state(tmp_path / "a", tmp_path / "b")
    if select == "validation":
        assert_same_state(tmp_path / "a", tmp_path / "b", "best")


def test_a_best_state_newer_than_the_last_one_is_kept(tmp_path: Path, data: RunData) -> None:
    """As a kill between the two writes leaves them."""

    def run() -> Trainer:
        return make(tmp_path / "run", data, "meanteacher", select="validation", epoch_steps=1)

    run().fit(on_step=stop_at(3))
    notes = json.loads((tmp_path / "run" / "best.json").read_text())
    best = {"value": 2.0, "step": 4, "metrics": {"accuracy": 0.5}}
    (tmp_path / "run" / "best.json").write_text(json.dumps({**notes, "step": 4, "best": best}))
    result = run().fit()
    assert (result.selected_step, result.metrics) == (4, {"accuracy": 0.5})
    assert json.loads((tmp_path / "run" / "best.json").read_text())["step"] == 4


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch.compile looks whether an input has one
@pytest.mark.parametrize("name", NAMES)
def test_compiled_is_the_same_but_for_rounding(
    name: str, tmp_path: Path, data: RunData, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = torch.compile, []

    def traced(function: Any, **options: Any) -> Any:
        fast = real(function, backend="aot_eager", **options)  # all of torch.compile but the code generator

        def call(x: torch.Tensor) -> torch.Tensor:
            calls.append(len(x))
            return fast(x)

        return call

    monkeypatch.setattr(torch, "compile", traced)
    run = config(name, steps=2, epoch_steps=2)
    kept = []
    for compiled in (False, True):
        torch._dynamo.reset()
        trainer = Trainer(run, tmp_path / str(compiled), device="cpu", data=data, compiled=compiled)
        trainer.fit()
        kept.append(state(tmp_path / str(compiled)))
    assert calls and kept[0].keys() == kept[1].keys()
    for key in kept[0]:
        if key.startswith(("student", "ema")):
            torch.testing.assert_close(kept[1][key], kept[0][key], rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # of tensorboard's own imports
def test_tensorboard(tmp_path: Path, data: RunData) -> None:
    pytest.importorskip("tensorboard")
    run = config("supervised")
    Trainer(run, tmp_path, device="cpu", data=data, tensorboard=True).fit(on_step=stop_at(8))
    Trainer(run, tmp_path, device="cpu", data=data, tensorboard=True).fit()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    shown = [(e.step, e.value) for e in events.Scalars("test/ema/accuracy")]
    assert shown == [(r["step"], pytest.approx(r["test"]["ema"]["accuracy"])) for r in lines(tmp_path)]
    assert {"train/loss", "lr", "samples_per_second"} <= set(events.Tags()["scalars"])
