"""What all networks share: features, then one linear layer."""

from __future__ import annotations

from torch import Tensor, nn


class FeatureModel(nn.Module):
    """Base: a subclass sets ``head`` and writes ``features``."""

    head: nn.Linear

    def features(self, x: Tensor) -> Tensor:
        """What goes into ``head``, (B, F)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes)."""
        return self.head(self.features(x))


def check_image_shape(in_shape: tuple[int, ...], name: str) -> tuple[int, int, int]:
    """(C, H, W), or an error that says which model takes vectors."""
    if len(in_shape) != 3:
        raise ValueError(f"{name} takes images (C, H, W); inputs of shape {in_shape} need model 'mlp'.")
    return in_shape[0], in_shape[1], in_shape[2]
