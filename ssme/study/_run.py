"""Run a study: data sets x budgets x seeds x methods, every cell once, in parallel, resumable."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ssme import __version__
from ssme._atomic import atomic_path, check_writable
from ssme._validation import check_level
from ssme.score_table import ScoreTable
from ssme.study._cells import Cell, Found, compute_and_save, load, undisturbed
from ssme.study._draws import LabeledScores
from ssme.study._methods import DEFAULT_METHODS, check_methods
from ssme.study._plan import Settings, Table, cells_of, check_metrics, is_whole, read_data_set, whole_numbers
from ssme.study._progress import Progress, advancing
from ssme.study._provenance import code_digest, commit, hardware, versions
from ssme.study._tidy import failures_of, to_frame

OUTPUTS = ("results.parquet", "study.json")


def run_study(
    tables: Table | Mapping[str, Table],
    budgets: int | Iterable[int] = (20, 50, 100),
    seeds: int | Iterable[int] = 25,
    methods: str | Sequence[str] = DEFAULT_METHODS,
    metrics: str | Sequence[str] | None = None,
    *,
    n_unlabeled: int = 1000,
    level: float = 0.9,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    stratified: bool = False,
    progress: Progress = False,
) -> pd.DataFrame:
    """Hide labels that are known, let every method estimate, and set the truth beside each estimate.

    For every seed half of the labeled rows, at random, are the pool: the first n_l of it show their label, the next
    `n_unlabeled` do not. The truth is the metric on the other half, which no method sees.

    Parameters
    ----------
    tables : ScoreTable or path, or mapping of names to these
        Rows without a label are left out. A single table is called "data".
    budgets : int or iterable of int, default=(20, 50, 100)
        Numbers of labels n_l. A larger budget keeps the labels of a smaller one.
    seeds : int or iterable of int, default=25
        A number stands for the seeds 0, 1, ...; a seed decides the halves, the labels and what a method draws.
    methods : sequence of str, default=("ssme", "labeled-only", "all-labels")
        See :func:`ssme.study.method_names`. "all-labels" is labeled-only with the labels of
        all rows of the draw, a reference that takes no part in the contest.
    metrics : sequence of str, optional
        Names in :data:`ssme.METRICS`. By default accuracy and ece; for two classes accuracy, ece_positive, roc_auc and
        average_precision. Of several data sets, those with more classes skip the metrics that are for two.
    n_unlabeled : int, default=1000
        Fewer where the pool is smaller.
    level : float, default=0.9
    n_draws : int, optional
        Draws of every method; by default each takes its own number. A level near 1 needs more.
    n_jobs : int, optional
        Processes, as joblib takes it; None is one, or what :func:`joblib.parallel_config` says. Each uses one thread.
    out_dir : path, optional
        Folder for results.parquet, study.json and the finished cells. A study that was stopped, however hard, goes on
        where it was when it is started again, and ends with the same numbers.
    stratified : bool, default=False
        Label one row of each class first. Labels are then no random sample, as it is often done.
    progress : bool or callable, default=False
        A bar on the terminal, or a function ``f(done, total)``.

    Returns
    -------
    DataFrame
        Columns dataset, n_labeled, n_unlabeled, seed, method, metric, model, estimate, lower, upper, truth, abs_err,
        covered (1, 0, or NaN without an interval), width, seconds (fit and all metrics together). Rows of method
        "label-curve" are labeled-only at other numbers of labels, for the effective sample size. ``attrs`` holds
        settings, versions, commit, hardware and what went wrong.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> p = 1 / (1 + np.exp(-(2 * y - 1)[:, None] - rng.normal(size=(400, 2))))
    >>> frame = run_study(ScoreTable.from_arrays(p, y), budgets=20, seeds=2, metrics="accuracy")
    >>> frame.query("method == 'ssme'")[["n_labeled", "n_unlabeled", "seed", "metric", "model"]].head(2)
       n_labeled  n_unlabeled  seed    metric    model
    0         20          180     0  accuracy  model_0
    1         20          180     0  accuracy  model_1
    """
    named = {"data": tables} if isinstance(tables, (ScoreTable, str, os.PathLike)) else dict(tables)
    if not named:
        raise ValueError("tables is empty: pass at least one score table.")
    settings = Settings(
        whole_numbers(budgets, "budgets", 1),
        tuple(range(whole_numbers(seeds, "seeds", 1)[0])) if is_whole(seeds) else whole_numbers(seeds, "seeds", 0),
        tuple(check_methods(methods)),
        None if metrics is None else check_metrics(metrics),
        whole_numbers(n_unlabeled, "n_unlabeled", 0)[0],
        check_level(level),
        bool(stratified),
        None if n_draws is None else whole_numbers(n_draws, "n_draws", 2)[0],
    )
    folder = None if out_dir is None else Path(out_dir)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for file in OUTPUTS:
            check_writable(folder / file)
    for name, table in named.items():  # what cannot be studied is refused before the first fit
        if isinstance(table, ScoreTable):
            read_data_set(name, table, settings, len(named))
    frame, info = _run(named, settings, n_jobs, folder, progress)
    frame.attrs.update(info)
    if folder is not None:
        results, record = (folder / file for file in OUTPUTS)
        with atomic_path(results) as temporary:
            frame.to_parquet(temporary, index=False)
        with atomic_path(record) as temporary:
            temporary.write_text(json.dumps(info, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return frame


def _run(
    tables: Mapping[str, Table], settings: Settings, n_jobs: int | None, folder: Path | None, progress: Progress
) -> tuple[pd.DataFrame, dict[str, Any]]:
    cells_of_a_set = len(settings.seeds) * (1 + len(settings.budgets) * len(settings.methods))
    frames, facts, failures = [], {}, []
    with undisturbed(), _parallel(n_jobs) as parallel, advancing(cells_of_a_set * len(tables), progress) as advance:
        for name, table in tables.items():  # one after the other: only one is in memory where paths are given
            found = read_data_set(name, table, settings, len(tables))
            cells = cells_of(found, settings)
            numbers = _all_cells(parallel, found.data, cells, None if folder is None else folder / "cells", advance)
            frames.append(to_frame(found, cells, numbers))
            facts[name] = found.facts(settings)
            failures += failures_of(name, cells, numbers)
    info = {
        "format": "ssme-study/1",
        "settings": {
            "budgets": list(settings.budgets),
            "seeds": list(settings.seeds),
            "methods": list(settings.methods),
            "n_unlabeled": settings.n_unlabeled,
            "level": settings.level,
            "stratified": settings.stratified,
            "n_draws": settings.n_draws,
        },
        "trials": len(settings.seeds),
        "data": facts,
        "failures": failures,
        "versions": {"ssme": __version__, **versions()},
        "commit": commit(),
        "code": code_digest(),
        "hardware": {**hardware(), "processes": parallel.n_jobs},
    }
    return pd.concat(frames, ignore_index=True), info


def _parallel(n_jobs: int | None) -> Any:
    """Processes by default; a backend that the caller has configured is taken as it is."""
    from joblib import Parallel

    try:
        return Parallel(n_jobs=n_jobs, prefer="processes", return_as="generator")
    except ValueError:  # a backend that hands its results out in one piece
        return Parallel(n_jobs=n_jobs, prefer="processes")


def _all_cells(
    parallel: Any, data: LabeledScores, cells: Sequence[Cell], folder: Path | None, advance: Callable[[int], None]
) -> list[Found]:
    """What is on disk is read; the rest is computed."""
    from joblib import delayed

    found: dict[int, Found] = {}
    owner = os.getpid()
    if folder is not None:
        found = {i: there for i, cell in enumerate(cells) if (there := load(cell, folder)) is not None}
    advance(len(found))
    missing = [i for i in range(len(cells)) if i not in found]
    if missing:
        for i, numbers in parallel(delayed(compute_and_save)(i, data, cells[i], folder, owner) for i in missing):
            found[i] = numbers
            advance(1)
    return [found[i] for i in range(len(cells))]
