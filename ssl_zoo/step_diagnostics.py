"""The five diagnostics of one step, from what the step has computed; nothing waits for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ssl_zoo import cscore
from ssl_zoo.algorithms.base import StepResult
from ssl_zoo.data import Batch
from ssl_zoo.meter import Meter

__all__ = ["measure_step"]


def measure_step(result: StepResult, batch: Batch, head: Any) -> dict[str, Tensor]:
    """PLE, CCI, Sem-Drift, Grad-Align and OOD-F, those that the algorithm gives what they need.

    Parameters
    ----------
    result : StepResult
        While the graph of its losses is still alive.
    batch : Batch
    head : nn.Linear
        The layer whose two gradients Grad-Align compares.
    """
    gradients = [_gradient(loss, head) for loss in (result.loss_l, result.loss_u)]
    values = {"grad_align": cscore.grad_align(gradients[0], gradients[1])}
    if result.logits_u_weak is not None:
        p = result.logits_u_weak.float().softmax(-1)
        values |= {"ple": cscore.ple(p), "cci": cscore.cci(p), Meter.POOLED: p.mean(0)}
        if result.mask_u is not None and result.pseudo is not None and result.logits_l is not None:
            values["sem_drift"] = cscore.sem_drift(
                result.logits_l, batch.y_l, result.logits_u_weak, result.pseudo, result.mask_u
            )
    if result.mask_u is not None:
        values["ood_f"] = cscore.ood_f(result.mask_u, batch.ood_u)
    return values


def _gradient(loss: Tensor, head: Any) -> Tensor | None:
    """Of the last layer, flattened; None where the loss does not depend on it."""
    if not loss.requires_grad:
        return None
    found = torch.autograd.grad(loss, [head.weight, head.bias], retain_graph=True, allow_unused=True)
    return None if found[0] is None else torch.cat([g.detach().flatten() for g in found])
