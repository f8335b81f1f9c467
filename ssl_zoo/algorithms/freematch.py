"""FreeMatch (Wang et al. 2023)."""

from __future__ import annotations

from torch import nn

from ssl_zoo.algorithms._weak_strong import WeakStrong
from ssl_zoo.algorithms.base import StepContext, StepResult
from ssl_zoo.losses import cross_entropy, fairness, masked_mean
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities
from ssl_zoo.thresholds import SelfAdaptiveThreshold


@register("freematch")
class FreeMatch(WeakStrong):
    """``CE + lam (mean(1[max p_w >= tau_c] CE(z_s, argmax p_w)) + w_f sum_c a_c log(b_c + 1e-12))``.

    With m the momentum and all statistics taken in before the mask: ``tau <- EMA(mean max p)``, ``ptilde <- EMA(mean
    p)``, ``htilde <- EMA(histogram of argmax)``, each from 1/C; ``tau_c = tau ptilde_c / max ptilde`` for the
    predicted class. The fairness term is over the strong views that pass: ``a = norm(ptilde / htilde)``, ``b =
    norm(pbar_s / hbar_s)``, 1/0 as 0. It is NEGATIVE by design (the log has it as ``fairness_negative_by_design``),
    so the total can be below the two losses.

    Defaults: momentum .999, w_f .01, lam 1, mu 7, passes "joint".

    Sources disagree: w_f is .01 for CIFAR-10 with few labels, .001 and .05 elsewhere.

    References
    ----------
    Wang, Chen, Heng, Hou, Fan, Wu, Wang, Savvides, Shinozaki, Raj, Schiele, Xie. FreeMatch. ICLR 2023.
    """

    momentum: float = 0.999
    w_f: float = 0.01

    def build(self, model: nn.Module) -> None:
        """Running statistics."""
        self.threshold = SelfAdaptiveThreshold(self.n_classes, self.momentum)

    def compute(self, ctx: StepContext) -> StepResult:
        """FixMatch behind self-adaptive thresholds, with fairness."""
        labeled, weak, strong = self.three_views(ctx)
        p = probabilities(weak.logits)
        mask, pseudo = self.threshold(p), p.argmax(-1)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        fair = fairness(strong.logits, mask, self.threshold.prob, self.threshold.hist)
        loss_u = masked_mean(cross_entropy(strong.logits, pseudo), mask) + self.w_f * fair
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
            logs={"fairness_negative_by_design": fair, "threshold": self.threshold.tau.clone()},
        )
