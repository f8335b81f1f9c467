"""Put tables of different models side by side: rows by id, classes by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ssme import _table_io as io
from ssme._validation import counted, first_few

if TYPE_CHECKING:
    from ssme.score_table._table import ScoreTable


def joined(tables: Sequence[ScoreTable], names: Sequence[str]) -> dict[str, Any]:
    """Return what differs between the joined table and the first one; `names` are what errors call the tables."""
    first = tables[0]
    scores, labels, groups, weight = [first.scores], first.labels, dict(first.groups), first.label_weight
    owner = dict.fromkeys(first.model_names, names[0])
    for table, name in zip(tables[1:], names[1:], strict=True):
        _check_pair(table, first.score_type, owner, name)
        owner |= dict.fromkeys(table.model_names, name)
        rows = io.align(first.row_ids, table.row_ids, names[0], name)
        table = table.order_classes(first.class_names, names[0], name)
        scores.append(table.scores[rows])
        labels = _merge(labels, table.labels[rows], -1, first.row_ids, f"the label in {name}")
        if table.label_weight is not None:
            new = table.label_weight[rows]
            weight = new if weight is None else _merge(weight, new, 1.0, first.row_ids, f"label_weight in {name}")
        for column, values in table.groups.items():
            old = groups.get(column, values[rows])
            groups[column] = _merge(old, values[rows], "missing", first.row_ids, f"the group {column!r} in {name}")
    return {
        "scores": np.concatenate(scores, axis=1),
        "labels": labels,
        "model_names": tuple(owner),
        "groups": groups,
        "label_weight": weight,
    }


def _check_pair(table: ScoreTable, score_type: str, owner: dict[str, str], name: str) -> None:
    double = [m for m in table.model_names if m in owner]
    if double:
        raise ValueError(f"{owner[double[0]]} and {name} both have the model {double[0]!r}; rename it in one of them.")
    if table.score_type != score_type:
        kinds = f"{table.score_type} scores, but earlier tables {score_type} scores"
        raise ValueError(f"{name} holds {kinds}; convert one of them.")


def _merge(old: np.ndarray, new: np.ndarray, blank: Any, row_ids: np.ndarray, what: str) -> np.ndarray:
    """Fill the blanks of one column from another; where both know something they must agree."""
    clash = (old != blank) & (new != blank) & (old != new)
    if clash.any():
        ids = row_ids[clash]
        where = f"{counted(len(ids), 'row')} ({first_few(ids)})"
        raise ValueError(f"{what} contradicts an earlier table in {where}; correct one of them.")
    return np.where(old == blank, new, old)
