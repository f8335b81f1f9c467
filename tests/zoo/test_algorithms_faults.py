"""Known faults of public implementations, each tested over all algorithms."""

from __future__ import annotations

import copy
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import (
    CASES,
    IDS,
    UNLABELED,
    UNLABELED_IDS,
    NoWaiting,
    SmallBatch,
    World,
    finish_epoch,
    make_batch,
)

from ssl_zoo import ema, losses, mixing, targets, thresholds
from ssl_zoo.algorithms.base import frozen_batch_norm, peek
from ssl_zoo.registry import algorithm_class

over_all = pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
over_unlabeled = pytest.mark.parametrize(("name", "options"), UNLABELED, ids=UNLABELED_IDS)


def norm(gradients: Any) -> float:
    return float(sum(g.square().sum() for g in gradients if g is not None) ** 0.5)


@pytest.mark.parametrize("amp", [None, torch.bfloat16], ids=["float32", "bfloat16"])
@over_unlabeled
def test_the_unlabeled_term_reaches_the_student_and_no_teacher(name: str, options: dict[str, Any], amp: Any) -> None:
    world = World(name, options, open_gate=True)
    world.step()  # on the first visit UASD's target is the prediction itself
    world.optimizer.zero_grad()
    world.ema.model.requires_grad_(True)  # a target that is not detached would show
    context = world.context(amp_dtype=amp)
    with context.autocast():
        result = world.algorithm.compute(context)
    assert result.mask_u is not None and float(result.mask_u.sum()) > 0
    body = list(world.net.body.parameters())
    assert norm(torch.autograd.grad(result.loss_u, body, retain_graph=True)) > 1e-7
    result.loss.backward()
    assert all(p.grad is None for p in world.ema.model.parameters())
    assert norm(p.grad for p in body) > 0 and all(p.grad is None or p.grad.isfinite().all() for p in body)


@over_unlabeled
def test_targets_carry_no_gradient(name: str, options: dict[str, Any]) -> None:
    """With the student in the place of the teacher, the gradient is that of a copy in that place."""
    own, twin = World(name, options, open_gate=True), World(name, options, open_gate=True)
    own.ema.model = own.net
    twin.ema.model.load_state_dict(twin.net.state_dict())
    twin.ema.model.train()
    gradients = []
    for world in (own, twin):
        world.algorithm.compute(world.context()).loss.backward()
        gradients.append([p.grad for p in world.net.parameters()])
    for a, b in zip(*gradients, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["pseudolabel", "uda", "fixmatch", "fix_a_step"])
def test_the_mask_is_on_the_plain_softmax(name: str) -> None:
    world = World(name, {"tau": 0.7}, batch_norm=False)
    world.net.head.weight.data *= 3
    result = world.algorithm.compute(world.context(make_batch(n_u=64)))
    p = result.logits_u_weak.softmax(-1)
    torch.testing.assert_close(result.mask_u, (p.amax(-1) >= 0.7).float())
    assert 0 < float(result.mask_u.sum()) < 64


def test_mixmatch_takes_one_softmax_and_keeps_a_row_nearest_to_itself() -> None:
    world = World("mixmatch", {"alpha": 1e-3}, batch_norm=False)  # lam is 0 or 1; folded it is 1: nothing is mixed
    world.net.head.weight.data *= 1e4
    world.augment._noisy = lambda x, std: x  # type: ignore[method-assign,assignment]
    result = world.algorithm.compute(world.context())
    assert float(result.loss_u.detach()) < 1e-3  # one-hot against one-hot; a second softmax leaves .1


@over_all
def test_batch_norm_takes_in_one_batch_a_step(name: str, options: dict[str, Any]) -> None:
    world = World(name, options, lr=0.0)
    for k in range(1, 4):
        world.augment.drawn.clear()
        old = world.net.norm.running_mean.clone()
        world.step(progress=0.5)
        assert int(world.net.norm.num_batches_tracked) == k
        labeled = 0.9 * old + 0.1 * world.net.body(world.augment.drawn[0]).mean(0)
        same = torch.allclose(world.net.norm.running_mean, labeled, atol=1e-6)
        assert same == (algorithm_class(name).bn_policy == "labeled")
        assert world.net.norm.track_running_stats


