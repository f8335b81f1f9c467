"""Exponential moving average of a model: parameters AND buffers, all tensors in one fused call."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn

__all__ = ["EMA", "warm_decay"]


def warm_decay(decay: float, updates: int) -> float:
    """``min(decay, (1 + k) / (10 + k))`` after ``k`` updates: a young average forgets its random start sooner.

    Examples
    --------
    >>> warm_decay(0.999, 0), round(warm_decay(0.999, 990), 3), warm_decay(0.999, 100_000)
    (0.1, 0.991, 0.999)
    """
    return min(decay, (1.0 + updates) / (10.0 + updates))


class EMA:
    """Moving average of a model, ``average <- d average + (1 - d) model``, kept in a copy that is always in eval mode.

    Floating buffers (the running statistics of batch-norm) are averaged like parameters; integer ones are copied.

    Parameters
    ----------
    model : nn.Module
        The student. It is copied, never changed.
    decay : float
        ``d``, in [0, 1).
    warmup : bool
        Use ``min(d, (1 + k) / (10 + k))`` at update k, so that runs shorter than a few ``1 / (1 - d)`` steps have a
        useful average. With False the decay is constant.

    Examples
    --------
    >>> student = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(student.weight, 0.0)
    >>> ema = EMA(student, 0.9, warmup=False)
    >>> _ = nn.init.constant_(student.weight, 1.0)
    >>> ema.update(student)
    >>> ema.model.weight
    Parameter containing:
    tensor([[0.1000]])
    """

    def __init__(self, model: nn.Module, decay: float = 0.999, *, warmup: bool = True) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"EMA: decay is {decay}; it must be at least 0 and below 1.")
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.warmup, self.updates = decay, warmup, 0

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take in the student's present state; call it once after each optimiser step."""
        decay = warm_decay(self.decay, self.updates) if self.warmup else self.decay
        average, new = _split(self.model), _split(model)
        if average[0]:
            torch._foreach_lerp_(average[0], new[0], 1.0 - decay)
        for old, value in zip(average[1], new[1], strict=True):
            old.copy_(value)
        self.updates += 1

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors only: the averaged model under ``model.`` and the number of updates."""
        state = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        return {**state, "updates": torch.tensor(self.updates)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` gave."""
        self.model.load_state_dict({k.removeprefix("model."): v for k, v in state.items() if k.startswith("model.")})
        self.updates = int(state["updates"])


def _split(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """The floating tensors to average, and the others (counters) to copy."""
    tensors = [*model.parameters(), *model.buffers()]
    floating = [t.detach() for t in tensors if t.is_floating_point()]
    return floating, [t for t in tensors if not t.is_floating_point()]
