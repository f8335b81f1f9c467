"""Mixup: convex combinations of samples and of their soft targets, with draws from an explicit generator."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["fold", "mix", "sample_beta"]


def sample_beta(n: int, alpha: float, generator: torch.Generator | None, *, device: torch.device) -> Tensor:
    """``n`` draws from Beta(alpha, alpha) on the device, one a sample.

    Built from two gamma draws because ``torch.distributions.Beta`` does not take a generator; in logarithms, with
    ``G(a) = G(a + 1) U^(1/a)``, because a draw for a small alpha underflows.

    Examples
    --------
    >>> draws = sample_beta(1000, 0.5, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    >>> bool(((draws >= 0) & (draws <= 1)).all()), round(float(draws.mean()), 1)
    (True, 0.5)
    """
    gamma = torch._standard_gamma(torch.full((2, n), alpha + 1.0, device=device), generator=generator)
    uniform = torch.rand(2, n, generator=generator, device=device).clamp_min(1e-12)
    log_gamma = gamma.log() + uniform.log() / alpha
    return (log_gamma[0] - log_gamma[1]).sigmoid()


def fold(lam: Tensor) -> Tensor:
    """``max(lam, 1 - lam)``: a mixed sample stays nearer to the first of its two parents (MixMatch).

    Examples
    --------
    >>> fold(torch.tensor([0.2, 0.9]))
    tensor([0.8000, 0.9000])
    """
    return torch.maximum(lam, 1.0 - lam)


def mix(a: Tensor, b: Tensor, lam: Tensor) -> Tensor:
    """``lam a + (1 - lam) b`` with one ``lam`` a row.

    Examples
    --------
    >>> mix(torch.ones(2, 1), torch.zeros(2, 1), torch.tensor([0.25, 1.0]))
    tensor([[0.2500],
            [1.0000]])
    """
    lam = lam.to(a.dtype).view(-1, *[1] * (a.ndim - 1))
    return lam * a + (1.0 - lam) * b
