"""A small convolutional network that trains in minutes on two CPU cores."""

from __future__ import annotations

from torch import Tensor, nn

from ssl_zoo.models._base import FeatureModel, check_image_shape


class SmallCNN(FeatureModel):
    """Three convolutions (3 x 3, batch-norm, ReLU), halved in size after the first two, then the mean over places.

    Parameters
    ----------
    in_shape : tuple of int
    n_classes : int
    width : int, default=32
        Channels of the first layer; the next ones have two and four times as many.

    Examples
    --------
    >>> SmallCNN((1, 8, 8), 10, width=8).head.in_features
    32
    """

    def __init__(self, in_shape: tuple[int, ...], n_classes: int, *, width: int = 32) -> None:
        super().__init__()
        channels, height, side = check_image_shape(in_shape, "small_cnn")
        if min(height, side) < 4:
            raise ValueError(f"small_cnn: inputs of {height} x {side} are too small; it takes 4 x 4 or more.")
        sizes = [channels, width, 2 * width, 4 * width]
        layers: list[nn.Module] = []
        for k in range(3):
            layers += [nn.Conv2d(sizes[k], sizes[k + 1], 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(sizes[k + 1]), nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(2)] if k < 2 else [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(sizes[-1], n_classes)

    def features(self, x: Tensor) -> Tensor:
        """Mean over places of the last layer."""
        return self.body(x)
