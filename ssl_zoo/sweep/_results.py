"""What the folder of a sweep holds: a row a run, the diagnostics of training, and the scores of all models."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssl_zoo._files import read_json, write_bytes
from ssl_zoo.metrics_log import MetricsLog
from ssl_zoo.sweep._config import SweepConfig
from ssl_zoo.sweep._plan import PlannedRun, plan_sweep
from ssl_zoo.sweep._train import FAILURE, is_finished

if TYPE_CHECKING:
    import pandas as pd

    from ssme.score_table import ScoreTable

__all__ = ["load_scores", "read_sweep", "sweep_diagnostics", "sweep_results", "write_tables"]

PLACE = ("algorithm", "factor", "value", "seed")
DIAGNOSTICS = ("ple", "cci", "cci_pooled", "sem_drift", "grad_align", "ood_f")
LAST_EPOCHS = 10  # of which the C-Score protocol takes the mean


def read_sweep(folder: str | Path) -> SweepConfig:
    """The sweep that a folder was last used for."""
    return SweepConfig.from_dict(read_json(Path(folder) / "sweep.json"))


def sweep_results(sweep: SweepConfig, folder: str | Path) -> pd.DataFrame:
    """One row a run, in the order of the plan.

    Returns
    -------
    DataFrame
        Columns algorithm, factor, value (text), x (the value as a number, NaN where it is a word), seed, status
        ("finished", "failed", "missing"), accuracy on the test rows of the seen classes (of all classes in the open
        world, with seen and unseen beside it), the step whose state is reported, whose it is ("ema" or "student"), pool
        (hash), run (folder), error.
    """
    import pandas as pd

    where = Path(folder)
    words = {"whose": "", "pool": "", "error": ""}
    rows = [{**_place(run), **words, **_found(where / run.config.run_name)} for run in plan_sweep(sweep)]
    columns = [*PLACE, "x", "status", "accuracy", "seen", "unseen", "selected_step", "whose", "pool", "run", "error"]
    frame = pd.DataFrame(rows).reindex(columns=columns)
    for name in ("x", "accuracy", "seen", "unseen", "selected_step"):
        frame[name] = frame[name].astype("float64")
    return frame


def _place(run: PlannedRun) -> dict[str, Any]:
    value = run.value
    x = float(value) if not isinstance(value, str) else np.nan
    return {"algorithm": run.algorithm, "factor": run.factor, "value": f"{value}", "x": x, "seed": run.seed}


def _found(folder: Path) -> dict[str, Any]:
    out: dict[str, Any] = {"run": folder.name, "status": "missing"}
    if is_finished(folder):
        result = read_json(folder / "result.json")
        out |= {"status": "finished", "selected_step": result["selected_step"], "whose": result["whose"]}
        out |= {"pool": read_json(folder / "manifest.json")["hash"], **result["metrics"]}
    elif (folder / FAILURE).exists():
        out |= {"status": "failed", "error": read_json(folder / FAILURE)["error"]}
    return out


def sweep_diagnostics(sweep: SweepConfig, folder: str | Path, *, last: int | None = None) -> pd.DataFrame:
    """The diagnostics of training of every finished run, a row an epoch.

    Parameters
    ----------
    sweep : SweepConfig
    folder : path
    last : int, optional
        Only the mean over so many epochs at the end, a row a run: 10 is the protocol of the C-Score.

    Returns
    -------
    DataFrame
        Columns algorithm, factor, value, x, seed, epoch, step, accuracy (of the reported model on the test rows), ple,
        cci, cci_pooled, sem_drift, grad_align, ood_f; NaN where a diagnostic is not defined.
    """
    import pandas as pd

    rows = []
    for run in plan_sweep(sweep):
        where = Path(folder) / run.config.run_name
        if not is_finished(where):
            continue
        whose = read_json(where / "result.json")["whose"]
        for record in MetricsLog(where).read():
            means = {key: record["train"].get(key) for key in DIAGNOSTICS}
            means |= {"epoch": record["epoch"], "step": record["step"], "accuracy": record["test"][whose]["accuracy"]}
            rows.append({**_place(run), **means})
    frame = pd.DataFrame(rows).reindex(columns=[*PLACE, "x", "epoch", "step", "accuracy", *DIAGNOSTICS])
    for name in ("x", "accuracy", *DIAGNOSTICS):
        frame[name] = frame[name].astype("float64")
    if last is None:
        return frame
    keys = [*PLACE, "x"]
    ends = frame.groupby(list(PLACE), sort=False).tail(last)
    return ends.groupby(keys, sort=False, dropna=False).mean().reset_index().drop(columns=["epoch", "step"])


def load_scores(sweep: SweepConfig, folder: str | Path, *, labels: bool = True) -> tuple[ScoreTable, pd.DataFrame]:
    """The scores of all finished models of a sweep on the test rows that they share.

    Parameters
    ----------
    sweep : SweepConfig
    folder : path
    labels : bool, default=True
        Whether the table holds the true classes.

    Returns
    -------
    table : ScoreTable
        Models are called ``algorithm/factor=value/seed``.
    models : DataFrame
        For each model its name, algorithm, factor, value, x and seed.

    Raises
    ------
    ValueError
        Where no run is finished, or the runs have other test rows or classes (as when the seeds draw other classes).
    """
    import pandas as pd

    from ssme.score_table import ScoreTable, read_scores

    tables, places = [], []
    read: dict[str, ScoreTable] = {}
    for run in plan_sweep(sweep):
        where = Path(folder) / run.config.run_name
        if not is_finished(where):
            continue
        if where.name not in read:
            read[where.name] = read_scores(where / "scores.npz")
        tables.append(read[where.name])
        name = f"{run.algorithm}/{run.factor}={run.value}/{run.seed}"
        places.append({"model": name, **_place(run)})
    if not tables:
        raise ValueError(f"{folder} has no finished run of this sweep; run it first.")
    first = tables[0]
    for table, place in zip(tables, places, strict=True):
        if not np.array_equal(table.row_ids, first.row_ids) or table.class_names != first.class_names:
            raise ValueError(
                f"{place['model']} has other test rows or classes than {places[0]['model']}; load them apart, or give "
                "the pool a seed of its own (base.pool.seed) so that all runs share their classes."
            )
    codes = first.labels
    known = np.array([*first.class_names, None], dtype=object)
    joint = ScoreTable.from_arrays(
        np.concatenate([table.scores for table in tables], axis=1),
        known[codes] if labels else None,
        model_names=[place["model"] for place in places],
        class_names=first.class_names,
        row_ids=first.row_ids,
    )
    return joint, pd.DataFrame(places)


def write_tables(sweep: SweepConfig, folder: Path, frame: pd.DataFrame) -> None:
    """results.csv, results.parquet and diagnostics.parquet, each whole or not at all."""
    diagnostics = sweep_diagnostics(sweep, folder)
    for name, table in (("results", frame), ("diagnostics", diagnostics)):
        content = io.BytesIO()
        table.to_parquet(content, index=False)
        write_bytes(folder / f"{name}.parquet", content.getvalue())
    write_bytes(folder / "results.csv", frame.to_csv(index=False).encode())
