"""Two passes over the files: one keeps the rows that teach the consensus, one adds up what the metrics need."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ssme._fitting import Rows, check_parameters
from ssme._metric_bias import metric_biases, shifted
from ssme._table_io import ReadOptions
from ssme._tables import to_frame, warn_coarse, warn_undefined
from ssme._validation import check_level, check_seed
from ssme.consensus import PooledNodes
from ssme.estimator import SSME, Metric, model_specs
from ssme.intervals import draw_metrics, spread_ranks
from ssme.metrics import MetricSpec
from ssme.partitioned._engine import connected, sum_over
from ssme.partitioned._kept import Kept
from ssme.partitioned._source import Part, Source, check_met, describe, parquet_files, parts_of
from ssme.results import MetricDraws
from ssme.summaries import BinaryPlan, ClassesPlan, Summary, draws_of_summary, is_summable, make_plan, thin
from ssme.transforms import normalize

BATCH_ROWS = 2**17


def estimate_partitioned(
    paths: Any,
    labels: Any = None,
    metrics: Metric | Iterable[Metric] = ("accuracy",),
    *,
    level: float = 0.9,
    labeled_only: bool = False,
    layout: str = "auto",
    id_column: str | None = None,
    label_column: str | None = None,
    ignore_columns: Sequence[str] = (),
    class_names: Sequence[Any] | None = None,
    score_type: str = "probability",
    separator: str = ":",
    n_draws: int = 100,
    random_state: int | None = None,
    batch_rows: int = BATCH_ROWS,
    scheduler: Any = None,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Estimate metrics from parquet files that need not fit into memory.

    The rows are read twice: the consensus learns from 20,000 rows and all labels (at most 50,000 of them), then every
    row is counted. The size of batches and the number of workers have no effect on the result.

    Parameters
    ----------
    paths : path or sequence of paths
        Parquet files, or folders of them, that hold different rows of the same columns, in the layouts of
        :func:`ssme.read_scores` but "long".
    labels : path, Series or dict, optional
        Labels by row id; the files then need an id column. Without it the label column of the files.
    metrics : str, MetricSpec, callable, or an iterable of these
        Metrics that are no sums over rows, such as functions of your own, are estimated from 20,000 rows and flagged.
    level : float, default=0.9
    labeled_only : bool, default=False
        Add rows of method "labeled-only", from the labeled rows alone.
    layout, id_column, label_column, class_names, score_type, separator
        As in :func:`ssme.read_scores`.
    ignore_columns : sequence of str
        Columns that are neither scores nor labels nor ids.
    n_draws, random_state
        As in :class:`ssme.SSME`.
    batch_rows : int, default=131072
        Rows in memory at a time.
    scheduler : str or distributed.Client, optional
        Address of a Dask scheduler, whose workers see the files under the same paths (extra `cluster`). Trust it: what
        a cluster sends back is unpickled.
    progress : callable, optional
        ``progress(text)`` is told what is being done.

    Returns
    -------
    DataFrame
        As :meth:`ssme.SSME.estimate` gives it, for the group "all".

    Raises
    ------
    ValueError
        Where a file or its content cannot be used; the message names file, row and column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> p = 1 / (1 + np.exp(-((2 * truth - 1)[:, None] + rng.normal(size=(500, 2)))))
    >>> frame = pd.DataFrame({"id": range(500), "one": p[:, 0], "two": p[:, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "scores.parquet"
    ...     frame.to_parquet(path, row_group_size=200)
    ...     table = estimate_partitioned(path, {i: truth[i] for i in range(40)}, ["accuracy", "ece"], random_state=0)
    >>> table[["metric", "model", "n_labeled", "n_unlabeled"]]
         metric model  n_labeled  n_unlabeled
    0  accuracy   one         40          460
    1  accuracy   two         40          460
    2       ece   one         40          460
    3       ece   two         40          460
    """
    return estimate_files(
        paths,
        labels,
        metrics,
        ReadOptions(layout, id_column, label_column, (), class_names, None, score_type, separator),
        SSME(n_draws=n_draws, random_state=random_state),
        level=level,
        labeled_only=labeled_only,
        ignore_columns=ignore_columns,
        batch_rows=batch_rows,
        scheduler=scheduler,
        note=progress or (lambda text: None),
    ).frame


@dataclass(frozen=True, eq=False)
class FilesEstimate:
    """The table, and what was read: its properties are called as those of a ScoreTable."""

    frame: pd.DataFrame
    n_rows: int
    n_labeled: int
    model_names: Sequence[str]
    class_names: Sequence[Any]
    score_type: str

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.model_names)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


