"""Wide residual networks (Zagoruyko & Komodakis 2016), as the semi-supervised field uses them."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from ssl_zoo.models._base import FeatureModel, check_image_shape


class WideResNet(FeatureModel):
    """Three groups of pre-activation blocks with leaky ReLU (.1); WRN-28-2 is the field's common network.

    Parameters
    ----------
    in_shape : tuple of int
    n_classes : int
    depth : int, default=28
        Layers, ``6 n + 4``.
    width : int, default=2
        Factor on the 16, 32 and 64 channels of the groups.
    bn_momentum : float, default=0.1
        Share of a new batch in the running statistics. FixMatch's code has .001, which short runs cannot fill.

    References
    ----------
    Zagoruyko, Komodakis. Wide residual networks. BMVC 2016.
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        n_classes: int,
        *,
        depth: int = 28,
        width: int = 2,
        bn_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        channels, _, _ = check_image_shape(in_shape, "wide_resnet")
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"wide_resnet: depth is {depth}; it must be 6 n + 4 with n at least 1, such as 16 or 28.")
        sizes = [16 * width, 32 * width, 64 * width]
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        n_in = 16
        for group, n_out in enumerate(sizes):
            for k in range((depth - 4) // 6):
                stride = 2 if group > 0 and k == 0 else 1
                blocks.append(_Block(n_in, n_out, stride, first=not blocks))
                n_in = n_out
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(n_in)
        self.head = nn.Linear(n_in, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu", a=0.1)
            elif isinstance(module, nn.BatchNorm2d):
                module.momentum = bn_momentum
        nn.init.xavier_normal_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tensor) -> Tensor:
        """Mean over places of the last group."""
        x = functional.leaky_relu(self.norm(self.blocks(self.stem(x))), 0.1, inplace=True)
        return x.mean((2, 3))


class _Block(nn.Module):
    """BN, activation, convolution, twice; the shortcut is a 1 x 1 convolution where the size changes."""

    def __init__(self, n_in: int, n_out: int, stride: int, *, first: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(n_in), nn.BatchNorm2d(n_out)
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        same = n_in == n_out and stride == 1
        self.shortcut = None if same else nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False)
        self.activate_before = first  # the very first block also hands the activated input to its shortcut

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        active = functional.leaky_relu(self.norm1(x), 0.1, inplace=True)
        residual = active if self.activate_before or self.shortcut is not None else x
        out = functional.leaky_relu(self.norm2(self.conv1(active)), 0.1, inplace=True)
        shortcut = residual if self.shortcut is None else self.shortcut(residual)
        return self.conv2(out) + shortcut
