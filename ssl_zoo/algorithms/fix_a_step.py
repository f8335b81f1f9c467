"""Fix-A-Step (Huang et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward
from ssl_zoo.algorithms.mixmatch import guess
from ssl_zoo.losses import cross_entropy, masked_mean, soft_cross_entropy
from ssl_zoo.mixing import fold, mix, sample_beta
from ssl_zoo.registry import register
from ssl_zoo.targets import one_hot, probabilities
from ssl_zoo.thresholds import confidence_mask


@register("fix_a_step")
class FixAStep(Algorithm):
    """``L_l = soft CE`` on labeled samples that are mixed with unlabeled ones, ``L_u`` = FixMatch, and a guarded step.

    Soft targets of the unlabeled samples: sharpened mean over two weak views. Mixup over cat(labeled, u1, u2) with
    ``lam' = max(lam, 1 - lam)``; only the labeled rows are kept. With g_l and g_u the gradients over ALL parameters,
    the step is ``g_l`` when ``<g_l, g_u> < 0``, else ``g_l + lam g_u``.

    Defaults: alpha .75, temperature .5, tau .95, lam 1.

    Sources disagree: the method wraps any unlabeled loss; FixMatch's is used here. In `compute` the total is the
    ungated sum; the gate is in `step` and its log is ``gate``.

    References
    ----------
    Huang, Sidhom, Wessler, Hughes. Fix-A-Step: semi-supervised learning from uncurated unlabeled data. AISTATS 2023.
    """

    needs = ("l_weak", "u_weak", "u_weak2", "u_strong")

    alpha: float = 0.75
    temperature: float = 0.5
    tau: float = 0.95
    lam: float = 1.0

    def compute(self, ctx: StepContext) -> StepResult:
        """The two losses; the total is what a step without conflict takes."""
        x_l, u_1, u_2, u_s = self.views(ctx)
        q, _ = guess(ctx, u_1, u_2, self.temperature)
        x, target = torch.cat([x_l, u_1, u_2]), torch.cat([one_hot(ctx.batch.y_l, self.n_classes, q.dtype), q, q])
        n = len(x_l)
        other = torch.randperm(len(x), generator=ctx.generator, device=x.device)[:n]
        lam = fold(sample_beta(n, self.alpha, ctx.generator, device=x.device))
        mixed, weak, strong = forward(ctx.model, mix(x_l, x[other], lam), u_1, u_s)
        p = probabilities(weak.logits)
        mask, pseudo = confidence_mask(p, self.tau), p.argmax(-1)
        loss_l = soft_cross_entropy(mixed.logits, mix(target[:n], target[other], lam)).mean()
        loss_u = masked_mean(cross_entropy(strong.logits, pseudo), mask)
        return StepResult(
            loss=loss_l + self.lam * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=mixed.logits,
            logits_u_weak=weak.logits,
            mask_u=mask,
            pseudo=pseudo,
            h_l=mixed.h,
            h_u_strong=strong.h,
        )

    def step(self, ctx: StepContext, optimizer: torch.optim.Optimizer) -> StepResult:
        """The step along the labeled gradient, with the unlabeled one only where it does not point against it."""
        optimizer.zero_grad(set_to_none=True)
        with ctx.autocast():
            result = self.compute(ctx)
        if ctx.probe is not None:
            ctx.probe(result)
        params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        g_l = gradients(result.loss_l, params, keep=True)
        g_u = gradients(result.loss_u, params)
        dot = torch.stack([(a * b).sum(dtype=torch.float32) for a, b in zip(g_l, g_u, strict=True)]).sum()
        gate = (dot >= 0).to(dot.dtype)
        for p, a, b in zip(params, g_l, g_u, strict=True):
            p.grad = a + (self.lam * gate).to(b.dtype) * b
        optimizer.step()
        result.logs |= {"gate": gate, "gradient_dot": dot.detach()}
        return result.detached()


def gradients(loss: Tensor, params: list[Tensor], keep: bool = False) -> list[Tensor]:
    """Gradients of a loss, zeros where it does not depend on a parameter."""
    found = torch.autograd.grad(loss, params, retain_graph=keep, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(params, found, strict=True)]
