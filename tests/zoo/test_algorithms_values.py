"""Losses of all algorithms against the formulas written out in plain numpy, in float64 on a small fixed batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import N_CLASSES, N_POOL, NumpyNet, World, make_batch, nll, sigmoid, softmax

from ssl_zoo.algorithms.base import StepResult
from ssl_zoo.mixing import sample_beta
from ssl_zoo.registry import list_algorithms

C = N_CLASSES


class Case:
    """One compute of an algorithm in float64 without batch-norm, and what a formula needs: views, numpy nets, draws."""

    def __init__(self, name: str, *, warm: int = 0, progress: float = 0.3, scale: float = 3.0, **options: Any) -> None:
        self.world = World(name, options, batch_norm=False, dtype=torch.float64)
        with torch.no_grad():
            self.world.net.head.weight.mul_(scale)  # confident on some rows, not on others
            self.world.ema.model.head.weight.mul_(0.5 * scale)  # a teacher that differs from the student
        self.net, self.teacher = NumpyNet(self.world.net), NumpyNet(self.world.ema.model)
        self.progress = progress
        self.before: list[Any] = []
        for k in range(warm):  # statistics take in other batches first; the student does not move
            self.compute(make_batch(seed=10 + k, dtype=torch.float64))
            self.before.append([v.numpy() for v in self.views])
        self.batch = make_batch(dtype=torch.float64)
        self.y = self.batch.y_l.numpy()
        self.run()

    def run(self) -> None:
        """The compute that is compared; again after a change of the algorithm's state."""
        self.start = self.world.generator.get_state()
        self.result = self.compute(self.batch)
        self.v = [v.numpy() for v in self.views]

    def compute(self, batch: Any) -> StepResult:
        self.world.augment.drawn.clear()
        result = self.world.algorithm.compute(self.world.context(batch, progress=self.progress))
        self.views = list(self.world.augment.drawn)
        return result

    def draws(self, n: int, alpha: float, keep: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The permutation and the mixup coefficients that the step drew (its random inputs, not its arithmetic)."""
        g = torch.Generator()
        g.set_state(self.start)
        other = torch.randperm(n, generator=g)[:keep].numpy()
        lam = sample_beta(len(other), alpha, g, device=torch.device("cpu")).numpy()
        return other, lam

    def check(self, total: float, loss_l: float, loss_u: float, *, rtol: float = 1e-9) -> None:
        got = [float(v.detach()) for v in (self.result.loss, self.result.loss_l, self.result.loss_u)]
        np.testing.assert_allclose(got, [total, loss_l, loss_u], rtol=rtol, atol=1e-12)


def one_hot(y: np.ndarray) -> np.ndarray:
    return np.eye(C)[y]


def mix(a: np.ndarray, b: np.ndarray, lam: np.ndarray) -> np.ndarray:
    lam = lam.astype(float)[:, None]
    return lam * a + (1 - lam) * b


def supervised() -> None:
    case = Case("supervised")
    ce = nll(case.net.p(case.v[0]), case.y).mean()
    case.check(ce, ce, 0.0)


def pseudolabel() -> None:
    case = Case("pseudolabel", tau=0.6)
    ce, p = nll(case.net.p(case.v[0]), case.y).mean(), case.net.p(case.v[1])
    mask = p.max(1) >= 0.6
    assert 0 < mask.sum() < len(mask)
    u = (mask * nll(p, p.argmax(1))).sum() / len(mask)
    case.check(ce + 0.3 / 0.4 * u, ce, u)


def pimodel() -> None:
    case = Case("pimodel")
    ce = nll(case.net.p(case.v[0]), case.y).mean()
    u = ((case.net.p(case.v[1]) - case.net.p(case.v[2])) ** 2).mean()
    case.check(ce + 10 * 0.75 * u, ce, u)


def meanteacher() -> None:
    case = Case("meanteacher")
    ce = nll(case.net.p(case.v[0]), case.y).mean()
    u = ((case.net.p(case.v[2]) - case.teacher.p(case.v[1])) ** 2).mean()
    case.check(ce + 50 * 0.75 * u, ce, u)


def ict() -> None:
    case = Case("ict")
    ce, x = nll(case.net.p(case.v[0]), case.y).mean(), case.v[1]
    other, lam = case.draws(len(x), 0.5)
    t = case.teacher.p(x)
    u = ((case.net.p(mix(x, x[other], lam)) - mix(t, t[other], lam)) ** 2).mean()
    case.check(ce + 100 * u, ce, u)


def vat() -> None:
    case = Case("vat")
    ce, x = nll(case.net.p(case.v[0]), case.y).mean(), case.v[1]
    g = torch.Generator()
    g.set_state(case.start)
    d = torch.randn(x.shape, generator=g, dtype=torch.float64).numpy()
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    p, step = case.net.p(x), np.finfo(float).eps ** (1 / 3)
    # KL(p || p(x + step d)) has the gradient p(x + step d) - p in the logits
    grad = case.net.input_gradient(x + step * d, case.net.p(x + step * d) - p)
    r = 6 * grad / np.linalg.norm(grad, axis=1, keepdims=True)
    q = case.net.p(x + r)
    kl, h = (p * np.log(p / q)).sum(1).mean(), -(p * np.log(p)).sum(1).mean()
    case.check(ce + 0.75 * kl + 0.06 * h, ce, kl, rtol=1e-6)


def mixmatch() -> None:
    case = Case("mixmatch")
    x_l, u_1, u_2 = case.v
    q = (case.net.p(u_1) + case.net.p(u_2)) / 2
    q = q**2 / (q**2).sum(1, keepdims=True)  # T = .5
    x, target = np.concatenate(case.v), np.concatenate([one_hot(case.y), q, q])
    other, lam = case.draws(len(x), 0.75)
    lam = np.maximum(lam, 1 - lam)
    p, y = case.net.p(mix(x, x[other], lam)), mix(target, target[other], lam)
    n = len(x_l)
    ce, u = -(y * np.log(p)).sum(1)[:n].mean(), ((p - y) ** 2)[n:].mean()
    case.check(ce + 75 * 0.75 * u, ce, u)


def uda() -> None:
    case = Case("uda", tau=0.6)
    ce, p = nll(case.net.p(case.v[0]), case.y).mean(), case.net.p(case.v[1])
    mask = p.max(1) >= 0.6
    assert 0 < mask.sum() < len(mask) and (case.net.p(case.v[1], 0.4).max(1) >= 0.6).sum() > mask.sum()
    u = (mask * -(case.net.p(case.v[1], 0.4) * np.log(case.net.p(case.v[2]))).sum(1)).mean()
    case.check(ce + u, ce, u)


def fixmatch() -> None:
    for passes in ("joint", "split"):
        case = Case("fixmatch", tau=0.6, passes=passes)
        ce, p = nll(case.net.p(case.v[0]), case.y).mean(), case.net.p(case.v[1])
        mask = p.max(1) >= 0.6
        assert 0 < mask.sum() < len(mask)
        u = (mask * nll(case.net.p(case.v[2]), p.argmax(1))).sum() / len(mask)
        case.check(ce + u, ce, u)


def flexmatch() -> None:
    for warmup in (True, False):
        case = Case("flexmatch", tau=0.6, warmup=warmup, warm=3)
        yhat = np.full(N_POOL, -1)
        for k, (_, u_w, _) in enumerate(case.before):
            p = case.net.p(u_w)
            yhat[make_batch(seed=10 + k).idx_u.numpy()] = np.where(p.max(1) >= 0.6, p.argmax(1), -1)
        sigma = np.array([(yhat == c).sum() for c in range(C)])
        assert sigma.max() > 0
        beta = sigma / (max(sigma.max(), (yhat == -1).sum()) if warmup else sigma.max())
        ce, p = nll(case.net.p(case.v[0]), case.y).mean(), case.net.p(case.v[1])
        label = p.argmax(1)
        mask = p.max(1) >= (0.6 * beta / (2 - beta))[label]
        u = (mask * nll(case.net.p(case.v[2]), label)).mean()
        case.check(ce + u, ce, u)


def freematch() -> None:
    case = Case("freematch", momentum=0.5, warm=2)
    tau, prob, hist = 1 / C, np.full(C, 1 / C), np.full(C, 1 / C)
    for views in [*case.before, case.v]:
        p = case.net.p(views[1])
        tau = 0.5 * tau + 0.5 * p.max(1).mean()
        prob = 0.5 * prob + 0.5 * p.mean(0)
        hist = 0.5 * hist + 0.5 * np.bincount(p.argmax(1), minlength=C) / len(p)
    label, s = p.argmax(1), case.net.p(case.v[2])
    mask = p.max(1) >= (tau * prob / prob.max())[label]
    assert 0 < mask.sum() < len(mask)
    ce = nll(case.net.p(case.v[0]), case.y).mean()
    s_bar, s_hist = s[mask].mean(0), np.bincount(s[mask].argmax(1), minlength=C) / mask.sum()
    a = prob / hist
    b = np.array([s_bar[c] / s_hist[c] if s_hist[c] > 0 else 0.0 for c in range(C)])
    fair = (a / a.sum() * np.log(b / b.sum() + 1e-12)).sum()
    assert fair < 0
    u = (mask * nll(s, label)).mean() + 0.01 * fair
    case.check(ce + u, ce, u, rtol=1e-6)  # the statistics start at 1/3 in float32


def softmatch() -> None:
    case = Case("softmatch", momentum=0.5, warm=2)
    mean, mu, var = np.full(C, 1 / C), 1 / C, 1.0
    for views in [*case.before, case.v]:
        p = case.net.p(views[1])
        mean = 0.5 * mean + 0.5 * p.mean(0)
        aligned = p * (1 / C) / mean
        top = (aligned / aligned.sum(1, keepdims=True)).max(1)
        mu, var = 0.5 * mu + 0.5 * top.mean(), 0.5 * var + 0.5 * top.var(ddof=1)
    w = np.where(top >= mu, 1.0, np.exp(-((top - mu) ** 2) / (2 * var / 4)))
    ce = nll(case.net.p(case.v[0]), case.y).mean()
    u = (w * nll(case.net.p(case.v[2]), p.argmax(1))).mean()
    case.check(ce + u, ce, u, rtol=1e-6)  # the statistics start at 1/3 in float32


def uasd() -> None:
    case = Case("uasd", warm=2)
    total, count = np.zeros((N_POOL, C)), np.zeros(N_POOL)
    for k, views in enumerate([*case.before, case.v]):
        index = (make_batch(seed=10 + k) if k < 2 else case.batch).idx_u.numpy()
        total[index] += case.net.p(views[1])
        count[index] += 1
    q = (total / np.maximum(count, 1)[:, None])[index]
    threshold = np.median(q.max(1))
    ce = nll(case.net.p(case.v[0]), case.y).mean()
    soft = -(q * np.log(case.net.p(case.v[1]))).sum(1)
    case.check(ce + np.exp(-5 * 0.7**2) * soft.mean(), ce, soft.mean())  # threshold 0 in the first epoch
    case.world.algorithm.threshold.fill_(threshold)
    case.run()  # a further visit, with the threshold
    p = case.net.p(case.v[1])
    q = (total[index] + p) / (count[index] + 1)[:, None]
    mask = q.max(1) >= threshold
    assert 0 < mask.sum() < len(mask)
    ce, u = nll(case.net.p(case.v[0]), case.y).mean(), (mask * -(q * np.log(p)).sum(1)).mean()
    case.check(ce + np.exp(-5 * 0.7**2) * u, ce, u)


def cafa() -> None:
    case = Case("cafa")
    x_l, u_1, u_2 = case.v

    def layers(net: Any, h: np.ndarray) -> np.ndarray:
        w = [p.detach().numpy() for p in net.parameters()]
        return (np.maximum(h @ w[0].T + w[1], 0) @ w[2].T + w[3])[:, 0]

    def shift(x: np.ndarray) -> np.ndarray:
        p = case.net.p(x)
        g = case.net.input_gradient(x, (case.net.p(x, 0.5) - one_hot(p.argmax(1))) / 0.5)
        return np.abs(p.max(1) - case.net.p(x - 0.0014 * np.sign(g)).max(1))

    def unit(w: np.ndarray) -> np.ndarray:
        return (w - w.min()) / (w.max() - w.min())

    h_l, h_u = case.net.h(x_l), case.net.h(u_2)
    judge_l, judge_u = (layers(case.world.algorithm.judge, h) for h in (h_l, h_u))
    adv_l, adv_u = (sigmoid(layers(case.world.algorithm.adversary, h)) for h in (h_l, h_u))
    w_l, w_u = unit(sigmoid(judge_l) - shift(x_l)), unit(shift(u_1) - sigmoid(judge_u))
    ce = nll(case.net.p(x_l), case.y).mean()
    u = (w_u * ((case.net.p(u_2) - case.net.p(u_1)) ** 2).mean(1)).mean()
    align = (w_l * -np.log(1 - adv_l)).mean() + (w_u * -np.log(adv_u)).mean()
    judged = -np.log(1 - sigmoid(judge_l)).mean() - np.log(sigmoid(judge_u)).mean()
    case.check(ce + 10 * 0.75 * u + align + judged, ce, u)


def mtcf() -> None:
    case = Case("mtcf", progress=0.05)  # warm-up: CE and BCE
    w, b = (p.detach().numpy() for p in case.world.algorithm.head.parameters())
    o_l, o_u = (sigmoid(case.net.h(x) @ w.T + b)[:, 0] for x in case.v[:2])
    ce, n = nll(case.net.p(case.v[0]), case.y).mean(), len(case.y)
    bce = (-np.log(o_l).sum() - np.log(1 - o_u).sum()) / (n + len(o_u))
    case.check(ce + bce, ce, 0.0)

    case = Case("mtcf")
    keep = np.arange(N_POOL) % 2 == 0
    case.world.algorithm.selected.copy_(torch.tensor(keep))
    case.world.algorithm.score.fill_(0.25)
    case.run()
    x_l, u_1, u_2 = case.v
    keep = keep[case.batch.idx_u.numpy()]
    q = (case.net.p(u_1) + case.net.p(u_2)) / 2
    q = q**2 / (q**2).sum(1, keepdims=True)
    x, target = np.concatenate(case.v), np.concatenate([one_hot(case.y), q, q])
    weight = np.concatenate([np.ones(n, bool), keep, keep])
    other, lam = case.draws(len(x), 0.75)
    lam = np.where(weight[other], np.maximum(lam, 1 - lam), np.float32(1))
    p, y = case.net.p(mix(x, x[other], lam)), mix(target, target[other], lam)
    ce = -(y * np.log(p)).sum(1)[:n].mean()
    u = (weight[n:] * ((p - y) ** 2)[n:].mean(1)).mean()
    o_l, o_u = (sigmoid(case.net.h(v) @ w.T + b)[:, 0] for v in (x_l, u_1))
    bce = (-np.log(o_l).sum() - (0.25 * np.log(o_u) + 0.75 * np.log(1 - o_u)).sum()) / (n + len(o_u))
    case.check(ce + 75 * 0.75 * u + bce, ce, u)


def openmatch() -> None:
    for progress in (0.01, 0.3):
        case = Case("openmatch", tau=0.6, progress=progress)
        x_l, u_1, u_2, u_s = case.v
        w, b = (p.detach().numpy() for p in case.world.algorithm.ova.parameters())

        def q(h: np.ndarray, w: np.ndarray = w, b: np.ndarray = b) -> np.ndarray:
            z = h @ w.T + b
            inlier = sigmoid(z[:, C:] - z[:, :C])
            return np.stack([1 - inlier, inlier], 1)

        q_l, q_1, q_2 = (q(case.net.h(x)) for x in (x_l, u_1, u_2))
        ova = np.mean([
            -np.log(q_l[i, 1, y]) + max(-np.log(q_l[i, 0, j]) for j in range(C) if j != y) for i, y in enumerate(case.y)
        ])  # fmt: skip
        ent = -((q_1 * np.log(q_1)).sum(1).mean() + (q_2 * np.log(q_2)).sum(1).mean()) / 2
        socr = ((q_1 - q_2) ** 2).sum((1, 2)).mean()
        p = case.net.p(u_1)
        teacher_class = case.teacher.p(u_1).argmax(1)
        inlier = q(case.teacher.h(u_1))[np.arange(len(p)), 0, teacher_class] < 0.5
        mask = (p.max(1) >= 0.6) & inlier & (progress >= 0.02)
        assert not 0.3 <= progress or 0 < mask.sum() < (p.max(1) >= 0.6).sum()
        fix = (mask * nll(case.net.p(u_s), p.argmax(1))).mean()
        ce, u = nll(case.net.p(x_l), case.y).mean(), 0.1 * ent + 0.5 * socr + fix
        case.check(ce + ova + u, ce, u)


def fix_a_step() -> None:
    case = Case("fix_a_step", tau=0.6)
    x_l, u_1, u_2, u_s = case.v
    q = (case.net.p(u_1) + case.net.p(u_2)) / 2
    q = q**2 / (q**2).sum(1, keepdims=True)
    x, target, n = np.concatenate(case.v[:3]), np.concatenate([one_hot(case.y), q, q]), len(x_l)
    other, lam = case.draws(len(x), 0.75, keep=n)
    lam = np.maximum(lam, 1 - lam)
    y = mix(target[:n], target[other], lam)
    ce = -(y * np.log(case.net.p(mix(x_l, x[other], lam)))).sum(1).mean()
    p = case.net.p(u_1)
    u = ((p.max(1) >= 0.6) * nll(case.net.p(u_s), p.argmax(1))).mean()
    case.check(ce + u, ce, u)


def ds3l() -> None:
    case = Case("ds3l")
    x_l, u_1, u_2 = case.v
    phi, h = case.world.algorithm.phi.numpy(), 100  # after the outer step, whose gradient has a test of its own
    w1, b1, w2, b2 = np.split(phi, np.cumsum([h * C, h, h]))
    p = case.net.p(u_1)
    w = sigmoid(np.maximum(p @ w1.reshape(h, C).T + b1, 0) @ w2 + b2)
    o = ((case.net.p(u_2) - p) ** 2).mean(1)
    ce, u = nll(case.net.p(x_l), case.y).mean(), (w * o).sum() / w.sum()
    case.check(ce + 10 * np.exp(-5 * 0.7**2) * u, ce, u)

    case = Case("ds3l", weighting="centroid", tau=0.5, warm=1)
    x_l, u_1, u_2 = case.v
    old, z_l = case.net.z(case.before[0][0]), case.net.z(x_l)
    first = np.stack([old[make_batch(seed=10).y_l.numpy() == c].mean(0) for c in range(C)])
    centroid = 0.99 * first + 0.01 * np.stack([z_l[case.y == c].mean(0) for c in range(C)])
    z, p = case.net.z(u_1), case.net.p(u_1)
    m = centroid[p.argmax(1)]
    cos = (z * m).sum(1) / np.linalg.norm(z, axis=1) / np.linalg.norm(m, axis=1)
    w = (p.max(1) >= 0.5) * p.max(1) * np.maximum(0, cos)
    assert 0 < (w > 0).sum() < len(w)
    o = ((case.net.p(u_2) - p) ** 2).mean(1)
    ce, u = nll(case.net.p(x_l), case.y).mean(), (w * o).sum() / w.sum()
    case.check(ce + 10 * np.exp(-5 * 0.7**2) * u, ce, u)


def orca() -> None:
    case = Case("orca")
    case.world.algorithm.uncertainty.fill_(0.2)
    case.run()
    x_l, x_l2, u_1, u_2 = case.v
    w = case.world.algorithm.prototypes.detach().numpy()

    def z(x: np.ndarray) -> np.ndarray:
        h = case.net.h(x)
        return 10 * (h / np.linalg.norm(h, axis=1, keepdims=True)) @ (w / np.linalg.norm(w, axis=1, keepdims=True)).T

    x, x2, n = np.concatenate([x_l, u_1]), np.concatenate([x_l2, u_2]), len(x_l)
    p, p2 = softmax(z(x)), softmax(z(x2))
    raised = z(x_l)
    raised[np.arange(n), case.y] += 10 * 0.2
    ce = nll(softmax(raised), case.y).mean()
    g = torch.Generator()
    g.set_state(case.start)
    draw, h, partner = torch.rand(n, n, generator=g).numpy(), case.net.h(x), []
    for i in range(n):
        partner.append(max((j for j in range(n) if j != i and case.y[j] == case.y[i]), key=lambda j: draw[i, j]))
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    for i in range(n, len(x)):
        partner.append(max((j for j in range(len(x)) if j != i), key=lambda j: h[i] @ h[j]))
    pair = np.mean([-np.log(p[i] @ p2[j]) for i, j in enumerate(partner)])
    mean = p.mean(0)
    u = pair + (mean * np.log(mean)).sum()
    case.check(ce + u, ce, u, rtol=1e-6)  # the margin was set in float32


def sorl() -> None:
    case = Case("sorl", g_l=0.5, r3=2.0, r4=3.0, r5=0.7)
    w = [p.detach().numpy() for p in case.world.algorithm.projector.parameters()]

    def raw(x: np.ndarray) -> np.ndarray:
        return np.maximum(case.net.h(x) @ w[0].T + w[1], 0) @ w[2].T + w[3]

    cap = case.world.algorithm.cap = float(np.median(np.linalg.norm(raw(np.concatenate(case.v)), axis=1)))
    case.run()  # now some rows are capped and some are not

    def z(x: np.ndarray) -> np.ndarray:
        return np.stack([v if np.linalg.norm(v) <= cap else cap * v / np.linalg.norm(v) for v in raw(x)])

    a, a2, b, b2 = (z(x) for x in case.v)
    y, n_l, n_u = case.y, len(a), len(b)
    size = np.array([(y == c).sum() for c in y])
    rows = range(n_l)
    s1 = sum(a[i] @ a2[j] / size[i] ** 2 for i in rows for j in rows if y[i] == y[j])
    s2 = sum(b[i] @ b2[i] for i in range(n_u)) / n_u
    s3 = sum((a[i] @ a2[j]) ** 2 / (size[i] * size[j]) for i in rows for j in rows if i != j)
    s4 = sum(((a[i] @ b2[j]) ** 2 + (b[j] @ a2[i]) ** 2) / (size[i] * n_u) for i in rows for j in range(n_u))
    s5 = sum((b[i] @ b2[j]) ** 2 for i in range(n_u) for j in range(n_u) if i != j) / (n_u * (n_u - 1))
    loss_l = -2 * 0.5 * s1 + 2.0 * 0.25 * s3
    loss_u = -2 * s2 + 3.0 * 0.5 * s4 + 0.7 * s5
    case.check(loss_l + loss_u, loss_l, loss_u)


FORMULAS = [
    supervised, pseudolabel, pimodel, meanteacher, ict, vat, mixmatch, uda, fixmatch, flexmatch, freematch, softmatch,
    uasd, cafa, mtcf, openmatch, fix_a_step, ds3l, orca, sorl,
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_loss_is_the_formula(formula: Any) -> None:
    formula()


def test_every_algorithm_has_a_formula() -> None:
    assert sorted(f.__name__ for f in FORMULAS) == list_algorithms()
