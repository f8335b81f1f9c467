"""What a run is: frozen values, checked once. Where and how it runs (device, folder, bars) is not part of it.

The run id is a hash of the canonical config with all defaults written out, so that equal runs have equal names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ssl_zoo._typed import read_dataclass

__all__ = ["AlgorithmConfig", "DataConfig", "ModelConfig", "PoolConfig", "RunConfig", "TrainConfig"]


@dataclass(frozen=True)
class AlgorithmConfig:
    """Name of the algorithm and its options."""

    name: str = "fixmatch"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DataConfig:
    """Data set (name or path), its reader's options, and the far source: a name, a path, or "noise"."""

    name: str = "digits"
    options: dict[str, Any] = field(default_factory=dict)
    train_split: str = "train"
    test_split: str = "test"
    ood: str | None = None
    ood_options: dict[str, Any] = field(default_factory=dict)
    augment: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PoolConfig:
    """Labeled set and contaminated pool: the fields of `ssl_zoo.data.ContaminationSpec`.

    ``seen_classes`` None is all classes. ``seed`` None is the seed of the run.
    """

    seen_classes: int | tuple[int, ...] | None = None
    n_labeled: int = 40
    r: float = 0.0
    r_s: float = 1.0
    c_n: int | None = None
    c_i: int | None = None
    c_ib: float | None = None
    total: str = "fixed"
    nearness: str = "near"
    protocol: str = "re-ssl"
    total_size: int | None = None
    n_validation: int = 0
    disjoint: bool = True
    seed: int | None = None


@dataclass(frozen=True)
class ModelConfig:
    """Name of the network and its options."""

    name: str = "small_cnn"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainConfig:
    """How long and how fast.

    Parameters
    ----------
    steps : int
        Optimiser steps in all.
    epoch_steps : int
        Steps between two evaluations, log lines and checkpoints. It does not depend on the pool, so that runs over
        contamination are evaluated at the same steps.
    batch_size : int
        Labeled samples a step; the algorithm's ``mu`` times as many unlabeled ones.
    lr : float, optional
        At the start; by default the algorithm's own. It follows ``lr cos(7 pi t / 16)``.
    momentum, weight_decay : float
        Of SGD with Nesterov's momentum; no decay on batch-norm and bias.
    ema_decay : float
        Of the averaged model, warmed up.
    precision : {"auto", "fp32", "bf16"}
        "auto": bfloat16 autocast on a GPU, full precision on the CPU.
    select : {"last", "validation"}
        Which state is reported: the last one, or the best on the validation rows of the pool. Never by the test split.
    diagnostics_every : int
        Steps between two measurements of PLE, CCI, Sem-Drift, Grad-Align and OOD-F; 0 for none.
    eval_batch_size : int
    """

    steps: int = 1000
    epoch_steps: int = 100
    batch_size: int = 64
    lr: float | None = None
    momentum: float = 0.9
    weight_decay: float = 5e-4
    ema_decay: float = 0.999
    precision: str = "auto"
    select: str = "last"
    diagnostics_every: int = 10
    eval_batch_size: int = 512


@dataclass(frozen=True)
class RunConfig:
    """One run.

    Examples
    --------
    >>> config = RunConfig.from_dict({"algorithm": "fixmatch", "train": {"steps": 200}, "seed": 1})
    >>> config.train.steps, config.run_id == RunConfig.from_dict(config.to_dict()).run_id
    (200, True)
    >>> RunConfig.from_dict({"train": {"step": 200}})
    Traceback (most recent call last):
        ...
    ValueError: train.step is unknown (did you mean 'steps'?); train has steps, epoch_steps, ...
    """

    algorithm: AlgorithmConfig = AlgorithmConfig()
    data: DataConfig = DataConfig()
    pool: PoolConfig = PoolConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    seed: int = 0

    def __post_init__(self) -> None:
        _check_train(self.train)
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must be 0 or more.")
        if self.train.select == "validation" and not self.pool.n_validation:
            raise ValueError("train.select='validation' needs validation rows; set pool.n_validation.")
        from ssl_zoo.registry import create_algorithm

        made = create_algorithm(self.algorithm.name, n_classes=2, n_unlabeled=1, **self.algorithm.options)
        object.__setattr__(self, "algorithm", AlgorithmConfig(made.name, dict(self.algorithm.options)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Nested mappings -> config. A word for algorithm, data or model is its name; an unknown key is an error."""
        return read_dataclass(cls, values)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, all defaults written out."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """The canonical text: sorted keys, no spaces."""
        try:
            return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the config holds a value that JSON has no form for ({error}).") from error

    @property
    def run_id(self) -> str:
        """Twelve hex digits of the hash of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    @property
    def run_name(self) -> str:
        """Name of the run's folder."""
        data = Path(self.data.name).stem or "data"
        return f"{self.algorithm.name}-{data}-r{self.pool.r:g}-s{self.seed}-{self.run_id}"


def _check_train(train: TrainConfig) -> None:
    for name in ("steps", "epoch_steps", "batch_size", "eval_batch_size"):
        if getattr(train, name) < 1:
            raise ValueError(f"train.{name} is {getattr(train, name)}; it must be at least 1.")
    if train.diagnostics_every < 0:
        raise ValueError(f"train.diagnostics_every is {train.diagnostics_every}; it must be 0 (none) or more.")
    if train.lr is not None and not 0 < train.lr < float("inf"):
        raise ValueError(f"train.lr is {train.lr}; it must be above 0.")
    for name in ("momentum", "ema_decay"):
        if not 0 <= getattr(train, name) < 1:
            raise ValueError(f"train.{name} is {getattr(train, name)}; it must be at least 0 and below 1.")
    if not 0 <= train.weight_decay < float("inf"):
        raise ValueError(f"train.weight_decay is {train.weight_decay}; it must be 0 or more.")
    for name, words in (("precision", ("auto", "fp32", "bf16")), ("select", ("last", "validation"))):
        if getattr(train, name) not in words:
            raise ValueError(f"train.{name} is {getattr(train, name)!r}; it must be one of {', '.join(words)}.")
