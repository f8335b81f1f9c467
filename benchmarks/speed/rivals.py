"""SSME against other packages on the same scores, in one process: seconds from scores and labels to estimates.

    python benchmarks/speed/rivals.py [--out FILE.json] [--trials 3] [--rows 1020] [--models 7]

Simulated scores of binary models, twenty of them labeled. What each contender gives for its time differs and is printed
beside it:

- ``SSME().fit(...).estimate(...)``: accuracy, ROC AUC, average precision and calibration error, 100 draws, intervals;
- the same with accuracy alone, beside the packages that give no more than that;
- ssme-lite: its estimator at its defaults (100 rounds through scikit-learn) and its report of its four metrics, 100
  draws, intervals that leave the fit out;
- scikit-learn: twenty EM rounds with ``KernelDensity``, no metric;
- statsmodels: two rounds with ``KDEMultivariate``, which has no weights (every class keeps the rows that are likelier
  its own), no metric;
- ppi-python: accuracy of every model with its interval, and nothing else;
- crowd-kit: Dawid-Skene on the votes, and the expected accuracy of every model, without labels and without intervals.

What is not installed is left out and said so. The contenders take turns; medians over the trials.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from em_vs_sklearn import METRICS, ROOT, commit, hardware, measure, simulated_scores, sklearn_rounds, versions

from ssme import SSME
from ssme._atomic import atomic_path
from ssme.bandwidth import select_bandwidth
from ssme.transforms import additive_log_ratio

assert (ROOT / "ssme").is_dir()
PACKAGES = {"ssme-lite": "ssme_lite", "statsmodels": "statsmodels", "ppi-python": "ppi_py", "crowd-kit": "crowdkit"}
OUR_NAME, STATSMODELS_ROUNDS = "ssme", 2


def ssme_lite(p: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    """Its four metrics with intervals."""
    from ssme_lite.estimation import SSMEEstimator

    return lambda: SSMEEstimator().fit(p, labels).evaluate(n_draws=100, confidence=0.9)


def statsmodels(p: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    """Rounds of unweighted densities of both classes."""
    from statsmodels.nonparametric.kernel_density import KDEMultivariate

    z = np.log(p / (1 - p))
    known = labels >= 0

    def rounds() -> np.ndarray:
        positive = np.where(known, labels == 1, p.mean(axis=1) > 0.5)
        for _ in range(STATSMODELS_ROUNDS):
            joint = [
                KDEMultivariate(z[rows], "c" * z.shape[1], bw="normal_reference").pdf(z) * rows.mean()
                for rows in (~positive, positive)
            ]
            positive = np.where(known, labels == 1, joint[1] > joint[0])
        return positive

    return rounds


def ppi(p: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    """Accuracy of every model: the confidence as what is predicted of every row."""
    from ppi_py import ppi_mean_ci

    known, vote = labels >= 0, p > 0.5
    confidence = np.maximum(p, 1 - p)
    right = (vote[known] == labels[known, None]).astype(float)
    return lambda: [
        ppi_mean_ci(right[:, m], confidence[known, m], confidence[~known, m], alpha=0.1) for m in range(p.shape[1])
    ]


def crowd_kit(p: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    """Votes as a crowd's answers; a hundred rounds, its default."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    n, n_models = p.shape
    votes = (p > 0.5).astype(int)
    answers = pd.DataFrame(
        {"task": np.repeat(np.arange(n), n_models), "worker": np.tile(np.arange(n_models), n), "label": votes.ravel()}
    )

    def accuracy() -> np.ndarray:
        found = DawidSkene(n_iter=100).fit_predict_proba(answers).reindex(np.arange(n)).to_numpy()
        return np.take_along_axis(found, votes, axis=1).mean(axis=0)

    return accuracy


MAKERS = {
    "ssme-lite": ("four metrics with intervals", ssme_lite),
    "statsmodels": (f"{STATSMODELS_ROUNDS} rounds of densities", statsmodels),
    "ppi-python": ("accuracy with intervals", ppi),
    "crowd-kit": ("accuracy, no intervals", crowd_kit),
}


def contenders(p: np.ndarray, labels: np.ndarray) -> tuple[dict[str, Callable[[], Any]], dict[str, str], list[str]]:
    """What is timed, what each gives, and which packages are missing."""
    z = additive_log_ratio(np.stack([1 - p, p], axis=2))
    X, start = z / select_bandwidth(z, "scott"), np.column_stack([1 - p.mean(axis=1), p.mean(axis=1)])
    timed: dict[str, Callable[[], Any]] = {
        OUR_NAME: lambda: SSME(n_draws=100, random_state=0).fit(p, labels).estimate(METRICS),
        OUR_NAME + ", accuracy": lambda: SSME(n_draws=100, random_state=0).fit(p, labels).estimate(["accuracy"]),
        "scikit-learn": lambda: sklearn_rounds(X, labels, start, 20),
    }
    gives, missing = {OUR_NAME: "four metrics with intervals", "scikit-learn": "20 rounds of densities"}, []
    gives[OUR_NAME + ", accuracy"] = "accuracy with intervals"
    for name, (what, make) in MAKERS.items():
        try:
            timed[name] = make(p, labels)
        except ImportError as fault:
            missing.append(f"{name} ({fault})")
        else:
            gives[name] = what
    return timed, gives, missing


def all_versions() -> dict[str, str | None]:
    """Of Python, the packages that everything needs and the rivals."""
    found = versions()
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file for the trials")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1020)
    parser.add_argument("--models", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what they say of simulated scores is not what is measured
    p, labels = simulated_scores(options.rows, options.models, 20, options.seed)
    timed, gives, missing = contenders(p, labels)
    seconds = measure(timed, options.trials)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    found = all_versions()
    print(f"{options.rows} rows x {options.models} binary models, 20 labels, median of {options.trials} trials")
    print(f"{'':22}{'seconds':>10}{'of ssme':>10}  gives")
    for name, value in sorted(median.items(), key=lambda item: item[1]):
        label = f"{name} {found.get(name) or ''}".strip()
        print(f"{label:22}{value:10.3f}{value / median[OUR_NAME]:10.1f}  {gives[name]}")
    for name in missing:
        print(f"left out: {name}")
    if options.out:
        record = {
            "benchmark": "rivals",
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(),
            "hardware": hardware(),
            "versions": found,
            "rows": options.rows,
            "models": options.models,
            "seed": options.seed,
            "gives": gives,
            "left_out": missing,
            "trials_seconds": seconds,
            "median_seconds": median,
            "times_the_time_of_ssme": {name: value / median[OUR_NAME] for name, value in median.items()},
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(options.out) as file:
            file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
