"""Supervised training on the labeled set alone: the baseline of every comparison."""

from __future__ import annotations

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward
from ssl_zoo.losses import cross_entropy
from ssl_zoo.registry import register


@register("supervised")
class Supervised(Algorithm):
    """``mean CE(z_w(x_l), y)``.

    It never reads the unlabeled pool and draws nothing for it, so its curve over contamination is exactly constant.
    No options of its own.
    """

    needs = ("l_weak",)
    uses_unlabeled = False
    bn_policy = "labeled"

    def compute(self, ctx: StepContext) -> StepResult:
        """Labeled loss only."""
        (x,) = self.views(ctx)
        (labeled,) = forward(ctx.model, x)
        loss = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        return StepResult(loss=loss, loss_l=loss, loss_u=loss.new_zeros(()), logits_l=labeled.logits, h_l=labeled.h)
