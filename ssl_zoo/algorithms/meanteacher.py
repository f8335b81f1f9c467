"""Mean Teacher (Tarvainen and Valpola 2017)."""

from __future__ import annotations

import torch

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, frozen_batch_norm
from ssl_zoo.losses import cross_entropy, linear_ramp, squared_error
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities


@register("meanteacher")
class MeanTeacher(Algorithm):
    """``CE + lam ramp mean_i mean_c (p_c(w2) - p_EMA,c(w1))^2``: the student follows its own moving average.

    The target comes from the teacher without gradient; the prediction is the STUDENT's, on another weak view, with
    gradient.

    Defaults: lam 50, ramp .4; the decay of the teacher is the trainer's, .999.

    Sources disagree: the authors grow the decay of the teacher from .99 to .999 and use the labeled samples in this
    term too. As with them, the teacher normalises by the batch that it teaches; some ports leave it on its running
    statistics, which fails with few labels.

    References
    ----------
    Tarvainen, Valpola. Mean teachers are better role models. NeurIPS 2017.
    """

    needs = ("l_weak", "u_weak", "u_weak2")
    uses_teacher = True
    bn_policy = "labeled"

    lam: float = 50.0
    ramp: float = 0.4

    def compute(self, ctx: StepContext) -> StepResult:
        """Labeled loss and squared distance from the teacher."""
        x_l, u_1, u_2 = self.views(ctx)
        target = self.teach(ctx, u_1).logits
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            (view,) = forward(ctx.model, u_2)
        q = probabilities(target)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = squared_error(view.logits.softmax(-1), q).mean()
        return StepResult(
            loss=loss_l + self.lam * linear_ramp(ctx.progress, self.ramp) * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=view.logits,
            mask_u=torch.ones_like(q[:, 0]),
            pseudo=q.argmax(-1),
            h_l=labeled.h,
            h_u_strong=view.h,
        )
