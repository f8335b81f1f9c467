"""The demo: a small contamination sweep on handwritten digits, judged with twenty labels, and the truth beside.

The digits come with scikit-learn, so nothing is downloaded. Six algorithms are trained with more and more rows of
unseen digits in their unlabeled pool; all but twenty labels of the test rows are hidden from the estimates. The truth
is each figure on all labels of the test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssl_zoo.curves import CurveEstimates, add_diagnostics, estimate_curves
from ssl_zoo.masking import DIAGNOSTICS
from ssl_zoo.sweep import SweepConfig, load_scores, load_sweep, run_sweep, sweep_diagnostics

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Demo", "compare", "cscore_table", "demo_sweep", "robustness_table", "run_demo", "summary"]

ALGORITHMS = ("supervised", "pseudolabel", "meanteacher", "fixmatch", "uasd", "openmatch")
VALUES = (0.0, 0.25, 0.5, 0.75, 1.0)
N_SEEDS, N_LABELED = 3, 20
ALONE = "labeled-only"


@dataclass(frozen=True, eq=False)
class Demo:
    """What `run_demo` found.

    Attributes
    ----------
    curves : CurveEstimates
        With the truth, and with the labels alone as a second method.
    epochs : DataFrame
        Diagnostics of training, a row a run and epoch.
    models : DataFrame
        A row a model: its place in the sweep, and its diagnostics over the last epochs.
    """

    curves: CurveEstimates
    epochs: pd.DataFrame
    models: pd.DataFrame


def demo_sweep(
    seed: int = 0,
    *,
    algorithms: Sequence[str] = ALGORITHMS,
    values: Sequence[float] = VALUES,
    n_seeds: int = N_SEEDS,
    steps: int | None = None,
) -> SweepConfig:
    """The sweep of the demo: the preset of digits, cut down, with more test rows.

    Parameters
    ----------
    seed : int, default=0
        The first seed of the runs.
    algorithms, values : sequences
        What is trained, and at which shares of unseen digits in the pool.
    n_seeds : int, default=3
        Runs at each point; masking verdicts need two or more.
    steps : int, optional
        Of each run; by default those of the preset.

    Examples
    --------
    >>> sweep = demo_sweep(4, n_seeds=2)
    >>> len(sweep.algorithms), sweep.factors["r"].values, sweep.seeds
    (6, (0.0, 0.25, 0.5, 0.75, 1.0), (4, 5))
    """
    values_of = load_sweep("digits").to_dict()
    base = values_of["base"]
    values_of["algorithms"] = list(algorithms)
    values_of["factors"]["r"]["values"] = [float(value) for value in values]
    values_of["seeds"] = [seed + k for k in range(n_seeds)]
    base["data"] = {"name": "digits", "options": {"test_fraction": 0.7}}
    if steps is not None:
        base["train"] |= {"steps": steps, "epoch_steps": max(1, steps // 10)}
    return SweepConfig.from_dict(values_of)


def run_demo(
    folder: str | Path,
    *,
    jobs: int | None = 2,
    seed: int = 0,
    sweep: SweepConfig | None = None,
    n_labeled: int = N_LABELED,
    n_draws: int = 200,
    progress: Callable[[int, int], None] | None = None,
) -> Demo:
    """Train what is not trained yet, and estimate the curves from few labels.

    Parameters
    ----------
    folder : path
        Of the sweep's runs; what is finished there is not trained again.
    jobs : int, optional
        Processes, of one thread each.
    seed : int, default=0
        Decides the runs, which test rows have labels, and the draws.
    sweep : SweepConfig, optional
        By default `demo_sweep`.
    n_labeled : int, default=20
        Test rows that keep their label.
    n_draws : int, default=200
    progress : callable, optional
        ``f(done, total)`` after every run.

    Raises
    ------
    RuntimeError
        Where a run failed; the message has its error.
    """
    sweep = demo_sweep(seed) if sweep is None else sweep
    frame = run_sweep(sweep, folder, jobs=jobs, device="cpu", progress=progress)
    failed = frame[frame["status"] != "finished"]
    if len(failed):
        row = failed.iloc[0]
        raise RuntimeError(
            f"{len(failed)} runs failed, the first of them {row['algorithm']} at r={row['value']}: {row['error']} "
            f"(traceback in {Path(folder) / str(row['run'])})."
        )
    table, models = load_scores(sweep, folder)
    if not 0 < n_labeled < table.n_rows:
        raise ValueError(f"n_labeled is {n_labeled}; it must be between 1 and {table.n_rows - 1}, the rows less one.")
    truth = np.array([*table.class_names, None], dtype=object)[table.labels]
    y = np.full(table.n_rows, None, dtype=object)
    shown = np.random.default_rng(seed).choice(table.n_rows, n_labeled, replace=False)
    y[shown] = truth[shown]
    epochs = sweep_diagnostics(sweep, folder)
    models = add_diagnostics(models, epochs)
    found = estimate_curves(table, models, y, truth=truth, n_draws=n_draws, random_state=seed)
    return Demo(found, epochs, models)


def compare(frame: pd.DataFrame) -> pd.DataFrame:
    """Estimates of `ssme` and of the labels alone beside each other, and who was closer to the truth.

    Parameters
    ----------
    frame : DataFrame
        ``points`` or ``robustness`` of `CurveEstimates`, with the truth.

    Returns
    -------
    DataFrame
        The keys of the frame, then labels_alone, labels_alone_lower, labels_alone_upper, estimate, lower, upper, truth,
        closer ("ssme", "labels" or "even"), level, n_labeled, n_unlabeled, method.
    """
    keys = [name for name in ("algorithm", "x", "metric", "measure") if name in frame.columns]
    ends = ["estimate", "lower", "upper"]
    alone = frame[frame["method"] == ALONE].set_index(keys)[ends]
    alone.columns = ["labels_alone", "labels_alone_lower", "labels_alone_upper"]
    ours = frame[frame["method"] != ALONE].set_index(keys)
    out = alone.reindex(ours.index).join(ours[[*ends, "truth"]])
    error, rival = (out["estimate"] - out["truth"]).abs(), (out["labels_alone"] - out["truth"]).abs()
    out["closer"] = np.select([error < rival - 1e-12, error > rival + 1e-12], ["ssme", "labels"], "even")
    return out.join(ours[["level", "n_labeled", "n_unlabeled", "method"]]).reset_index()


def robustness_table(found: CurveEstimates, measure: str = "r_slope") -> pd.DataFrame:
    """One measure of the curves by algorithm, compared, with the probability of being the most robust.

    The most robust algorithm comes first.
    """
    rows = compare(found.robustness)
    rows = rows[rows["measure"] == measure].set_index("algorithm")
    if not len(found.ranking):
        return rows.reset_index()
    places = found.ranking
    places = places[(places["measure"] == measure) & (places["method"] != ALONE)].set_index("algorithm")
    return rows.loc[list(places.index)].join(places[["p_best", "expected_rank"]]).reset_index()


def cscore_table(demo: Demo) -> pd.DataFrame:
    """Diagnostics by algorithm and r, means over seeds and last epochs, beside the estimated accuracy.

    Returns
    -------
    DataFrame
        Columns algorithm, x, accuracy, lower, upper, ple, cci, sem_drift, grad_align, ood_f, verdict.
    """
    points = demo.curves.points
    own = points[points["method"] != ALONE].set_index(["algorithm", "x"])
    out = own[["estimate", "lower", "upper"]].rename(columns={"estimate": "accuracy"})
    out = out.join(demo.models.groupby(["algorithm", "x"])[list(DIAGNOSTICS)].mean())
    out["verdict"] = ""
    masking = demo.curves.masking
    if len(masking):
        verdicts = masking[masking["method"] != ALONE].set_index(["algorithm", "x"])["verdict"]
        out["verdict"] = verdicts.reindex(out.index).fillna("")
    return out.reset_index()


def summary(frame: pd.DataFrame) -> dict[str, Any]:
    """Count who was closer and how many intervals hold the truth.

    Parameters
    ----------
    frame : DataFrame
        Of `compare`.

    Returns
    -------
    dict
        figures, closer; error and alone_error (means); held and alone_held.
    """
    truth = frame["truth"]
    return {
        "figures": len(frame),
        "closer": int((frame["closer"] == "ssme").sum()),
        "even": int((frame["closer"] == "even").sum()),
        "error": float((frame["estimate"] - truth).abs().mean()),
        "alone_error": float((frame["labels_alone"] - truth).abs().mean()),
        "held": int(truth.between(frame["lower"] - 1e-12, frame["upper"] + 1e-12).sum()),
        "alone_held": int(
            truth.between(frame["labels_alone_lower"] - 1e-12, frame["labels_alone_upper"] + 1e-12).sum()
        ),
    }
