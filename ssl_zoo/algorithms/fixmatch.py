"""FixMatch (Sohn et al. 2020)."""

from __future__ import annotations

from ssl_zoo.algorithms._weak_strong import WeakStrong
from ssl_zoo.algorithms.base import StepContext, StepResult
from ssl_zoo.losses import cross_entropy, masked_mean
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities
from ssl_zoo.thresholds import confidence_mask


@register("fixmatch")
class FixMatch(WeakStrong):
    """``CE + lam mean(1[max p_w >= tau] CE(z_s, argmax p_w))``.

    Defaults: tau .95, lam 1, mu 7, passes "joint".

    References
    ----------
    Sohn, Berthelot, Li, Zhang, Carlini, Cubuk, Kurakin, Zhang, Raffel. FixMatch. NeurIPS 2020.
    """

    tau: float = 0.95

    def compute(self, ctx: StepContext) -> StepResult:
        """Confident predictions on weak views are the labels of the strong views."""
        labeled, weak, strong = self.three_views(ctx)
        p = probabilities(weak.logits)
        mask, pseudo = confidence_mask(p, self.tau), p.argmax(-1)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = masked_mean(cross_entropy(strong.logits, pseudo), mask)
        return StepResult(
            loss=loss_l + self.lam * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=weak.logits,
            mask_u=mask,
            pseudo=pseudo,
            h_l=labeled.h,
            h_u_strong=strong.h,
        )
