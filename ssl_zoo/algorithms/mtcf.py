"""MTCF, multi-task curriculum framework (Yu et al. 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, EpochContext, StepContext, StepResult, View, forward
from ssl_zoo.algorithms.mixmatch import guess
from ssl_zoo.losses import cross_entropy, full_precision, linear_ramp, masked_mean, soft_cross_entropy, squared_error
from ssl_zoo.mixing import fold, mix, sample_beta
from ssl_zoo.registry import register
from ssl_zoo.targets import one_hot
from ssl_zoo.thresholds import otsu_threshold


@register("mtcf")
class MTCF(Algorithm):
    """MixMatch on the samples that a second head calls inliers: ``loss = MixMatch + BCE(o(x), y_d)``.

    ``y_d`` is 1 for labeled samples and starts at 0 for unlabeled ones. After the warm-up (CE and BCE only)
    ``y_d(u)`` becomes the mean of the outputs o(u) of the last 10 epochs, and Otsu's threshold over all ``y_d(u)``
    selects the inliers, at each epoch's end. Rows that are not selected weigh 0 and are nobody's partner in mixup
    (such a row stays unmixed).

    Defaults: warmup .1 (share of the training), window 10 epochs, MixMatch's temperature .5, alpha .75, lam_u 75,
    ramp .4.

    Sources disagree: the authors score the pool in a pass of its own after each epoch; here the outputs are those of
    the training steps, so that no pass is added. A sample not visited in the window keeps its y_d.

    References
    ----------
    Yu, Ikami, Irie, Aizawa. Multi-task curriculum framework for open-set semi-supervised learning. ECCV 2020.
    """

    needs = ("l_weak", "u_weak", "u_weak2")
    per_sample = True

    warmup: float = 0.1
    window: int = 10
    temperature: float = 0.5
    alpha: float = 0.75
    lam_u: float = 75.0
    ramp: float = 0.4

    score: Tensor
    selected: Tensor
    history: Tensor

    def build(self, model: Any) -> None:
        """The second head, and for each unlabeled sample its score, its selection and its last outputs (NaN: no
        visit)."""
        assert self.n_unlabeled is not None
        self.head = nn.Linear(model.head.in_features, 1)
        self.register_buffer("score", torch.zeros(self.n_unlabeled))
        self.register_buffer("selected", torch.ones(self.n_unlabeled))
        self.register_buffer("history", torch.full((self.window, self.n_unlabeled), torch.nan))

    def compute(self, ctx: StepContext) -> StepResult:
        """Before the warm-up's end CE and BCE; then MixMatch on the selected rows and BCE."""
        x_l, u_1, u_2 = self.views(ctx)
        if ctx.progress < self.warmup:
            labeled, weak = forward(ctx.model, x_l, u_1)
            loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
            ood, mask = self._ood_loss(ctx, labeled, weak), torch.zeros(len(u_1), device=u_1.device)
            return self._result(loss_l, loss_l.new_zeros(()), ood, 0.0, labeled, weak, weak, mask)

        q, _ = guess(ctx, u_1, u_2, self.temperature)
        keep = self.selected[ctx.batch.idx_u].to(q.dtype)
        x = torch.cat([x_l, u_1, u_2])
        target = torch.cat([one_hot(ctx.batch.y_l, self.n_classes, q.dtype), q, q])
        weight = torch.cat([torch.ones(len(x_l), device=x.device, dtype=q.dtype), keep, keep])
        other = torch.randperm(len(x), generator=ctx.generator, device=x.device)
        lam = fold(sample_beta(len(x), self.alpha, ctx.generator, device=x.device))
        lam = torch.where(weight[other] > 0, lam, torch.ones_like(lam))
        target, mixed = mix(target, target[other], lam), mix(x, x[other], lam)
        sizes = [len(x_l), 2 * len(u_1)]
        mixed_l, mixed_u, labeled, weak = forward(ctx.model, *mixed.split(sizes), x_l, u_1)
        loss_l = soft_cross_entropy(mixed_l.logits, target[: len(x_l)]).mean()
        loss_u = masked_mean(squared_error(mixed_u.logits.softmax(-1), target[len(x_l) :]), weight[len(x_l) :])
        ood = self._ood_loss(ctx, labeled, weak)
        return self._result(
            loss_l, loss_u, ood, self.lam_u * linear_ramp(ctx.progress, self.ramp), labeled, weak, mixed_u, keep
        )

    def _ood_loss(self, ctx: StepContext, labeled: View, weak: View) -> Tensor:
        """BCE of the second head against y_d, over both batches; the outputs go into the history."""
        o = full_precision(self.head(torch.cat([labeled.h, weak.h]))).squeeze(1)
        n = len(labeled.h)
        index: Any = ctx.batch.idx_u
        y_d = torch.cat([torch.ones_like(o[:n]), self.score[index].to(o.dtype)])
        outputs = o[n:].detach().sigmoid().to(self.history.dtype)
        self.history[ctx.epoch % self.window].index_copy_(0, index, outputs)
        return nn.functional.binary_cross_entropy_with_logits(o, y_d)

    def _result(
        self,
        loss_l: Tensor,
        loss_u: Tensor,
        ood: Tensor,
        weight: float,
        labeled: View,
        weak: View,
        u: View,
        mask: Tensor,
    ) -> StepResult:
        return StepResult(
            loss=loss_l + weight * loss_u + ood,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=weak.logits,
            mask_u=mask,
            pseudo=weak.logits.argmax(-1),
            h_l=labeled.h,
            h_u_strong=u.h,
            logs={"bce_ood": ood},
        )

    @torch.no_grad()
    def epoch_end(self, ctx: EpochContext) -> None:
        """New scores and a new selection after the warm-up; the slot of the next epoch is emptied."""
        if ctx.progress >= self.warmup:
            mean = self.history.nanmean(0)
            self.score.copy_(torch.where(mean.isnan(), self.score, mean))
            self.selected.copy_(self.score >= otsu_threshold(self.score))
        self.history[(ctx.epoch + 1) % self.window].fill_(torch.nan)
