"""Multilayer perceptron, for tables, text features and small images."""

from __future__ import annotations

import math

from torch import Tensor, nn

from ssl_zoo.models._base import FeatureModel


class MLP(FeatureModel):
    """Linear layers with batch-norm and ReLU; images are flattened.

    Parameters
    ----------
    in_shape : tuple of int
    n_classes : int
    hidden : sequence of int, default=(256, 256)
        Width of each layer; the last one is the number of features.
    batch_norm : bool, default=True
    dropout : float, default=0
        After each layer.

    Examples
    --------
    >>> MLP((1, 8, 8), 10, hidden=(32,)).head.in_features
    32
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        n_classes: int,
        *,
        hidden: tuple[int, ...] | list[int] = (256, 256),
        batch_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not hidden or min(hidden) < 1:
            raise ValueError(f"mlp: hidden is {hidden!r}; give the width of at least one layer, such as (256, 256).")
        layers: list[nn.Module] = []
        for n_in, n_out in zip([math.prod(in_shape), *hidden], hidden, strict=False):
            layers += [nn.Linear(n_in, n_out, bias=not batch_norm)]
            layers += [nn.BatchNorm1d(n_out)] if batch_norm else []
            layers += [nn.ReLU()]
            layers += [nn.Dropout(dropout)] if dropout else []
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(hidden[-1], n_classes)

    def features(self, x: Tensor) -> Tensor:
        """Output of the last hidden layer."""
        return self.body(x.flatten(1))
