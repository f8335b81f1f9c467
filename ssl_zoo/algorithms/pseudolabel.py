"""Pseudo-Label (Lee 2013)."""

from __future__ import annotations

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, frozen_batch_norm
from ssl_zoo.losses import cross_entropy, linear_ramp, masked_mean
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities
from ssl_zoo.thresholds import confidence_mask


@register("pseudolabel")
class PseudoLabel(Algorithm):
    """``CE + lam ramp mean(1[max p_w >= tau] CE(z_w, argmax p_w))``.

    The prediction on the weak view is its own target; the gradient flows through ``z_w``, not through the target.

    Defaults: tau .95, lam 1, ramp .4 (share of the training until the term counts in full), mu 1.

    Sources disagree: Lee (2013) has no threshold and raises the weight by epochs; the threshold came with later
    comparisons.

    References
    ----------
    Lee. Pseudo-Label: the simple and efficient semi-supervised learning method for deep neural networks. ICML
    workshop 2013.
    """

    bn_policy = "labeled"

    mu: int = 1
    tau: float = 0.95
    lam: float = 1.0
    ramp: float = 0.4

    def compute(self, ctx: StepContext) -> StepResult:
        """Labeled loss and the masked loss on the own prediction."""
        x_l, u_w = self.views(ctx)
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            (weak,) = forward(ctx.model, u_w)
        p = probabilities(weak.logits)
        mask, pseudo = confidence_mask(p, self.tau), p.argmax(-1)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = masked_mean(cross_entropy(weak.logits, pseudo), mask)
        return StepResult(
            loss=loss_l + self.lam * linear_ramp(ctx.progress, self.ramp) * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=weak.logits,
            mask_u=mask,
            pseudo=pseudo,
            h_l=labeled.h,
            h_u_strong=weak.h,
        )
