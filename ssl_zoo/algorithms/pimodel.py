"""Pi-Model (Laine and Aila 2017)."""

from __future__ import annotations

import torch

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, frozen_batch_norm, peek
from ssl_zoo.losses import cross_entropy, linear_ramp, squared_error
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities


@register("pimodel")
class PiModel(Algorithm):
    """``CE + lam ramp mean_i mean_c (p_c(w2) - sg p_c(w1))^2``: two weak views of a sample should agree.

    Defaults: lam 10, ramp .4. The mean is over the classes as well.

    Sources disagree: Laine and Aila let the gradient flow through both views and also use the labeled samples here;
    they raise the weight by exp(-5 (1 - t)^2). The common form, used here, stops the gradient at one view and ramps
    linearly.

    References
    ----------
    Laine, Aila. Temporal ensembling for semi-supervised learning. ICLR 2017.
    """

    needs = ("l_weak", "u_weak", "u_weak2")
    bn_policy = "labeled"

    lam: float = 10.0
    ramp: float = 0.4

    def compute(self, ctx: StepContext) -> StepResult:
        """Labeled loss and squared difference of two views."""
        x_l, u_1, u_2 = self.views(ctx)
        (target,) = peek(ctx.model, u_1)
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            (view,) = forward(ctx.model, u_2)
        q = probabilities(target.logits)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = squared_error(view.logits.softmax(-1), q).mean()
        return StepResult(
            loss=loss_l + self.lam * linear_ramp(ctx.progress, self.ramp) * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=target.logits,
            mask_u=torch.ones_like(q[:, 0]),
            pseudo=q.argmax(-1),
            h_l=labeled.h,
            h_u_strong=view.h,
        )
