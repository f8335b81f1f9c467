"""torchvision data sets as arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.image_files import as_image_array, decode_images


@dataclass(frozen=True)
class VisionSet:
    """How torchvision spells one data set: class, arguments of each split, where its arrays are."""

    class_name: str
    splits: dict[str, dict[str, Any]]
    kind: str = "image"
    x: str = "data"
    y: str = "targets"


_TRAIN_FLAG: dict[str, dict[str, Any]] = {"train": {"train": True}, "test": {"train": False}}
_BY_NAME = {name: {"split": name} for name in ("train", "test", "unlabeled", "extra")}
TORCHVISION = {
    "cifar10": VisionSet("CIFAR10", _TRAIN_FLAG),
    "cifar100": VisionSet("CIFAR100", _TRAIN_FLAG),
    "mnist": VisionSet("MNIST", _TRAIN_FLAG, "digits"),
    "fashion_mnist": VisionSet("FashionMNIST", _TRAIN_FLAG),
    "svhn": VisionSet("SVHN", {k: _BY_NAME[k] for k in ("train", "test", "extra")}, "digits", y="labels"),
    "stl10": VisionSet("STL10", {k: _BY_NAME[k] for k in ("train", "test", "unlabeled")}, y="labels"),
    "dtd": VisionSet(
        "DTD", {"train": {"split": "train"}, "test": {"split": "test"}, "validation": {"split": "val"}},
        x="_image_files", y="_labels",
    ),
}  # fmt: skip
FOLDERS = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST"}
DTD_SIZE = 48


def kind_of(name: str) -> str:
    """Kind of a named data set."""
    return TORCHVISION[name].kind


def data_root(root: str | Path | None) -> Path:
    """Folder of the named data sets: the argument, $SSL_ZOO_DATA, or ~/.cache/ssl_zoo."""
    return Path(root or os.environ.get("SSL_ZOO_DATA") or "~/.cache/ssl_zoo").expanduser()


def load_torchvision(
    name: str, split: str, root: Path, *, download: bool = True, size: int | None = None, channels: int | None = None
) -> ArrayDataset:
    """One split of a torchvision data set, downloaded when it is not there and there is a network."""
    spec = TORCHVISION[name]
    if split not in spec.splits:
        raise ValueError(f"{name} has the splits {', '.join(spec.splits)}; got {split!r}")
    try:
        from torchvision import datasets
    except ImportError as error:
        raise ImportError(f"the data set {name} needs the package torchvision") from error
    made = _open(getattr(datasets, spec.class_name), name, root, spec.splits[split], download)
    x, y = getattr(made, spec.x), getattr(made, spec.y)
    y = np.asarray(y, dtype=np.int64)
    if spec.x == "_image_files":  # files of many sizes
        x = decode_images([partial(Path, p) for p in x], size=size or DTD_SIZE, channels=channels, where=name)
    else:
        x = as_image_array(np.asarray(x), name)
    names = getattr(made, "classes", None) or [str(k) for k in range(int(y.max()) + 1)]
    data = ArrayDataset(x, y, tuple(names), spec.kind, f"{name} ({split})")
    if size is None and channels is None:
        return data
    from ssl_zoo.data.image_files import match_images

    side = (size, size) if size else data.in_shape[1:]
    return match_images(data, (channels or data.in_shape[0], *side))


def _open(make: Callable[..., Any], name: str, root: Path, arguments: dict[str, Any], download: bool) -> Any:
    """The torchvision object; files that are there are never downloaded again."""
    try:
        return make(root=str(root), download=False, **arguments)
    except RuntimeError as missing:  # "Dataset not found or corrupted"
        if not download:
            raise FileNotFoundError(
                f"{name} is not in {root}; put its files there, or allow download=True"
            ) from missing
    try:
        root.mkdir(parents=True, exist_ok=True)
        return make(root=str(root), download=True, **arguments)
    except (OSError, RuntimeError) as error:  # URLError is an OSError; torchvision turns some into RuntimeError
        raise ConnectionError(
            f"{name} is not in {root}, and it could not be downloaded ({error}); "
            "put its files there, or run once with a network"
        ) from error
