"""Numbers of cells -> the tidy table of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ssme.study._cells import Cell, Found
from ssme.study._draws import curve_sizes
from ssme.study._methods import CURVE
from ssme.study._plan import DataSet

COLUMNS = (
    "dataset n_labeled n_unlabeled seed method metric model estimate lower upper truth abs_err covered width seconds"
).split()


def to_frame(found: DataSet, cells: Sequence[Cell], numbers: Sequence[Found]) -> pd.DataFrame:
    """One row for each estimate; the curve comes last."""
    curves = {cell.seed: each.values for cell, each in zip(cells, numbers, strict=True) if cell.method == CURVE}
    parts = []
    for cell, each in zip(cells, numbers, strict=True):
        if cell.method != CURVE:
            parts.append(_rows(found, cell, each.values, curves[cell.seed][0], each.seconds))
    for seed, values in curves.items():
        for size, point in zip(curve_sizes(found.n_pool), values[1:], strict=True):
            cell = replace(cells[0], seed=seed, n_labeled=size)
            nothing = np.full_like(point, np.nan)
            parts.append(_rows(found, cell, np.stack([point, nothing, nothing]), values[0], np.nan))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return pd.DataFrame({"dataset": found.name, **columns})[COLUMNS]


def _rows(
    found: DataSet, cell: Cell, values: NDArray[np.float64], truth: NDArray[np.float64], seconds: float
) -> dict[str, NDArray[Any]]:
    """The rows of one cell as columns: metric by metric, model by model."""
    n_metrics, n_models = truth.shape
    estimate, lower, upper = values.reshape(3, -1)
    value = truth.ravel()
    covered = np.where(np.isnan(lower) | np.isnan(value), np.nan, (lower <= value) & (value <= upper))
    count = n_metrics * n_models
    return {
        "n_labeled": np.full(count, cell.n_labeled),
        "n_unlabeled": np.full(count, cell.n_unlabeled),
        "seed": np.full(count, cell.seed),
        "method": np.full(count, cell.method, dtype=object),
        "metric": np.repeat(np.array(found.metrics, dtype=object), n_models),
        "model": np.tile(np.array(found.model_names, dtype=object), n_metrics),
        "estimate": estimate,
        "lower": lower,
        "upper": upper,
        "truth": value,
        "abs_err": np.abs(estimate - value),
        "covered": covered,
        "width": upper - lower,
        "seconds": np.full(count, seconds),
    }


def failures_of(name: str, cells: Sequence[Cell], numbers: Sequence[Found]) -> list[dict[str, Any]]:
    """What methods raised, counted: data set, method, message, number of fits."""
    counts: dict[tuple[str, str], int] = {}
    for cell, each in zip(cells, numbers, strict=True):
        if each.error:
            counts[cell.method, each.error] = counts.get((cell.method, each.error), 0) + 1
    return [
        {"dataset": name, "method": method, "error": error, "fits": count} for (method, error), count in counts.items()
    ]
