"""Twenty EM rounds of a kernel mixture: ssme's kernel matrix against scikit-learn's KernelDensity, and SSME as a whole.

    python benchmarks/speed/em_vs_sklearn.py [--out FILE.json] [--trials 5] [--rows 1020] [--models 7]

Simulated scores of binary models, twenty of them labeled. In one process, taking turns, every trial times

- twenty EM rounds with ``KernelDensity(...).fit(X, sample_weight=r_k).score_samples(X)`` for every class;
- the same rounds with `KernelMatrix` and `run_em` (matrix included; the responsibilities are compared);
- ``SSME().fit(...).estimate(...)`` of four metrics with 100 draws, where ssme has that class;
- the parts: bandwidth rule, kernel matrix, its matrix product and its exponentials alone, one round.

Prints medians over the trials and the ratios to scikit-learn. Two minutes on two cores, most of them
scikit-learn's. The JSON
holds hardware, versions, commit and every trial.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KernelDensity

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from ssme._em import run_em  # noqa: E402
from ssme.bandwidth import select_bandwidth  # noqa: E402
from ssme.kernel_sums import KernelMatrix  # noqa: E402
from ssme.transforms import additive_log_ratio  # noqa: E402

ROUNDS = 20
METRICS = ("accuracy", "roc_auc", "average_precision", "ece_positive")


def simulated_scores(n: int, n_models: int, n_labeled: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """P(class 1) (n, M) of models of unequal skill that share what is hard, and labels with -1 for unknown."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    signal = 2.0 * y - 1.0 + rng.normal(0, 0.8, n)
    logit = rng.uniform(0.7, 2.0, n_models) * (signal[:, None] + rng.normal(0, 0.7, (n, n_models)) - 0.3)
    return 1 / (1 + np.exp(-logit)), np.where(np.arange(n) < n_labeled, y, -1)


def sklearn_rounds(X: np.ndarray, labels: np.ndarray, start: np.ndarray, n_rounds: int) -> np.ndarray:
    """EM rounds on data in units of the bandwidth, through scikit-learn; labeled rows pinned."""
    known = labels >= 0
    r = start.copy()
    r[known] = np.eye(2)[labels[known]]
    for _ in range(n_rounds):
        log_joint = np.empty_like(r)
        for k in range(2):
            density = KernelDensity(bandwidth=1.0).fit(X, sample_weight=r[:, k])
            log_joint[:, k] = density.score_samples(X) + np.log(r[:, k].mean())
        new = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        new[known] = r[known]
        r = new
    return r


def contenders(n: int, n_models: int, seed: int) -> tuple[dict[str, Callable[[], Any]], float]:
    """What is timed, by name, and the largest difference between the responsibilities of both."""
    p, labels = simulated_scores(n, n_models, 20, seed)
    z = additive_log_ratio(np.stack([1 - p, p], axis=2))
    h = select_bandwidth(z, "scott")
    X = z / h
    start = np.column_stack([1 - p.mean(axis=1), p.mean(axis=1)])
    exponents = -0.5 * ((X[:, None, :3] - X[None, :, :3]) ** 2).sum(
        axis=2
    )  # of ordinary size; their number is what counts
    left, out, kernel = np.ones((n, n_models + 2)), np.empty((n, n)), KernelMatrix(z, h)

    def ours() -> np.ndarray:
        return run_em(KernelMatrix(z, h), labels, start, max_iter=ROUNDS, tol=0).responsibilities

    timed: dict[str, Callable[[], Any]] = {
        "scikit-learn, 20 EM rounds": lambda: sklearn_rounds(X, labels, start, ROUNDS),
        "ssme, kernel matrix + 20 EM rounds": ours,
        "part: bandwidth (isj)": lambda: select_bandwidth(z, "isj"),
        "part: kernel matrix": lambda: KernelMatrix(z, h),
        "part: its matrix product alone": lambda: np.dot(left, left.T.copy(), out=out),
        "part: its exponentials alone": lambda: np.exp(exponents, out=out),
        "part: product of one round": lambda: kernel.log_dot(start, exact_tails=False),
    }
    estimator = find_estimator()
    if estimator is not None:
        timed["SSME().fit + estimate, 4 metrics"] = lambda: (
            estimator(n_draws=100, random_state=0).fit(p, labels).estimate(METRICS)
        )
        timed['SSME(density="kde").fit + estimate'] = lambda: (
            estimator(density="kde", n_draws=100, random_state=0).fit(p, labels).estimate(METRICS)
        )
    difference = float(np.abs(ours() - sklearn_rounds(X, labels, start, ROUNDS)).max())
    return timed, difference


def find_estimator() -> Any:
    """The class SSME, or None where this ssme does not have it."""
    try:
        from ssme import SSME
    except ImportError:
        return None
    return SSME


def measure(timed: dict[str, Callable[[], Any]], trials: int) -> dict[str, list[float]]:
    """Seconds of every trial; all contenders once, then all again."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for trial in range(trials + 1):
        for name, function in timed.items():
            began = time.perf_counter()
            function()
            if trial:  # the first turn warms up
                seconds[name].append(time.perf_counter() - began)
    return seconds


def hardware() -> dict[str, Any]:
    """Processor, cores, memory, and the thread limits that were set."""
    name = platform.processor() or platform.machine()
    memory = None
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    limits = {key: os.environ.get(key) for key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return {"processor": name, "cores": os.cpu_count(), "memory_gib": memory, "system": platform.platform(), **limits}


def versions() -> dict[str, str | None]:
    """Of Python and the packages that matter."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("ssme", "numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def commit() -> str | None:
    """Commit of the checkout, with `+` where files differ from it; None outside of one."""
    run: dict[str, Any] = {"capture_output": True, "text": True, "cwd": ROOT, "check": True}
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], **run).stdout.strip()
        changed = subprocess.run(["git", "status", "--porcelain"], **run).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file for the trials")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1020)
    parser.add_argument("--models", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what the estimator says of simulated scores is not what is measured
    timed, difference = contenders(options.rows, options.models, options.seed)
    seconds = measure(timed, options.trials)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    base = median["scikit-learn, 20 EM rounds"]
    print(f"{options.rows} rows x {options.models} binary models, median of {options.trials} trials that take turns")
    print(f"{'':40}{'ms':>12}{'times faster':>14}")
    for name, value in median.items():
        print(f"{name:40}{1e3 * value:12.2f}{'' if name.startswith('part') else format(base / value, '14.1f')}")
    print(f"largest difference of a responsibility after {ROUNDS} rounds: {difference:.1e}")
    if options.out:
        record = {
            "benchmark": "em_vs_sklearn",
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(),
            "hardware": hardware(),
            "versions": versions(),
            "rows": options.rows,
            "models": options.models,
            "seed": options.seed,
            "trials_seconds": seconds,
            "median_seconds": median,
            "times_faster_than_sklearn": {n: base / v for n, v in median.items() if not n.startswith("part")},
            "largest_difference": difference,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
