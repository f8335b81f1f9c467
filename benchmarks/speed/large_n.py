"""Time and peak memory over rows, models and classes; and what summing costs instead of drawing row by row.

    python benchmarks/speed/large_n.py [--rows 1000 10000 100000 1000000] [--parquet-rows 1000000 10000000]
                                       [--shapes 14x10 112x10 6x150] [--scores FILE ...] [--trials 3] [--out FILE.json]

Simulated scores, 100 labels; ``SSME().fit(...).estimate(...)`` with default settings, four metrics and intervals, and
`estimate_partitioned` on parquet files. Every measurement has a process of its own with one thread, and they take
turns. Memory is the largest resident set of the process, data included. `--shapes` MODELSxCLASSES are timed on 5,000
rows. `--scores` are score files with labels, of which 20,000 rows are estimated both ways with 1,000 draws. The growth
exponent between two sizes is the slope of log time over log rows. The JSON holds hardware, versions, commit and every
trial. A quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from em_vs_sklearn import ROOT, commit, hardware, versions

METRICS = ("accuracy", "roc_auc", "average_precision", "ece")
N_LABELED = 100
CHUNK = 500_000
ACCURACY_ROWS = 20_000
ACCURACY_LABELS = (50, 1000)


def simulated(n: int, n_models: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, M) of two classes or (n, M, K), and the true classes (n,)."""
    rng = np.random.default_rng(seed)
    skill = np.random.default_rng(1).uniform(0.7, 2.0, n_models)
    if n_classes == 2:
        y = (rng.random(n) < 0.2).astype(int)
        signal = 2.0 * y - 1.0 + rng.normal(0, 0.8, n)
        return 1 / (1 + np.exp(-skill * (signal[:, None] + rng.normal(0, 0.7, (n, n_models)) - 0.3))), y
    y = rng.integers(0, n_classes, n)
    signal = rng.normal(size=(n, n_classes))
    signal[np.arange(n), y] += 2.5
    logit = skill[:, None] * (signal[:, None, :] + rng.normal(0, 0.6, (n, n_models, n_classes)))
    p = np.exp(logit - logit.max(axis=2, keepdims=True))
    return p / p.sum(axis=2, keepdims=True), y


