"""Views of a batch, drawn for every sample by itself, on the device, from one explicit generator.

An augmenter turns stored inputs (uint8 or float) into float32 views: `plain` (normalised), `weak` and `strong`. Two
equal inputs in a batch get different views. All random numbers come from the generator that the augmenter holds, so
that its state is all that an exact resume needs.

RandAugment draws operations in a random order; here the drawn ones are applied in a fixed order (colours, then one
affine map), so that a batch needs one resampling, whatever was drawn.

References
----------
Cubuk et al. (2020), RandAugment; Sohn et al. (2020), FixMatch (operations and cutout).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ssl_zoo.data import image_ops as ops
from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.feature_augmentation import Augmenter, FeatureAugmenter


class ImageAugmenter(Augmenter):
    """Weak: crop after padding, mirror image. Strong: that, then two of fourteen operations, then cutout.

    Parameters
    ----------
    mean, std : sequence of float
        By channel, in units of [0, 1].
    generator : torch.Generator
        Source of all random numbers.
    pad : float, default=0.125
        Largest shift of the weak view, as a share of the side.
    flip : bool
        Whether half of the views are mirrored.
    n_ops : int
        Operations that a strong view gets.
    strength : float, default=1.0
        Factor on the range of every operation.
    cutout : float, default=0.5
        Largest side of the square that is cut out, as a share of the picture's; its size is uniform.
    fill : sequence of float, optional
        Colour beyond the border of resampled pictures and inside the cutout; by default the mean colour.
    border : {"mirror", "fill"}
        What the weak view shows beyond the border.
    channels_last : bool, default=False
        Memory layout of the views.

    Examples
    --------
    >>> augment = ImageAugmenter([0.5], [0.25], generator=torch.Generator().manual_seed(0))
    >>> x = torch.randint(0, 256, (1, 1, 8, 8), dtype=torch.uint8).expand(4, -1, -1, -1)
    >>> views = augment.strong(x)
    >>> views.dtype, bool((views[0] == views[1]).all())
    (torch.float32, False)
    """

    OPS: ClassVar[tuple[str, ...]] = (
        "identity", "autocontrast", "equalize", "brightness", "color", "contrast", "sharpness", "posterize", "solarize",
        "rotate", "shear_x", "shear_y", "translate_x", "translate_y",
    )  # fmt: skip
    # largest deviation from doing nothing, at strength 1
    RANGES: ClassVar[dict[str, float]] = {
        "brightness": 0.9, "color": 0.9, "contrast": 0.9, "sharpness": 0.9, "rotate": math.pi / 6,
        "shear_x": 0.3, "shear_y": 0.3, "translate_x": 0.3, "translate_y": 0.3, "scale": 0.3,
    }  # fmt: skip
    FLIP: ClassVar[bool] = True
    N_OPS: ClassVar[int] = 2

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        *,
        generator: torch.Generator,
        pad: float = 0.125,
        flip: bool | None = None,
        n_ops: int | None = None,
        strength: float = 1.0,
        cutout: float = 0.5,
        fill: Sequence[float] | None = None,
        border: str = "mirror",
        channels_last: bool = False,
    ) -> None:
        super().__init__(mean, std, generator=generator)
        self.pad, self.strength, self.cutout = pad, strength, cutout
        self.flip = self.FLIP if flip is None else flip
        self.n_ops = self.N_OPS if n_ops is None else n_ops
        if not 0 <= self.n_ops <= len(self.OPS):
            raise ValueError(f"n_ops must lie between 0 and {len(self.OPS)}; got {n_ops}")
        if border not in ("mirror", "fill"):
            raise ValueError(f"border must be 'mirror' or 'fill'; got {border!r}")
        self._fill_values = [float(v) for v in (self.mean.tolist() if fill is None else fill)]
        self.fill = torch.tensor(self._fill_values, device=generator.device)
        self.border = border
        self._layout = torch.channels_last if channels_last else torch.contiguous_format
        self._scale = (1 / self.std).view(1, -1, 1, 1)
        self._shift = (-self.mean / self.std).view(1, -1, 1, 1)

    def plain(self, x: Tensor) -> Tensor:
        """The normalised pictures."""
        if x.dtype == torch.uint8:
            out = x.float().mul_(self._scale / 255)
        else:
            out = x.float() * self._scale
        return out.add_(self._shift).contiguous(memory_format=self._layout)

    def weak(self, x: Tensor) -> Tensor:
        """Shifted, perhaps mirrored."""
        return self.plain(self._move(x))

    def strong(self, x: Tensor) -> Tensor:
        """Shifted, perhaps mirrored, then `n_ops` operations and cutout."""
        x = self._move(x)
        x = x.float().div_(255) if x.dtype == torch.uint8 else x.float()
        if self.n_ops:
            x = self._operations(x)
        if self.cutout:
            draws = self._rand(len(x), 3)
            x = ops.cutout(x, draws[:, 0], draws[:, 1], draws[:, 2] * self.cutout, self.fill)
        return self.plain(x)

    def _move(self, x: Tensor) -> Tensor:
        """Crop after padding and mirror image, in the stored type: a byte a pixel is all that moves."""
        pad = round(self.pad * x.shape[2])
        draws = self._rand(len(x), 3)
        shift = (draws[:, :2] * (2 * pad + 1)).long()
        flip = draws[:, 2] < 0.5 if self.flip else None
        fill = self._fill_values[0] if self.border == "fill" else None
        if fill is not None and x.dtype == torch.uint8:
            fill = round(fill * 255)
        return ops.shift_flip(x, shift[:, 0], shift[:, 1], flip, pad, fill)

    def _operations(self, x: Tensor) -> Tensor:
        """Different operations for every sample: `n_ops` distinct ones of `OPS`, each of random size."""
        rank = self._rand(len(x), len(self.OPS))
        chosen = torch.zeros_like(rank, dtype=torch.bool)
        chosen.scatter_(1, rank.topk(self.n_ops, dim=1, sorted=False).indices, True)
        size = self._rand(len(x), len(self.OPS))  # uniform in [0, 1) for every operation, used or not
        for k, name in enumerate(self.OPS):
            if name in ("autocontrast", "equalize"):
                x = ops.apply_where(x, chosen[:, k], getattr(ops, name))
            elif name == "posterize":
                levels = 2.0 ** (8 - (size[:, k] * 5 * min(self.strength, 1.0)).floor())  # 8 to 4 bits
                x = ops.apply_where(x, chosen[:, k], ops.posterize, levels)
            elif name == "solarize":
                x = ops.apply_where(x, chosen[:, k], ops.solarize, 1 - size[:, k] * min(self.strength, 1.0))
            elif name in ("brightness", "color", "contrast", "sharpness"):
                factor = 1 + (2 * size[:, k] - 1) * self.RANGES[name] * self.strength
                x = ops.apply_where(x, chosen[:, k], getattr(ops, name), factor)
        return self._resample(x, chosen, size)

    def _resample(self, x: Tensor, chosen: Tensor, size: Tensor) -> Tensor:
        """All geometric operations of a sample as one affine map."""
        nothing = torch.zeros(len(x), device=x.device)
        amount, moved = {}, torch.zeros(len(x), dtype=torch.bool, device=x.device)
        for name in ("rotate", "shear_x", "shear_y", "scale", "translate_x", "translate_y"):
            if name not in self.OPS:
                amount[name] = nothing
                continue
            k = self.OPS.index(name)
            amount[name] = (2 * size[:, k] - 1) * self.RANGES[name] * self.strength * chosen[:, k]
            moved = moved | chosen[:, k]
        matrix = ops.affine_matrix(
            amount["rotate"], amount["shear_x"], amount["shear_y"], (amount["scale"]).exp(),
            amount["translate_x"], amount["translate_y"],
        )  # fmt: skip
        return ops.apply_where(x, moved, lambda part, m: ops.affine(part, m, self.fill), matrix)


class DigitAugmenter(ImageAugmenter):
    """For handwritten digits and the like: never mirrored, turned by 25 degrees at most, no negatives.

    Examples
    --------
    >>> augment = DigitAugmenter([0.2], [0.3], fill=[0.0], border="fill", generator=torch.Generator().manual_seed(0))
    >>> augment.weak(torch.zeros(2, 1, 16, 16, dtype=torch.uint8)).shape
    torch.Size([2, 1, 16, 16])
    """

    OPS = (
        "identity", "brightness", "contrast", "sharpness",
        "rotate", "shear_x", "shear_y", "scale", "translate_x", "translate_y",
    )  # fmt: skip
    RANGES = {
        **ImageAugmenter.RANGES, "brightness": 0.5, "contrast": 0.5, "rotate": math.pi * 25 / 180,
        "translate_x": 0.15, "translate_y": 0.15,
    }  # fmt: skip
    FLIP = False
    N_OPS = 3


def make_augmenter(
    dataset: ArrayDataset,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    generator: torch.Generator | None = None,
    **options: Any,
) -> Augmenter:
    """The augmenter of a data set's kind, with mean and standard deviation of its inputs.

    Normalise with the whole train split, not with a contaminated pool: then the views of a sample do not depend on
    which other samples the pool holds.

    Examples
    --------
    >>> from ssl_zoo.data.datasets import load_dataset
    >>> type(make_augmenter(load_dataset("digits"))).__name__
    'DigitAugmenter'
    """
    if generator is None:
        generator = torch.Generator(device=device).manual_seed(seed)
    if dataset.is_image:
        mean, std = _channel_moments(dataset.x)
        if dataset.kind == "digits" and dataset.in_shape[0] == 1:
            options = {"fill": [_background(dataset.x)], "border": "fill", **options}
        cls = DigitAugmenter if dataset.kind == "digits" else ImageAugmenter
        return cls(mean.tolist(), std.tolist(), generator=generator, **options)
    x = dataset.x.astype(np.float64)
    if dataset.kind == "text":  # zeros stay zeros: most terms are absent from most texts
        scale = float(np.sqrt(np.mean(x**2))) or 1.0
        options = {"weak_noise": 0.0, "strong_noise": 0.0, "weak_mask": 0.1, "strong_mask": 0.4, **options}
        return FeatureAugmenter(np.zeros(x.shape[1]).tolist(), np.full(x.shape[1], scale).tolist(), generator=generator,
                                **options)  # fmt: skip
    std = x.std(axis=0)
    return FeatureAugmenter(
        x.mean(axis=0).tolist(), np.where(std > 0, std, 1.0).tolist(), generator=generator, **options
    )


def _channel_moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation by channel in units of [0, 1], without a float copy of the data."""
    total, squares, count = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096].astype(np.float64)
        total, squares = total + part.sum(axis=(0, 2, 3)), squares + (part**2).sum(axis=(0, 2, 3))
        count += part.size // part.shape[1]
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    unit = 255.0 if x.dtype == np.uint8 else 1.0
    return mean / unit, np.where(std > 0, std, unit) / unit


def _background(x: np.ndarray) -> float:
    """Usual value of the outermost pixels, in units of [0, 1]."""
    part = x[:: max(1, len(x) // 2000)]
    edges = np.concatenate([part[:, :, [0, -1], :].ravel(), part[:, :, :, [0, -1]].ravel()])
    return float(np.median(edges)) / (255.0 if x.dtype == np.uint8 else 1.0)
