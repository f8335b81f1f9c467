"""Statistics never keep the graph of an old step: what is alive after 300 steps is what was alive after 30."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import CASES, IDS, World, finish_epoch, make_batch

WITH_STATISTICS = {"flexmatch", "freematch", "softmatch", "uasd", "mtcf", "openmatch", "orca", "ds3l-centroid"}


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_nothing_of_old_steps_is_kept(name: str, options: dict[str, Any]) -> None:
    world = World(name, options, open_gate=True, lr=0.001)
    batch = make_batch(n_l=3, n_u=3)

    def alive(first: int, last: int) -> tuple[int, int]:
        for k in range(first, last):
            world.step(batch, epoch=k // 10)
            world.augment.drawn.clear()
            if k % 10 == 9:
                finish_epoch(world, k // 10)
        gc.collect()
        tensors = [o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter)]
        return len(tensors), sum(t.numel() for t in tensors)

    many = 300 if "-".join([name, *options.values()]) in WITH_STATISTICS else 60
    early = alive(0, 30)
    assert alive(30, many) == early
    assert all(b.grad_fn is None and not b.requires_grad for b in world.algorithm.buffers())
    sizes = {key: value.shape for key, value in world.algorithm.state_dict().items()}
    world.step(make_batch(seed=1))
    assert sizes == {key: value.shape for key, value in world.algorithm.state_dict().items()}
