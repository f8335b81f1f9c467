"""What the unlabeled loss is pulled towards: sharpened, aligned and averaged predictions."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from ssl_zoo.losses import full_precision

__all__ = ["UniformAlignment", "VisitMean", "annealing_threshold", "one_hot", "probabilities", "sharpen"]


def probabilities(logits: Tensor) -> Tensor:
    """``softmax(logits)`` without gradient, in float32 or better: what masks and targets are made of."""
    return full_precision(logits.detach()).softmax(-1)


def one_hot(index: Tensor, n_classes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows of 0 and a 1. Unlike ``torch.nn.functional.one_hot`` it never waits for the device.

    Examples
    --------
    >>> one_hot(torch.tensor([1]), 3)
    tensor([[0., 1., 0.]])
    """
    out = torch.zeros(index.shape[0], n_classes, dtype=dtype, device=index.device)
    return out.scatter_(1, index.long()[:, None], 1.0)


def sharpen(p: Tensor, temperature: float) -> Tensor:
    """``p^(1/T) / sum p^(1/T)``, through logarithms so that a small T stays finite.

    Examples
    --------
    >>> sharpen(torch.tensor([[0.2, 0.8]]), 0.5)
    tensor([[0.0588, 0.9412]])
    """
    return (p.clamp_min(torch.finfo(p.dtype).tiny).log() / temperature).softmax(-1)


def annealing_threshold(schedule: Literal["none", "linear", "log", "exp"], progress: float, n_classes: int) -> float:
    """UDA's training-signal annealing: labeled rows whose true class has a higher probability are left out for now.

    ``eta = a (1 - 1/C) + 1/C`` with ``a = t``, ``1 - exp(-5 t)`` or ``exp(5 (t - 1))``; "none" is 1, so that all rows
    count.

    Examples
    --------
    >>> annealing_threshold("linear", 0.5, 10), annealing_threshold("none", 0.0, 10)
    (0.55, 1.0)
    """
    if schedule == "none":
        return 1.0
    grown = {"linear": progress, "log": 1.0 - math.exp(-5.0 * progress), "exp": math.exp(5.0 * (progress - 1.0))}
    return grown[schedule] * (1.0 - 1.0 / n_classes) + 1.0 / n_classes


class UniformAlignment(nn.Module):
    """SoftMatch's alignment to the uniform distribution: ``norm(p (1/C) / EMA(pbar))``; the EMA starts at 1/C.

    Parameters
    ----------
    n_classes : int
    momentum : float
        Share of the old value.
    """

    p_mean: Tensor

    def __init__(self, n_classes: int, momentum: float = 0.999) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("p_mean", torch.full((n_classes,), 1.0 / n_classes))

    @torch.no_grad()
    def forward(self, p: Tensor) -> Tensor:
        """Take in the batch's mean prediction, then align the rows with the new running mean."""
        self.p_mean.lerp_(p.mean(0).to(self.p_mean.dtype), 1.0 - self.momentum)
        ratio = p / (self.p_mean.to(p.dtype) * p.shape[1]).clamp_min(1e-12)
        return ratio / ratio.sum(-1, keepdim=True)


class VisitMean(nn.Module):
    """Running mean of each sample's prediction over all its visits: ``(n, C)`` sums and ``(n,)`` counts, of fixed size.

    Examples
    --------
    >>> store = VisitMean(2, 2)
    >>> _ = store(torch.tensor([0]), torch.tensor([[1.0, 0.0]]))
    >>> store(torch.tensor([0]), torch.tensor([[0.0, 1.0]]))
    tensor([[0.5000, 0.5000]])
    """

    total: Tensor
    count: Tensor

    def __init__(self, n_samples: int, n_classes: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(n_samples, n_classes))
        self.register_buffer("count", torch.zeros(n_samples))

    @torch.no_grad()
    def forward(self, index: Tensor, p: Tensor) -> Tensor:
        """Take in the predictions ``p`` of the samples ``index`` and return their means, this visit included."""
        self.total.index_add_(0, index, p.to(self.total.dtype))
        self.count.index_add_(0, index, torch.ones_like(index, dtype=self.count.dtype))
        return (self.total[index] / self.count[index][:, None]).to(p.dtype)
