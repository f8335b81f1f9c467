"""CAFA, class-aware feature alignment (Huang et al. 2021)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, frozen_batch_norm
from ssl_zoo.losses import cross_entropy, full_precision, linear_ramp, squared_error
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities


@register("cafa")
class CAFA(Algorithm):
    """``CE + lam ramp mean(w_u consistency) + mean(w_l BCE(D, 0)) + mean(w_u BCE(D, 1)) + BCE(D')``, labeled 0 and
    unlabeled 1.

    D sees the features behind gradient reversal, with strength ``2 / (1 + exp(-10 t)) - 1``; D' sees them detached.
    The shift ``s(x) = |max p(x) - max p(xhat)|``, ``xhat = x - eps sign grad_x CE(p / T, argmax)``, is how far a
    small step towards its own prediction moves a sample. ``w_l = norm(D' - s)``, ``w_u = norm(s - D')``, scaled to
    [0, 1] over the batch; all equal: 1. The consistency is that of the Pi-Model. Weights carry no gradient.

    Defaults: eps .0014, temperature .5, lam 10 and ramp .4 (the Pi-Model's), hidden 64.

    Sources disagree: BCE(D') is the sum of the labeled and unlabeled means here; code in public also divides the
    weights by their mean.

    References
    ----------
    Huang, Xue, Han, Yang, Gong. Universal semi-supervised learning. NeurIPS 2021.
    """

    needs = ("l_weak", "u_weak", "u_weak2")
    bn_policy = "labeled"

    eps: float = 0.0014
    temperature: float = 0.5
    lam: float = 10.0
    ramp: float = 0.4
    hidden: int = 64

    def build(self, model: Any) -> None:
        """Two discriminators on the features."""
        n = model.head.in_features
        self.adversary = nn.Sequential(nn.Linear(n, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1))
        self.judge = nn.Sequential(nn.Linear(n, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1))

    def compute(self, ctx: StepContext) -> StepResult:
        """Weighted consistency and weighted adversarial alignment."""
        x_l, u_1, u_2 = self.views(ctx)
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            shift, z = prediction_shift(ctx.model, torch.cat([x_l, u_1]), self.eps, self.temperature)
            (view,) = forward(ctx.model, u_2)
        shift_l, shift_u = shift.split([len(x_l), len(u_1)])
        q = probabilities(z[len(x_l) :])
        judge_l, judge_u = (full_precision(self.judge(h.detach())).squeeze(1) for h in (labeled.h, view.h))
        w_l = unit_range(judge_l.detach().sigmoid() - shift_l)
        w_u = unit_range(shift_u - judge_u.detach().sigmoid())
        strength = 2.0 / (1.0 + math.exp(-10.0 * ctx.progress)) - 1.0
        adv_l, adv_u = (
            full_precision(self.adversary(ReverseGradient.apply(h, strength))).squeeze(1) for h in (labeled.h, view.h)
        )
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        consistency = (w_u * squared_error(view.logits.softmax(-1), q)).mean()
        align = (w_l * nn.functional.softplus(adv_l)).mean() + (w_u * nn.functional.softplus(-adv_u)).mean()
        judged = nn.functional.softplus(judge_l).mean() + nn.functional.softplus(-judge_u).mean()
        return StepResult(
            loss=loss_l + self.lam * linear_ramp(ctx.progress, self.ramp) * consistency + align + judged,
            loss_l=loss_l,
            loss_u=consistency,
            logits_l=labeled.logits,
            logits_u_weak=z[len(x_l) :],
            mask_u=w_u,
            pseudo=q.argmax(-1),
            h_l=labeled.h,
            h_u_strong=view.h,
            logs={"align": align, "judge": judged, "shift_u": shift_u.mean()},
        )


def prediction_shift(model: nn.Module, x: Tensor, eps: float, temperature: float) -> tuple[Tensor, Tensor]:
    """``|max p(x) - max p(xhat)|`` (B,) and the logits of x, both without gradient. Full precision: the step is
    small."""
    with torch.enable_grad(), torch.autocast(x.device.type, enabled=False):
        start = x.detach().requires_grad_()
        (before,) = forward(model, start)
        own = before.logits.detach().argmax(-1)
        (g,) = torch.autograd.grad(cross_entropy(before.logits / temperature, own).sum(), start)
        with torch.no_grad():
            (after,) = forward(model, x - eps * g.sign())
    p, p_hat = probabilities(before.logits), probabilities(after.logits)
    return (p.amax(-1) - p_hat.amax(-1)).abs(), before.logits.detach()


def unit_range(x: Tensor) -> Tensor:
    """Scaled to [0, 1] over the batch; 1 for all rows when they are equal (0 / 0), so that a batch of one counts."""
    span = x.amax() - x.amin()
    one = torch.ones_like(x)
    return torch.where(span > 0, (x - x.amin()) / torch.where(span > 0, span, one), one)


class ReverseGradient(torch.autograd.Function):
    """Identity whose gradient is multiplied by ``-strength``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        """The input, as it is."""
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The reversed gradient."""
        return -ctx.strength * grad, None
