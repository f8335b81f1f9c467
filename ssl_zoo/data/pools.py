"""A contaminated pool: its indices, and the manifest that makes it one thing that can be named."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssl_zoo.data.array_dataset import ArrayDataset

FORMAT = "ssl-zoo-pool/1"
_PARTS = ("labeled", "validation", "seen", "unseen", "ood")
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Indices of a labeled set and a contaminated unlabeled pool.

    Attributes
    ----------
    labeled_idx, validation_idx, seen_idx, unseen_idx : array of int64
        Into the data set, in the order in which they were drawn: a smaller part is the beginning of a larger one.
    ood_idx : array of int64
        Into the far source.
    class_order : tuple of int
        Classes of the data set, the seen ones first: position k is the class k of a model.
    n_seen_classes : int
        How many of them are seen.
    manifest : dict
        Spec, seed, fingerprints of the sources, all indices, and the hash; plain JSON.
    hash : str
        SHA-256 of the canonical manifest.
    """

    labeled_idx: Indices
    validation_idx: Indices
    seen_idx: Indices
    unseen_idx: Indices
    ood_idx: Indices
    class_order: tuple[int, ...]
    n_seen_classes: int
    manifest: dict[str, Any] = field(repr=False)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical manifest, in hex."""
        return str(self.manifest["hash"])

    @property
    def n_unlabeled(self) -> int:
        """Size of the unlabeled pool: seen, unseen and far part."""
        return len(self.seen_idx) + len(self.unseen_idx) + len(self.ood_idx)

    def relabel(self, y: ArrayLike) -> Indices:
        """Classes of the data set -> positions in `class_order`; unknown ones stay -1."""
        table = np.full(max(self.class_order, default=0) + 2, -1, dtype=np.int64)
        table[list(self.class_order)] = np.arange(len(self.class_order))
        return table[np.asarray(y, dtype=np.int64)]  # -1 reads the last entry, which is -1

    def select_seen(self, dataset: ArrayDataset) -> ArrayDataset:
        """Rows of the seen classes, relabeled: what a model is tested on."""
        y = self.relabel(dataset.y)
        keep = (y >= 0) & (y < self.n_seen_classes)
        names = [dataset.class_names[k] for k in self.class_order[: self.n_seen_classes]]
        return dataset.subset(keep).with_labels(y[keep], names)

    def unlabeled(
        self, dataset: ArrayDataset, ood: ArrayDataset | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Inputs of the unlabeled pool (seen, unseen, far part), and which of them are out of distribution."""
        self.check_sources(dataset, ood)
        parts = [dataset.x[self.seen_idx], dataset.x[self.unseen_idx]]
        if len(self.ood_idx) and ood is not None:
            parts.append(_as_type(ood.x[self.ood_idx], dataset.x.dtype))
        return np.concatenate(parts), np.arange(self.n_unlabeled) >= len(self.seen_idx)

    def unlabeled_classes(self, dataset: ArrayDataset) -> Indices:
        """True classes of the unlabeled pool as positions in `class_order`, -1 in the far part: for diagnostics."""
        y = self.relabel(dataset.y[np.concatenate([self.seen_idx, self.unseen_idx])])
        return np.concatenate([y, np.full(len(self.ood_idx), -1)])

    def check_sources(self, dataset: ArrayDataset, ood: ArrayDataset | None = None) -> None:
        """Raise when the indices were drawn from other data than these."""
        for name, data in (("dataset", dataset), ("ood", ood)):
            saved = self.manifest[name]
            if data is None:
                if saved is not None:
                    raise ValueError("the pool has a far part; give its source with ood=")
            elif saved is not None and saved != data.fingerprint():
                raise ValueError(f"the pool was drawn from another {name} than {data.source}: {saved} was expected")

    def to_json(self) -> str:
        """The manifest as text."""
        return canonical_json(self.manifest)

    @classmethod
    def from_json(cls, text: str) -> Pool:
        """Read a manifest back; one that was changed is refused."""
        manifest = json.loads(text)
        if manifest.get("format") != FORMAT:
            raise ValueError(f"the manifest is of format {manifest.get('format')!r}; this version reads {FORMAT!r}")
        if manifest.get("hash") != manifest_hash(manifest):
            raise ValueError("the manifest does not match its hash; it was changed after it was written")
        parts = {f"{part}_idx": np.array(manifest["indices"][part], dtype=np.int64) for part in _PARTS}
        return cls(
            **parts,
            class_order=tuple(manifest["class_order"]),
            n_seen_classes=manifest["n_seen_classes"],
            manifest=manifest,
        )

    @classmethod
    def from_parts(
        cls,
        parts: dict[str, Indices],
        class_order: tuple[int, ...],
        n_seen_classes: int,
        *,
        spec: dict[str, Any],
        seed: int,
        dataset: ArrayDataset,
        ood: ArrayDataset | None,
    ) -> Pool:
        """A pool with its manifest. A far source that no index points to is left out of it."""
        indices = {part: parts.get(part, np.zeros(0, dtype=np.int64)) for part in _PARTS}
        far = ood is not None and len(indices["ood"]) > 0
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "spec": spec,
            "seed": seed,
            "dataset": dataset.fingerprint(),
            "ood": ood.fingerprint() if ood is not None and far else None,
            "class_order": list(class_order),
            "n_seen_classes": n_seen_classes,
            "sizes": {part: len(rows) for part, rows in indices.items()},
            "indices": {part: rows.tolist() for part, rows in indices.items()},
            "sources": {"dataset": dataset.source, "ood": ood.source if ood is not None and far else None},
        }
        manifest["hash"] = manifest_hash(manifest)
        return cls(**{f"{p}_idx": v for p, v in indices.items()}, class_order=class_order,
                   n_seen_classes=n_seen_classes, manifest=manifest)  # fmt: skip


def canonical_json(value: Any) -> str:
    """One text for equal values: sorted keys, no spaces.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": [0.5]})
    '{"a":[0.5],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def manifest_hash(manifest: dict[str, Any]) -> str:
    """SHA-256 over all that decides the pool; names of files are left out, since machines differ in them."""
    kept = {key: value for key, value in manifest.items() if key not in ("hash", "sources")}
    return hashlib.sha256(canonical_json(kept).encode()).hexdigest()


def _as_type(x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Images of the far source in the number type of the data set: bytes 0..255, or floats in [0, 1]."""
    if x.dtype == dtype:
        return x
    return np.round(x * 255).astype(np.uint8) if dtype == np.uint8 else x.astype(np.float32) / 255
