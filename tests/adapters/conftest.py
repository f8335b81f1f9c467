"""Small models of transformers, built and saved here, so that nothing is fetched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is imported

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from _models import bert, tokenizer


@pytest.fixture(scope="session")
def save(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Save a small BERT with its tokenizer; return the folder."""

    def make(name: str, labels: list[str], seed: int = 0, folder: Path | None = None, **options: Any) -> Path:
        target = (folder or tmp_path_factory.mktemp("models")) / name
        bert(labels, seed, **options).save_pretrained(target)
        tokenizer(tmp_path_factory.mktemp("words")).save_pretrained(target)
        return target

    return make


@pytest.fixture(scope="session")
def two(save: Callable[..., Path]) -> tuple[Path, Path]:
    """Two classifiers whose labels stand in another order."""
    return save("small", ["neg", "pos"], 1), save("large", ["pos", "neg"], 2)


@pytest.fixture(scope="session")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small classifier of images."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(0)
    target = tmp_path_factory.mktemp("models") / "vit"
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8,
        initializer_range=0.5, id2label={0: "cat", 1: "dog", 2: "owl"}, label2id={"cat": 0, "dog": 1, "owl": 2},
    )  # fmt: skip
    ViTForImageClassification(config).save_pretrained(target)
    ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(target)
    return target


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images in two subfolders."""
    from PIL import Image

    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for i in range(5):
        (folder / f"site{i % 2}").mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 30, 3), dtype=np.uint8)).save(folder / f"site{i % 2}" / f"{i}.png")
    return folder
