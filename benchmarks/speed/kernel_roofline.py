"""Kernel evaluations per second of `KernelMatrix` against what the machine's exponential and product allow.

    python benchmarks/speed/kernel_roofline.py [--out FILE.json] [--trials 7] [--rows 12000] [--torch]

The matrix does not fit the budget and is recomputed, as in every round of EM on many rows. One kernel between two rows
in d dimensions, summed with C = 2 columns of weights, needs one exponential and ``2 (d + 2) + 2 C`` floating-point
operations of matrix products. The bound is what that takes at the two rates that the same process measures, in turns
with the kernel sums: ``exp`` over an array that fits the second-level cache, and a square matrix product of 1,024 rows.
Nothing is granted for the thin shape of the product, for the cut of small exponents, or for memory.

Seconds are of the process's processor time (on a GPU, of the clock), so that other work on the machine does not count;
those of all threads do: set OMP_NUM_THREADS=1. Every number is of the fastest of the trials; the JSON holds them all,
with hardware, versions and commit. With `--torch`, PyTorch's rates and sums stand beside NumPy's, on the device that it
picks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from benchmarks.speed.em_vs_sklearn import commit, hardware, versions  # noqa: E402
from ssme.kernel_sums import KernelMatrix  # noqa: E402

DIMENSIONS = (1, 2, 7, 14, 50)
COLUMNS = 2
SQUARE = 1024
EXPONENTS = 2**16
KEPT_ROWS = 5000
BANDWIDTH = 0.6
WANTED = 0.5


def rates(backend: str, dtype: str) -> dict[str, Callable[[], Any]]:
    """What measures the machine: an exponential and a product, by name."""
    rng = np.random.default_rng(0)
    exponents = -20 * rng.random(EXPONENTS).astype(dtype)
    square = rng.random((SQUARE, SQUARE)).astype(dtype)
    if backend == "numpy":
        out, result = np.empty_like(exponents), np.empty_like(square)
        return {
            "exp": lambda: [np.exp(exponents, out=out) for _ in range(50)],
            "gemm": lambda: np.matmul(square, square, out=result),
        }
    import torch

    from ssme.kernel_sums._torch import pick_device

    device = pick_device(torch, dtype, None)
    repeats = 1 if device.type == "cpu" else 2**10  # a GPU needs more than a cacheful to show its rate
    many, a = torch.from_numpy(np.tile(exponents, repeats)).to(device), torch.from_numpy(square).to(device)
    into = torch.empty_like(many)

    def settled(work: Callable[[], Any]) -> None:
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return {
        "exp": lambda: settled(lambda: [torch.exp(many, out=into) for _ in range(50)]),
        "gemm": lambda: settled(lambda: a @ a),
    }


def exps_of(backend: str, dtype: str) -> int:
    """Exponentials in one call of the measurement."""
    if backend == "torch":
        import torch

        from ssme.kernel_sums._torch import pick_device

        return 50 * EXPONENTS * (1 if pick_device(torch, dtype, None).type == "cpu" else 2**10)
    return 50 * EXPONENTS


def sums(backend: str, dtype: str, n: int) -> dict[int, Callable[[], Any]]:
    """Kernel sums of n rows at n rows that do not keep their matrix, by dimension; simulated rows."""
    rng, found = np.random.default_rng(1), {}
    for d in DIMENSIONS:
        kernel = KernelMatrix(
            rng.normal(size=(n, d)), BANDWIDTH, memory_budget=4 * n**2 - 1, dtype=dtype, backend=backend
        )
        w = rng.random((n, COLUMNS))

        def run(kernel: KernelMatrix = kernel, w: Any = w) -> Any:
            return kernel.log_dot(w, exclude_self=True, exact_tails=False)

        found[d] = run
    return found


def best(seconds: list[float]) -> float:
    """Of the least disturbed trial."""
    return min(seconds)


def measure(timed: dict[str, Callable[[], Any]], trials: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of every trial; all once, then all again."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for trial in range(trials + 1):
        for name, function in timed.items():
            began = clock()
            function()
            if trial:  # the first turn warms up
                seconds[name].append(clock() - began)
    return seconds


def compare(backend: str, dtype: str, options: argparse.Namespace) -> dict[str, Any]:
    """Rates, and for every dimension evaluations per second, the bound and their ratio."""
    n = options.rows
    X, w = np.random.default_rng(2).normal(size=(KEPT_ROWS, 7)), np.ones((KEPT_ROWS, COLUMNS))
    kept = KernelMatrix(X, BANDWIDTH, dtype=dtype, backend=backend)
    timed = rates(backend, dtype)
    timed |= {f"d={d}": function for d, function in sums(backend, dtype, n).items()}
    timed["kept"] = lambda: kept.log_dot(w, exact_tails=False)
    on_cpu = backend == "numpy" or exps_of(backend, dtype) == 50 * EXPONENTS
    seconds = measure(timed, options.trials, time.process_time if on_cpu else time.perf_counter)
    per_exp = best(seconds["exp"]) / exps_of(backend, dtype)
    per_flop = best(seconds["gemm"]) / (2 * SQUARE**3)
    table = {}
    for d in DIMENSIONS:
        bound = 1 / (per_exp + per_flop * (2 * (d + 2) + 2 * COLUMNS))
        achieved = n * n / best(seconds[f"d={d}"])
        table[d] = {"achieved_per_second": achieved, "bound_per_second": bound, "ratio": achieved / bound}
    return {
        "backend": backend,
        "dtype": dtype,
        "exp_per_second": 1 / per_exp,
        "gemm_flops": 1 / per_flop,
        "dimensions": table,
        "kept_kernels_per_second": KEPT_ROWS**2 / best(seconds["kept"]),
        "trials_seconds": seconds,
    }


def show(found: dict[str, Any]) -> None:
    rate, flops = found["exp_per_second"] / 1e6, found["gemm_flops"] / 1e9
    print(f"\n{found['backend']} {found['dtype']}: exp {rate:.0f} M/s, matrix product {flops:.1f} GFLOP/s")
    print(f"{'d':>4}{'achieved M/s':>15}{'bound M/s':>12}{'ratio':>8}")
    for d, row in found["dimensions"].items():
        achieved, bound = row["achieved_per_second"] / 1e6, row["bound_per_second"] / 1e6
        remark = "" if row["ratio"] >= WANTED else "  under half"
        print(f"{d:>4}{achieved:>15.0f}{bound:>12.0f}{row['ratio']:>8.2f}{remark}")
    print(f"kept matrix, {KEPT_ROWS:,} rows: {found['kept_kernels_per_second'] / 1e6:.0f} M kernels/s in a round")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file for the trials")
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--torch", action="store_true", help="measure PyTorch too")
    options = parser.parse_args()
    print(f"kernel evaluations, {options.rows} rows at {options.rows} rows, best of {options.trials} trials")
    found = []
    for backend in ("numpy", "torch") if options.torch else ("numpy",):
        for dtype in ("float64", "float32"):
            found.append(compare(backend, dtype, options))
            show(found[-1])
    if options.out:
        record = {
            "benchmark": "kernel_roofline",
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(),
            "hardware": hardware(),
            "versions": versions(),
            "rows": options.rows,
            "columns": COLUMNS,
            "bandwidth": BANDWIDTH,
            "results": found,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
