"""DS3L, safe deep semi-supervised learning (Guo et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, eager, forward, frozen_batch_norm, peek
from ssl_zoo.losses import cross_entropy, exp_ramp, full_precision, squared_error
from ssl_zoo.registry import register
from ssl_zoo.targets import one_hot, probabilities


@register("ds3l")
class DS3L(Algorithm):
    """``CE + lam_t sum_i w_i O_i / sum_i w_i`` with ``O_i = mean_c (p_c(u2) - sg p_c(u1))^2`` and a learned weight w.

    ``lam_t = lam exp(-5 (1 - s)^2)``, ``s = min(t / ramp, 1)``.

    ``weighting="bilevel"``: ``w = sigmoid(MLP(softmax(z(u1))))``. Inner step ``theta' = theta - inner_lr grad[the
    loss above]``; outer step of the MLP by ``CE_l(theta')`` with Adam; then the step of theta with the new w. The MLP
    and Adam's moments are buffers, for they are not the student optimiser's business.

    ``weighting="centroid"``: ``w = 1[max p >= tau] max p max(0, cos(z_u, m_c))`` with m_c the EMA centroid of the
    labeled logits of the predicted class c (0 while c was not seen); the sum of weights may then be 0, and so is the
    term.

    Defaults: inner_lr 1e-3, outer_lr 6e-5, lam 10, ramp 1, hidden 100; centroid: tau .95, momentum .99.

    Sources disagree: Guo et al. ramp over a part of the training only; set ramp for that.

    References
    ----------
    Guo, Zhang, Jiang, Li, Zhou. Safe deep semi-supervised learning for unseen-class unlabeled data. ICML 2020.
    """

    needs = ("l_weak", "u_weak", "u_weak2")
    bn_policy = "labeled"
    choices = {"weighting": ("bilevel", "centroid")}

    weighting: str = "bilevel"
    inner_lr: float = 1e-3
    outer_lr: float = 6e-5
    lam: float = 10.0
    ramp: float = 1.0
    hidden: int = 100
    tau: float = 0.95
    momentum: float = 0.99

    phi: Tensor
    adam_m: Tensor
    adam_v: Tensor
    adam_steps: Tensor
    centroid: Tensor
    seen: Tensor

    def build(self, model: nn.Module) -> None:
        """The weight net as one flat vector with Adam's moments, or the class centroids."""
        if self.weighting == "bilevel":
            net = nn.Sequential(nn.Linear(self.n_classes, self.hidden), nn.Linear(self.hidden, 1))
            self.register_buffer("phi", nn.utils.parameters_to_vector(net.parameters()).detach())
            self.register_buffer("adam_m", torch.zeros_like(self.phi))
            self.register_buffer("adam_v", torch.zeros_like(self.phi))
            self.register_buffer("adam_steps", torch.zeros(()))
        else:
            self.register_buffer("centroid", torch.zeros(self.n_classes, self.n_classes))
            self.register_buffer("seen", torch.zeros(self.n_classes))

    def compute(self, ctx: StepContext) -> StepResult:
        """The outer step of the weight net (bilevel), then the student's loss under the new weights."""
        x_l, u_1, u_2 = self.views(ctx)
        lam = self.lam * exp_ramp(ctx.progress, self.ramp)
        (target,) = peek(ctx.model, u_1)
        q = probabilities(target.logits)
        if self.weighting == "bilevel":
            self.outer_step(ctx, x_l, u_1, u_2, lam)
        (labeled,) = forward(ctx.model, x_l)
        with frozen_batch_norm(ctx.model):
            (view,) = forward(ctx.model, u_2)
        if self.weighting == "bilevel":
            w = self.net_weights(q, self.phi).detach()
        else:
            w = self.centroid_weights(labeled.logits.detach(), ctx.batch.y_l, target.logits, q)
        loss_l = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
        loss_u = weighted(squared_error(view.logits.softmax(-1), q), w)
        return StepResult(
            loss=loss_l + lam * loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            logits_l=labeled.logits,
            logits_u_weak=target.logits,
            mask_u=w,
            pseudo=q.argmax(-1),
            h_l=labeled.h,
            h_u_strong=view.h,
        )

    def net_weights(self, p: Tensor, phi: Tensor) -> Tensor:
        """``sigmoid(MLP(p))`` (B,) with the parameters in one vector."""
        c, h = self.n_classes, self.hidden
        w1, b1, w2, b2 = phi.to(p.dtype).split([h * c, h, h, 1])
        return torch.sigmoid((p @ w1.view(h, c).T + b1).relu() @ w2 + b2)

    def outer_step(self, ctx: StepContext, x_l: Tensor, u_1: Tensor, u_2: Tensor, lam: float) -> None:
        """Adam on ``CE_l(theta')``.

        With v its gradient at theta', the chain rule gives ``-a d<v, grad_theta L_u(phi)> / d phi``, which needs second
        derivatives of the unlabeled term only.
        """
        model = ctx.model
        names = {key: p for key, p in model.named_parameters() if p.requires_grad}
        theta: list[Tensor] = list(names.values())
        full = torch.autocast(x_l.device.type, enabled=False)
        with torch.enable_grad(), eager(model), frozen_batch_norm(model), full:
            (target,) = peek(model, u_1)
            q = probabilities(target.logits)
            phi = self.phi.clone().requires_grad_()
            (labeled,) = forward(model, x_l)
            (view,) = forward(model, u_2)
            loss_u = lam * weighted(squared_error(view.logits.softmax(-1), q), self.net_weights(q, phi))
            g_l = _grad(cross_entropy(labeled.logits, ctx.batch.y_l).mean(), theta)
            g_u = _grad(loss_u, theta, create_graph=True)
            moved = {
                key: (p - self.inner_lr * (a + b)).detach().requires_grad_()
                for (key, p), a, b in zip(names.items(), g_l, g_u, strict=True)
            }
            z = full_precision(torch.func.functional_call(model, moved, (x_l,)))
            v = _grad(cross_entropy(z, ctx.batch.y_l).mean(), list(moved.values()))
            pairs = [(b, -self.inner_lr * c) for b, c in zip(g_u, v, strict=True) if b.requires_grad]
            (g_phi,) = torch.autograd.grad([b for b, _ in pairs], phi, [c for _, c in pairs])
        self._adam(g_phi)

    @torch.no_grad()
    def _adam(self, g: Tensor, beta_1: float = 0.9, beta_2: float = 0.999, eps: float = 1e-8) -> None:
        self.adam_steps += 1
        self.adam_m.lerp_(g, 1 - beta_1)
        self.adam_v.lerp_(g.square(), 1 - beta_2)
        m, v = self.adam_m / (1 - beta_1**self.adam_steps), self.adam_v / (1 - beta_2**self.adam_steps)
        self.phi -= self.outer_lr * m / (v.sqrt() + eps)

    @torch.no_grad()
    def centroid_weights(self, z_l: Tensor, y_l: Tensor, z_u: Tensor, p: Tensor) -> Tensor:
        """Take in the labeled logits, then weigh the unlabeled rows."""
        member = one_hot(y_l, self.n_classes, self.centroid.dtype)
        n = member.sum(0)
        mean = member.T @ z_l.to(member.dtype) / n.clamp_min(1)[:, None]
        # A class met for the first time starts at its mean; one that is not in the batch stays where it is.
        share = torch.where(self.seen > 0, 1.0 - self.momentum, 1.0) * (n > 0)
        self.centroid.lerp_(mean, share[:, None].to(mean.dtype))
        self.seen.copy_(torch.maximum(self.seen, (n > 0).to(self.seen.dtype)))
        confidence, label = p.max(-1)
        own = self.centroid.to(p.dtype)[label]
        cosine = (nn.functional.normalize(z_u, dim=-1) * nn.functional.normalize(own, dim=-1)).sum(-1)
        return (confidence >= self.tau).to(p.dtype) * confidence * cosine.clamp_min(0.0)


def weighted(values: Tensor, w: Tensor) -> Tensor:
    """``sum w v / sum w``, and 0 when all weights are."""
    share = w / w.sum().clamp_min(torch.finfo(w.dtype).tiny)  # first, so that no gradient is divided by a tiny sum
    return (share * values).sum()


def _grad(loss: Tensor, inputs: list[Tensor], create_graph: bool = False) -> list[Tensor]:
    found = torch.autograd.grad(loss, inputs, create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]
