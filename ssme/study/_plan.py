"""What a study is made of: its settings, its data sets, and the list of its cells."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ssme._validation import check_scores, counted
from ssme.metrics import get_metric
from ssme.score_table import ScoreTable, read_scores
from ssme.study._cells import Cell
from ssme.study._draws import LabeledScores
from ssme.study._methods import CURVE, cannot_give
from ssme.study._provenance import code_digest

Table = ScoreTable | str | os.PathLike[str]

BINARY_METRICS = ("accuracy", "ece_positive", "roc_auc", "average_precision")
METRICS_OF_MANY_CLASSES = ("accuracy", "ece")


@dataclass(frozen=True)
class Settings:
    """What holds for every data set of a study."""

    budgets: tuple[int, ...]
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...] | None
    n_unlabeled: int
    level: float
    stratified: bool
    n_draws: int | None


@dataclass(frozen=True, eq=False)
class DataSet:
    """One data set ready to be studied: its labeled rows, its names, and the metrics that it allows."""

    name: str
    data: LabeledScores
    model_names: tuple[str, ...]
    metrics: tuple[str, ...]
    left_out: int

    @property
    def n_pool(self) -> int:
        """Rows that labeled and unlabeled rows are drawn from; the others give the truth."""
        return len(self.data.codes) // 2

    def facts(self, settings: Settings) -> dict[str, Any]:
        """What the record of a study says of a data set."""
        n, n_models, n_classes = self.data.scores.shape
        return {
            "rows": n,
            "pool": self.n_pool,
            "truth_rows": n - self.n_pool,
            "unlabeled_rows_left_out": self.left_out,
            "models": n_models,
            "classes": n_classes,
            "metrics": list(self.metrics),
            "cannot_give": cannot_give(settings.methods, self.metrics, n_classes),
        }


def is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_numbers(values: Any, name: str, least: int) -> tuple[int, ...]:
    """One number or several, each once, in the order given."""
    several = [values] if is_whole(values) or not isinstance(values, Iterable) else list(values)
    if not several:
        raise ValueError(f"{name} is empty: give at least one number.")
    for value in several:
        if not is_whole(value) or value < least:
            raise ValueError(f"{name} must be whole numbers of at least {least}, got {value!r}.")
    return tuple(dict.fromkeys(int(value) for value in several))


def check_metrics(metrics: Any) -> tuple[str, ...]:
    """Names of metrics, each once; whether a data set allows them is seen when it is read."""
    names = tuple(dict.fromkeys([metrics] if isinstance(metrics, str) else metrics))
    if not names:
        raise ValueError("metrics is empty: name at least one, such as 'accuracy'.")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"metrics of a study are names, so that finished cells are found again; got {name!r}.")
    return names


def read_data_set(name: str, table: Table, settings: Settings, n_sets: int) -> DataSet:
    """The labeled rows of a table; an error where they do not suffice."""
    if not isinstance(table, ScoreTable):
        table = read_scores(table)
    labeled = np.flatnonzero(table.labeled)
    needed = 2 * (max(settings.budgets) + 1)
    if len(labeled) < needed:
        raise ValueError(
            f"{name} has {counted(len(labeled), 'labeled row')}, and half of them are the pool: budgets of up to "
            f"{max(settings.budgets)} need at least {needed}; lower the budgets or label more rows."
        )
    scores = check_scores(table.scores[labeled], score_type=table.score_type)
    asked = settings.metrics or (BINARY_METRICS if table.n_classes == 2 else METRICS_OF_MANY_CLASSES)
    if n_sets > 1 and table.n_classes > 2:
        asked = tuple(metric for metric in asked if not get_metric(metric, 2).binary_only)
    for metric in asked:
        get_metric(metric, table.n_classes)
    if not asked:
        raise ValueError(f"{name} has {table.n_classes} classes, and every metric asked for is for two; add another.")
    data = LabeledScores(np.ascontiguousarray(scores), np.array(table.labels[labeled]))
    return DataSet(name, data, table.model_names, asked, table.n_rows - len(labeled))


def cells_of(found: DataSet, settings: Settings) -> list[Cell]:
    """Every cell of a data set: one curve a seed, then budgets x seeds x methods."""
    common = (found.metrics, settings.level, settings.stratified, settings.n_draws, code_digest())
    curve = Cell(found.data.digest(), CURVE, 0, 0, 0, *common)
    cells = [replace(curve, seed=seed) for seed in settings.seeds]
    for budget in settings.budgets:
        n_unlabeled = min(settings.n_unlabeled, found.n_pool - budget)
        for seed in settings.seeds:
            for method in settings.methods:
                cells.append(replace(curve, method=method, n_labeled=budget, n_unlabeled=n_unlabeled, seed=seed))
    return cells
