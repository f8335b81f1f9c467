"""Short runs on the embedded digits, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import torch

from ssl_zoo.algorithms.base import StepResult
from ssl_zoo.checkpoint import load_checkpoint
from ssl_zoo.config import RunConfig
from ssl_zoo.run_data import RunData
from ssl_zoo.trainer import Trainer

POOL = {"seen_classes": 6, "n_labeled": 18, "r": 0.5, "r_s": 0.3, "n_validation": 12}
MODEL = {"name": "mlp", "options": {"hidden": [12], "dropout": 0.1}}
TIME = ("seconds", "samples_per_second")
#: Algorithms whose mask may stay empty in ten steps.
OPEN = {name: {"tau": 0.2} for name in ("fix_a_step", "fixmatch", "openmatch", "pseudolabel", "uda", "flexmatch")}
OPEN["ds3l-centroid"] = {"weighting": "centroid", "tau": 0.2}


def config(name: str = "fixmatch", *, pool: dict[str, Any] | None = None, **train: Any) -> RunConfig:
    return RunConfig.from_dict({
        "algorithm": {"name": name.split("-")[0], "options": OPEN.get(name, {})}, "model": MODEL,
        "pool": {**POOL, **(pool or {})},
        "train": {"steps": 10, "epoch_steps": 4, "batch_size": 6, "diagnostics_every": 3, **train},
    })  # fmt: skip


def make(folder: Path, data: RunData, name: str = "fixmatch", **train: Any) -> Trainer:
    return Trainer(config(name, **train), folder, device="cpu", data=data)


def stop_at(step: int, number: int = signal.SIGTERM) -> Any:
    def on_step(trainer: Trainer, _: StepResult) -> None:
        if trainer.step == step:
            os.kill(os.getpid(), number)

    return on_step


def lines(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in r.items() if k not in TIME} for r in records]


def state(folder: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return load_checkpoint(folder, name)[0]


def assert_same_state(a: Path, b: Path, name: str = "last") -> None:
    one, two = state(a, name), state(b, name)
    assert one.keys() == two.keys()
    different = [key for key in one if not torch.equal(one[key].nan_to_num(7.0), two[key].nan_to_num(7.0))]
    assert not different
