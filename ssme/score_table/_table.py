"""The table itself: what it holds, how it is made, changed in a copy, joined and written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ssme import _table_io as io
from ssme._table_io import ReadOptions, TableParts
from ssme._validation import (
    argument,
    as_text,
    calling,
    check_groups,
    check_label_weight,
    check_labels,
    check_names,
    check_row_ids,
    check_score_array,
    first_few,
)
from ssme.score_table._join import joined

if TYPE_CHECKING:
    import pandas as pd

Layout = Literal["auto", "wide", "binary", "model", "long"]


def _frozen(values: Any) -> np.ndarray:
    """Return a read-only view; the array that was passed stays as it is."""
    view = np.asarray(values).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable:
    """Scores of M classifiers for K classes on n rows.

    Make one with :meth:`from_arrays`, :meth:`from_frame` or :func:`ssme.score_table.read_scores`, which check
    everything; the constructor itself takes checked arrays. All arrays are read-only.

    Attributes
    ----------
    scores : ndarray of shape (n, M, K)
        Probabilities, or logits where `score_type` says so.
    labels : ndarray of shape (n,)
        Class codes; -1 where a row is unlabeled.
    model_names, class_names : tuple of str
        In the order of the axes of `scores`.
    row_ids : ndarray of shape (n,)
        Ids of the rows, text.
    groups : dict of str to ndarray of shape (n,)
        Group columns, text.
    score_type : {"probability", "logit"}
    label_weight : ndarray of shape (n,) or None
        What the label of each row counts for, where rows were not labeled at random (see :meth:`SSME.fit`).

    Examples
    --------
    >>> table = ScoreTable.from_arrays([[0.9, 0.7], [0.2, 0.4]], ["yes", None], class_names=["no", "yes"],
    ...                                model_names=["bert", "gpt"])
    >>> table
    ScoreTable(2 rows, 2 models, 2 classes, 1 labeled)
    >>> table.to_frame()
      id label  bert:no  bert:yes  gpt:no  gpt:yes
    0  0   yes      0.1       0.9     0.3      0.7
    1  1  None      0.8       0.2     0.6      0.4
    """

    scores: np.ndarray
    labels: np.ndarray
    model_names: tuple[str, ...]
    class_names: tuple[str, ...]
    row_ids: np.ndarray
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    score_type: str = "probability"
    label_weight: np.ndarray | None = None

    def __post_init__(self) -> None:
        n, n_models, n_classes = np.shape(self.scores)
        columns = [self.labels, self.row_ids, *self.groups.values()]
        sizes = [len(c) for c in (columns if self.label_weight is None else [*columns, self.label_weight])]
        if any(size != n for size in sizes) or (n_models, n_classes) != (len(self.model_names), len(self.class_names)):
            raise ValueError("the parts of a ScoreTable do not fit together; make it with ScoreTable.from_arrays.")
        for name in ("scores", "labels", "row_ids", "label_weight"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _frozen(getattr(self, name)))
        object.__setattr__(self, "groups", {k: _frozen(v) for k, v in self.groups.items()})

    def __repr__(self) -> str:
        size = f"{self.n_rows} rows, {self.n_models} models, {self.n_classes} classes, {self.n_labeled} labeled"
        groups = f", groups {first_few(self.groups)}" if self.groups else ""
        return f"ScoreTable({size}{groups}{', logits' if self.score_type == 'logit' else ''})"

    # -- making one --------------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        scores: Any,
        labels: Any = None,
        *,
        model_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
        row_ids: Any = None,
        groups: Any = None,
        score_type: str = "probability",
        label_weight: Any = None,
    ) -> ScoreTable:
        """Check arrays and make a table of copies of them.

        Parameters
        ----------
        scores : array-like of shape (n, M, K) or (n, M), or DataFrame of shape (n, M)
            Two dimensions: P(class 1) of binary models, or log-odds of class 1 with `score_type="logit"`.
        labels : array-like of shape (n,), optional
            -1, None, NaN or "" where a row is unlabeled. See `class_names`.
        model_names : sequence of M names, optional
            By default the columns of a DataFrame, else "model_0", "model_1", ...
        class_names : sequence of K names, optional
            The class of each score column; labels are matched by name. Without it, classes are "0" to "K-1", or the
            K distinct labels in ascending order.
        row_ids : array-like of shape (n,), optional
            By default "0", "1", ...
        groups : dict, DataFrame or array of shape (n,), optional
        score_type : {"probability", "logit"}
        label_weight : array-like of shape (n,), optional
            Needed where rows were chosen for labeling: `label_weight` of the batch from :meth:`SSME.suggest_labels`.
            NaN counts as 1 where a row is unlabeled.
        """
        if model_names is None and hasattr(scores, "columns"):
            model_names = list(scores.columns)
        shape = np.shape(scores)
        if model_names is not None and len(shape) in (2, 3):
            model_names = check_names(model_names, shape[1], argument("model_names"))
        values = check_score_array(scores, score_type=score_type, model_names=model_names)
        n, n_models, n_classes = values.shape
        codes, classes = check_labels(labels, n, n_classes, class_names=class_names, name="labels")
        return cls(
            values,
            codes,
            tuple(model_names or (f"model_{m}" for m in range(n_models))),
            check_names(classes, n_classes, argument("class_names")),
            check_row_ids(row_ids, n, argument("row_ids")),
            check_groups(groups, n),
            score_type,
            check_label_weight(label_weight, codes),
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        layout: Layout = "auto",
        id_column: str | None = None,
        label_column: str | None = None,
        group_columns: Sequence[str] = (),
        class_names: Sequence[Any] | None = None,
        model_name: str | None = None,
        score_type: str = "probability",
        separator: str = ":",
    ) -> ScoreTable:
        """Read a DataFrame, as :func:`ssme.score_table.read_scores` reads a file.

        `model_name` names the model of the layout "model", which in a file is the file's name. An index that is named,
        or that is not 0 .. n-1, gives the ids where there is no id column.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"id": ["x", "y"], "cat": [0.2, 0.9], "dog": [0.8, 0.1], "label": ["dog", None]})
        >>> ScoreTable.from_frame(frame, model_name="resnet").labels
        array([ 1, -1])
        """
        options = ReadOptions(
            layout, id_column, label_column, group_columns, class_names, model_name, score_type, separator
        )
        return cls._from_parts(io.frame_to_parts(frame, options))

    @classmethod
    def _from_parts(cls, parts: TableParts) -> ScoreTable:
        with calling(rows=parts.call_row):
            return cls.from_arrays(
                parts.scores,
                parts.labels,
                model_names=parts.model_names,
                class_names=parts.class_names,
                row_ids=parts.row_ids,
                groups=parts.groups,
                score_type=parts.score_type,
                label_weight=parts.label_weight,
            )

    @classmethod
    def join(cls, tables: Iterable[ScoreTable], *, names: Sequence[str] | None = None) -> ScoreTable:
        """Put the models of several tables side by side, row by row BY ID, class by class by name.

        Parameters
        ----------
        tables : iterable of ScoreTable
            Tables of different models on the same rows, in any order. Rows and classes take the order of the first.
        names : sequence of str, optional
            How errors call the tables, for instance their files.

        Examples
        --------
        >>> one = ScoreTable.from_arrays([[0.9], [0.2]], model_names=["a"], row_ids=["x", "y"])
        >>> two = ScoreTable.from_arrays([[0.3], [0.8]], model_names=["b"], row_ids=["y", "x"])
        >>> ScoreTable.join([one, two]).scores[:, :, 1]
        array([[0.9, 0.8],
               [0.2, 0.3]])
        """
        tables = list(tables) if isinstance(tables, Iterable) else [tables]
        strange = [t for t in tables if not isinstance(t, ScoreTable)]
        if strange:
            raise TypeError(f"tables must be ScoreTables, got {type(strange[0]).__name__}.")
        if not tables:
            raise ValueError("there is no table to join; pass at least one.")
        names = [f"table {i}" for i in range(len(tables))] if names is None else list(names)
        return tables[0]._with(**joined(tables, names))

    # -- changing a copy ---------------------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> ScoreTable:
        return replace(self, **changes)

    def with_labels(self, labels: Any, row_ids: Any = None, label_weight: Any = None) -> ScoreTable:
        """Return a table with these labels, and their weights, in the place of the old ones.

        Parameters
        ----------
        labels : array-like or None
            Class names; one for each row, or with `row_ids` for some rows only. None takes all labels away.
        row_ids : array-like, optional
            The row of each label. Rows that are not named are unlabeled; an id that no row has is an error.
        label_weight : array-like, optional
            One for each label, see :meth:`from_arrays`; rows that are not named have the weight 1.
        """
        row_ids = None if row_ids is None else as_text(row_ids, "row_ids")
        size = self.n_rows if row_ids is None else len(row_ids)
        own, _ = check_labels(labels, size, self.n_classes, class_names=self.class_names, name="labels")
        weight = check_label_weight(label_weight, own)
        if row_ids is None:
            return self._with(labels=own, label_weight=weight)
        rows = io.rows_of(self.row_ids, row_ids, "labels")
        codes = np.full(self.n_rows, -1, dtype=np.int64)
        codes[rows] = own
        if weight is not None:
            own, weight = weight, np.ones(self.n_rows)
            weight[rows] = own
        return self._with(labels=codes, label_weight=weight)

    def with_groups(self, groups: Any, row_ids: Any = None) -> ScoreTable:
        """Return a table with these group columns added; a column of the same name is replaced.

        `groups` is what :meth:`from_arrays` takes; `row_ids` names its rows as in :meth:`with_labels`.
        """
        row_ids = None if row_ids is None else as_text(row_ids, "row_ids")
        own = check_groups(groups, self.n_rows if row_ids is None else len(row_ids))
        if row_ids is not None:
            rows = io.rows_of(self.row_ids, row_ids, "groups")
            for name, values in own.items():
                own[name] = np.full(self.n_rows, "missing", dtype=object)
                own[name][rows] = values
        return self._with(groups={**self.groups, **own})

    def order_classes(
        self, class_names: Sequence[Any], reference: str = "class_names", name: str = "the table"
    ) -> ScoreTable:
        """Return a table whose classes are in this order; they must be the same classes.

        Examples
        --------
        >>> table = ScoreTable.from_arrays([[0.9]], ["yes"], class_names=["no", "yes"])
        >>> table.order_classes(["yes", "no"]).labels
        array([0])
        """
        called = argument("class_names")
        wanted = check_names(class_names, np.size(class_names), called)
        order = io.class_order(wanted, self.class_names, called if reference == "class_names" else reference, name)
        code = np.append(np.argsort(order), -1)  # old code -> new code; the last one is for unlabeled rows, code -1
        return self._with(scores=self.scores[:, :, order], labels=code[self.labels], class_names=wanted)

    def select(self, models: Any = None, rows: Any = None) -> ScoreTable:
        """Return a table of some models (names or positions) and some rows (mask, positions, slice or ids), in the
        order that is asked for."""
        picked = slice(None) if models is None else io.pick_names(models, self.model_names, "model")
        names = tuple(np.array(self.model_names, dtype=object)[picked])
        if len(set(names)) < len(names):
            raise ValueError(f"{argument('models')} names a model twice; name each one once.")
        where = slice(None) if rows is None else io.pick_rows(rows, self.row_ids)
        ids = check_row_ids(self.row_ids[where], len(self.row_ids[where]), "the id of the selected rows")
        groups = {k: v[where] for k, v in self.groups.items()}
        return self._with(
            scores=self.scores[where][:, picked],
            labels=self.labels[where],
            model_names=names,
            row_ids=ids,
            groups=groups,
            label_weight=None if self.label_weight is None else self.label_weight[where],
        )

    # -- out ---------------------------------------------------------------------------------------------------------

    def _label_names(self) -> np.ndarray:
        return np.array([*self.class_names, None], dtype=object)[self.labels]

    def _parts(self) -> TableParts:
        return TableParts(
            self.scores,
            self.model_names,
            self.class_names,
            row_ids=self.row_ids,
            groups=dict(self.groups),
            score_type=self.score_type,
            label_weight=self.label_weight,
        )

    def to_frame(self, layout: Literal["wide", "long"] = "wide", *, separator: str = ":") -> pd.DataFrame:
        """Return a DataFrame with id, label, the groups, and columns `model:class` (or model, class, score)."""
        return io.parts_to_frame(self._parts(), self._label_names(), self.row_ids, layout=layout, separator=separator)

    def write(
        self, path: str | os.PathLike[str], *, layout: Literal["wide", "long"] = "wide", separator: str = ":"
    ) -> None:
        """Write the table in the format of the suffix: .npz, .csv, .csv.gz, .tsv, .tsv.gz or .parquet.

        The file appears whole or not at all, and reading it gives the same numbers to the last bit. Only npz records
        `score_type`; for the others pass it to :func:`ssme.score_table.read_scores`.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be text or a path, got {type(path).__name__}.")
        io.write_parts(path, self._parts(), self.labels, self._label_names(), layout, separator)

    def equals(self, other: Any) -> bool:
        """Whether the other table holds the same, bit for bit and in the same order."""
        if not isinstance(other, ScoreTable):
            return False
        words = ("model_names", "class_names", "score_type")
        arrays = ("scores", "labels", "row_ids", "label_weight")
        return (
            all(getattr(self, w) == getattr(other, w) for w in words)
            and all(np.array_equal(getattr(self, a), getattr(other, a)) for a in arrays)
            and list(self.groups) == list(other.groups)
            and all(np.array_equal(v, other.groups[k]) for k, v in self.groups.items())
        )

    # -- sizes -------------------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.model_names)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def labeled(self) -> np.ndarray:
        """Mask (n,) of the labeled rows."""
        return self.labels >= 0

    @property
    def n_labeled(self) -> int:
        """Number of labeled rows."""
        return int(self.labeled.sum())
