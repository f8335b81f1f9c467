"""Which unlabeled rows count, and how much: fixed, per-class, self-adaptive and soft thresholds, and Otsu's split.

The modules keep their statistics in buffers and update them without gradient, so that nothing of an old step is kept
alive.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["CurriculumThreshold", "GaussianWeight", "SelfAdaptiveThreshold", "confidence_mask", "otsu_threshold"]


def confidence_mask(p: Tensor, tau: float | Tensor) -> Tensor:
    """``1[max p >= tau]`` as floats (B,). ``p`` is the plain softmax, never a sharpened one; ``tau`` a number or (B,).

    Examples
    --------
    >>> confidence_mask(torch.tensor([[0.96, 0.04], [0.6, 0.4]]), 0.95)
    tensor([1., 0.])
    """
    return (p.amax(-1) >= tau).to(p.dtype)


class CurriculumThreshold(nn.Module):
    """FlexMatch's per-class thresholds ``tau beta_c / (2 - beta_c)`` from the confident predictions on all samples.

    ``label[i]`` is the argmax of sample i when its confidence reached tau at the last visit, else -1. ``beta_c`` is
    the count of class c over the largest count; in warm-up also over the count of -1 when that is larger. It starts
    at 0, so that at first every sample passes.
    """

    label: Tensor

    def __init__(self, n_samples: int, n_classes: int, tau: float, warmup: bool = True) -> None:
        super().__init__()
        self.n_classes, self.tau, self.warmup = n_classes, tau, warmup
        self.register_buffer("label", torch.full((n_samples,), -1, dtype=torch.long))

    def beta(self) -> Tensor:
        """Learning status (C,) of each class, in [0, 1]."""
        count = torch.zeros(self.n_classes + 1, dtype=torch.long, device=self.label.device)
        count.scatter_add_(0, self.label + 1, torch.ones_like(self.label))
        per_class = count[1:].to(torch.get_default_dtype())
        top = count.amax() if self.warmup else count[1:].amax()
        return per_class / top.clamp_min(1)

    @torch.no_grad()
    def forward(self, index: Tensor, p: Tensor) -> Tensor:
        """Mask (B,) of the rows by the status before this batch; then take in the batch."""
        confidence, label = p.max(-1)
        beta = self.beta().to(p.dtype)[label]
        mask = (confidence >= self.tau * beta / (2.0 - beta)).to(p.dtype)
        self.label[index] = torch.where(confidence >= self.tau, label, -torch.ones_like(label))
        return mask


class SelfAdaptiveThreshold(nn.Module):
    """FreeMatch's thresholds ``tau ptilde_c / max ptilde`` from EMAs that take in the batch before it is masked.

    tau: EMA of the mean confidence; ptilde: of the mean prediction; htilde: of the histogram of the argmax. All start
    at 1/C.
    """

    tau: Tensor
    prob: Tensor
    hist: Tensor

    def __init__(self, n_classes: int, momentum: float = 0.999) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("tau", torch.tensor(1.0 / n_classes))
        self.register_buffer("prob", torch.full((n_classes,), 1.0 / n_classes))
        self.register_buffer("hist", torch.full((n_classes,), 1.0 / n_classes))

    @torch.no_grad()
    def forward(self, p: Tensor) -> Tensor:
        """Take in the batch, then return its mask (B,)."""
        confidence, label = p.max(-1)
        hist = torch.zeros_like(self.hist).scatter_add_(0, label, torch.ones_like(label, dtype=self.hist.dtype))
        for running, new in ((self.tau, confidence.mean()), (self.prob, p.mean(0)), (self.hist, hist / len(p))):
            running.lerp_(new.to(running.dtype), 1.0 - self.momentum)
        per_class = self.tau * self.prob / self.prob.amax()
        return (confidence >= per_class.to(p.dtype)[label]).to(p.dtype)


class GaussianWeight(nn.Module):
    """SoftMatch's weight ``exp(-min(max p - mu, 0)^2 / (2 var / n_sigma^2))``: 1 at and above mu, never less for
    being surer.

    mu and var are EMAs (from 1/C and 1) of the batch mean and unbiased variance of the confidence; they take in the
    batch first. A batch of one says nothing of a variance and leaves it as it is.
    """

    mean: Tensor
    var: Tensor

    def __init__(self, n_classes: int, n_sigma: float = 2.0, momentum: float = 0.999) -> None:
        super().__init__()
        self.n_sigma, self.momentum = n_sigma, momentum
        self.register_buffer("mean", torch.tensor(1.0 / n_classes))
        self.register_buffer("var", torch.tensor(1.0))

    @torch.no_grad()
    def forward(self, p: Tensor) -> Tensor:
        """Take in the batch, then return its weights (B,)."""
        confidence = p.amax(-1)
        self.mean.lerp_(confidence.mean().to(self.mean.dtype), 1.0 - self.momentum)
        if len(confidence) > 1:
            self.var.lerp_(confidence.var().to(self.var.dtype), 1.0 - self.momentum)
        below = (confidence - self.mean.to(p.dtype)).clamp_max(0.0)
        spread = (2.0 * self.var / self.n_sigma**2).clamp_min(1e-12)
        return (-below.square() / spread.to(p.dtype)).exp()


def otsu_threshold(scores: Tensor) -> Tensor:
    """Smallest score of the upper of two groups with the largest between-group variance (Otsu 1979), over all splits.

    Rows ``>= threshold`` are the upper group. Equal scores have no split: all of them are the upper group.

    Examples
    --------
    >>> otsu_threshold(torch.tensor([0.1, 0.9, 0.2, 0.8]))
    tensor(0.8000)
    """
    if scores.numel() == 0:
        raise ValueError("otsu_threshold: scores is empty; give at least one score.")
    x = scores.double().sort().values
    n = x.numel()
    low = torch.arange(1, n, device=x.device, dtype=x.dtype)
    below = x.cumsum(0)
    mean_low, mean_high = below[:-1] / low, (below[-1] - below[:-1]) / (n - low)
    between = low * (n - low) * (mean_high - mean_low).square()
    between = torch.where(x[1:] > x[:-1], between, torch.zeros_like(between))  # no split between equal scores
    # A leading 0 stands for "no split": it wins when no other split has any variance.
    cut = torch.cat([between.new_zeros(1), between]).argmax()
    return x[cut].to(scores.dtype)