def test_frozen_batch_norm_reads_its_own_batch_in_train_mode_and_its_statistics_in_eval_mode() -> None:
    world = World("fixmatch")
    x = make_batch().x_l
    before = [b.clone() for b in world.net.norm.buffers()]
    (frozen,) = peek(world.net, x)
    assert all(torch.equal(a, b) for a, b in zip(before, world.net.norm.buffers(), strict=True))
    torch.testing.assert_close(frozen.logits, world.net(x).detach())
    world.net.eval()
    with frozen_batch_norm(world.net):
        torch.testing.assert_close(peek(world.net, x)[0].logits, world.net(x).detach())
    with pytest.raises(RuntimeError), frozen_batch_norm(world.net.train()):
        raise RuntimeError
    assert world.net.norm.track_running_stats


def test_a_teacher_normalises_by_the_batch_it_teaches_and_keeps_no_trace() -> None:
    world = World("meanteacher")
    world.step()
    x, teacher = make_batch().x_u, world.ema.model
    before = {key: value.clone() for key, value in teacher.state_dict().items()}
    taught = world.algorithm.teach(world.context(), x).logits
    assert all(torch.equal(before[key], value) for key, value in teacher.state_dict().items())
    assert not teacher.training and not teacher.norm.training and teacher.norm.track_running_stats
    assert not torch.allclose(taught, teacher(x))
    torch.testing.assert_close(taught, teacher.train()(x))


