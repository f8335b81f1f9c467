"""Any classification backbone of torchvision, by its name there."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from ssl_zoo.models._base import FeatureModel, check_image_shape

_CLASSES = 1000  # of ImageNet: by them the classifier's last layer is found


@lru_cache(maxsize=1)
def torchvision_names() -> list[str]:
    """Names of torchvision's classification models."""
    from torchvision import models

    return sorted(models.list_models(module=models))


class TorchvisionBackbone(FeatureModel):
    """Everything before the last linear layer is ``features``; that layer is made anew for the classes.

    Grey images are repeated to three channels.

    Parameters
    ----------
    in_shape : tuple of int
    n_classes : int
    backbone : str
        Such as "resnet18" or "convnext_tiny".
    weights : str, optional
        Name of pretrained weights, such as "DEFAULT"; they are downloaded.
    small_stem : bool, default=False
        ResNets only: a 3 x 3 first convolution without stride and no pooling after it, for images below 64 x 64.

    Examples
    --------
    >>> TorchvisionBackbone((1, 32, 32), 10, backbone="resnet18", small_stem=True).head.in_features
    512
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        n_classes: int,
        *,
        backbone: str,
        weights: str | None = None,
        small_stem: bool = False,
    ) -> None:
        from torchvision import models

        super().__init__()
        channels, height, width = check_image_shape(in_shape, backbone)
        if channels not in (1, 3):
            raise ValueError(f"{backbone} takes grey or colour images, not {channels} channels; choose another model.")
        self.grey = channels == 1
        try:
            self.body = models.get_model(backbone, weights=weights, **_extra(backbone, weights, (height, width)))
            if small_stem:
                _shrink_stem(self.body, backbone)
            self.head = nn.Linear(_cut_classifier(self.body, backbone), n_classes)
            self._try_out(in_shape)
        except (AssertionError, RuntimeError) as error:  # torchvision's words for a size that it cannot take
            reason = " ".join(str(error).split())
            raise ValueError(f"{backbone} cannot take images of {height} x {width}: {reason}") from error

    @torch.no_grad()
    def _try_out(self, in_shape: tuple[int, ...]) -> None:
        """One image through, so that a wrong size shows now and not in the first step."""
        self.eval()(torch.zeros(1, *in_shape))
        self.train()

    def features(self, x: Tensor) -> Tensor:
        """Input of the classifier's last layer."""
        return self.body(x.expand(-1, 3, -1, -1) if self.grey else x)


def _extra(name: str, weights: str | None, size: tuple[int, int]) -> dict[str, Any]:
    """What some builders must be told: no second classifier, and the size of the images where it is built in."""
    if weights is not None:
        return {}
    if name in ("googlenet", "inception_v3"):
        return {"aux_logits": False, "init_weights": True}
    if name.startswith("vit_"):
        return {"image_size": size[0]}
    return {"input_size": size} if name == "maxvit_t" else {}


def _cut_classifier(body: nn.Module, name: str) -> int:
    """Put the identity in the place of the last linear layer; its number of inputs."""
    linear = [(path, m) for path, m in body.named_modules() if isinstance(m, nn.Linear) and m.out_features == _CLASSES]
    if not linear:
        raise ValueError(f"{name} has no linear classifier to replace; choose another backbone, such as 'resnet18'.")
    path, layer = linear[-1]
    parent, _, child = path.rpartition(".")
    setattr(body.get_submodule(parent), child, nn.Identity())
    return int(layer.in_features)


def _shrink_stem(body: Any, name: str) -> None:
    if not (hasattr(body, "conv1") and hasattr(body, "maxpool")):
        raise ValueError(f"{name} has no stem that can be made small; small_stem is for the resnets.")
    body.conv1 = nn.Conv2d(3, body.conv1.out_channels, 3, padding=1, bias=False)
    body.maxpool = nn.Identity()
