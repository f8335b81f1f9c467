"""Images from parquet, folders, idx and npz files -> uint8 arrays (N, C, H, W)."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssl_zoo.data.array_dataset import ArrayDataset

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def decode_images(
    openers: Iterable[Callable[[], Any]], *, size: int | None = None, channels: int | None = None, where: str = "images"
) -> NDArray[np.uint8]:
    """Decode files or buffers into one array (N, C, H, W).

    Parameters
    ----------
    openers : iterable of callables
        Each returns what Pillow can open: a path or a buffer. Called one at a time, so that few files are open at once.
    size : int, optional
        Height and width: scaled to cover the square, then cropped at the centre. Needed when the sizes differ.
    channels : {1, 3}, optional
        By default 1 when every image is grey, else 3.
    """
    from PIL import Image, ImageOps

    grey, arrays = True, []
    for row, opener in enumerate(openers):
        try:
            with Image.open(opener()) as file:
                if file.mode.startswith(("I", "F")):
                    raise ValueError(f"its mode is {file.mode}; convert it to 8 bits first")
                plain = channels == 1 or file.mode in ("L", "1")
                grey = grey and plain
                image = file.convert("L" if plain else "RGB")
                if size is not None and image.size != (size, size):
                    image = ImageOps.fit(image, (size, size), Image.Resampling.BILINEAR)
                arrays.append(np.asarray(image))
        except (OSError, ValueError, SyntaxError) as error:
            raise ValueError(f"{where}: image {row} cannot be read: {error}") from error
        if arrays[-1].shape[:2] != arrays[0].shape[:2]:
            raise ValueError(
                f"{where}: image {row} is {arrays[-1].shape[0]} x {arrays[-1].shape[1]}, the first one "
                f"{arrays[0].shape[0]} x {arrays[0].shape[1]}; give size= to bring them to one size"
            )
    if not arrays:
        raise ValueError(f"{where}: there are no images")
    n_channels = channels or (1 if grey else 3)
    out = np.empty((len(arrays), n_channels, *arrays[0].shape[:2]), dtype=np.uint8)
    for row, array in enumerate(arrays):  # a grey image among coloured ones is broadcast
        out[row] = array[None] if array.ndim == 2 else np.moveaxis(array, 2, 0)
    return out


def decode_bytes(
    column: Sequence[Any], *, size: int | None = None, channels: int | None = None, where: str = "images"
) -> NDArray[np.uint8]:
    """Decode encoded images: bytes, or the {"bytes", "path"} records of Hugging Face data sets."""
    buffers = [item.get("bytes") if isinstance(item, dict) else item for item in column]
    empty = next((row for row, data in enumerate(buffers) if not data), None)
    if empty is not None:
        raise ValueError(f"{where}: row {empty} holds no image bytes (only a path?); save the images inside the file")
    return decode_images(
        [partial(io.BytesIO, data or b"") for data in buffers], size=size, channels=channels, where=where
    )


def image_folder(
    root: Path, *, size: int | None = None, channels: int | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64], tuple[str, ...]]:
    """Images of a folder with one sub-folder for each class; classes in the order of their names."""
    classes = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    files = [(p, k) for k, name in enumerate(classes) for p in sorted((root / name).rglob("*"))]
    files = [(p, k) for p, k in files if p.is_file() and p.suffix.lower() in IMAGE_SUFFIXES]
    if not files:
        raise ValueError(f"{root} holds no class folders with images ({', '.join(IMAGE_SUFFIXES[:4])}, ...)")
    x = decode_images([partial(Path, p) for p, _ in files], size=size, channels=channels, where=str(root))
    return x, np.array([k for _, k in files], dtype=np.int64), tuple(classes)


def read_idx(path: Path) -> NDArray[Any]:
    """An array in the idx format of the MNIST family, gzipped or not."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as handle:
            data = handle.read()
        zero, code, n_dims = struct.unpack(">HBB", data[:4])
        shape = struct.unpack(f">{n_dims}I", data[4 : 4 + 4 * n_dims])
        if zero != 0 or code not in _IDX_TYPES:
            raise ValueError("its first bytes are not those of an idx file")
        return np.frombuffer(data, dtype=_IDX_TYPES[code], offset=4 + 4 * n_dims).reshape(shape)
    except (OSError, EOFError, struct.error, ValueError) as error:
        raise ValueError(f"{path} cannot be read as an idx file: {error}") from error


