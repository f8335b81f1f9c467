"""Seconds to read score files, against pandas alone on the same file: a tall one and a very wide one, in one run.

python benchmarks/speed/read_scores.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssme import ScoreTable, read_scores

TRIALS = 3


def seconds(call: Callable[[], Any]) -> float:
    """Median over the trials."""
    times = []
    for _ in range(TRIALS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    """Write the two files, time both readers, print a table."""
    random = np.random.default_rng(0)
    shapes = {"100,000 rows x 7 models": (100_000, 7), "3 rows x 50,000 models": (3, 50_000)}
    print(f"{'file':28s}{'pandas s':>10s}{'ssme s':>10s}{'ratio':>8s}   median of {TRIALS}")
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in shapes.items():
            path = Path(folder) / "scores.csv"
            ScoreTable.from_arrays(random.dirichlet([1, 1], shape)).write(path)
            alone, ours = seconds(lambda path=path: pd.read_csv(path)), seconds(lambda path=path: read_scores(path))
            print(f"{name:28s}{alone:10.2f}{ours:10.2f}{ours / alone:8.1f}")


if __name__ == "__main__":
    main()
