"""SoftMatch (Chen et al. 2023)."""

from __future__ import annotations

from torch import nn

from ssl_zoo.algorithms._weak_strong import WeakStrong
from ssl_zoo.algorithms.base import StepContext, StepResult
from ssl_zoo.losses import cross_entropy, masked_mean
from ssl_zoo.registry import register
from ssl_zoo.targets import UniformAlignment, probabilities
from ssl_zoo.thresholds import GaussianWeight


@register("softmatch")
class SoftMatch(WeakStrong):
    """``CE + lam mean(w_i CE(z_s, argmax p_w))`` with ``w_i = exp(-min(max p_a - mu, 0)^2 / (2 var / n_sigma^2))``.

    ``p_a = norm(p (1/C) / EMA(pbar))`` is the prediction aligned to the uniform distribution; mu and var are EMAs of
    the batch mean and unbiased variance of max p_a (from 1/C and 1). The weight is 1 at and above mu. The
    pseudo-label is the argmax of the RAW p.

    Defaults: n_sigma 2, momentum .999, lam 1, mu 7, passes "joint".

    References
    ----------
    Chen, Tao, Fan, Wang, Wang, Schiele, Xie, Raj, Savvides. SoftMatch. ICLR 2023.
    """

    n_sigma: float = 2.0
    momentum: float = 0.999

    def build(self, model: nn.Module) -> None:
        """Running statistics."""
        self.align = UniformAlignment(self.n_classes, self.momentum)
        self.weight = GaussianWeight(self.n_classes, self.n_sigma, self.momentum)

    def compute(self, ctx: StepContext) -> StepResult:
        """FixMatch with a soft weight in the place of the mask."""
        labeled, weak, strong = self.three_views(ctx)
        p = probabilities(weak.logits)
        mask, pseudo = self.weight(self.align(p)), p.argmax(-1)
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
            logs={"threshold": self.weight.mean.clone()},
        )
