"""Images are opened here, and everything that is scored has a fingerprint."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def open_image(item: Any, row_id: str) -> Any:
    """An RGB image from a path, bytes as data sets hold them, an array, or an image; turned as its camera was held.

    Addresses are not fetched: a path is a path of this machine.

    Raises
    ------
    ValueError
        Where there is no image; the message names the row.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        if isinstance(item, Mapping):
            content = item.get("bytes")
            item = item.get("path") if content is None else io.BytesIO(content)
        if isinstance(item, np.ndarray):
            return Image.fromarray(item).convert("RGB")
        if isinstance(item, Image.Image):
            return ImageOps.exif_transpose(item).convert("RGB")
        if item is None:
            raise ValueError("there is none")
        with Image.open(item) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, UnidentifiedImageError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the image of the row {row_id!r} cannot be read ({error}); mend it or leave it out."
        ) from error


def fingerprint(items: Sequence[Any], *, paths: bool = False) -> str:
    """SHA-256 of all contents in their order: the same texts, or images byte for byte, give the same.

    With `paths`, text is the path of a file whose bytes count.

    Examples
    --------
    >>> fingerprint(["a", "b"]) == fingerprint(["ab", ""])
    False
    """
    digest = hashlib.sha256()
    for item in items:
        for part in item if isinstance(item, tuple) else (item,):
            content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) and not paths else _bytes(part)
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
    return digest.hexdigest()


def _bytes(item: Any) -> bytes:
    if isinstance(item, (str, os.PathLike)):
        try:
            with open(item, "rb") as file:
                return file.read()
        except OSError:
            return b"absent"  # whoever opens it says of which row it is
    if isinstance(item, Mapping):
        return item["bytes"] if item.get("bytes") is not None else _bytes(item.get("path") or "")
    array = np.asarray(item)
    mode = f"{getattr(item, 'mode', '')} {array.shape} {array.dtype}"
    return mode.encode() + np.ascontiguousarray(array).tobytes()
