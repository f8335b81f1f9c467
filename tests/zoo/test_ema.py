"""The moving average against one computed by hand, buffers included."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from _algo_helpers import TinyNet

from ssl_zoo.ema import EMA, warm_decay


def train_a_little(net: TinyNet, seed: int) -> None:
    """Moves parameters and running statistics."""
    g = torch.Generator().manual_seed(seed)
    net(torch.randn(4, 5, generator=g)).square().sum().backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None


@pytest.mark.parametrize("warmup", [True, False])
def test_average_by_hand_with_buffers(warmup: bool) -> None:
    net = TinyNet()
    ema = EMA(net, 0.9, warmup=warmup)
    want = {key: value.clone() for key, value in net.state_dict().items()}
    for k in range(4):
        train_a_little(net, k)
        ema.update(net)
        d = min(0.9, (1 + k) / (10 + k)) if warmup else 0.9
        for key, value in net.state_dict().items():
            want[key] = d * want[key] + (1 - d) * value if value.is_floating_point() else value.clone()
    assert "norm.running_var" in want and want["norm.num_batches_tracked"] == 4
    for key, value in ema.model.state_dict().items():
        torch.testing.assert_close(value, want[key], msg=key)


def test_the_student_is_not_changed_and_the_average_has_no_gradient() -> None:
    net = TinyNet()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    ema = EMA(net, 0.5)
    ema.update(net)
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items()) and net.training
    assert not ema.model.training and not any(p.requires_grad for p in ema.model.parameters())


def test_state_goes_out_and_comes_back_bit_for_bit() -> None:
    net, other = TinyNet(), TinyNet(seed=1)
    first = EMA(net, 0.99)
    for k in range(3):
        train_a_little(net, k)
        first.update(net)
    state = {key: value.clone() for key, value in first.state_dict().items()}
    assert all(isinstance(v, torch.Tensor) for v in state.values())
    second = EMA(other, 0.99)
    second.load_state_dict(state)
    for ema in (first, second):
        ema.update(net)
    assert all(torch.equal(v, second.state_dict()[k]) for k, v in first.state_dict().items())


def test_decay() -> None:
    assert warm_decay(0.999, 10**6) == 0.999 and warm_decay(0.5, 0) == 0.1
    for wrong in (-0.1, 1.0):
        with pytest.raises(ValueError, match="decay"):
            EMA(TinyNet(), wrong)