def read_npz(path: Path, split: str, *, x_key: str | None = None, y_key: str | None = None) -> tuple[Any, Any, bool]:
    """Inputs, labels (or None) and whether the file names this split itself.

    Looked for, in this order: x_train / y_train and the like, then x / y, images / labels, data / targets.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files if file[key].ndim > 0}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as an npz file without pickle: {error}") from error
    pairs = [(f"{a}_{split}", f"{b}_{split}", True) for a, b in _PAIRS]
    pairs += [(f"{split}_{a}", f"{split}_{b}", True) for a, b in _PAIRS]
    pairs += [(a, b, False) for a, b in _PAIRS]
    if x_key is not None:
        pairs = [(x_key, y_key or "", True)]
    for x_name, y_name, own in pairs:
        if x_name in arrays:
            return arrays[x_name], arrays.get(y_name), own
    raise ValueError(
        f"{path} holds no inputs for split {split!r}: its arrays are {', '.join(arrays) or 'none'}; "
        "name them with x_key= and y_key="
    )


_PAIRS = (("x", "y"), ("X", "y"), ("images", "labels"), ("data", "targets"), ("data", "labels"))


def as_image_array(x: NDArray[Any], where: str = "x") -> NDArray[Any]:
    """(N, C, H, W) images, uint8 or float32 in [0, 1], from the layouts that files have.

    Channels last becomes channels first, a missing channel is added, and floats that span [-1, 1] or 0..255 are
    brought to [0, 1].
    """
    x = np.asarray(x)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        x = np.moveaxis(x, 3, 1)
    if x.ndim != 4:
        raise ValueError(f"{where} must hold images (N, H, W), (N, C, H, W) or (N, H, W, C); got shape {x.shape}")
    if x.dtype == np.uint8:
        return np.ascontiguousarray(x)
    low, high = float(x.min()), float(x.max())
    if x.dtype.kind in "iu" and low >= 0 and high <= 255:
        return np.ascontiguousarray(x, dtype=np.uint8)
    if x.dtype.kind == "f" and low >= -1 and high <= 1:
        x = x.astype(np.float32)
        return np.ascontiguousarray(x if low >= 0 else (x + 1) / 2)
    if x.dtype.kind == "f" and low >= 0 and high <= 255:
        return np.ascontiguousarray(x, dtype=np.float32) / 255
    raise ValueError(
        f"{where} spans [{low:.4g}, {high:.4g}]; images must lie in [0, 1], [-1, 1] or 0..255. Rescale them"
    )


def match_images(dataset: ArrayDataset, in_shape: Sequence[int]) -> ArrayDataset:
    """The same images at another size and number of channels, so that a far source fits the network.

    Examples
    --------
    >>> grey = ArrayDataset(np.zeros((2, 1, 28, 28), np.uint8), np.array([0, 0]), ("0",), "digits")
    >>> match_images(grey, (3, 32, 32)).in_shape
    (3, 32, 32)
    """
    if not dataset.is_image:
        raise ValueError(f"only images can be brought to another size; {dataset.source} is {dataset.kind}")
    channels, *size = (int(n) for n in in_shape)
    if dataset.in_shape == (channels, *size):
        return dataset
    import torch
    from torch.nn.functional import interpolate

    out = np.empty((len(dataset), channels, *size), dtype=dataset.x.dtype)
    scale = 255.0 if dataset.x.dtype == np.uint8 else 1.0
    for start in range(0, len(dataset), 4096):  # bounds the float copies
        x = torch.from_numpy(dataset.x[start : start + 4096]).float()
        if x.shape[1] == 3 and channels == 1:
            x = (x * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
        if list(x.shape[2:]) != size:
            x = interpolate(x, size=size, mode="bilinear", antialias=True, align_corners=False)
        x = x.clamp(0, scale).expand(-1, channels, -1, -1)
        out[start : start + 4096] = (x.round() if scale == 255.0 else x).numpy()
    return replace(dataset, x=out)
