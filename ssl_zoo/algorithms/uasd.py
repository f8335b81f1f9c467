"""UASD, uncertainty-aware self-distillation (Chen et al. 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, EpochContext, StepContext, StepResult, forward
from ssl_zoo.losses import cross_entropy, exp_ramp, masked_mean, soft_cross_entropy
from ssl_zoo.registry import register
from ssl_zoo.targets import VisitMean, probabilities
from ssl_zoo.thresholds import confidence_mask


@register("uasd")
class UASD(Algorithm):
    """``CE + lam exp(-5 (1 - s)^2) mean(1[max q_i >= threshold] CE(z, q_i))`` with ``s = min(t / ramp, 1)``.

    ``q_i`` is the running mean of softmax(z) over all visits of sample i, this one included, stored for every
    unlabeled sample. The threshold is the mean of max q over a validation split, whose q is a running mean over the
    epochs; it is 0 until the first epoch ends. Without a validation split it is the mean of max q over the unlabeled
    samples seen so far.

    Defaults: lam 1, ramp 1.

    Sources disagree: the paper ramps over the first part of the training only; set ramp for that.

    References
    ----------
    Chen, Zhu, Li, Gong. Semi-supervised learning under class distribution mismatch. AAAI 2020.
    """

    per_sample = True

    lam: float = 1.0
    ramp: float = 1.0

    threshold: Tensor
    val_total: Tensor
    val_count: Tensor

    def build(self, model: nn.Module) -> None:
        """The stored predictions; those of the validation split get their size at the first epoch's end."""
        assert self.n_unlabeled is not None
        self.store = VisitMean(self.n_unlabeled, self.n_classes)
        self.register_buffer("threshold", torch.zeros(()))
        self.register_buffer("val_total", torch.zeros(0, self.n_classes))
        self.register_buffer("val_count", torch.zeros(()))

    def compute(self, ctx: StepContext) -> StepResult:
        """Distil the mean of all earlier predictions where it is sure."""
        x_l, u_w = self.views(ctx)
        labeled, weak = forward(ctx.model, x_l, u_w)
        q = self.store(ctx.batch.idx_u, probabilities(weak.logits))
        mask = confidence_mask(q, self.threshold.to(q.dtype))
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = masked_mean(soft_cross_entropy(weak.logits, q), mask)
        return StepResult(
            loss=loss_l + self.lam * exp_ramp(ctx.progress, self.ramp) * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=weak.logits,
            mask_u=mask,
            pseudo=q.argmax(-1),
            h_l=labeled.h,
            h_u_strong=weak.h,
            logs={"threshold": self.threshold.clone()},
        )

    @torch.no_grad()
    def epoch_end(self, ctx: EpochContext) -> None:
        """New threshold from the validation split, or from the stored predictions when there is none."""
        if ctx.x_val is not None and len(ctx.x_val):
            p = ctx.apply(lambda x: probabilities(ctx.model(x)), ctx.x_val).to(self.val_total.dtype)
            if len(self.val_total) != len(p):  # the first epoch, or another split
                self.val_total, self.val_count = torch.zeros_like(p), torch.zeros_like(self.val_count)
            self.val_total += p
            self.val_count += 1
            self.threshold.copy_((self.val_total / self.val_count).amax(-1).mean())
        else:
            seen = self.store.count > 0
            best = (self.store.total / self.store.count.clamp_min(1)[:, None]).amax(-1)
            self.threshold.copy_((best * seen).sum() / seen.sum().clamp_min(1))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        """The validation split's store has the size that it had when it was saved."""
        saved = state_dict.get(f"{prefix}val_total")
        if saved is not None:
            self.val_total = self.val_total.new_zeros(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
