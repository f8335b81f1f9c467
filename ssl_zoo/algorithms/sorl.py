"""SORL, spectral open-world representation learning (Sun et al. 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms._open_world import seeded_kmeans
from ssl_zoo.algorithms.base import Algorithm, EpochContext, StepContext, StepResult
from ssl_zoo.losses import full_precision
from ssl_zoo.registry import register
from ssl_zoo.targets import one_hot


@register("sorl")
class SORL(Algorithm):
    """Spectral contrastive loss on a graph that joins views of a sample and samples of a class.

    With z the projection, its norm capped; l labeled and u unlabeled rows, i and j indices, the two factors of each
    product from the two views, n_c the rows of class c in the batch::

        loss_l = -2 g_l sum_{y_i = y_j} <l_i, l_j'> / n_c^2 + c3 sum_{i != j} <l_i, l_j'>^2 / (n_{y_i} n_{y_j})
        loss_u = -2 g_u mean <u_i, u_i'> + c5 sum_{i != j} <u_i, u_j'>^2 / (B_u (B_u - 1))
                 + c4 [sum <l_i, u_j'>^2 / (n_{y_i} B_u) + sum <u_j, l_i'>^2 / (n_{y_i} B_u)]

    ``c3 = r3 g_l^2``, ``c4 = r4 g_l g_u``, ``c5 = r5 g_u^2``.

    ``predict`` gives minus the squared distance to centres of k-means on unit-length z: the seen ones are fixed at
    the labeled centroids, the novel ones start at the farthest rows. They are fitted at each epoch's end on the
    training pool.

    Defaults (CIFAR-10): g_l .25, g_u 1, r3 = r4 = r5 = 1, cap 1, hidden 512, dim 128; n_novel as many as n_classes;
    mu 1; kmeans_rows 10,000 (0: all). ``predict`` is the student's.

    Sources disagree: the authors start from a self-supervised network, train its last block, run k-means on the test
    set and use g_l .0225, g_u 3, rates (3, 2, 2) for CIFAR-100.

    References
    ----------
    Sun, Shi, Li. A graph-theoretic framework for understanding open-world semi-supervised learning. NeurIPS 2023;
    journal form 2024.
    """

    needs = ("l_weak", "l_weak2", "u_weak", "u_weak2")
    open_world = True
    predict_with = "student"

    mu: int = 1
    n_novel: int | None = None
    g_l: float = 0.25
    g_u: float = 1.0
    r3: float = 1.0
    r4: float = 1.0
    r5: float = 1.0
    cap: float = 1.0
    hidden: int = 512
    dim: int = 128
    kmeans_rows: int = 10_000

    centres: Tensor
    fitted: Tensor

    @property
    def n_outputs(self) -> int:
        """Seen and novel classes."""
        return self.n_classes + (self.n_classes if self.n_novel is None else self.n_novel)

    def build(self, model: Any) -> None:
        """The projector, and the centres that epoch_end fits."""
        n = model.head.in_features
        self.projector = nn.Sequential(nn.Linear(n, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.dim))
        self.register_buffer("centres", torch.zeros(self.n_outputs, self.dim))
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))

    def project(self, h: Tensor) -> Tensor:
        """Projection with its norm cut at ``cap``."""
        z = full_precision(self.projector(h))
        return z * (self.cap / z.norm(dim=-1, keepdim=True).clamp_min(self.cap))

    def compute(self, ctx: StepContext) -> StepResult:
        """The five terms."""
        x_l, x_l2, u_1, u_2 = self.views(ctx)
        net: Any = ctx.model
        z = self.project(net.features(torch.cat([x_l, x_l2, u_1, u_2])))
        l_1, l_2, v_1, v_2 = z.split([len(x_l), len(x_l2), len(u_1), len(u_2)])
        with torch.autocast(z.device.type, enabled=False):
            attract_l, repel_l = labeled_terms(l_1, l_2, ctx.batch.y_l, self.n_classes)
            attract_u, cross, repel_u = unlabeled_terms(l_1, l_2, v_1, v_2, ctx.batch.y_l, self.n_classes)
        loss_l = -2.0 * self.g_l * attract_l + self.r3 * self.g_l**2 * repel_l
        loss_u = -2.0 * self.g_u * attract_u + self.r4 * self.g_l * self.g_u * cross + self.r5 * self.g_u**2 * repel_u
        return StepResult(
            loss=loss_l + loss_u,
            loss_l=loss_l,
            loss_u=loss_u,
            mask_u=torch.ones_like(v_1[:, 0]),
            logs={
                "attract_l": attract_l,
                "repel_l": repel_l,
                "attract_u": attract_u,
                "cross": cross,
                "repel_u": repel_u,
            },
        )

    @torch.no_grad()
    def epoch_end(self, ctx: EpochContext) -> None:
        """Fit the centres on plain views of the training samples, when the trainer hands them over."""
        if ctx.x_l is None or ctx.y_l is None or ctx.x_u is None or not len(ctx.x_u):
            return
        x_u = ctx.x_u
        if 0 < self.kmeans_rows < len(x_u):  # evenly over the pool, so that no generator is touched
            x_u = x_u[torch.linspace(0, len(x_u) - 1, self.kmeans_rows, device=x_u.device).long()]
        z_l, z_u = (ctx.apply(lambda x: self._unit(ctx.model, x), part) for part in (ctx.x_l, x_u))
        member = one_hot(ctx.y_l, self.n_classes, z_l.dtype)
        seeds = member.T @ z_l / member.sum(0).clamp_min(1)[:, None]
        self.centres.copy_(seeded_kmeans(z_u, seeds, self.n_outputs - self.n_classes))
        self.fitted.fill_(True)

    @torch.no_grad()
    def predict(self, model: nn.Module, x: Tensor) -> Tensor:
        """Minus the squared distance to each centre."""
        if not self.fitted:
            raise RuntimeError("sorl: there are no centres yet; call epoch_end with x_l, y_l and x_u before predict.")
        return -torch.cdist(self._unit(model, x), self.centres.to(full_precision(self.centres).dtype)).square()

    def _unit(self, model: Any, x: Tensor) -> Tensor:
        return nn.functional.normalize(self.project(model.features(x)), dim=-1)


def labeled_terms(l_1: Tensor, l_2: Tensor, y: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """``sum_same <,> / n_c^2`` and ``sum_{i != j} <,>^2 / (n_i n_j)``."""
    dots = l_1 @ l_2.T
    per_row = _one_over_class_size(y, n_classes, dots.dtype)
    pairs = per_row[:, None] * per_row[None, :]
    same = (y[:, None] == y[None, :]).to(dots.dtype)
    return (dots * same * pairs).sum(), (_without_diagonal(dots.square()) * pairs).sum()


def unlabeled_terms(
    l_1: Tensor, l_2: Tensor, v_1: Tensor, v_2: Tensor, y: Tensor, n_classes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """``mean <u, u'>``, the two cross terms together, and ``sum_{i != j} <u, u'>^2 / (B (B - 1))`` (0 for one row)."""
    per_row = _one_over_class_size(y, n_classes, l_1.dtype)
    cross = (l_1 @ v_2.T).square().mean(1) @ per_row + (l_2 @ v_1.T).square().mean(1) @ per_row
    n = len(v_1)
    repel = _without_diagonal((v_1 @ v_2.T).square()).sum() / max(n * (n - 1), 1)
    return (v_1 * v_2).sum(-1).mean(), cross, repel


def _one_over_class_size(y: Tensor, n_classes: int, dtype: torch.dtype) -> Tensor:
    member = one_hot(y, n_classes, dtype)
    return 1.0 / member.sum(0)[y]


def _without_diagonal(x: Tensor) -> Tensor:
    return x - torch.diag(x.diagonal())
