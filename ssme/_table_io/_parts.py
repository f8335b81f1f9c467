"""What the readers return and what they are told: plain records, no logic but a check of the words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ssme._table_io._rows import RowWords
from ssme._validation import argument, check_score_type

LAYOUTS = ("auto", "wide", "binary", "model", "long")


@dataclass(frozen=True)
class ReadOptions:
    """How to read columns. See :func:`ssme.score_table.read_scores` for the meaning of each."""

    layout: str = "auto"
    id_column: str | None = None
    label_column: str | None = None
    group_columns: Sequence[str] = ()
    class_names: Sequence[Any] | None = None
    model_name: str | None = None
    score_type: str = "probability"
    separator: str = ":"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, got {self.layout!r}.")
        check_score_type(self.score_type)
        if not isinstance(self.separator, str) or not self.separator.strip():
            raise ValueError(f"{argument('separator')} must be text such as ':', got {self.separator!r}.")
        if isinstance(self.group_columns, str):
            object.__setattr__(self, "group_columns", (self.group_columns,))
        for name in ("group_columns", "class_names"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, (str, bytes)) or not isinstance(value, Iterable)):
                raise TypeError(f"{argument(name)} must be a list of names, got {value!r}.")
        if self.class_names is not None:
            object.__setattr__(self, "class_names", list(self.class_names))
        object.__setattr__(self, "group_columns", tuple(str(c).strip() for c in self.group_columns))
        for name in ("id_column", "label_column"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, str(getattr(self, name)).strip())


@dataclass(frozen=True)
class TableParts:
    """Arguments of :meth:`ScoreTable.from_arrays`, and what errors call a row of the source.

    `row_ids` is None where the source has no ids, `call_row` where a row is called by its position.
    """

    scores: np.ndarray
    model_names: Sequence[str] | None = None
    class_names: Sequence[Any] | None = None
    labels: Any = None
    row_ids: np.ndarray | None = None
    groups: dict[str, Any] = field(default_factory=dict)
    score_type: str = "probability"
    call_row: RowWords | None = None
    label_weight: np.ndarray | None = None


class LabelParts(NamedTuple):
    """A file of labels: ids or None, labels, group columns, what errors call one of its rows, weights of the labels."""

    row_ids: np.ndarray | None
    labels: Any
    groups: dict[str, Any]
    call_row: RowWords
    label_weight: np.ndarray | None = None
