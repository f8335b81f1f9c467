"""Sums of scaled kernels with PyTorch: the passes of `_tiles`, on a GPU where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssme.kernel_sums._points import Points
from ssme.kernel_sums._tiles import SLACK

Floats = NDArray[np.float64]

_CPU_TILE = 2**17  # kernels worked on at a time where the second-level cache is to hold them
_GPU_TILE = 2**27  # and where launching work is what costs
_HEIGHT = {True: 128, False: 4096}  # rows of a tile: on the CPU, on others


class TorchSums:
    """Kernel sums of `points`, relative to a shift for every row, on a device of PyTorch.

    Parameters
    ----------
    points : Points
    memory_budget : int
        Bytes for a kept matrix and for temporaries, each, on the device.
    keep : bool
        Hold the kernel matrix where it fits.
    device : str, optional
        Default: see `pick_device`.

    Raises
    ------
    ImportError
        Without PyTorch.
    ValueError
        For a device that is not there, or float64 on one that has none.
    """

    def __init__(self, points: Points, memory_budget: int, keep: bool, device: str | None) -> None:
        try:
            import torch
        except ImportError:
            raise ImportError("backend='torch' needs PyTorch: pip install torch, or use backend='numpy'") from None
        self._torch, self._points, self._limits = torch, points, points.precision
        self._type = getattr(torch, self._limits.dtype.name)
        self._device = pick_device(torch, self._limits.dtype.name, device)
        # MPS has no float64: there, all is float32
        self._wide = torch.float32 if self._device.type == "mps" else torch.float64
        self._tensors: dict[str, Any] = {}
        on_cpu = self._device.type == "cpu"
        itemsize = 8 if self._wide == torch.float64 else 4
        self._tile = max(1, min(_CPU_TILE if on_cpu else _GPU_TILE, memory_budget // (4 * itemsize)))
        self._height = min(_HEIGHT[on_cpu], max(1, self._tile // min(points.n, _HEIGHT[on_cpu])))
        self._shift = self._to(np.full(points.q, -np.inf), self._wide)
        self._kernel, self._passed = None, False
        if keep and points.q * points.n * self._limits.dtype.itemsize <= memory_budget:
            self._kernel = torch.empty((points.q, points.n), dtype=self._type, device=self._device)
            self._run(None)

    @property
    def kept(self) -> bool:
        return self._kernel is not None

    def sums(self, weights: Floats) -> tuple[Floats, Floats]:
        """Shifts (q,), and sums (q, C) of exp(exponent - shift) times weights (n, C)."""
        w = self._to(weights, self._type)
        sums = self._run(w) if self._kernel is None else self._kernel @ w
        shift = self._torch.where(self._torch.isneginf(self._shift), 0.0, self._shift)
        return self._numpy(shift), self._numpy(sums)

    def _run(self, weights: Any) -> Any:
        """Sums of all rows; without weights, the kernels go into the kept matrix."""
        q, n = self._points.q, self._points.n
        columns_of_weights = 0 if weights is None else weights.shape[1]
        out = self._torch.zeros((q, columns_of_weights), dtype=self._wide, device=self._device)
        width = n if self._kernel is not None else max(1, self._tile // self._height)
        height = max(1, self._tile // n) if self._kernel is not None else self._height
        for start in range(0, q, height):
            rows = slice(start, min(start + height, q))
            shift, sums = self._shift[rows], out[rows]  # views
            clip = self._points.may_underflow(self._points.x_norm[rows])
            for first in range(0, n, width):
                columns = slice(first, min(first + width, n))
                tile = self._exponents(rows, columns, shift)
                if not self._passed:
                    self._raise_shift(shift, sums, tile)
                if clip or tile.dtype != self._type:
                    tile.clamp_(min=self._limits.cut)
                tile = tile.to(self._type).exp_()
                self._set_own(tile, rows, columns, 0.0)
                if weights is None:
                    self._kernel[rows] = tile  # type: ignore[index]
                else:
                    sums += tile @ weights[columns]
        self._passed = True
        return out

    def _exponents(self, rows: slice, columns: slice, shift: Any) -> Any:
        """Exponents (b, t) less the shift; the own one is -inf if left out. float32 only where no row is far."""
        torch, points = self._torch, self._points
        lowered = torch.where(torch.isneginf(shift), 0.0, shift)[:, None]
        kind = points.product_type(points.x_norm[rows])
        if kind == "float64" and self._wide == torch.float32:
            kind = None  # differences keep digits that a float32 product loses
        if kind is None:
            x, y = (self._to(part, self._wide) for part in (points.x[rows], points.y[columns]))
            tile = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
            tile = tile.square_().mul_(-0.5).sub_(lowered)
        else:
            left = self._to(points.left(rows), self._wide)
            left[:, -1:] -= lowered
            if kind not in self._tensors:
                self._tensors[kind] = self._to(points.right(kind), getattr(torch, kind))
            right = self._tensors[kind]
            tile = left.to(right.dtype) @ right[:, columns]
        self._set_own(tile, rows, columns, -np.inf)
        return tile

    def _raise_shift(self, shift: Any, sums: Any, tile: Any) -> None:
        """As `_tiles._raise_shift`, without a question to the device that would make it wait."""
        torch = self._torch
        top, unset = tile.amax(dim=1).to(self._wide), torch.isneginf(shift)
        higher = (unset & torch.isfinite(top)) | (top > SLACK)
        rise = torch.where(higher, top, 0.0)
        tile -= rise[:, None].to(tile.dtype)
        sums *= torch.exp(torch.where(unset, 0.0, -rise))[:, None]
        shift.copy_(torch.where(unset & higher, rise, shift + rise))

    def _set_own(self, tile: Any, rows: slice, columns: slice, value: float) -> None:
        if self._points.exclude_self:
            first, last = max(rows.start, columns.start), min(rows.stop, columns.stop)
            if first < last:
                own = self._torch.arange(first, last, device=self._device)
                tile[own - rows.start, own - columns.start] = value

    def _to(self, array: Any, dtype: Any) -> Any:
        narrow = np.float32 if dtype == self._torch.float32 else np.float64
        array = np.clip(array, -3e38, 3e38) if narrow == np.float32 else array
        return self._torch.from_numpy(np.array(array, dtype=narrow, order="C")).to(self._device)

    def _numpy(self, tensor: Any) -> Floats:
        return np.asarray(tensor.cpu().numpy(), dtype=np.float64)


def pick_device(torch: Any, dtype: str, device: str | None) -> Any:
    """The device that is named; else CUDA where there is one, MPS where there is one and it has the type, the CPU."""
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if device is None:
        return torch.device("cuda" if cuda else "mps" if mps and dtype == "float32" else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be a name such as 'cuda', 'mps' or 'cpu', got {device!r}") from None
    there = {"cpu": True, "cuda": cuda, "mps": mps}.get(found.type, False)
    if not there or (found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count()):
        raise ValueError(f"device={device!r} is not available to PyTorch here; leave device out or name another")
    if found.type == "mps" and dtype == "float64":
        raise ValueError("device='mps' has no float64; use dtype='float32' or device='cpu'")
    return found
