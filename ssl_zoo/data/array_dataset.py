"""One data set in memory: inputs, labels, and what the inputs are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

KINDS = ("image", "digits", "tabular", "text")


@dataclass(frozen=True, eq=False)
class ArrayDataset:
    """Inputs and labels of one split, whole in memory.

    Parameters
    ----------
    x : array (N, C, H, W) or (N, F)
        Images: uint8 in 0..255, or float32 in [0, 1]; channels first. Tables and text: float32 features.
    y : array (N,) of int64
        Class of every row, -1 where it is not known.
    class_names : tuple of str
        Name of class 0, 1, ...
    kind : {"image", "digits", "tabular", "text"}
        What augmentation may do to the rows. Digits are images that must not be mirrored.
    source : str
        Where the rows come from; read by people, never part of a hash.
    encoder : object, optional
        What turned the raw table or text into `x`, with its fitted state, so that another split gets the same features.

    Examples
    --------
    >>> data = ArrayDataset(np.zeros((4, 1, 8, 8), np.uint8), np.array([0, 1, 1, 0]), ("a", "b"), "digits")
    >>> len(data), data.n_classes, data.in_shape
    (4, 2, (1, 8, 8))
    >>> data.subset([1, 2]).y.tolist()
    [1, 1]
    """

    x: NDArray[Any]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    kind: str = "image"
    source: str = "arrays"
    encoder: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        x, y = np.asarray(self.x), np.asarray(self.y)
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")
        _check_inputs(x, self.kind)
        if y.shape != (len(x),):
            raise ValueError(f"y must hold one label for each of the {len(x)} rows of x; got shape {y.shape}")
        if y.dtype.kind not in "iu":
            raise TypeError(f"y must hold integer classes; got {y.dtype}")
        wrong = (y.astype(np.int64) < -1) | (y.astype(np.int64) >= len(self.class_names))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"y[{row}] is {y[row]}, but class_names has {len(self.class_names)} entries; "
                f"classes run from 0 to {len(self.class_names) - 1}, and -1 stands for an unknown one"
            )
        object.__setattr__(self, "x", x if x.dtype == np.uint8 else np.asarray(x, dtype=np.float32))
        object.__setattr__(self, "y", y.astype(np.int64))
        object.__setattr__(self, "class_names", tuple(str(name) for name in self.class_names))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"ArrayDataset({self.source}: {len(self)} x {self.in_shape}, {self.kind}, {self.n_classes} classes)"

    @property
    def n_classes(self) -> int:
        """Number of classes that have a name."""
        return len(self.class_names)

    @property
    def in_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(int(n) for n in self.x.shape[1:])

    @property
    def is_image(self) -> bool:
        """Whether the inputs are images (digits are)."""
        return self.kind in ("image", "digits")

    def subset(self, index: ArrayLike) -> ArrayDataset:
        """The rows of `index`, in its order."""
        rows = np.asarray(index)
        return replace(self, x=self.x[rows], y=self.y[rows])

    def with_labels(self, y: ArrayLike, class_names: Sequence[str]) -> ArrayDataset:
        """The same inputs with other labels and class names."""
        return replace(self, y=np.asarray(y), class_names=tuple(class_names))

    def fingerprint(self) -> dict[str, Any]:
        """Size, shape and a hash of the labels in their order: what indices into this data set rest on.

        Pixels are left out: two decoders may differ in the last bit of a JPEG, and the indices mean the same rows.
        """
        digest = hashlib.sha256(np.ascontiguousarray(self.y, dtype="<i8").tobytes()).hexdigest()
        return {"n": len(self), "shape": list(self.in_shape), "n_classes": self.n_classes, "labels": digest[:16]}


def _check_inputs(x: NDArray[Any], kind: str) -> None:
    """Shape, dtype and range that the rest of the package relies on."""
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise TypeError(f"x must be uint8 or float; got {x.dtype}. Cast it first, for images with the range in mind")
    if kind in ("image", "digits"):
        if x.ndim != 4 or x.shape[1] not in (1, 3):
            raise ValueError(f"images must have shape (N, C, H, W) with C = 1 or 3; got {x.shape}")
        if x.dtype != np.uint8 and x.size and not (x.min() >= 0 and x.max() <= 1):
            raise ValueError(f"float images must lie in [0, 1]; x spans [{x.min():.4g}, {x.max():.4g}]. Rescale them")
    elif x.ndim != 2:
        raise ValueError(f"{kind} features must have shape (N, F); got {x.shape}")
    elif x.dtype == np.uint8:
        raise TypeError(f"{kind} features must be float; got uint8")
    elif not np.isfinite(x).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(x))[0])
        raise ValueError(f"x holds {x[row, column]} in row {row}, column {column}; fill or drop missing values first")
