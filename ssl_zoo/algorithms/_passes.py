"""How views go through a network: together, without a trace, compiled or not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ssl_zoo.losses import full_precision

__all__ = ["View", "compile_features", "eager", "forward", "frozen_batch_norm", "peek"]


class View(NamedTuple):
    """One view after the network: ``h`` is what goes into ``model.head``, ``logits`` (float32 or better) what comes
    out."""

    h: Tensor
    logits: Tensor


def forward(model: Any, *views: Tensor) -> list[View]:
    """All views in ONE concatenated pass, cut apart again."""
    h = model.features(torch.cat(views) if len(views) > 1 else views[0])
    logits = full_precision(model.head(h))
    sizes = [len(v) for v in views]
    return [View(a, b) for a, b in zip(h.split(sizes), logits.split(sizes), strict=True)]


@torch.no_grad()
def peek(model: nn.Module, *views: Tensor) -> list[View]:
    """`forward` without gradient and without a trace in the running statistics: for pseudo-labels."""
    with frozen_batch_norm(model):
        out = forward(model, *views)
    # Weights that autocast cast here carry no graph; some versions of torch reuse them in the pass with gradient.
    torch.clear_autocast_cache()
    return out


@contextlib.contextmanager
def frozen_batch_norm(model: nn.Module, *, teacher: bool = False) -> Iterator[None]:
    """Batch-norm layers in train mode normalise by their batch but leave their running statistics alone.

    A teacher is in eval mode; with ``teacher=True`` its batch-norm layers normalise by the batch all the same. Its
    targets then belong to the same function as the student's prediction on that batch. (On its running statistics,
    which come from few labeled samples, Mean Teacher and ICT fell 10 to 20 points below supervised training on USPS.)
    """
    layers = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    layers = [m for m in layers if teacher or m.training]  # a student in eval mode goes on reading its statistics
    before = [(m.training, m.track_running_stats) for m in layers]
    for m in layers:
        m.training, m.track_running_stats = True, False
    try:
        yield
    finally:
        for m, (training, track) in zip(layers, before, strict=True):
            m.training, m.track_running_stats = training, track


def compile_features(model: Any) -> None:
    """Take ``model.features`` through torch.compile while the model trains; evaluation stays as it is.

    Batches of training have few sizes, so every size gets code of its own.
    """
    plain, fast = model.features, torch.compile(model.features, dynamic=False)

    def features(x: Tensor) -> Tensor:
        return (fast if model.training else plain)(x)

    model.features = features


@contextlib.contextmanager
def eager(model: nn.Module) -> Iterator[nn.Module]:
    """The model without `compile_features`: compiled code has no second derivatives."""
    fast = model.__dict__.pop("features", None)
    try:
        yield model
    finally:
        if fast is not None:
            model.__dict__["features"] = fast
