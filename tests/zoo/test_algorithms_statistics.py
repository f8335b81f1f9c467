"""Thresholds and weights by hand, and what single algorithms do between steps."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import N_CLASSES, N_POOL, TinyNet, World, finish_epoch, make_algorithm, make_batch

from ssl_zoo.algorithms.base import EpochContext
from ssl_zoo.algorithms.cafa import ReverseGradient, unit_range
from ssl_zoo.algorithms.vat import adversarial_step
from ssl_zoo.ema import warm_decay
from ssl_zoo.losses import cross_entropy, squared_error
from ssl_zoo.thresholds import (
    CurriculumThreshold,
    GaussianWeight,
    SelfAdaptiveThreshold,
    confidence_mask,
    otsu_threshold,
)


def rows(*confidence: float) -> torch.Tensor:
    """Two-class predictions with these probabilities of class 0."""
    p = torch.tensor(confidence)
    return torch.stack([p, 1 - p], 1)


def test_confidence_mask_includes_the_threshold() -> None:
    assert confidence_mask(rows(0.75, 0.5, 0.1), 0.75).tolist() == [1.0, 0.0, 1.0]


def test_flexmatch_at_first_lets_every_sample_pass_and_forgets_the_unsure() -> None:
    threshold = CurriculumThreshold(6, 2, 0.9)
    assert threshold(torch.tensor([0, 1, 2]), rows(0.95, 0.51, 0.05)).tolist() == [1, 1, 1]
    assert threshold.label.tolist() == [0, -1, 1, -1, -1, -1]
    torch.testing.assert_close(threshold.beta(), torch.tensor([0.25, 0.25]))  # 1 / #{-1}: warm-up
    threshold(torch.tensor([0, 3, 4]), rows(0.5, 0.99, 0.98))
    assert threshold.label.tolist() == [-1, -1, 1, 0, 0, -1]
    without = CurriculumThreshold(6, 2, 0.9, warmup=False)
    without.label.copy_(threshold.label)
    torch.testing.assert_close(without.beta(), torch.tensor([1.0, 0.5]))
    # class 0 is learned: its threshold is .9; class 1: .9 (.5 / 1.5) = .3
    assert without(torch.tensor([0, 1]), rows(0.85, 0.4)).tolist() == [0, 1]


def test_freematch_takes_the_batch_in_before_it_masks() -> None:
    threshold = SelfAdaptiveThreshold(2, momentum=0.0)
    p = rows(0.9, 0.7, 0.4)
    mask = threshold(p)
    tau, prob = np.mean([0.9, 0.7, 0.6]), np.array([2.0, 1.0]) / 3
    per_class = tau * prob / prob.max()
    assert mask.tolist() == [float(c >= per_class[k]) for c, k in ((0.9, 0), (0.7, 0), (0.6, 1))] == [1, 0, 1]
    np.testing.assert_allclose(threshold.hist, [2 / 3, 1 / 3], rtol=1e-6)


def test_softmatch_weight_is_one_at_and_above_the_mean_and_falls_below() -> None:
    weight = GaussianWeight(2, n_sigma=2.0, momentum=1.0)
    weight.mean.fill_(0.75)
    weight.var.fill_(0.04)
    w = weight(rows(0.75, 0.8, 0.99, 1.0, 0.65, 0.55))
    assert w[:4].tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(w[4:], np.exp(-(np.array([0.1, 0.2]) ** 2) / (2 * 0.04 / 4)), rtol=1e-4)


def test_softmatch_variance_survives_a_batch_of_one_and_constant_confidence() -> None:
    weight = GaussianWeight(2, momentum=0.5)
    weight(rows(0.9))
    assert weight.var == 1.0  # one row says nothing of a variance
    for _ in range(2000):
        w = weight(rows(0.9, 0.9))
    assert weight.var.isfinite() and w.isfinite().all() and w.tolist() == [1, 1]
    assert weight(rows(0.5, 0.5)).isfinite().all()


def test_otsu_against_all_splits() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        x = np.round(np.concatenate([rng.normal(0.2, 0.1, n), rng.normal(0.7, 0.1, n)]), 2)
        best, cut = 0.0, x.min()
        for t in np.unique(x)[1:]:
            low, high = x[x < t], x[x >= t]
            between = len(low) * len(high) * (low.mean() - high.mean()) ** 2
            if between > best + 1e-9:
                best, cut = between, t
        assert float(otsu_threshold(torch.tensor(x))) == pytest.approx(cut)
    assert otsu_threshold(torch.full((5,), 0.3)) == torch.tensor(0.3)
    with pytest.raises(ValueError, match="scores is empty"):
        otsu_threshold(torch.zeros(0))


def test_uasd_threshold_from_a_validation_split_and_without_one() -> None:
    world = World("uasd")
    uasd = world.algorithm
    world.step()
    best = (uasd.store.total / uasd.store.count[:, None]).amax(1)
    uasd.epoch_end(EpochContext(model=world.net, augment=world.augment))
    torch.testing.assert_close(uasd.threshold, best[make_batch().idx_u].mean())

    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    p = []
    for epoch in range(3):  # q of the split is the mean over the epochs
        world.step()
        with torch.no_grad():
            p.append(world.net.eval()(x).softmax(-1))
        world.net.train()
        uasd.epoch_end(EpochContext(model=world.net, augment=world.augment, epoch=epoch, x_val=x, batch_size=3))
        torch.testing.assert_close(uasd.threshold, (sum(p) / len(p)).amax(1).mean())
    fresh = make_algorithm("uasd", world.net)
    fresh.load_state_dict(uasd.state_dict())
    assert torch.equal(fresh.val_total, uasd.val_total) and fresh.val_count == 3
    uasd.epoch_end(EpochContext(model=world.net, augment=world.augment, x_val=x[:4]))
    assert uasd.val_count == 1 and uasd.val_total.shape == (4, N_CLASSES)
    assert world.net.training


def test_mtcf_scores_are_the_mean_of_a_window_and_otsu_selects() -> None:
    world = World("mtcf", {"warmup": 0.2, "window": 2}, lr=0.0)
    mtcf, index = world.algorithm, make_batch().idx_u
    seen = []
    for epoch in range(3):
        world.step(epoch=epoch, progress=0.1)
        seen.append(mtcf.history[epoch % 2, index].clone())
        finish_epoch(world, epoch, progress=0.1)
    assert (mtcf.score == 0).all() and (mtcf.selected == 1).all()  # still warming up
    world.step(epoch=3, progress=0.5)
    seen.append(mtcf.history[1, index].clone())
    finish_epoch(world, 3, progress=0.5)
    torch.testing.assert_close(mtcf.score[index], (seen[2] + seen[3]) / 2)
    unseen = torch.ones(N_POOL, dtype=torch.bool)
    unseen[index] = False
    assert (mtcf.score[unseen] == 0).all()  # not visited: the score stays
    assert torch.equal(mtcf.selected == 1, mtcf.score >= otsu_threshold(mtcf.score))
    assert mtcf.history[0].isnan().all() and not mtcf.history[1, index].isnan().any()


def test_openmatch_head_has_a_moving_average_that_only_steps_move() -> None:
    world = World("openmatch")
    average = world.algorithm.ema_weight.clone()
    world.algorithm.compute(world.context())
    assert torch.equal(average, world.algorithm.ema_weight)
    for k in range(3):
        world.step()
        d = warm_decay(0.999, k)
        average = d * average + (1 - d) * world.algorithm.ova.weight.detach()
    torch.testing.assert_close(world.algorithm.ema_weight, average)
    assert not any(n.startswith("ema") for n, _ in world.algorithm.named_parameters())


@pytest.mark.parametrize("seed", range(6))
def test_fix_a_step_drops_an_unlabeled_gradient_that_points_against_the_labeled_one(seed: int) -> None:
    world = World("fix_a_step", {"tau": 0.0, "lam": 0.7})
    batch = make_batch(seed=seed)
    batch.y_l = (batch.y_l + seed) % N_CLASSES
    twin = World("fix_a_step", {"tau": 0.0, "lam": 0.7})
    twin.net.load_state_dict(world.net.state_dict())
    result = twin.algorithm.compute(twin.context(batch))
    parameters = list(twin.net.parameters())
    g_l = torch.autograd.grad(result.loss_l, parameters, retain_graph=True)
    g_u = torch.autograd.grad(result.loss_u, parameters)
    dot = sum((a * b).sum() for a, b in zip(g_l, g_u, strict=True))
    stepped = world.step(batch)
    assert float(stepped.logs["gradient_dot"]) == pytest.approx(float(dot), rel=1e-4)
    for p, a, b in zip(world.net.parameters(), g_l, g_u, strict=True):
        torch.testing.assert_close(p.grad, a if dot < 0 else a + 0.7 * b)
    assert float(stepped.logs["gate"]) == float(dot >= 0)


def test_fix_a_step_meets_both_cases() -> None:
    gates = set()
    for seed in range(12):
        world = World("fix_a_step", {"tau": 0.0})
        gates.add(float(world.step(make_batch(seed=seed)).logs["gate"]))
    assert gates == {0.0, 1.0}


def test_ds3l_outer_gradient_against_finite_differences() -> None:
    """d CE(theta'(phi)) / d phi, with theta' written out as an explicit step of gradient descent."""
    world = World("ds3l", {"inner_lr": 0.5, "hidden": 16}, dtype=torch.float64)
    net, ds3l, batch = world.net, world.algorithm, make_batch(dtype=torch.float64)
    u_1, u_2 = world.augment.strong(batch.x_u), world.augment.strong(batch.x_u)
    captured: list[torch.Tensor] = []
    ds3l._adam = captured.append  # type: ignore[method-assign,assignment]
    ds3l.outer_step(world.context(batch), batch.x_l, u_1, u_2, 2.0)
    names = dict(net.named_parameters())

    def outer(phi: torch.Tensor) -> float:
        q = net(u_1).softmax(-1).detach()
        w = ds3l.net_weights(q, phi)
        o = squared_error(net(u_2).softmax(-1), q)
        inner = cross_entropy(net(batch.x_l), batch.y_l).mean() + 2.0 * (w * o).sum() / w.sum()
        g = torch.autograd.grad(inner, list(names.values()))
        moved = {k: (p - 0.5 * d).detach() for (k, p), d in zip(names.items(), g, strict=True)}
        z = torch.func.functional_call(net, moved, (batch.x_l,))
        return float(cross_entropy(z, batch.y_l).mean())

    numeric, h = torch.zeros_like(ds3l.phi), 1e-5
    for i in range(len(numeric)):
        bump = torch.zeros_like(numeric)
        bump[i] = h
        numeric[i] = (outer(ds3l.phi + bump) - outer(ds3l.phi - bump)) / (2 * h)
    assert numeric.norm() > 1e-6
    torch.testing.assert_close(captured[0], numeric, rtol=1e-4, atol=1e-10)


def test_ds3l_weight_net_is_trained_by_adam_and_not_by_the_students_optimiser() -> None:
    world = World("ds3l", {"outer_lr": 0.01})
    assert list(world.algorithm.parameters()) == []
    mine = world.algorithm.phi.clone().requires_grad_()
    adam = torch.optim.Adam([mine], lr=0.01)
    inner = world.algorithm._adam

    def both(g: torch.Tensor) -> None:
        mine.grad = g.clone()
        adam.step()
        inner(g)

    world.algorithm._adam = both  # type: ignore[method-assign]
    start = world.algorithm.phi.clone()
    for _ in range(3):
        world.step()
    assert not torch.equal(start, world.algorithm.phi)
    torch.testing.assert_close(world.algorithm.phi, mine.detach(), rtol=1e-5, atol=1e-6)


def test_ds3l_centroids_stay_where_a_class_is_missing() -> None:
    world = World("ds3l", {"weighting": "centroid"})
    batch = make_batch()
    world.step(batch)
    first = world.algorithm.centroid.clone()
    batch.y_l = torch.zeros_like(batch.y_l)
    world.step(batch)
    now = world.algorithm.centroid
    assert torch.equal(first[1:], now[1:]) and not torch.equal(first[0], now[0])


def test_vat_direction_in_float32_is_that_of_float64() -> None:
    """At the published xi of 1e-6 rounding alone would decide; the step is widened to what the precision carries."""
    net = TinyNet(batch_norm=False)
    x = make_batch(n_u=32).x_u
    d32 = adversarial_step(net, x, 1e-6, 6.0, torch.Generator().manual_seed(0))
    draws = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    net64 = TinyNet(batch_norm=False).double()
    d = (draws / draws.norm(dim=1, keepdim=True)).double().requires_grad_()
    p = net64(x.double()).log_softmax(-1).detach()
    kl = (p.exp() * (p - net64(x.double() + 1e-5 * d).log_softmax(-1))).sum()
    (g,) = torch.autograd.grad(kl, d)
    cosine = torch.nn.functional.cosine_similarity(d32.double(), g * 1e8, dim=1)
    assert cosine.min() > 0.95 and cosine.mean() > 0.995
    torch.testing.assert_close(d32.norm(dim=1), torch.full((32,), 6.0))


def test_cafa_weights_and_reversal() -> None:
    assert unit_range(torch.tensor([1.0, 3.0, 2.0])).tolist() == [0, 1, 0.5]
    assert unit_range(torch.tensor([2.0])).tolist() == [1] and unit_range(torch.full((3,), 0.1)).tolist() == [1, 1, 1]
    x = torch.tensor([2.0], requires_grad=True)
    y = ReverseGradient.apply(x, 0.25)
    (3 * y).sum().backward()
    assert y.detach().tolist() == [2.0] and x.grad is not None and x.grad.tolist() == [-0.75]


def test_cafa_judge_does_not_reach_the_student() -> None:
    world = World("cafa")
    result = world.algorithm.compute(world.context())
    judge = list(world.algorithm.judge.parameters())
    assert any(g.abs().sum() > 0 for g in torch.autograd.grad(result.loss, judge, retain_graph=True))
    for p in world.algorithm.adversary.parameters():
        p.requires_grad_(False)
    before = [p.clone() for p in judge]
    world.step()
    assert any(not torch.equal(a, b) for a, b in zip(before, judge, strict=True))


def test_uda_annealing_leaves_out_what_is_known() -> None:
    world = World("uda", {"tsa": "linear"}, batch_norm=False)
    world.net.head.weight.data *= 5
    result = world.algorithm.compute(world.context(progress=0.4))
    p = result.logits_l.softmax(-1)[torch.arange(6), make_batch().y_l]
    eta = 0.4 * (1 - 1 / 3) + 1 / 3
    assert 0 < int((p < eta).sum()) < 6
    torch.testing.assert_close(result.loss_l.detach(), -p[p < eta].log().mean())
