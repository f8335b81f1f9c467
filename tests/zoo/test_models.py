"""Every network has features and a linear head, and takes a step with every kind of algorithm."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from ssl_zoo.models import build_model, list_models

CASES = [
    ("mlp", (7,), {"hidden": [12, 8]}, 8),
    ("mlp", (1, 8, 8), {"hidden": (5,), "batch_norm": False, "dropout": 0.5}, 5),
    ("small_cnn", (3, 9, 9), {"width": 4}, 16),
    ("wide_resnet", (1, 8, 8), {"depth": 10, "width": 1}, 64),
    ("WRN-28-2", (3, 8, 8), {}, 128),
    ("resnet18", (3, 32, 32), {"small_stem": True}, 512),
    ("mobilenet_v3_small", (1, 32, 32), {}, 1024),
    ("googlenet", (3, 32, 32), {}, 1024),
    ("vit_b_16", (3, 32, 32), {}, 768),
    ("ft_transformer", (7,), {"dim": 8, "n_heads": 2, "n_blocks": 2}, 8),
]


@pytest.mark.parametrize(("name", "shape", "options", "width"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_forward_is_head_of_features(name: str, shape: tuple[int, ...], options: dict, width: int) -> None:
    model = build_model(name, shape, 4, **options).eval()
    x = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    h = model.features(x)
    assert h.shape == (3, width)
    assert isinstance(model.head, nn.Linear) and model.head.out_features == 4
    assert torch.equal(model(x), model.head(h))


def test_wrn_28_2_has_the_published_size() -> None:
    assert sum(p.numel() for p in build_model("wrn_28_2", (3, 32, 32), 10).parameters()) == 1_467_610


def test_same_seed_same_weights() -> None:
    def make() -> list[torch.Tensor]:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            return list(build_model("small_cnn", (1, 8, 8), 4, width=2).parameters())

    assert all(torch.equal(a, b) for a, b in zip(make(), make(), strict=True))


def test_small_stem_keeps_the_size() -> None:
    x = torch.zeros(1, 3, 32, 32)
    wide = build_model("resnet18", (3, 32, 32), 4, small_stem=True)
    assert wide.body.maxpool(wide.body.conv1(x)).shape[-1] == 32  # type: ignore[union-attr, operator]


def test_torchvision_names_are_listed() -> None:
    assert {"resnet50", "convnext_tiny", "mlp"} <= set(list_models(torchvision=True))
    assert "resnet50" not in list_models()


@pytest.mark.parametrize(
    ("name", "shape", "options", "words"),
    [
        ("wrn_28_3", (3, 8, 8), {}, "did you mean .*'wrn_28_2'"),
        ("zzzz", (3, 8, 8), {}, "see list_models"),
        ("mlp", (3,), {"width": 4}, "has no option 'width'; its options are: hidden, batch_norm, dropout"),
        ("wrn_28_2", (3, 8, 8), {"depth": 10}, "has no option 'depth'"),
        ("mlp", (3,), {"hidden": []}, "at least one layer"),
        ("small_cnn", (3,), {}, "need model 'mlp'"),
        ("small_cnn", (1, 3, 8), {}, "too small"),
        ("wide_resnet", (1, 8, 8), {"depth": 12}, "6 n \\+ 4"),
        ("squeezenet1_0", (3, 32, 32), {}, "no linear classifier"),
        ("inception_v3", (3, 32, 32), {}, "inception_v3 cannot take images of 32 x 32: .*Kernel size"),
        ("vit_b_16", (3, 30, 30), {}, "vit_b_16 cannot take images of 30 x 30"),
        ("resnet18", (2, 32, 32), {}, "not 2 channels"),
        ("ft_transformer", (1, 8, 8), {}, "takes tables"),
        ("ft_transformer", (8,), {"dim": 10}, "n_heads must divide dim"),
        ("mobilenet_v3_small", (3, 32, 32), {"small_stem": True}, "for the resnets"),
    ],
)
def test_errors(name: str, shape: tuple[int, ...], options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build_model(name, shape, 4, **options)


def test_ft_transformer_by_hand() -> None:
    """One block, one head: the formulas in plain numpy."""
    model = build_model("ft_transformer", (2,), 3, dim=4, n_heads=1, n_blocks=1).double().eval()
    x = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
    w = {k: v.numpy() for k, v in model.state_dict().items()}

    def linear(name: str, t: np.ndarray) -> np.ndarray:
        return t @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name: str, t: np.ndarray) -> np.ndarray:
        unit = (t - t.mean(-1, keepdims=True)) / np.sqrt(t.var(-1, keepdims=True) + 1e-5)
        return unit * w[f"{name}.weight"] + w[f"{name}.bias"]

    tokens = np.vstack([w["collector"], x.numpy()[0][:, None] * w["weight"] + w["bias"]])
    q, k, v = np.split(linear("blocks.0.qkv", tokens), 3, axis=1)  # no norm before the first attention
    score = np.exp(q @ k.T / 2)
    tokens = tokens + linear("blocks.0.out", score / score.sum(1, keepdims=True) @ v)
    value, gate = np.split(linear("blocks.0.up", norm("blocks.0.norm2", tokens)), 2, axis=1)
    tokens = tokens + linear("blocks.0.down", value * np.maximum(gate, 0))
    expected = np.maximum(norm("norm", tokens[0]), 0)
    np.testing.assert_allclose(model.features(x).detach().numpy()[0], expected, atol=1e-12)


def test_ft_transformer_has_second_derivatives() -> None:
    model = build_model("ft_transformer", (3,), 2, dim=8, n_heads=2, n_blocks=1)
    loss = model(torch.ones(4, 3)).square().sum()
    weights = [p for p in model.parameters() if p.requires_grad]
    first = torch.autograd.grad(loss, weights, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), weights, allow_unused=True)
    assert sum(float(g.abs().sum()) for g in second if g is not None) > 0


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        build_model("mlp", (3,), 1)
