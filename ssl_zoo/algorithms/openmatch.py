"""OpenMatch (Saito et al. 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward
from ssl_zoo.losses import cross_entropy, full_precision, masked_mean, one_vs_all_loss, one_vs_all_probs
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities
from ssl_zoo.thresholds import confidence_mask


@register("openmatch")
class OpenMatch(Algorithm):
    """``CE + L_ova + w_ent L_ent + w_socr L_socr``, and after the warm-up FixMatch on the samples that look like
    inliers.

    A one-vs-all head gives q (B, 2, C), softmax over the pair, q1 = inlier. ``L_ova = mean[-log q1[y] + max_{j != y}
    -log q0[j]]``; ``L_ent``: mean over samples and classes of the entropy of the pair, on two weak views; ``L_socr =
    mean sum (q(v1) - q(v2))^2``. FixMatch takes the samples with ``q0_EMA[yhat] < .5``, yhat the teacher's class, the
    mask being still max p_w >= tau.

    Defaults: tau .95, w_ent .1, w_socr .5 (1 for 100 classes), warmup .02 (share of the training), momentum .999, mu 2.

    Sources disagree: the authors select the inliers once an epoch over the whole pool, here it is done in each step
    by the same rule; they also train on two views of the labeled samples. In ``loss_u`` all unlabeled terms are
    together.

    References
    ----------
    Saito, Kim, Saenko. OpenMatch: open-set consistency regularization for semi-supervised learning with outliers.
    NeurIPS 2021.
    """

    needs = ("l_weak", "u_weak", "u_weak2", "u_strong")
    uses_teacher = True

    mu: int = 2
    tau: float = 0.95
    w_ent: float = 0.1
    w_socr: float = 0.5
    warmup: float = 0.02
    momentum: float = 0.999

    ema_weight: Tensor
    ema_bias: Tensor
    updates: Tensor

    def build(self, model: Any) -> None:
        """The one-vs-all head, and its moving average beside the teacher."""
        self.ova = nn.Linear(model.head.in_features, 2 * self.n_classes)
        self.register_buffer("ema_weight", self.ova.weight.detach().clone())
        self.register_buffer("ema_bias", self.ova.bias.detach().clone())
        self.register_buffer("updates", torch.zeros(()))

    def compute(self, ctx: StepContext) -> StepResult:
        """Open-set terms always, FixMatch after the warm-up."""
        x_l, u_1, u_2, u_s = self.views(ctx)
        labeled, first, second, strong = forward(ctx.model, x_l, u_1, u_2, u_s)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        ova = one_vs_all_loss(self.ova(labeled.h), ctx.batch.y_l).mean()
        open_1, open_2 = self.ova(first.h), self.ova(second.h)
        q_1, q_2 = one_vs_all_probs(open_1), one_vs_all_probs(open_2)
        ent = (pair_entropy(open_1).mean() + pair_entropy(open_2).mean()) / 2
        socr = (q_1 - q_2).square().sum((1, 2)).mean()

        p = probabilities(first.logits)
        mask, pseudo = confidence_mask(p, self.tau) * self.inliers(ctx, u_1), p.argmax(-1)
        if ctx.progress < self.warmup:
            mask = torch.zeros_like(mask)
        fix = masked_mean(cross_entropy(strong.logits, pseudo), mask)
        loss_u = self.w_ent * ent + self.w_socr * socr + fix
        return StepResult(
            loss=loss_l + ova + loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=first.logits,
            mask_u=mask,
            pseudo=pseudo,
            h_l=labeled.h,
            h_u_strong=strong.h,
            logs={"ova": ova, "ova_entropy": ent, "socr": socr, "fixmatch": fix},
        )

    @torch.no_grad()
    def inliers(self, ctx: StepContext, x: Tensor) -> Tensor:
        """``1[q0_EMA[yhat] < .5]`` (B,) by the teacher and the averaged head."""
        h, logits = self.teach(ctx, x)
        yhat = logits.argmax(-1)
        q = one_vs_all_probs(nn.functional.linear(h.to(self.ema_weight.dtype), self.ema_weight, self.ema_bias))
        return (q[:, 0].gather(1, yhat[:, None]).squeeze(1) < 0.5).to(q.dtype)

    def step(self, ctx: StepContext, optimizer: torch.optim.Optimizer) -> StepResult:
        """The usual step, then the head's moving average, warmed up as the teacher's is."""
        result = super().step(ctx, optimizer)
        with torch.no_grad():
            share = 1.0 - ((1.0 + self.updates) / (10.0 + self.updates)).clamp_max(self.momentum)
            self.ema_weight.lerp_(self.ova.weight, share)
            self.ema_bias.lerp_(self.ova.bias, share)
            self.updates += 1
        return result


def pair_entropy(logits: Tensor) -> Tensor:
    """Entropy of inlier against outlier, (B, C), from one-vs-all logits (B, 2 C)."""
    log_q = full_precision(logits).unflatten(1, (2, -1)).log_softmax(1)
    return -(log_q.exp() * log_q).sum(1)