def write_parquet(path: Path, n: int, n_models: int) -> None:
    """Rows of two classes, in row groups of 250,000; the first 100 have a label."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        p, y = simulated(size, n_models, 2, start)
        rows = np.arange(start, start + size)
        columns = {"id": rows, "label": np.where(rows < N_LABELED, y, -1).astype(np.int8)}
        table = pa.table(columns | {f"model_{m}": p[:, m] for m in range(n_models)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=250_000)
    if writer is not None:
        writer.close()


def one(task: dict[str, Any]) -> dict[str, float]:
    """Measure one task in this process."""
    from ssme import SSME, estimate_partitioned

    warnings.simplefilter("ignore")  # what the estimator says of simulated scores is not what is measured
    if task["kind"] == "parquet":
        began = time.perf_counter()
        estimate_partitioned(task["path"], None, METRICS, random_state=0)
        return {"seconds": time.perf_counter() - began, "peak_gib": peak()}
    p, y = simulated(task["rows"], task["models"], task["classes"], 0)
    labels = np.where(np.arange(len(y)) < N_LABELED, y, -1)
    began = time.perf_counter()
    model = SSME(random_state=0).fit(p, labels)
    fitted = time.perf_counter()
    model.estimate(METRICS)
    ended = time.perf_counter()
    return {"seconds": ended - began, "fit": fitted - began, "estimate": ended - fitted, "peak_gib": peak()}


def peak() -> float:
    """Largest resident set of this process in GiB."""
    status = Path("/proc/self/status")
    if status.exists():  # the counter of getrusage is inherited from the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_subprocess(task: dict[str, Any]) -> dict[str, float]:
    """Measure one task in a process of its own, with one thread."""
    env = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, "--one", json.dumps(task)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{task}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def accuracy(path: Path) -> list[dict[str, Any]]:
    """Row by row against summed on a file of labeled scores: estimates, posteriors, interval widths."""
    from ssme import SSME, read_scores

    table, found = read_scores(path), []
    rows = np.random.default_rng(0).permutation(table.n_rows)[:ACCURACY_ROWS]
    scores, truth = table.scores[rows], np.asarray(table.labels)[rows]
    for n_labeled in ACCURACY_LABELS:
        labels = np.where(np.arange(len(rows)) < n_labeled, truth, -1)
        both = [
            SSME(random_state=0, n_draws=1000, max_exact_rows=limit, score_type=table.score_type).fit(scores, labels)
            for limit in (len(rows), 0)
        ]
        exact, summed = (model.estimate(METRICS) for model in both)
        posterior = float(np.abs(both[0].responsibilities_ - both[1].responsibilities_).mean())
        width = (summed["upper"] - summed["lower"]) / (exact["upper"] - exact["lower"])
        for metric in METRICS:
            of = exact["metric"] == metric
            found.append(
                {
                    "file": path.stem,
                    "rows": len(rows),
                    "labeled": n_labeled,
                    "metric": metric,
                    "largest_difference": float((exact["estimate"] - summed["estimate"])[of].abs().max()),
                    "mean_posterior_difference": posterior,
                    "width_ratio": [float(width[of].min()), float(width[of].mean()), float(width[of].max())],
                }
            )
    return found


def growth(sizes: list[int], seconds: list[float]) -> list[float | None]:
    """Slope of log time over log size between each size and the one before."""
    steps = zip(sizes, seconds, sizes[1:], seconds[1:], strict=False)
    return [None, *(float(np.log(t1 / t0) / np.log(n1 / n0)) for n0, t0, n1, t1 in steps)]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--parquet-rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--shapes", nargs="*", default=["14x10", "112x10", "6x150"])
    parser.add_argument("--scores", type=Path, nargs="*", default=[])
    parser.add_argument("--models", type=int, default=7)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--out", type=Path, help="JSON file for the trials")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(json.loads(options.one))))
        return
    with tempfile.TemporaryDirectory() as folder:
        tasks = [{"kind": "memory", "rows": n, "models": options.models, "classes": 2} for n in options.rows]
        for n in options.parquet_rows:
            path = Path(folder) / f"{n}.parquet"
            write_parquet(path, n, options.models)
            tasks.append({"kind": "parquet", "rows": n, "models": options.models, "classes": 2, "path": str(path)})
        for shape in options.shapes:
            n_models, n_classes = map(int, shape.split("x"))
            tasks.append({"kind": "shape", "rows": 5000, "models": n_models, "classes": n_classes})
        trials = [[in_subprocess(task) for task in tasks] for _ in range(options.trials)]
    results = []
    for task, of_task in zip(tasks, zip(*trials, strict=True), strict=True):
        task.pop("path", None)
        median = statistics.median(each["seconds"] for each in of_task)
        results.append(task | {"seconds": median, "peak_gib": max(t["peak_gib"] for t in of_task), "trials": of_task})
    for kind in ("memory", "parquet", "shape"):
        of_kind = [each for each in results if each["kind"] == kind]
        slopes: list[float | None] = [None] * len(of_kind)
        if kind != "shape":
            slopes = growth([each["rows"] for each in of_kind], [each["seconds"] for each in of_kind])
        for each, slope in zip(of_kind, slopes, strict=True):
            each["growth_exponent"] = slope
            each["ratio_to_previous"] = each["seconds"] / of_kind[max(of_kind.index(each) - 1, 0)]["seconds"]
            each["ratio_to_first"] = each["seconds"] / of_kind[0]["seconds"]
    print(f"{'':10}{'rows':>12}{'M x K':>10}{'seconds':>10}{'GiB':>8}{'x before':>10}{'x first':>10}{'exponent':>10}")
    for r in results:
        shape, slope = f"{r['models']} x {r['classes']}", r["growth_exponent"]
        sizes = f"{r['kind']:10}{r['rows']:12,}{shape:>10}{r['seconds']:10.2f}{r['peak_gib']:8.2f}"
        ratios = f"{r['ratio_to_previous']:10.2f}{r['ratio_to_first']:10.2f}"
        print(sizes + ratios + ("" if slope is None else f"{slope:10.2f}"))
    compared = [row for path in options.scores for row in accuracy(path)]
    for row in compared:
        low, mean, high = row["width_ratio"]
        print(
            f"{row['file']:24}{row['labeled']:6} labels  {row['metric']:18} estimates off by at most "
            f"{row['largest_difference']:.1e}, widths x {mean:.3f} ({low:.3f} to {high:.3f})"
        )
    if options.out:
        record = {
            "benchmark": "large_n",
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(),
            "hardware": hardware(),
            "versions": versions(),
            "metrics": METRICS,
            "labeled": N_LABELED,
            "results": results,
            "approximation": compared,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