@over_all
def test_state_goes_round_in_mid_run(name: str, options: dict[str, Any]) -> None:
    """10 steps are 5, save, load into new objects, and 5 more: bit for bit."""
    one = World(name, options, open_gate=True)
    for k in range(5):
        one.step(make_batch(seed=k), epoch=k // 3, progress=k / 10)
        if k % 3 == 2:
            finish_epoch(one, k // 3)
    two = World(name, options)
    two.net.load_state_dict(one.net.state_dict())
    two.ema.load_state_dict(one.ema.state_dict())
    saved = {key: value.clone() for key, value in one.algorithm.state_dict().items()}
    assert all(isinstance(v, torch.Tensor) for v in saved.values())
    two.algorithm.load_state_dict(saved)
    for key in one.algorithm.option_defaults():  # options come from the configuration, not from the state
        setattr(two.algorithm, key, getattr(one.algorithm, key))
    for module_1, module_2 in zip(one.algorithm.children(), two.algorithm.children(), strict=True):
        for key in ("tau", "warmup"):
            if isinstance(getattr(module_1, key, None), (float, bool)):
                setattr(module_2, key, getattr(module_1, key))
    two.optimizer.load_state_dict(copy.deepcopy(one.optimizer.state_dict()))  # it would share the tensors
    two.augment.generator.set_state(one.augment.generator.get_state())
    two.generator.set_state(one.generator.get_state())
    for k in range(5, 10):
        results = [w.step(make_batch(seed=k), epoch=k // 3, progress=k / 10) for w in (one, two)]
        if k % 3 == 2:
            for world in (one, two):
                finish_epoch(world, k // 3)
        assert torch.equal(results[0].loss, results[1].loss) and results[0].logs.keys() == results[1].logs.keys()
    for part in ("net", "algorithm"):
        a, b = getattr(one, part).state_dict(), getattr(two, part).state_dict()
        assert a.keys() == b.keys() and all(torch.equal(a[k].nan_to_num(-7), b[k].nan_to_num(-7)) for k in a)


@over_unlabeled
def test_the_pass_rate_is_in_the_log(name: str, options: dict[str, Any]) -> None:
    world = World(name, options, open_gate=True)
    result = world.step()
    assert 0 < float(result.logs["pass_rate"]) <= 1 and "mask_mean" in result.logs
    assert all(v.grad_fn is None and v.ndim == 0 for v in result.logs.values())
    assert result.loss.grad_fn is None and result.loss.ndim == result.loss_l.ndim == result.loss_u.ndim == 0
    assert result.mask_u is not None and result.mask_u.shape == (8,)
    for kept in (result.logits_l, result.logits_u_weak, result.pseudo, result.h_l, result.h_u_strong):
        assert kept is None or not kept.requires_grad


@pytest.mark.parametrize("name", ["pseudolabel", "uda", "fixmatch", "openmatch", "fix_a_step"])
def test_a_closed_gate_shows_as_a_pass_rate_of_zero(name: str) -> None:
    result = World(name, {"tau": 1.0}).step()
    assert float(result.logs["pass_rate"]) == 0


@over_all
def test_a_step_never_waits_for_the_device(name: str, options: dict[str, Any]) -> None:
    world = World(name, options, open_gate=True)
    batch = make_batch()
    world.step(batch)
    with NoWaiting():
        world.step(batch)
        world.step(batch, progress=0.0)


def test_the_watch_on_waiting_sees_it() -> None:
    x = torch.arange(3.0)
    for waits in (lambda: x.sum().item(), lambda: x[x > 1], lambda: x.nonzero(), lambda: bool(x.sum() > 0)):
        with pytest.raises(AssertionError, match="waits"), NoWaiting():
            waits()


def test_no_item_or_tolist_in_the_source() -> None:
    modules = [losses, targets, thresholds, mixing, ema]
    modules += [sys.modules[algorithm_class(name).__module__] for name, _ in CASES]
    for module in modules:
        source = inspect.getsource(module)
        assert not any(word in source for word in (".item()", ".tolist()", ".cpu()", ".numpy()")), module.__name__


def check_finite(world: World, batch: SmallBatch, steps: int = 3) -> None:
    for k in range(steps):
        result = world.step(batch, epoch=k, progress=min(1.0, 0.3 + 0.3 * k))
        finish_epoch(world, k)
        for value in (result.loss, result.loss_l, result.loss_u, *result.logs.values()):
            assert value.isfinite().all()
    for key, value in [*world.net.state_dict().items(), *world.algorithm.state_dict().items()]:
        assert "history" in key or value.isfinite().all(), key


@over_all
def test_batch_of_one(name: str, options: dict[str, Any]) -> None:
    for open_gate in (True, False):
        check_finite(World(name, options, open_gate=open_gate, batch_norm=False), make_batch(1, 1))


@over_all
def test_one_class_only(name: str, options: dict[str, Any]) -> None:
    batch = make_batch()
    batch.y_l = torch.zeros_like(batch.y_l)
    check_finite(World(name, options, open_gate=True), batch)


@over_all
def test_identical_samples_of_constant_confidence(name: str, options: dict[str, Any]) -> None:
    world = World(name, options, open_gate=True)
    batch = make_batch()
    batch.x_l, batch.x_u = torch.zeros_like(batch.x_l), torch.zeros_like(batch.x_u)
    world.augment._noisy = lambda x, std: x  # type: ignore[method-assign,assignment]
    check_finite(world, batch)


@over_all
def test_extreme_logits(name: str, options: dict[str, Any]) -> None:
    for open_gate in (True, False):
        world = World(name, options, open_gate=open_gate, lr=1e-6)
        with torch.no_grad():
            for p in [world.net.head.weight, *world.algorithm.parameters()]:
                p *= 1e4
            world.ema.model.head.weight.mul_(1e4)
        check_finite(world, make_batch(), steps=2)


def test_supervised_reads_nothing_of_the_unlabeled_pool() -> None:
    class Guarded:
        x_l, y_l, idx_l = make_batch().x_l, make_batch().y_l, make_batch().idx_l

        @property
        def x_u(self) -> None:
            raise AssertionError("supervised read the unlabeled batch")

        idx_u = ood_u = x_u

    world = World("supervised")
    for k in range(3):
        result = world.step(Guarded(), progress=k / 3)
        assert len(world.augment.drawn) == k + 1 and float(result.loss_u) == 0 and result.mask_u is None


def test_a_missing_teacher_is_an_error() -> None:
    for name in ("meanteacher", "ict", "openmatch"):
        assert algorithm_class(name).uses_teacher
        world = World(name)
        context = world.context()
        context.teacher = None
        with pytest.raises(ValueError, match=f"{name} needs a teacher"):
            world.algorithm.compute(context)


def test_the_oracle_is_never_read() -> None:
    """The class of an unlabeled sample, or whether it is foreign, changes nothing."""
    for name, options in CASES:
        losses_seen = []
        for ood in (None, torch.ones(8, dtype=torch.bool)):
            batch = make_batch()
            batch.ood_u = ood
            losses_seen.append(World(name, options).step(batch).loss)
        assert torch.equal(*losses_seen), name


def test_a_probe_sees_the_graph() -> None:
    for name in ("fixmatch", "fix_a_step"):
        world, cosines = World(name, open_gate=True), []

        def probe(result: Any, world: World = world, cosines: list[Any] = cosines) -> None:
            weight = world.net.head.weight
            a, b = (torch.autograd.grad(v, weight, retain_graph=True)[0] for v in (result.loss_l, result.loss_u))
            cosines.append(torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0))

        world.step(probe=probe)
        assert len(cosines) == 1 and cosines[0].isfinite()
