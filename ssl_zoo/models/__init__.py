"""Networks by name. Every one has ``features(x)`` (B, F), ``head``, a linear layer, and ``forward = head(features)``.

An algorithm that needs another head adds it itself, on the features.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from ssl_zoo.models._base import FeatureModel
from ssl_zoo.models.ft_transformer import FTTransformer
from ssl_zoo.models.mlp import MLP
from ssl_zoo.models.small_cnn import SmallCNN
from ssl_zoo.models.torchvision_backbone import TorchvisionBackbone, torchvision_names
from ssl_zoo.models.wide_resnet import WideResNet

__all__ = [
    "FTTransformer", "FeatureModel", "MLP", "SmallCNN", "TorchvisionBackbone", "WideResNet", "build_model",
    "list_models",
]  # fmt: skip

# name -> class and the options that the name fixes
_OWN: dict[str, tuple[Callable[..., FeatureModel], dict[str, Any]]] = {
    "ft_transformer": (FTTransformer, {}),
    "mlp": (MLP, {}),
    "small_cnn": (SmallCNN, {}),
    "wide_resnet": (WideResNet, {}),
    "wrn_10_1": (WideResNet, {"depth": 10, "width": 1}),
    "wrn_16_2": (WideResNet, {"depth": 16, "width": 2}),
    "wrn_28_2": (WideResNet, {"depth": 28, "width": 2}),
    "wrn_28_8": (WideResNet, {"depth": 28, "width": 8}),
}


def list_models(*, torchvision: bool = False) -> list[str]:
    """Names that `build_model` knows; with ``torchvision=True`` the backbones of torchvision too.

    Examples
    --------
    >>> list_models()
    ['ft_transformer', 'mlp', 'small_cnn', 'wide_resnet', 'wrn_10_1', 'wrn_16_2', 'wrn_28_2', 'wrn_28_8']
    """
    return sorted(_OWN) + (torchvision_names() if torchvision else [])


def build_model(name: str, in_shape: tuple[int, ...], n_classes: int, **options: Any) -> FeatureModel:
    """A network for inputs of a shape, with fresh weights from torch's default generator.

    Parameters
    ----------
    name : str
        One of ``list_models(torchvision=True)``.
    in_shape : tuple of int
        (C, H, W), or (F,) for tables and text.
    n_classes : int
    **options
        Of the class; an unknown one is an error that lists them.

    Examples
    --------
    >>> import torch
    >>> model = build_model("wrn-10-1", (3, 16, 16), 5)
    >>> x = torch.zeros(2, 3, 16, 16)
    >>> model(x).shape, model.features(x).shape, model.head
    (torch.Size([2, 5]), torch.Size([2, 64]), Linear(in_features=64, out_features=5, bias=True))
    """
    key = name.lower().replace("-", "_")
    if key in _OWN:
        cls, fixed = _OWN[key]
    elif key in torchvision_names():
        cls, fixed = TorchvisionBackbone, {"backbone": key}
    else:
        near = difflib.get_close_matches(key, list_models(torchvision=True), n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see list_models(torchvision=True)."
        raise ValueError(f"there is no model {name!r}; {hint}")
    known = [p for p, kind in inspect.signature(cls).parameters.items() if kind.kind is kind.KEYWORD_ONLY]
    known = [p for p in known if p not in fixed]
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}; its options are: {', '.join(known) or 'none'}.")
    if n_classes < 2:
        raise ValueError(f"n_classes is {n_classes}; give at least 2.")
    return cls(tuple(in_shape), n_classes, **fixed, **options)
