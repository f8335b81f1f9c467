"""All that moves in a run: student, average, algorithm, optimiser, streams, generators, and what waits to be logged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, compile_features
from ssl_zoo.checkpoint import flatten_optimizer, restore_optimizer
from ssl_zoo.config import RunConfig
from ssl_zoo.data import make_augmenter, make_loader
from ssl_zoo.ema import EMA
from ssl_zoo.meter import Meter
from ssl_zoo.models import build_model
from ssl_zoo.registry import algorithm_class, create_algorithm
from ssl_zoo.run_data import RunData

__all__ = ["RunParts", "seed_default_generators"]

_INIT, _AUGMENT, _NOISE, _GLOBAL = 10, 11, 12, 13  # seeds of their own for what is drawn apart


class RunParts:
    """Built from a config and its data, the same on every device.

    Parameters
    ----------
    config : RunConfig
    data : RunData
    device : torch.device
    compiled : bool, default=False
        Whether the student's features go through torch.compile while it trains.
    """

    def __init__(self, config: RunConfig, data: RunData, device: torch.device, *, compiled: bool = False) -> None:
        self.device = device
        channels_last = device.type == "cuda" and data.train.is_image
        self.student, self.algorithm = _networks(config, data)
        self.student = self.student.to(device)
        if channels_last:
            self.student = self.student.to(memory_format=torch.channels_last)
        self.algorithm = self.algorithm.to(device)
        self.ema = EMA(self.student, config.train.ema_decay)
        if compiled:
            compile_features(self.student)  # after the average was copied from it, which stays as it is
        self._steps = config.train.steps
        self.base_lr = self.algorithm.base_lr if config.train.lr is None else config.train.lr
        self.optimizer = self._optimizer(config.train.momentum, config.train.weight_decay)
        mu = self.algorithm.mu if self.algorithm.uses_unlabeled else 0
        self.samples_per_step = config.train.batch_size * (1 + mu)
        self.loader = make_loader(
            data.train, data.pool, ood=data.ood, batch_size=config.train.batch_size, mu=mu, seed=config.seed,
            device=device,
        )  # fmt: skip
        augment = {"channels_last": True, **config.data.augment} if channels_last else config.data.augment
        self.augment = make_augmenter(data.train, seed=_seed(config.seed, _AUGMENT), device=device, **augment)
        self.generator = torch.Generator(device=device).manual_seed(_seed(config.seed, _NOISE))
        self.meter = Meter()

    def _optimizer(self, momentum: float, weight_decay: float) -> torch.optim.SGD:
        """SGD with Nesterov's momentum; matrices and kernels decay, biases and batch-norm do not."""
        parameters = [*self.student.parameters(), *self.algorithm.parameters()]
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.SGD(
            groups, lr=self.base_lr, momentum=momentum, nesterov=momentum > 0,
            fused=True if self.device.type == "cuda" else None,
        )  # fmt: skip

    def set_rate(self, step: int) -> None:
        """The rate of a step, ``lr cos(7 pi t / 16)``."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.base_lr * math.cos(7 * math.pi * step / (16 * self._steps))

    def weights_are_finite(self) -> bool:
        """Whether no parameter of the student is NaN or infinite. Waits for the device."""
        norms = torch._foreach_norm([p.detach() for p in self.student.parameters()], math.inf)
        return bool(torch.stack([n.float() for n in norms]).isfinite().all())

    # ------------------------------------------------------------------------------------------------------ the state

    def state(self) -> dict[str, Tensor]:
        """All of it as flat tensors, the default generators included."""
        parts: dict[str, Any] = {
            "student": self.student.state_dict(), "ema": self.ema.state_dict(),
            "algorithm": self.algorithm.state_dict(), "optimizer": flatten_optimizer(self.optimizer),
            "loader": self.loader.state_dict(), "augment": self.augment.state_dict(),
            "meter": self.meter.state_dict(),
            "random": {"noise": self.generator.get_state(), "default": torch.get_rng_state()},
        }  # fmt: skip
        if self.device.type == "cuda":
            parts["random"]["cuda"] = torch.cuda.get_rng_state(self.device)
        return {f"{part}.{key}": value for part, values in parts.items() for key, value in values.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what ``state`` gave, on a device of the same type."""
        parts = self.load_weights(state)
        restore_optimizer(self.optimizer, parts.get("optimizer", {}))
        self.loader.load_state_dict(parts["loader"])
        self.augment.load_state_dict(parts["augment"])
        self.meter.load_state_dict(parts.get("meter", {}), self.device)
        self.generator.set_state(parts["random"]["noise"])
        torch.set_rng_state(parts["random"]["default"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(parts["random"]["cuda"], self.device)

    def load_weights(self, state: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
        """Student, average and algorithm, on whatever device: enough to predict. Returns the state by its parts."""
        parts: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            part, _, rest = key.partition(".")
            parts.setdefault(part, {})[rest] = value
        self.student.load_state_dict(parts["student"])
        self.ema.load_state_dict(parts["ema"])
        self.algorithm.load_state_dict(parts.get("algorithm", {}))
        return parts


def seed_default_generators(seed: int, device: torch.device) -> None:
    """For dropout, which knows no other source. Call it inside ``torch.random.fork_rng``."""
    torch.default_generator.manual_seed(_seed(seed, _GLOBAL))
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(_seed(seed, _GLOBAL))


def _networks(config: RunConfig, data: RunData) -> tuple[nn.Module, Algorithm]:
    """Student and algorithm, on the CPU, so that every device starts from the same weights."""
    pool, options = data.pool, dict(config.algorithm.options)
    n_seen, n_unseen = pool.n_seen_classes, len(pool.class_order) - pool.n_seen_classes
    if "n_novel" in algorithm_class(config.algorithm.name).option_defaults() and n_unseen:
        options.setdefault("n_novel", n_unseen)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_seed(config.seed, _INIT))
        student = build_model(config.model.name, data.train.in_shape, n_seen, **config.model.options)
        algorithm = create_algorithm(
            config.algorithm.name, n_classes=n_seen, n_labeled=len(pool.labeled_idx), n_unlabeled=pool.n_unlabeled,
            **options,
        )  # fmt: skip
        algorithm.build(student)
    return student, algorithm


def _seed(seed: int, stream: int) -> int:
    return int(np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1))
