"""Which model is which point of which curve: the table of a sweep -> positions in the score table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MODEL_COLUMNS = ("model", "run")
FACTOR_COLUMNS = ("x", "r", "value")


@dataclass(frozen=True, eq=False)
class CurveModels:
    """The models of one algorithm's curve.

    Attributes
    ----------
    algorithm : str
    x : array (n,)
        Values of the factor, rising; names of the points for a factor without an order.
    seeds : tuple
        Seeds, each with a model at every point.
    models : array (S, n)
        Position of the model of every seed and point in the score table.
    rows : array (S, n)
        Its row of the table of models.
    """

    algorithm: str
    x: NDArray
    seeds: tuple
    models: NDArray[np.int64]
    rows: NDArray[np.int64]


def read_curves(
    frame: pd.DataFrame, model_names: Sequence[str], *, factor: str | None = None, ordered: bool = True
) -> list[CurveModels]:
    """Lay out the models of a sweep as curves.

    Parameters
    ----------
    frame : DataFrame
        One row a model: its name ("model" or "run"), "algorithm", the value of the factor, and perhaps "seed". Rows
        whose "status" is another than "finished" are left out. Several rows may name one model: an algorithm without
        unlabeled data is the same at every point.
    model_names : sequence of str
        Of the score table.
    factor : str, optional
        Column with the values of the factor; by default "x", "r" or "value", the first that is there. A table of
        several factors has a column "factor" with their names: then the name of the one to read.
    ordered : bool, default=True
        Whether the values are numbers with an order.

    Returns
    -------
    list of CurveModels
        In the order of the frame. A seed that lacks a point which other seeds of its algorithm have is left out, and
        an algorithm with a single point too, both with a warning.

    Raises
    ------
    ValueError
        Where a column, a value or a model is missing, a point is there twice, or no curve has two points.

    Examples
    --------
    >>> frame = pd.DataFrame({"model": ["b", "a"], "algorithm": "uda", "r": [0.5, 0.0]})
    >>> [curve] = read_curves(frame, ["a", "b"])
    >>> curve.x.tolist(), curve.models.tolist()
    ([0.0, 0.5], [[0, 1]])
    """
    rows = _checked_rows(frame, factor, ordered)
    known = {name: m for m, name in enumerate(model_names)}
    lost = [name for name in rows["model"] if name not in known]
    if lost:
        raise ValueError(
            f"models names {lost[0]!r}, which the scores do not hold ({len(lost)} such rows); export the scores of all "
            "models, or leave these rows out."
        )
    unused = len(known) - rows["model"].nunique()
    if unused:
        warnings.warn(
            f"{unused} of the {len(known)} models of the scores are not in models: they are part of the consensus, and "
            "of no curve.",
            UserWarning,
            stacklevel=3,
        )
    rows["at"] = rows["model"].map(known)
    curves = [_curve(str(name), part) for name, part in rows.groupby("algorithm", sort=False)]
    found = [curve for curve in curves if curve is not None]
    if not found:
        raise ValueError(
            "no algorithm has two points of the factor: a curve needs at least 2 values, such as r = 0 and .5."
        )
    if len({tuple(curve.x) for curve in found}) > 1:
        warnings.warn(
            "the algorithms have different points; GM is a sum over points, and rankings compare curves of unlike x.",
            UserWarning,
            stacklevel=3,
        )
    return found


def _checked_rows(frame: pd.DataFrame, factor: str | None, ordered: bool) -> pd.DataFrame:
    """Columns model, algorithm, x, seed, and row: the position in the frame; finished rows only."""
    frame = frame.assign(_row=np.arange(len(frame)))
    if "factor" in frame.columns:
        several = list(dict.fromkeys(frame["factor"].dropna().astype(str)))
        if factor in several:
            frame, factor = frame[frame["factor"].astype(str) == factor], None
        elif len(several) > 1 and factor is None:
            raise ValueError(f"models holds the factors {', '.join(several)}; say by factor which one is to be read.")
    if "status" in frame.columns:
        unfinished = frame["status"] != "finished"
        if unfinished.any():
            warnings.warn(f"{int(unfinished.sum())} runs of models did not finish and are left out.", stacklevel=4)
        frame = frame[~unfinished]
    model = _column(frame, MODEL_COLUMNS, "the names of the models")
    x = _column(frame, FACTOR_COLUMNS if factor is None else (factor,), "the values of the factor")
    algorithm = _column(frame, ("algorithm",), "the algorithms")
    rows = pd.DataFrame(
        {
            "model": frame[model].to_numpy(),
            "algorithm": frame[algorithm].to_numpy(),
            "x": frame[x].to_numpy(),
            "seed": frame["seed"].to_numpy() if "seed" in frame.columns else 0,
            "row": frame["_row"].to_numpy(),
        }
    )
    for name, column in (("model", model), ("algorithm", algorithm), ("x", x), ("seed", "seed")):
        missing = np.flatnonzero(rows[name].isna())
        if len(missing):
            raise ValueError(
                f"models has no {column} in row {rows['row'][missing[0]]}; fill it in or leave the row out."
            )
    rows["model"] = rows["model"].astype(str)
    if ordered:
        numbers = pd.to_numeric(rows["x"], errors="coerce").astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            raise ValueError(
                f"{x} is {rows['x'][bad[0]]!r} in row {rows['row'][bad[0]]} of models, which is no finite number; a "
                "factor without an order needs ordered=False."
            )
        rows["x"] = numbers
    if not len(rows):
        raise ValueError("models has no row of a finished run.")
    return rows


def _column(frame: pd.DataFrame, names: Sequence[str], what: str) -> str:
    for name in names:
        if name in frame.columns:
            return name
    raise ValueError(
        f"models has no column {' or '.join(map(repr, names))} with {what}; its columns are "
        f"{', '.join(map(str, frame.columns))}."
    )


def _curve(name: str, rows: pd.DataFrame) -> CurveModels | None:
    """The curve of one algorithm, or None where it has a single point."""
    double = rows.duplicated(["x", "seed"])
    if double.any():
        first = rows[double].iloc[0]
        raise ValueError(
            f"{name} has two models at {first['x']!s} with seed {first['seed']} (row {first['row']} of models); "
            "keep one, or give them different seeds."
        )
    points = sorted(rows["x"].unique())
    counts = rows.groupby("seed", sort=True)["x"].nunique()
    whole = [seed for seed, count in counts.items() if count == len(points)]
    if len(points) < 2 or not whole:
        why = "one point only" if len(points) < 2 else "no seed with all points"
        warnings.warn(f"{name} has {why} and is left out.", UserWarning, stacklevel=4)
        return None
    if len(whole) < len(counts):
        warnings.warn(f"{name}: {len(counts) - len(whole)} seeds lack a point and are left out.", stacklevel=4)
    at, row = (rows.pivot(index="seed", columns="x", values=v).loc[whole, points] for v in ("at", "row"))
    return CurveModels(
        name, np.array(points), tuple(whole), at.to_numpy().astype(np.int64), row.to_numpy().astype(np.int64)
    )
