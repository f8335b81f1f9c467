"""MixMatch (Berthelot et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, peek
from ssl_zoo.losses import linear_ramp, soft_cross_entropy, squared_error
from ssl_zoo.mixing import fold, mix, sample_beta
from ssl_zoo.registry import register
from ssl_zoo.targets import one_hot, probabilities, sharpen


@register("mixmatch")
class MixMatch(Algorithm):
    """``soft CE(z, y_mix) on the B labeled rows + lam_u ramp mean_i mean_c (p_c - y_mix,c)^2 on the others``.

    ``q = sharpen(mean of p on two weak views, T)``; mixup over cat(labeled, u1, u2) with a permutation and ``lam' =
    max(lam, 1 - lam)``, lam ~ Beta(alpha, alpha) drawn for each row, so that a row stays nearest to itself. The
    squared error takes probabilities: one softmax, not two.

    Defaults: temperature .5, alpha .75, lam_u 75, ramp .4.

    Sources disagree: alpha .5 and lam_u 100 are used too. The authors ramp over 1/64 of the training, which in runs
    of a few thousand steps comes too early (USPS, 40 labels, 1,500 steps: 81 % against 97 % with .4). They draw lam a
    sample, common ports draw one lam a batch. All mixed rows go through one pass, which stands for the authors'
    interleaving.

    References
    ----------
    Berthelot, Carlini, Goodfellow, Papernot, Oliver, Raffel. MixMatch. NeurIPS 2019.
    """

    needs = ("l_weak", "u_weak", "u_weak2")

    temperature: float = 0.5
    alpha: float = 0.75
    lam_u: float = 75.0
    ramp: float = 0.4

    def compute(self, ctx: StepContext) -> StepResult:
        """Guess, mix, and the two losses on the mixtures."""
        x_l, u_1, u_2 = self.views(ctx)
        q, z_weak = guess(ctx, u_1, u_2, self.temperature)
        y = one_hot(ctx.batch.y_l, self.n_classes, q.dtype)
        x, target = torch.cat([x_l, u_1, u_2]), torch.cat([y, q, q])
        other = torch.randperm(len(x), generator=ctx.generator, device=x.device)
        lam = fold(sample_beta(len(x), self.alpha, ctx.generator, device=x.device))
        target = mix(target, target[other], lam)
        labeled, unlabeled = forward(ctx.model, *mix(x, x[other], lam).split([len(x_l), 2 * len(u_1)]))
        loss_l = soft_cross_entropy(labeled.logits, target[: len(x_l)]).mean()
        loss_u = squared_error(unlabeled.logits.softmax(-1), target[len(x_l) :]).mean()
        return StepResult(
            loss=loss_l + self.lam_u * linear_ramp(ctx.progress, self.ramp) * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=z_weak,
            mask_u=torch.ones_like(q[:, 0]),
            pseudo=q.argmax(-1),
            h_l=labeled.h,
            h_u_strong=unlabeled.h,
        )


def guess(ctx: StepContext, u_1: Tensor, u_2: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Sharpened mean prediction over two views, without gradient, and the logits of the first."""
    first, second = peek(ctx.model, u_1, u_2)
    p = (probabilities(first.logits) + probabilities(second.logits)) / 2
    return sharpen(p, temperature), first.logits
