"""FlexMatch (Zhang et al. 2021)."""

from __future__ import annotations

from torch import nn

from ssl_zoo.algorithms._weak_strong import WeakStrong
from ssl_zoo.algorithms.base import StepContext, StepResult
from ssl_zoo.losses import cross_entropy, masked_mean
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities
from ssl_zoo.thresholds import CurriculumThreshold


@register("flexmatch")
class FlexMatch(WeakStrong):
    """FixMatch with the threshold ``tau beta_c / (2 - beta_c)`` for the predicted class c.

    ``yhat[i]`` is kept for every unlabeled sample: the argmax when max p_w >= tau at the last visit, else -1.
    ``sigma_c = #{yhat = c}``, ``beta_c = sigma_c / max(max sigma, #{-1})``; once #{-1} is below max sigma this is the
    form without warm-up, ``warmup=False`` uses that from the start. beta starts at 0, so that at first every sample
    passes: intended. The status is that before the batch.

    Defaults: tau .95, lam 1, warmup True, mu 7, passes "joint".

    Sources disagree: the paper counts the samples that are confident now; the authors' code never takes a sample back
    once it was confident. Here, as in the paper, a sample that is no longer confident counts as -1 again.

    References
    ----------
    Zhang, Wang, Hou, Wu, Wang, Okumura, Shinozaki. FlexMatch. NeurIPS 2021.
    """

    per_sample = True

    tau: float = 0.95
    warmup: bool = True

    def build(self, model: nn.Module) -> None:
        """One remembered label for each unlabeled sample."""
        assert self.n_unlabeled is not None
        self.threshold = CurriculumThreshold(self.n_unlabeled, self.n_classes, self.tau, self.warmup)

    def compute(self, ctx: StepContext) -> StepResult:
        """FixMatch behind per-class thresholds."""
        labeled, weak, strong = self.three_views(ctx)
        p = probabilities(weak.logits)
        mask, pseudo = self.threshold(ctx.batch.idx_u, p), p.argmax(-1)
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
            logs={"beta_mean": self.threshold.beta().mean()},
        )
