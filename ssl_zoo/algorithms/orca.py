"""ORCA, open-world semi-supervised learning (Cao et al. 2022)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms.base import Algorithm, EpochContext, StepContext, StepResult
from ssl_zoo.losses import cross_entropy, full_precision
from ssl_zoo.registry import register
from ssl_zoo.targets import one_hot


@register("orca")
class ORCA(Algorithm):
    """``CE with margin + pairwise + regulariser``, all with weight 1, over seen and novel classes.

    Head: ``z = scale cos(h, W_c)``. The labeled loss adds the margin ``scale min(u, .5)`` to the true logit, u =
    mean(1 - max p) over the unlabeled samples of the last epoch, so that seen classes are learned slowly while the
    rest is uncertain. Pairwise: ``mean -log <p(x), p(x')>`` over all rows, x' another row of the same class (labeled)
    or the nearest by cosine in the batch (unlabeled), p(x') on the second view. Regulariser: ``-H(mean p)``, against
    all rows in few classes.

    Defaults: n_novel as many as n_classes, scale 10, mu 1; the paper's SGD rate is .1. ``predict`` is the student's.

    Sources disagree: the authors start from a self-supervised network and compute u in a pass over the test set; here
    u is collected in the steps of the epoch and is 1 before the first epoch ends (margin .5, as with an untrained
    net).

    References
    ----------
    Cao, Brbic, Leskovec. Open-world semi-supervised learning. ICLR 2022.
    """

    needs = ("l_weak", "l_weak2", "u_weak", "u_weak2")
    open_world = True
    predict_with = "student"
    base_lr = 0.1

    mu: int = 1
    n_novel: int | None = None
    scale: float = 10.0

    uncertainty: Tensor
    collected: Tensor

    @property
    def n_outputs(self) -> int:
        """Seen and novel classes."""
        return self.n_classes + (self.n_classes if self.n_novel is None else self.n_novel)

    def build(self, model: Any) -> None:
        """One direction a class; the uncertainty, and its sum and count in this epoch."""
        self.prototypes = nn.Parameter(torch.empty(self.n_outputs, model.head.in_features))
        nn.init.kaiming_uniform_(self.prototypes, a=5**0.5)
        self.register_buffer("uncertainty", torch.ones(()))
        self.register_buffer("collected", torch.zeros(2))

    def logits(self, h: Tensor) -> Tensor:
        """``scale cos(h, W_c)`` in full precision."""
        h = nn.functional.normalize(full_precision(h), dim=-1)
        with torch.autocast(h.device.type, enabled=False):
            return self.scale * h @ nn.functional.normalize(self.prototypes, dim=-1).T.to(h.dtype)

    def compute(self, ctx: StepContext) -> StepResult:
        """Margin loss on the labeled rows, pairs and entropy on all."""
        x_l, x_l2, u_1, u_2 = self.views(ctx)
        net: Any = ctx.model
        h_1, h_2 = net.features(torch.cat([x_l, u_1, x_l2, u_2])).chunk(2)
        z_1, z_2 = self.logits(h_1), self.logits(h_2)
        n, y = len(x_l), ctx.batch.y_l
        margin = self.scale * self.uncertainty.clamp_max(0.5).to(z_1.dtype)
        loss_l = cross_entropy(z_1[:n] + margin * one_hot(y, self.n_outputs, z_1.dtype), y).mean()
        partner = partners(h_1.detach(), y, ctx.generator)
        # -log <p, p'> as a log-sum-exp: no clamp, so the gradient survives when the two do not meet.
        pairwise = -(z_1.log_softmax(-1) + z_2.log_softmax(-1)[partner]).logsumexp(-1).mean()
        p = z_1.softmax(-1)
        p_mean = p.mean(0)
        regulariser = torch.special.xlogy(p_mean, p_mean.clamp_min(1e-12)).sum()
        with torch.no_grad():
            doubt = (1.0 - p[n:].amax(-1)).to(self.collected.dtype)
            self.collected += torch.stack([doubt.sum(), torch.ones_like(doubt).sum()])
        return StepResult(
            loss=loss_l + pairwise + regulariser,
            loss_l=loss_l,
            loss_u=pairwise + regulariser,
            logits_l=z_1[:n],
            logits_u_weak=z_1[n:],
            mask_u=torch.ones_like(p[n:, 0]),
            pseudo=p[n:].argmax(-1),
            logs={"pairwise": pairwise, "regulariser": regulariser, "uncertainty": self.uncertainty.clone()},
        )

    @torch.no_grad()
    def epoch_end(self, ctx: EpochContext) -> None:
        """The uncertainty of this epoch sets the margin of the next."""
        total, count = self.collected
        self.uncertainty.copy_(torch.where(count > 0, total / count.clamp_min(1), self.uncertainty))
        self.collected.zero_()

    @torch.no_grad()
    def predict(self, model: Any, x: Tensor) -> Tensor:
        """Logits over seen and novel classes."""
        return self.logits(model.features(x))


@torch.no_grad()
def partners(h: Tensor, y_l: Tensor, generator: torch.Generator | None) -> Tensor:
    """Index of each row's partner: a random other row of the class (itself when alone), or the nearest other row by
    cosine."""
    n = len(y_l)
    draw = torch.rand(n, n, generator=generator, device=h.device)
    same = y_l[:, None] == y_l[None, :]
    itself = torch.eye(n, dtype=torch.bool, device=h.device)
    draw = draw.masked_fill(~same, -2.0).masked_fill(itself, -1.0)  # itself only before rows of other classes
    h = nn.functional.normalize(full_precision(h), dim=-1)
    cosine = h[n:] @ h.T
    rows = torch.arange(len(h) - n, device=h.device)
    cosine[rows, rows + n] = -torch.inf
    return torch.cat([draw.argmax(1), cosine.argmax(1)])
