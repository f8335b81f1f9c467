"""Image operations on a whole batch, each sample with its own parameters.

Images are float (B, C, H, W) in [0, 1] unless said otherwise. A parameter is a tensor (B,). Nothing here draws random
numbers and nothing reads a value back to the host, so every function runs on a GPU without waiting for it. Arithmetic
on masks and writing into fresh temporaries stand where `torch.where` would be shorter to write: it is several times
slower on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

_LUMA = (0.299, 0.587, 0.114)


def apply_where(x: Tensor, chosen: Tensor, op: Callable[..., Tensor], *parameters: Tensor) -> Tensor:
    """`op(x, *parameters)` for the chosen samples, the others as they are.

    On a CPU only the chosen samples are computed. On a GPU all are, since finding out which ones would make the host
    wait; the result is the same.
    """
    if x.device.type == "cpu":
        rows = chosen.nonzero().squeeze(1)
        if rows.numel():
            x = x.index_copy(0, rows, op(x[rows], *(p[rows] for p in parameters)))
        return x
    return torch.where(_wide(chosen), op(x, *parameters), x)


def shift_flip(x: Tensor, dy: Tensor, dx: Tensor, flip: Tensor | None, pad: int, fill: float | None) -> Tensor:
    """Random crop after padding, perhaps mirrored: sample b shows what lies (dy - pad, dx - pad) pixels further on.

    Nothing is padded in fact: one gather reads every pixel from where it comes from. Works on uint8 as on floats.
    `fill` is the value beyond the border; None mirrors the picture there.
    """
    n_channels, height, width = x.shape[1:]
    rows = torch.arange(height, device=x.device) + (dy - pad)[:, None]
    columns = torch.arange(width, device=x.device) + (dx - pad)[:, None]
    if flip is not None:
        columns = torch.where(flip[:, None], columns.flip(1), columns)
    index = _mirrored(rows, height)[:, :, None] * width + _mirrored(columns, width)[:, None, :]
    out = x.flatten(2).gather(2, index.flatten(1)[:, None].expand(-1, n_channels, -1)).view(x.shape)
    if fill is None:
        return out
    beyond = ((rows < 0) | (rows >= height))[:, :, None] | ((columns < 0) | (columns >= width))[:, None, :]
    if fill == 0:
        return out.mul_(~beyond[:, None])
    return out.masked_fill_(beyond[:, None], fill)


def _mirrored(index: Tensor, n: int) -> Tensor:
    """Positions beyond 0..n-1 mirrored at the outermost pixels, which are not repeated."""
    index = index.abs()
    return torch.where(index >= n, 2 * (n - 1) - index, index).clamp(0, n - 1)


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Towards black (0) or beyond the picture itself (1)."""
    return (x * _wide(factor)).clamp_(0, 1)


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Towards or away from the mean grey of the picture."""
    mean = luma(x).mean((1, 2, 3), keepdim=True)
    return torch.lerp(mean.expand_as(x), x, _wide(factor)).clamp_(0, 1)


def color(x: Tensor, factor: Tensor) -> Tensor:
    """Towards or away from the grey picture; a grey one stays as it is."""
    return x if x.shape[1] == 1 else torch.lerp(luma(x).expand_as(x), x, _wide(factor)).clamp_(0, 1)


def sharpness(x: Tensor, factor: Tensor) -> Tensor:
    """Towards or away from the smoothed picture."""
    down = x[:, :, :-2] + x[:, :, 1:-1] + x[:, :, 2:]
    center = x[:, :, 1:-1, 1:-1]
    smooth = (down[..., :-2] + down[..., 1:-1] + down[..., 2:]).add_(center, alpha=4).div_(13)
    out = x.clone()  # the outermost pixels have no eight neighbours and stay as they are
    out[:, :, 1:-1, 1:-1] = torch.lerp(smooth, center, _wide(factor))
    return out.clamp_(0, 1)


def autocontrast(x: Tensor) -> Tensor:
    """Stretch every channel to [0, 1]; a constant channel stays as it is."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    spread = high - low
    return torch.where(spread > 0, (x - low) / torch.where(spread > 0, spread, 1), x)


def equalize(x: Tensor) -> Tensor:
    """Spread every channel's 256 grey levels evenly; a constant channel stays as it is."""
    levels = (x * 255).round().long().clamp(0, 255).flatten(2)
    counts = torch.zeros(*x.shape[:2], 256, dtype=x.dtype, device=x.device)
    counts.scatter_add_(2, levels, torch.ones_like(levels, dtype=x.dtype))
    below = counts.cumsum(2) - counts
    last = counts.gather(2, levels.amax(2, keepdim=True))  # pixels of the brightest level
    total = levels.shape[2] - last
    table = below / torch.where(total > 0, total, 1)
    out = table.gather(2, levels).clamp(0, 1).view_as(x)
    return torch.where(total[..., None] > 0, out, x)


def posterize(x: Tensor, levels: Tensor) -> Tensor:
    """Keep so many grey levels."""
    width = _wide(256 / levels) / 255  # of one level
    return (x / width).add_(1e-3).floor_().mul_(width)  # a level's own value must not fall just below it


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    """Negative of what is at least as bright as the threshold."""
    return (x >= _wide(threshold)).to(x.dtype).sub_(x).abs_()  # |1 - x| or |0 - x|


def luma(x: Tensor) -> Tensor:
    """Grey picture (B, 1, H, W)."""
    if x.shape[1] == 1:
        return x
    return x[:, 0:1] * _LUMA[0] + x[:, 1:2] * _LUMA[1] + x[:, 2:3] * _LUMA[2]


def affine(x: Tensor, matrix: Tensor, fill: Tensor) -> Tensor:
    """Resample, one matrix (B, 2, 3) a sample: output to input, in units of half the picture; `fill` (C,) beyond it."""
    fill = fill.view(1, -1, 1, 1)
    grid = F.affine_grid(matrix, list(x.shape), align_corners=False)
    return F.grid_sample(x - fill, grid, mode="bilinear", padding_mode="zeros", align_corners=False).add_(fill)


def affine_matrix(
    angle: Tensor, shear_x: Tensor, shear_y: Tensor, scale: Tensor, move_x: Tensor, move_y: Tensor
) -> Tensor:
    """Rotation (radians), shears, magnification and shift (share of the side) as one matrix for `affine`."""
    cos, sin = angle.cos() / scale, angle.sin() / scale
    row_x = torch.stack([cos - sin * shear_y, cos * shear_x - sin, -2 * move_x], -1)
    row_y = torch.stack([sin + cos * shear_y, sin * shear_x + cos, -2 * move_y], -1)
    return torch.stack([row_x, row_y], 1)


def cutout(x: Tensor, center_y: Tensor, center_x: Tensor, side: Tensor, fill: Tensor) -> Tensor:
    """A square of the fill colour; centre and side as shares of the picture."""
    height, width = x.shape[2:]
    rows = (torch.arange(height, device=x.device) + 0.5) / height
    columns = (torch.arange(width, device=x.device) + 0.5) / width
    hit_y = (rows - center_y[:, None]).abs() < side[:, None] / 2
    hit_x = (columns - center_x[:, None]).abs() < side[:, None] / 2
    hit = (hit_y[:, :, None] & hit_x[:, None, :])[:, None].to(x.dtype)
    return (x * (1 - hit)).add_(hit * fill.view(1, -1, 1, 1))


def _wide(values: Tensor) -> Tensor:
    return values.view(-1, 1, 1, 1)
