"""Data sets, contaminated pools, loaders and augmentation.

Names load on first use, so that building a pool (numpy alone) does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "ArrayDataset": "array_dataset",
    "Augmenter": "augmentation",
    "Batch": "loaders",
    "ContaminationSpec": "contamination",
    "DigitAugmenter": "augmentation",
    "FeatureAugmenter": "augmentation",
    "ImageAugmenter": "augmentation",
    "IndexSampler": "loaders",
    "Pool": "pools",
    "SemiLoader": "loaders",
    "build_pool": "contamination",
    "gaussian_noise": "datasets",
    "list_datasets": "datasets",
    "load_dataset": "datasets",
    "load_splits": "datasets",
    "make_augmenter": "augmentation",
    "make_loader": "loaders",
    "match_images": "image_files",
}
__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from ssl_zoo.data.array_dataset import ArrayDataset as ArrayDataset
    from ssl_zoo.data.augmentation import Augmenter as Augmenter
    from ssl_zoo.data.augmentation import DigitAugmenter as DigitAugmenter
    from ssl_zoo.data.augmentation import FeatureAugmenter as FeatureAugmenter
    from ssl_zoo.data.augmentation import ImageAugmenter as ImageAugmenter
    from ssl_zoo.data.augmentation import make_augmenter as make_augmenter
    from ssl_zoo.data.contamination import ContaminationSpec as ContaminationSpec
    from ssl_zoo.data.contamination import build_pool as build_pool
    from ssl_zoo.data.datasets import gaussian_noise as gaussian_noise
    from ssl_zoo.data.datasets import list_datasets as list_datasets
    from ssl_zoo.data.datasets import load_dataset as load_dataset
    from ssl_zoo.data.datasets import load_splits as load_splits
    from ssl_zoo.data.image_files import match_images as match_images
    from ssl_zoo.data.loaders import Batch as Batch
    from ssl_zoo.data.loaders import IndexSampler as IndexSampler
    from ssl_zoo.data.loaders import SemiLoader as SemiLoader
    from ssl_zoo.data.loaders import make_loader as make_loader
    from ssl_zoo.data.pools import Pool as Pool


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"ssl_zoo.data.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
