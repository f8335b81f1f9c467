"""Virtual Adversarial Training (Miyato et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward, frozen_batch_norm
from ssl_zoo.losses import cross_entropy, entropy, kl_divergence, linear_ramp
from ssl_zoo.registry import register
from ssl_zoo.targets import probabilities


@register("vat")
class VAT(Algorithm):
    """``CE + lam ramp mean KL(sg p(u) || p(u + r)) + entropy_weight mean H(p(u))`` with r the most harmful small step.

    ``r = eps g / |g|``, ``g = grad_d KL(sg p(u) || p(u + xi d))`` at a random unit vector d: one power step, always
    in full precision and without a trace in the batch statistics.

    Defaults: xi 1e-6, eps 6, lam 1, entropy_weight .06, ramp .4.

    The direction does not depend on xi while xi is small, but in float32 a step of 1e-6 drowns in rounding (on a small
    convolutional net the cosine with the float64 direction is -.01 at 1e-6 and .9998 at 1e-2). The finite difference is
    therefore never below the cube root of the machine precision: 5e-3 in float32, 6e-6 in float64.

    Sources disagree: Miyato et al. weight the entropy term by 1 and do not ramp; eps depends on the data set.

    References
    ----------
    Miyato, Maeda, Koyama, Ishii. Virtual adversarial training. IEEE TPAMI 2018.
    """

    bn_policy = "labeled"

    xi: float = 1e-6
    eps: float = 6.0
    lam: float = 1.0
    entropy_weight: float = 0.06
    ramp: float = 0.4

    def compute(self, ctx: StepContext) -> StepResult:
        """Labeled loss, divergence under the adversarial step, entropy."""
        x_l, u = self.views(ctx)
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            r = adversarial_step(ctx.model, u, self.xi, self.eps, ctx.generator)
            (clean,) = forward(ctx.model, u)
            (moved,) = forward(ctx.model, u + r)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        divergence = kl_divergence(clean.logits.detach(), moved.logits).mean()
        h = entropy(clean.logits).mean()
        p = probabilities(clean.logits)
        weight = self.lam * linear_ramp(ctx.progress, self.ramp)
        return StepResult(
            loss=loss_l + weight * divergence + self.entropy_weight * h,
            loss_l=loss_l,
            loss_u=divergence,
            logits_l=labeled.logits,
            logits_u_weak=clean.logits,
            mask_u=torch.ones_like(p[:, 0]),
            pseudo=p.argmax(-1),
            h_l=labeled.h,
            h_u_strong=moved.h,
            logs={"entropy": h},
        )


def adversarial_step(model: nn.Module, u: Tensor, xi: float, eps: float, generator: torch.Generator | None) -> Tensor:
    """``eps g / |g|`` for each row of ``u``, by one power step from a random direction. Call it with frozen
    batch-norm."""
    step = max(xi, torch.finfo(u.dtype).eps ** (1 / 3))
    d = _unit(torch.randn(u.shape, generator=generator, device=u.device, dtype=u.dtype))
    with torch.enable_grad(), torch.autocast(u.device.type, enabled=False):
        with torch.no_grad():
            (clean,) = forward(model, u)
        d.requires_grad_()
        (moved,) = forward(model, u + step * d)
        (g,) = torch.autograd.grad(kl_divergence(clean.logits, moved.logits).sum(), d)
    return eps * _unit(g)


def _unit(x: Tensor) -> Tensor:
    """Rows of norm 1; a row of zeros stays zero. The maximum goes first, so that tiny gradients do not underflow when
    squared."""
    flat = x.flatten(1)
    flat = flat / flat.abs().amax(1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    return (flat / flat.norm(dim=1, keepdim=True).clamp_min(0.5)).view_as(x)
