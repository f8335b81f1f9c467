"""Data sets by name or path: one call, one `ArrayDataset`.

What a name or a path can be:

- a torchvision data set ("cifar10", "cifar100", "svhn", "mnist", "fashion_mnist", "stl10", "dtd"), downloaded when it
  is not there yet; a folder ``root/NAME`` with parquet files is taken instead when there is one;
- "digits": the 8 x 8 digits that scikit-learn ships, for demonstrations and tests;
- a folder: parquet files of a Hugging Face data set, one sub-folder for each class (perhaps below one for each split),
  or the idx files of the MNIST family;
- a file: .parquet, .npz, .csv, .tsv (gzipped or not).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ssl_zoo.data import vision
from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.frames import FRAME_SUFFIXES, load_frames
from ssl_zoo.data.image_files import as_image_array, image_folder, match_images, read_idx, read_npz
from ssl_zoo.data.labels import encode_labels
from ssl_zoo.data.splits import check_split, files_of_split, has_suffix, split_of, split_rows

__all__ = ["ArrayDataset", "gaussian_noise", "list_datasets", "load_dataset", "load_splits"]


def list_datasets() -> list[str]:
    """Names that `load_dataset` knows beside paths."""
    return sorted([*vision.TORCHVISION, "digits"])


def load_dataset(
    name_or_path: str | Path,
    split: str = "train",
    *,
    like: ArrayDataset | None = None,
    kind: str | None = None,
    **options: Any,
) -> ArrayDataset:
    """Load one split of a data set into memory.

    Parameters
    ----------
    name_or_path : str or Path
        A name of `list_datasets`, a file or a folder.
    split : {"train", "test", "validation", "unlabeled", "extra", "all"}
        A source without splits of its own is divided: see ``n_train``, ``test_fraction``, ``split_seed``.
    like : ArrayDataset, optional
        Another split or another data set: images are brought to its size and number of channels; tables and text get
        its features and its classes, as fitted there.
    kind : {"image", "digits"}, optional
        What augmentation may do with images. By default small grey images count as digits, which are never mirrored.
    **options
        Of the reader: ``root``, ``download`` (names); ``size``, ``channels``, ``image_column``, ``label_column``,
        ``class_names`` (images); ``label_column``, ``drop_columns``, ``separator``, ``header`` (tables);
        ``text_column``, ``text_encoder``, ``encoder_options`` (text); ``x_key``, ``y_key`` (npz); ``n_train``,
        ``test_fraction``, ``split_seed`` (sources without splits). One that the source does not know is an error.

    Examples
    --------
    >>> data = load_dataset("digits", "train")
    >>> data.in_shape, data.n_classes, data.kind
    ((1, 8, 8), 10, 'digits')
    """
    split = check_split(split)
    reader, source = _find_reader(name_or_path, split)
    if "like" in inspect.signature(reader).parameters:
        options = {**options, "like": like}
    elif like is not None and "size" in inspect.signature(reader).parameters and options.get("size") is None:
        options = {**options, "size": like.in_shape[-1] if like.is_image else None}
    _check_options(reader, options, name_or_path)
    data = reader(source, split, **options)
    if kind is not None:
        data = replace(data, kind=kind)
    return match_images(data, like.in_shape) if like is not None and like.is_image and data.is_image else data


def load_splits(
    name_or_path: str | Path, splits: Sequence[str] = ("train", "test"), **options: Any
) -> dict[str, ArrayDataset]:
    """Several splits in one feature space: the first one is loaded as it is, the others like it.

    Examples
    --------
    >>> {split: len(data) for split, data in load_splits("digits").items()}
    {'train': 1438, 'test': 359}
    """
    out: dict[str, ArrayDataset] = {}
    for split in splits:
        first = next(iter(out.values()), None)
        out[split] = load_dataset(name_or_path, split, **{"like": first, **options})
    return out


def gaussian_noise(n: int, in_shape: Sequence[int], *, seed: int = 0, std: float = 0.25) -> ArrayDataset:
    """Pictures of Gaussian noise around mid-grey: a far source of any size.

    Examples
    --------
    >>> gaussian_noise(10, (3, 32, 32)).class_names
    ('noise',)
    """
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}")
    rng = np.random.default_rng(seed)
    x = np.empty((n, *in_shape), dtype=np.uint8)
    for start in range(0, n, 4096):
        noise = rng.standard_normal((min(4096, n - start), *in_shape), dtype=np.float32)
        x[start : start + 4096] = np.clip((0.5 + std * noise) * 255, 0, 255).round()
    return ArrayDataset(x, np.zeros(n, dtype=np.int64), ("noise",), "image", f"gaussian noise, seed {seed}")


# ---------------------------------------------------------------------------------------------------------- readers


def _find_reader(name_or_path: str | Path, split: str) -> tuple[Callable[..., ArrayDataset], Any]:
    """The function that reads this source, and what to hand to it."""
    name = str(name_or_path).lower().replace("-", "").replace("_", "")
    named = {key.replace("_", ""): key for key in vision.TORCHVISION}
    if name == "digits":
        return _sklearn_digits, None
    if name in named and not Path(name_or_path).exists():
        return _named, named[name]
    path = Path(name_or_path).expanduser()
    if not path.exists():
        close = difflib.get_close_matches(str(name_or_path).lower(), list_datasets(), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known names are {', '.join(list_datasets())}"
        raise FileNotFoundError(f"there is no file, folder or data set {str(name_or_path)!r}{hint}")
    if path.is_dir():
        return _find_folder_reader(path, split), path
    if has_suffix(path, (".npz",)):
        return _npz, path
    if has_suffix(path, FRAME_SUFFIXES):
        return load_frames, path
    if "ubyte" in path.name:
        return _idx_folder, path.parent
    raise ValueError(f"{path}: the suffix is none of .parquet, .npz, .csv, .tsv (gzipped or not)")


def _find_folder_reader(path: Path, split: str) -> Callable[..., ArrayDataset]:
    if any(path.rglob("*-ubyte*")):
        return _idx_folder
    if files_of_split(path, "all", FRAME_SUFFIXES):
        return load_frames
    if files_of_split(path, "all", (".npz",)):
        return _npz_folder
    if any(p.is_dir() for p in path.iterdir()):
        return _image_folder
    raise ValueError(f"{path} holds neither parquet, csv, npz or idx files nor folders of images")


def _check_options(reader: Callable[..., ArrayDataset], options: dict[str, Any], source: str | Path) -> None:
    parameters = inspect.signature(reader).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY and name != "like"]
    unknown = sorted(set(options) - set(known) - {"like"})
    if unknown:
        raise TypeError(f"{source}: unknown option {unknown[0]!r}; this source knows {', '.join(known)}")


def _named(
    name: str,
    split: str,
    *,
    root: str | Path | None = None,
    download: bool = True,
    size: int | None = None,
    channels: int | None = None,
) -> ArrayDataset:
    """A torchvision data set, or the files of one below `root`."""
    base = vision.data_root(root)
    local = next((base / d for d in (name, vision.FOLDERS.get(name, name)) if (base / d).is_dir()), None)
    if local is not None:
        if files_of_split(local, split, (".parquet",)):
            data = load_frames(local, split, size=size, channels=channels)
            return replace(data, kind=vision.kind_of(name), source=f"{name} ({split})")
        if _idx_files(local, split):
            return replace(_idx_folder(local, split), kind=vision.kind_of(name), source=f"{name} ({split})")
    return vision.load_torchvision(name, split, base, download=download, size=size, channels=channels)


def _sklearn_digits(
    _: None, split: str, *, n_train: int | None = None, test_fraction: float = 0.2, split_seed: int = 0
) -> ArrayDataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    rows = split_rows(len(digits.target), split, n_train=n_train, test_fraction=test_fraction, split_seed=split_seed)
    x = np.round(digits.images[rows] * (255 / 16)).astype(np.uint8)[:, None]
    names = tuple(str(k) for k in range(10))
    return ArrayDataset(x, digits.target[rows].astype(np.int64), names, "digits", f"scikit-learn digits ({split})")


def _npz(
    path: Path,
    split: str,
    *,
    x_key: str | None = None,
    y_key: str | None = None,
    class_names: Sequence[str] | None = None,
    n_train: int | None = None,
    test_fraction: float = 0.2,
    split_seed: int = 0,
) -> ArrayDataset:
    """An npz file of images (three or four dimensions) or features (two)."""
    if split == "all":
        parts = [read_npz(path, s, x_key=x_key, y_key=y_key) for s in ("train", "test")]
        parts = parts if parts[0][2] and x_key is None else parts[:1]
        x = np.concatenate([p[0] for p in parts])
        labels = None if any(p[1] is None for p in parts) else np.concatenate([p[1] for p in parts])
        own = True
    else:
        x, labels, own = read_npz(path, split, x_key=x_key, y_key=y_key)
    if labels is None:
        y, names = np.full(len(x), -1), tuple(class_names or ())
    else:
        if len(labels) != len(x):
            raise ValueError(f"{path}: there are {len(x)} inputs, but {len(labels)} labels")
        y, names = encode_labels(np.asarray(labels).reshape(len(x)), class_names, where=str(path))
    if not own and split_of(path) != split:  # classes come from all rows, so that both splits have the same
        rows = split_rows(len(x), split, n_train=n_train, test_fraction=test_fraction, split_seed=split_seed)
        x, y = x[rows], y[rows]
    if x.ndim == 2:
        return ArrayDataset(x.astype(np.float32), y, names, "tabular", f"{path.name} ({split})")
    x = as_image_array(x, str(path))
    return ArrayDataset(x, y, names, _guess_kind(x), f"{path.name} ({split})")


def _npz_folder(path: Path, split: str, **options: Any) -> ArrayDataset:
    files = files_of_split(path, "all", (".npz",))
    files = files if len(files) == 1 else [p for p in files if split_of(p) == split]
    if len(files) != 1:
        raise ValueError(f"{path} holds {len(files)} npz files for split {split!r}; give the file itself")
    _check_options(_npz, options, files[0])
    return _npz(files[0], split, **options)


def _image_folder(
    path: Path,
    split: str,
    *,
    size: int | None = None,
    channels: int | None = None,
    n_train: int | None = None,
    test_fraction: float = 0.2,
    split_seed: int = 0,
) -> ArrayDataset:
    """Folders of images by class, perhaps below folders by split."""
    splits = {split_of(p): p for p in sorted(path.iterdir()) if p.is_dir()}
    by_split = {key: p for key, p in splits.items() if key is not None and any(c.is_dir() for c in p.iterdir())}
    if by_split and split != "all" and split not in by_split:
        raise ValueError(f"{path} has no folder for split {split!r}; it has {', '.join(sorted(by_split))}")
    x, y, names = image_folder(by_split.get(split, path), size=size, channels=channels)
    if not by_split and split_of(path) != split:
        rows = split_rows(len(y), split, n_train=n_train, test_fraction=test_fraction, split_seed=split_seed)
        x, y = x[rows], y[rows]
    return ArrayDataset(x, y, names, _guess_kind(x), f"{path.name} ({split})")


def _idx_folder(path: Path, split: str) -> ArrayDataset:
    """The idx files of the MNIST family."""
    files = _idx_files(path, split)
    if not files:
        raise FileNotFoundError(f"{path} holds no idx files of images and labels for split {split!r}")
    x, y = (read_idx(p) for p in files)
    if len(x) != len(y):
        raise ValueError(f"{files[0]} holds {len(x)} images, {files[1].name} {len(y)} labels")
    labels, names = encode_labels(y.astype(np.int64), where=str(files[1]))
    return ArrayDataset(as_image_array(x.astype(np.uint8)), labels, names, "digits", f"{path.name} ({split})")


def _idx_files(path: Path, split: str) -> list[Path]:
    prefix = {"train": "train", "test": "t10k"}.get(split)
    found = {p.name.removesuffix(".gz"): p for p in sorted(path.rglob("*-ubyte*"), reverse=True)}
    pair = [found.get(f"{prefix}-images-idx3-ubyte"), found.get(f"{prefix}-labels-idx1-ubyte")]
    return [p for p in pair if p is not None] if None not in pair else []


def _guess_kind(x: np.ndarray) -> str:
    """Small grey images count as digits: leaving out the mirror image does little harm, mirrored digits do."""
    return "digits" if x.shape[1] == 1 and max(x.shape[2:]) <= 32 else "image"
