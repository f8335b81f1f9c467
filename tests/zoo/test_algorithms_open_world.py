"""ORCA and SORL: partners, clusters, predictions, accuracies; and that both find classes that have no labels."""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import N_FEATURES, SmallBatch, World, finish_epoch, make_batch

from ssl_zoo.algorithms._open_world import open_world_accuracy, seeded_kmeans
from ssl_zoo.algorithms.base import EpochContext
from ssl_zoo.algorithms.orca import partners


def test_partners_are_of_the_class_or_the_nearest() -> None:
    h = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 0, 0, 1, 1, 2])
    met = set()
    for seed in range(30):
        pairs = partners(h, y, torch.Generator().manual_seed(seed))
        assert all(y[i] == y[pairs[i]] and pairs[i] != i for i in range(5)) and pairs[5] == 5  # alone in its class
        met.add((int(pairs[0]), int(pairs[1])))
    assert met == {(1, 0), (1, 2), (2, 0), (2, 2)}
    unit = h / h.norm(dim=1, keepdim=True)
    for i in range(6, 9):
        assert pairs[i] == max((j for j in range(9) if j != i), key=lambda j: float(unit[i] @ unit[j]))


def test_orca_margin_follows_the_uncertainty_of_the_epoch() -> None:
    world = World("orca", lr=0.0)
    doubts = []
    for _ in range(3):
        result = world.step()
        doubts.append(1 - result.logits_u_weak.softmax(-1).amax(1))
        assert float(result.logs["uncertainty"]) == 1.0
    finish_epoch(world, 0)
    torch.testing.assert_close(world.algorithm.uncertainty, torch.cat(doubts).mean())
    assert (world.algorithm.collected == 0).all()
    finish_epoch(world, 1)  # an epoch without a step changes nothing
    torch.testing.assert_close(world.algorithm.uncertainty, torch.cat(doubts).mean())


def test_kmeans_keeps_the_seeds_and_finds_far_groups() -> None:
    g = torch.Generator().manual_seed(0)
    true = torch.tensor([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    x = torch.cat([c + 0.1 * torch.randn(20, 2, generator=g) for c in true])
    seed = torch.tensor([[0.3, 0.3]])
    centres = seeded_kmeans(x, seed, 2)
    assert torch.equal(centres[:1], seed)
    assert torch.cdist(centres[1:], true[1:]).amin(1).max() < 0.2
    assert seeded_kmeans(x, seed, 0).shape == (1, 2)
    assert seeded_kmeans(torch.zeros(3, 2), torch.zeros(1, 2), 2).isfinite().all()  # fewer groups than centres


def test_accuracy_against_all_matchings() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, prediction = rng.integers(0, 5, 40), rng.integers(0, 5, 40)
        best = max(
            sum(prediction[i] == match[y[i] - 2] for i in range(40) if y[i] >= 2) for match in permutations((2, 3, 4))
        )
        out = open_world_accuracy(prediction, y, 2)
        assert out["seen"] == pytest.approx((prediction == y)[y < 2].mean())
        assert out["unseen"] == pytest.approx(best / (y >= 2).sum())
        assert out["all"] == pytest.approx(((prediction == y)[y < 2].sum() + best) / 40)


def test_accuracy_where_a_part_is_missing() -> None:
    out = open_world_accuracy(np.array([0, 1]), np.array([0, 0]), 2)
    assert out["seen"] == out["all"] == 0.5 and np.isnan(out["unseen"])
    assert open_world_accuracy(np.array([0]), np.array([3]), 2)["unseen"] == 0.0
    assert open_world_accuracy(np.array([2]), np.array([0]), 2)["seen"] == 0.0


def test_sorl_without_centres_says_so_and_fits_evenly_many_rows() -> None:
    world = World("sorl", {"kmeans_rows": 10, "n_novel": 1})
    with pytest.raises(RuntimeError, match="call epoch_end with x_l, y_l and x_u"):
        world.algorithm.predict(world.net, make_batch().x_l)
    world.algorithm.epoch_end(EpochContext(model=world.net, augment=world.augment))
    assert not world.algorithm.fitted
    finish_epoch(world, 0)
    assert world.algorithm.fitted and world.algorithm.predict(world.net, make_batch().x_l).shape == (6, 4)


@pytest.mark.parametrize("name", ["orca", "sorl"])
def test_new_classes_are_found(name: str) -> None:
    """Four well separated groups, two of them without a label."""
    g = torch.Generator().manual_seed(0)
    centres = 3 * torch.eye(N_FEATURES)[:4]
    y = torch.arange(80) % 4
    x = centres[y] + 0.3 * torch.randn(80, N_FEATURES, generator=g)
    labeled = torch.nonzero(y < 2)[:12, 0]
    world = World(name, {"n_novel": 1}, lr=0.05)  # three seen classes in the helper, of which two have samples
    for step in range(120):
        pick = torch.randint(80, (32,), generator=g)
        batch = SmallBatch(x[labeled], y[labeled], labeled, x[pick], pick % 24)
        world.step(batch, epoch=step // 40, progress=step / 120)
        if step % 40 == 39:
            context = EpochContext(model=world.net, augment=world.augment, x_l=x[labeled], y_l=y[labeled], x_u=x)
            world.algorithm.epoch_end(context)
    world.net.eval()
    prediction = world.algorithm.predict(world.net, x).argmax(1).numpy()
    seen = (prediction == y.numpy())[y.numpy() < 2].mean()
    groups = [np.bincount(prediction[y.numpy() == c], minlength=4).argmax() for c in range(4)]
    assert seen > 0.9
    assert groups[2] not in (0, 1) or groups[3] not in (0, 1)
