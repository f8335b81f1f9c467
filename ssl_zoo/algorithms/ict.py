"""Interpolation Consistency Training (Verma et al. 2022)."""

from __future__ import annotations

import torch

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, frozen_batch_norm
from ssl_zoo.losses import cross_entropy, linear_ramp, squared_error
from ssl_zoo.mixing import mix, sample_beta
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities


@register("ict")
class ICT(Algorithm):
    """``CE + weight ramp mean_i mean_c (p_c(x_i) - q_ic)^2``: the prediction on a mixture is the mixture of
    predictions.

    ``x = lam u_i + (1 - lam) u_j``, ``q = lam p_EMA(u_i) + (1 - lam) p_EMA(u_j)`` without gradient, lam ~ Beta(a, a)
    drawn for each sample, j a permutation of the batch.

    Defaults: alpha .5, weight 100, ramp 1/64.

    Sources disagree: the authors draw one lam a batch, here it is one a sample (same expectation, less variance);
    they mix the labeled samples as well.

    References
    ----------
    Verma, Kawaguchi, Lamb, Kannala, Solin, Bengio, Lopez-Paz. Interpolation consistency training for semi-
    supervised learning. Neural Networks 2022 (first at IJCAI 2019).
    """

    uses_teacher = True
    bn_policy = "labeled"

    alpha: float = 0.5
    weight: float = 100.0
    ramp: float = 1 / 64

    def compute(self, ctx: StepContext) -> StepResult:
        """Labeled loss and consistency on mixtures."""
        x_l, u_w = self.views(ctx)
        z_teacher = self.teach(ctx, u_w).logits
        p_teacher = probabilities(z_teacher)
        other = torch.randperm(len(u_w), generator=ctx.generator, device=u_w.device)
        lam = sample_beta(len(u_w), self.alpha, ctx.generator, device=u_w.device)
        q = mix(p_teacher, p_teacher[other], lam)
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            (mixed,) = forward(ctx.model, mix(u_w, u_w[other], lam))
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = squared_error(mixed.logits.softmax(-1), q).mean()
        return StepResult(
            loss=loss_l + self.weight * linear_ramp(ctx.progress, self.ramp) * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=z_teacher,
            mask_u=torch.ones_like(q[:, 0]),
            pseudo=p_teacher.argmax(-1),
            h_l=labeled.h,
            h_u_strong=mixed.h,
        )
