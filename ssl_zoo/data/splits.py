"""Which rows or files a split consists of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPLITS = ("train", "test", "validation", "unlabeled", "extra", "all")
_ALIASES = {"val": "validation", "valid": "validation", "dev": "validation", "training": "train", "testing": "test"}


def check_split(split: str) -> str:
    """The split's usual name, or an error that lists them."""
    name = _ALIASES.get(split, split)
    if name not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}")
    return name


def split_rows(
    n: int, split: str, *, n_train: int | None = None, test_fraction: float = 0.2, split_seed: int = 0
) -> NDArray[np.int64]:
    """Rows of "train", "test" or "all" in a source that has no splits of its own.

    With `n_train` the first rows are the train split, in the order of the file. Otherwise rows are drawn at random,
    the same ones in every run: files are often sorted by class or by time.

    Examples
    --------
    >>> split_rows(5, "test", n_train=3).tolist()
    [3, 4]
    >>> parts = [split_rows(10, s) for s in ("train", "test")]
    >>> [len(p) for p in parts], sorted(np.concatenate(parts).tolist()) == list(range(10))
    ([8, 2], True)
    """
    if split == "all":
        return np.arange(n)
    if split not in ("train", "test"):
        raise ValueError(f"a source without splits of its own serves train, test and all; got split={split!r}")
    if n_train is not None:
        if not 0 < n_train < n:
            raise ValueError(f"n_train must lie between 1 and {n - 1} for {n} rows; got {n_train}")
        return np.arange(n_train) if split == "train" else np.arange(n_train, n)
    if not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie between 0 and 1; got {test_fraction}")
    n_test = min(max(round(n * test_fraction), 1), n - 1)
    order = np.random.default_rng(split_seed).permutation(n)
    return np.sort(order[:n_test] if split == "test" else order[n_test:])


def split_of(path: Path) -> str | None:
    """The split that a file or folder is named after, such as train-00000-of-00005.parquet or agnews_test.csv."""
    words = [word for word in re.split(r"[^a-z]+", path.name.lower().split(".")[0]) if word]
    found = {_ALIASES.get(word, word) for word in words} & set(SPLITS) - {"all"}
    return found.pop() if len(found) == 1 else None


def files_of_split(folder: Path, split: str, suffixes: Sequence[str]) -> list[Path]:
    """Files of one split in a folder (or in its `data` folder), in the order of their names."""
    files = [p for d in (folder, folder / "data") if d.is_dir() for p in sorted(d.iterdir()) if has_suffix(p, suffixes)]
    return files if split == "all" else [p for p in files if split_of(p) == split]


def has_suffix(path: Path, suffixes: Sequence[str]) -> bool:
    """Whether the name ends in one of the suffixes; two-part ones such as .csv.gz count."""
    return path.name.lower().endswith(tuple(suffixes))
