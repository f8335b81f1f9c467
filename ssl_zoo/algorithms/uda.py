"""UDA, unsupervised data augmentation (Xie et al. 2020)."""

from __future__ import annotations

from ssl_zoo.algorithms._weak_strong import WeakStrong
from ssl_zoo.algorithms.base import StepContext, StepResult
from ssl_zoo.losses import cross_entropy, masked_mean, soft_cross_entropy
from ssl_zoo.registry import register
from ssl_zoo.targets import annealing_threshold, probabilities
from ssl_zoo.thresholds import confidence_mask


@register("uda")
class UDA(WeakStrong):
    """``CE + lam mean(1[max p_w >= tau] CE(z_s, softmax(z_w / T)))``, the target without gradient.

    The mask is on the plain softmax, not on the sharpened one: with T .4 the latter would let rows pass from about .6
    on. With training-signal annealing (``tsa`` "linear", "log" or "exp") the labeled loss is the mean over the rows
    whose true class has a probability below ``eta(t)``, which grows from 1/C to 1.

    Defaults: temperature .4, tau .8, lam 1, tsa "none", mu 7, passes "joint".

    Sources disagree: the paper writes KL(target || p), whose gradient is that of the soft cross-entropy used here.

    References
    ----------
    Xie, Dai, Hovy, Luong, Le. Unsupervised data augmentation for consistency training. NeurIPS 2020.
    """

    choices = {**WeakStrong.choices, "tsa": ("none", "linear", "log", "exp")}

    tau: float = 0.8
    temperature: float = 0.4
    tsa: str = "none"

    def compute(self, ctx: StepContext) -> StepResult:
        """Sharpened soft targets where the plain prediction is confident."""
        labeled, weak, strong = self.three_views(ctx)
        p = probabilities(weak.logits)
        mask = confidence_mask(p, self.tau)
        target = probabilities(weak.logits / self.temperature)
        ce = cross_entropy(labeled.logits, ctx.batch.y_l)
        eta = annealing_threshold(self.tsa, ctx.progress, self.n_classes)  # type: ignore[arg-type]
        keep = ((-ce.detach()).exp() < eta).to(ce.dtype) if self.tsa != "none" else ce.new_ones(ce.shape)
        loss_l = (ce * keep).sum() / keep.sum().clamp_min(1)
        loss_u = masked_mean(soft_cross_entropy(strong.logits, target), mask)
        return StepResult(
            loss=loss_l + self.lam * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=weak.logits,
            mask_u=mask,
            pseudo=p.argmax(-1),
            h_l=labeled.h,
            h_u_strong=strong.h,
        )
