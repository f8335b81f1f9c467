"""Outputs of a model on disk, in chunks of rows, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ssme._atomic import atomic_path, check_folder


def default_folder() -> Path:
    """Where outputs are kept: ``$SSME_CACHE``, else ``ssme`` in ``$XDG_CACHE_HOME`` or ~/.cache."""
    own = os.environ.get("SSME_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssme"


class ChunkCache:
    """Chunks under one key: whatever decides the numbers is part of it, so that a chunk found is the chunk wanted.

    Parameters
    ----------
    root : path or None
        None keeps nothing.
    name : str
        For the eye: the folder's name starts with it.
    key : dict
        What decides the numbers, as JSON can write it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = ChunkCache(folder, "bert", {"data": "abc"})
    ...     before = cache.get(0, 2)
    ...     cache.put(0, np.ones((2, 3), dtype=np.float32), 0)
    ...     after = ChunkCache(folder, "bert", {"data": "abc"}).get(0, 2)
    >>> before is None, after[0].shape
    (True, (2, 3))
    """

    def __init__(self, root: str | os.PathLike[str] | None, name: str, key: dict[str, Any]) -> None:
        self.folder: Path | None = None
        if root is None:
            return
        text = json.dumps(key, sort_keys=True, indent=1)
        slug = re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("._")[-60:] or "model"
        self.folder = Path(root) / f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        check_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_path(self.folder / "key.json") as path:  # for whoever wonders what lies here
            path.write_text(text + "\n", encoding="utf-8")

    def get(self, chunk: int, n_rows: int) -> tuple[np.ndarray, int] | None:
        """Logits (n_rows, K) and the number of rows that were cut; None where they are not there, or damaged."""
        if self.folder is None:
            return None
        try:
            with open(self._path(chunk), "rb") as raw, np.load(raw, allow_pickle=False) as file:
                logits, cut = file["logits"], int(file["cut"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, EOFError, BadZipFile):  # a damaged disk: this chunk is made anew
            return None
        return (logits, cut) if logits.ndim == 2 and len(logits) == n_rows and np.isfinite(logits).all() else None

    def put(self, chunk: int, logits: np.ndarray, cut: int) -> None:
        """Keep a chunk; the file appears whole or not at all."""
        if self.folder is not None:
            with atomic_path(self._path(chunk)) as path:
                np.savez(path, logits=logits, cut=np.int64(cut))

    def _path(self, chunk: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{chunk:06d}.npz"