def estimate_files(
    paths: Any,
    labels: Any,
    metrics: Metric | Iterable[Metric],
    options: ReadOptions,
    model: SSME,
    *,
    level: float = 0.9,
    labeled_only: bool = False,
    ignore_columns: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    scheduler: Any = None,
    note: Callable[[str], None],
) -> FilesEstimate:
    """What :func:`estimate_partitioned` does, with the sizes that a report wants; `model` is not fitted yet."""
    level = check_level(level)
    check_parameters(model.get_params(deep=False))
    check_seed(model.random_state)
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, (int, np.integer)) or batch_rows < 1:
        raise ValueError(f"batch_rows must be a whole number of at least 1, got {batch_rows!r}.")
    if not (labels is None or isinstance(labels, (str, os.PathLike, pd.Series, dict))):
        raise TypeError(
            f"labels must be a path, or a Series or dict of labels by row id, got {type(labels).__name__}: without ids "
            "they cannot be matched to rows."
        )
    files = parquet_files(paths)
    source = describe(files, options, labels, ignore_columns, int(batch_rows))
    specs = model_specs(metrics, len(source.class_names))
    parts = parts_of(files, source.columns)
    with connected(scheduler) as client:
        kept = sum_over(parts, partial(keep, source), client, lambda text: note(f"first pass: {text}"))
        if source.labels is not None:
            check_met(source.labels, kept.met)
        fitted = _Fitted.of(model, kept, source)
        summed = [spec for spec in specs if is_summable(spec)]
        counted = None
        if summed:
            plan = fitted.plan(summed)
            summary = sum_over(parts, partial(count, source, plan), client, lambda text: note(f"second pass: {text}"))
            counted = plan, summary
    note("drawing")
    found = fitted.estimates(specs, counted)
    if labeled_only:
        found += [fitted.counted(each) for each in model._labeled_only(specs, None)]
    warn_undefined(found, stacklevel=3)
    warn_coarse(found, level, stacklevel=3)
    frame = pd.concat([to_frame(each, level, source.model_names) for each in found], ignore_index=True)
    sizes = (kept.n_rows, kept.n_labeled, source.model_names, source.class_names, source.score_type)
    return FilesEstimate(frame, *sizes)


def keep(source: Source, part: Part) -> Kept:
    """What the first pass keeps of a part."""
    size = 0 if source.labels is None else len(source.labels.codes)
    found: Kept | None = None
    for first_row, scores, codes, met in source.batches(part):
        each = Kept.of(first_row, scores, codes, np.bincount(met, minlength=size))
        found = each if found is None else found + each
    assert found is not None, "parts have rows"
    return found


def count(source: Source, plan: BinaryPlan | ClassesPlan, part: Part) -> Summary:
    """What the second pass counts of a part."""
    total = Summary()
    for _, scores, codes, _ in source.batches(part):
        total += plan.count(scores, plan.nodes.pooled(normalize(scores)), codes, np.ones(len(codes)))
    return total


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The estimator fitted to the rows kept, and how many rows there are."""

    model: SSME
    n_rows: int
    n_labeled: int

    @classmethod
    def of(cls, model: SSME, kept: Kept, source: Source) -> _Fitted:
        classes, n = np.asarray(source.class_names), len(kept.codes)
        rows = Rows(kept.scores, kept.codes, classes, np.ones(n), list(source.model_names), {})
        whole = n == kept.n_rows  # then nothing is left to chance, nor to the order of the rows
        model._fit_rows(rows, spread_ranks(rows.scores, rows.codes, rows.weights) if whole else np.arange(n))
        return cls(model, kept.n_rows, kept.n_labeled)

    def plan(self, specs: Sequence[MetricSpec]) -> BinaryPlan | ClassesPlan:
        """How to count rows."""
        posterior = self.model._posterior
        assert isinstance(posterior.node, PooledNodes)
        rows = self.model._sample
        return make_plan(specs, self.model._rows.scores[rows], posterior.node.take(rows), posterior)

    def estimates(
        self, specs: Sequence[MetricSpec], counted: tuple[BinaryPlan | ClassesPlan, Summary] | None
    ) -> list[MetricDraws]:
        """One record a metric."""
        model, posterior, rank = self.model, self.model._posterior, self.model._rank
        rows, seed = model._rows, model._seed
        summed = [spec for spec in specs if is_summable(spec)]
        others = [spec for spec in specs if not is_summable(spec)]
        found: dict[MetricSpec, tuple[np.ndarray, np.ndarray]] = {}
        if counted is not None:
            amounts = (float(self.n_rows - self.n_labeled), float(self.n_labeled))
            thinned = thin(rows.scores, posterior, rows.weights, rank, amounts)
            found.update(zip(summed, draws_of_summary(summed, *counted, posterior, thinned, seed), strict=True))
        if others:
            some = model._sample
            part = (rows.scores[some], posterior.subset(some), rows.weights[some], rank[some])
            found.update(zip(others, draw_metrics(others, *part, seed), strict=True))
        labeled = np.flatnonzero(posterior.codes >= 0)
        part_of_labels = (rows.scores[labeled], posterior.subset(labeled), rows.weights[labeled])
        biases = metric_biases(specs, *part_of_labels, rows.of_labels[labeled], rank[labeled], seed=[seed, 15])
        unlabeled = 1 - self.n_labeled / self.n_rows
        every, out = np.arange(len(rank)), []
        for spec, bias in zip(specs, biases, strict=True):
            flags = model._flags(every)
            if spec in others and self.n_rows > len(model._sample):
                flags = (*flags, f"from-{len(model._sample)}-rows")
            point, draws = shifted(spec, found[spec], bias, unlabeled)
            out.append(self.counted(model._record(spec, "all", every, point, draws, "ssme", flags)))
        return out

    def counted(self, record: MetricDraws) -> MetricDraws:
        """The record with the numbers of all rows."""
        return replace(record, n_labeled=self.n_labeled, n_unlabeled=self.n_rows - self.n_labeled)
