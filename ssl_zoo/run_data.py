"""The arrays that a config speaks of, and the rows that a run is judged on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ssl_zoo.config import DataConfig, PoolConfig, RunConfig
from ssl_zoo.data import ArrayDataset, ContaminationSpec, Pool, build_pool, gaussian_noise, load_dataset, load_splits
from ssl_zoo.data.loaders import place

__all__ = ["EvaluationRows", "RunData", "load_run_data", "select_test_rows", "select_validation_rows"]


@dataclass(frozen=True, eq=False)
class RunData:
    """The arrays that a config speaks of."""

    train: ArrayDataset
    test: ArrayDataset
    pool: Pool
    ood: ArrayDataset | None = None
    source: DataConfig | None = None


def load_run_data(config: RunConfig, *, reuse: RunData | None = None) -> RunData:
    """Load the data set and the far source, and draw the pool.

    Parameters
    ----------
    config : RunConfig
    reuse : RunData, optional
        Of another run: its arrays are taken where they come from the same source.
    """
    source = config.data
    same = reuse is not None and reuse.source == source
    if same and reuse is not None:
        train, test = reuse.train, reuse.test
    else:
        splits = load_splits(source.name, (source.train_split, source.test_split), **source.options)
        train, test = splits[source.train_split], splits[source.test_split]
    seed = config.seed if config.pool.seed is None else config.pool.seed
    ood = None
    if source.ood == "noise":
        ood = gaussian_noise(len(train), train.in_shape, seed=seed, **source.ood_options)
    elif source.ood is not None and same and reuse is not None:
        ood = reuse.ood
    elif source.ood is not None:
        ood = load_dataset(source.ood, like=train, **source.ood_options)
    given = {f.name: getattr(config.pool, f.name) for f in fields(PoolConfig) if f.name != "seed"}
    given["seen_classes"] = train.n_classes if given["seen_classes"] is None else given["seen_classes"]
    return RunData(train, test, build_pool(ContaminationSpec(**given), train, ood=ood, seed=seed), ood, source)


class EvaluationRows(NamedTuple):
    """Positions in their split, inputs on the device, and classes as positions in the pool's ``class_order``."""

    rows: np.ndarray
    x: Tensor
    y: Tensor


def select_test_rows(data: RunData, *, open_world: bool, device: torch.device) -> EvaluationRows:
    """Rows of the test split: those of the seen classes, in the open world those of all classes."""
    y = data.pool.relabel(data.test.y)
    index = np.flatnonzero((y >= 0) & (open_world | (y < data.pool.n_seen_classes)))
    if not len(index):
        raise ValueError(f"{data.test.source} has no labeled rows of the seen classes to test on.")
    return EvaluationRows(index, place(data.test.x[index], device), torch.from_numpy(y[index]))


def select_validation_rows(data: RunData, *, device: torch.device) -> EvaluationRows:
    """The pool's validation rows, which come from the train split and may be none."""
    index = data.pool.validation_idx
    y = torch.from_numpy(data.pool.relabel(data.train.y[index]))
    return EvaluationRows(index, place(data.train.x[index], device), y)
