"""One cell of a study: what it is, what it computes, and its file, which is found again by content.

The name of a file is a hash of everything that its numbers depend on: the scores and labels, the draw, the method, the
metrics, the level, the code and the numeric libraries. A study that is started again computes what is missing only,
and never takes a number that this code, on this data, would not give.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ssme._atomic import atomic_path
from ssme.metrics import evaluate_metric
from ssme.study._draws import Floats, LabeledScores, curve_sizes, draw_rows
from ssme.study._methods import CURVE, estimate_all
from ssme.study._provenance import NUMERIC, versions
from ssme.study._workers import end_with

FORMAT = "ssme-study-cell/1"


@dataclass(frozen=True)
class Cell:
    """One fit, or (method "label-curve") the truth and the curve of labeled-only on one draw.

    Attributes
    ----------
    data : str
        Fingerprint of scores and labels.
    method : str
    n_labeled, n_unlabeled : int
        0 for the truth and the curve.
    seed : int
    metrics : tuple of str
    level : float
    stratified : bool
    n_draws : int or None
        None: as many as the method takes by itself.
    code : str
        Fingerprint of the code.
    """

    data: str
    method: str
    n_labeled: int
    n_unlabeled: int
    seed: int
    metrics: tuple[str, ...]
    level: float
    stratified: bool
    n_draws: int | None
    code: str

    def key(self) -> str:
        """Everything that the numbers depend on, as one line of JSON."""
        about = {"format": FORMAT, **asdict(self), "libraries": versions(NUMERIC)}
        return json.dumps(about, sort_keys=True)

    def path(self, folder: Path) -> Path:
        """The file of this cell under a folder."""
        name = hashlib.sha256(self.key().encode()).hexdigest()[:40]
        return folder / name[:2] / f"{name}.npz"


@dataclass(frozen=True, eq=False)
class Found:
    """Numbers of a cell.

    Attributes
    ----------
    values : array
        Estimate, lower and upper end (3, metrics, M); of a curve the truth and the estimates (1 + sizes, metrics, M).
    seconds : float
        Time of fit and estimates; the thread waited for nothing else.
    error : str
        What the method raised, "" when all went well; the values are then NaN.
    """

    values: Floats
    seconds: float
    error: str


def compute(data: LabeledScores, cell: Cell) -> Found:
    """The numbers of one cell. What a method raises is kept with the cell and does not end the study."""
    draw = draw_rows(data.codes, cell.seed, cell.stratified)
    start = time.perf_counter()
    error = ""
    if cell.method == CURVE:
        values = _truth_and_curve(data, draw.pool, draw.truth, cell.metrics)
        return Found(values, time.perf_counter() - start, "")
    rows = draw.pool[: cell.n_labeled + cell.n_unlabeled]
    scores, codes = np.array(data.scores[rows]), np.array(data.codes[rows])
    start = time.perf_counter()
    try:
        values = estimate_all(
            cell.method, scores, codes, cell.n_labeled, cell.metrics, cell.level, cell.seed, cell.n_draws
        )
    except (MemoryError, OSError):  # trouble of the machine is not a result
        raise
    except Exception as raised:
        error = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
        values = np.full((3, len(cell.metrics), scores.shape[1]), np.nan)
    return Found(values, time.perf_counter() - start, error)


def _truth_and_curve(data: LabeledScores, pool: Any, truth: Any, metrics: tuple[str, ...]) -> Floats:
    rows = [truth, *(pool[:size] for size in curve_sizes(len(pool)))]
    out = np.empty((len(rows), len(metrics), data.scores.shape[1]))
    for i, chosen in enumerate(rows):
        scores, codes = np.array(data.scores[chosen]), data.codes[chosen]
        for j, metric in enumerate(metrics):
            out[i, j] = evaluate_metric(metric, scores, codes)
    return out


@contextmanager
def undisturbed() -> Iterator[None]:
    """One thread for the linear algebra, and no warnings; both are put back afterwards.

    In a thread that is not the main one nothing is done: both settings are the whole process's, and the main thread
    holds them as long as the study runs.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # what a warning says of one fit is a NaN or a flag; thousands help nobody
        yield


def compute_and_save(index: int, data: LabeledScores, cell: Cell, folder: Path | None, owner: int) -> tuple[int, Found]:
    """What a worker of the process `owner` does: compute one cell and, with a folder, write its file whole."""
    end_with(owner)
    with undisturbed():
        found = compute(data, cell)
    if folder is not None:
        save(found, cell, folder)
    return index, found


def save(found: Found, cell: Cell, folder: Path) -> None:
    """Write the file of a cell."""
    path = cell.path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    about = json.dumps({"key": cell.key(), "seconds": found.seconds, "error": found.error})
    with atomic_path(path) as temporary:
        np.savez(temporary, values=found.values, about=np.array(about))


def load(cell: Cell, folder: Path) -> Found | None:
    """Read the file of a cell; None where there is none, or none that can be trusted."""
    try:
        with np.load(cell.path(folder), allow_pickle=False) as file:
            about, values = json.loads(str(file["about"])), file["values"]
        if about["key"] != cell.key():
            return None
        return Found(values, float(about["seconds"]), str(about["error"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
