"""Robustness curves from few labels, against the curves of all labels, on the scores of sweeps.

    python benchmarks/robustness_curves.py NAME=FOLDER ... --out DIR [--budgets 20,100] [--draws 10]

Every FOLDER holds scores.npz (all models of a sweep on the same test rows, with labels) and models.csv (model,
algorithm, x or r, seed). A draw takes all test rows, or `--rows` of them at random, and shows `--budgets` of their
labels; the larger budget keeps the labels of the smaller one. The truth is the curve of all test rows with all labels.
Methods: the joint fit of all models, with the discriminant consensus and with the mean of the models alone; one fit for
each algorithm (`--blocks`); the labeled rows alone; and all labels of the drawn rows, which no method can be expected
to beat. DIR gets errors.csv (a line for each draw, method and measure, written when it is there: what is there is not
done again) and report.md.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from ssl_zoo.curves import curves_of, estimate_curves, read_curves, true_metrics  # noqa: E402
from ssl_zoo.robustness import metrics_of_curves  # noqa: E402
from ssme import ScoreTable  # noqa: E402
from ssme.score_table import read_scores  # noqa: E402

STREAM = 21  # keeps these draws apart from those that the estimator makes from the same seed
STEEP = 0.03  # slopes beyond this must have the right sign
LEVEL = 0.9
ALL = "all labels"
KEYS = ["dataset", "n_rows", "n_labeled", "draw", "fit"]


def words(text: str) -> list[str]:
    """a,b -> ["a", "b"]"""
    return [part.strip() for part in text.split(",") if part.strip()]


def true_curves(table: ScoreTable, models: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """The truth of every point (measure "points") and measure, from all rows."""
    curves, rows = read_curves(models, table.model_names), []
    for metric, values in true_metrics(table, named(table, table.labels), metrics).items():
        for curve in curves:
            own = {"algorithm": curve.algorithm, "metric": metric}
            found = curves_of(values, curve.models)
            rows += [own | {"measure": "points", "x": x, "truth": a} for x, a in zip(curve.x, found, strict=True)]
            measures = metrics_of_curves(curve.x, found)
            rows += [own | {"measure": name, "truth": float(value)} for name, value in measures.items()]
    return pd.DataFrame(rows)


def named(table: ScoreTable, codes: np.ndarray) -> np.ndarray:
    """Class codes as names, None where there is none."""
    return np.array([*table.class_names, None], dtype=object)[codes]


def estimates(table: ScoreTable, models: pd.DataFrame, y: np.ndarray, metrics: list[str], fit: str, seed: int) -> Any:
    """Points and robustness of one draw."""
    asked = {"metrics": metrics, "level": LEVEL, "random_state": seed}
    if fit != "blocks":
        found = estimate_curves(table, models, y, consensus=fit, **asked)
        return found.points, found.robustness
    parts = []
    for _, own in models.groupby("algorithm", sort=False):
        names = list(dict.fromkeys(own["model"]))
        parts.append(estimate_curves(table.select(models=names), own, y, labeled_only=False, **asked))
    return pd.concat([p.points for p in parts]), pd.concat([p.robustness for p in parts])


def errors(found: pd.DataFrame, truth: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Mean errors over the algorithms (and points), by metric, measure and method."""
    both = found.drop(columns="truth", errors="ignore").merge(truth[[*on, "truth"]], on=on)
    both["error"] = (both["estimate"] - both["truth"]).abs()
    both["covered"] = (both["lower"] <= both["truth"]) & (both["truth"] <= both["upper"])
    both["width"] = both["upper"] - both["lower"]
    both["steep"] = (both["truth"].abs() > STEEP) & (both["measure"] == "r_slope")
    both["sign_right"] = both["steep"] & (np.sign(both["estimate"]) == np.sign(both["truth"]))
    sums = {"error": "mean", "covered": "mean", "width": "mean", "steep": "sum", "sign_right": "sum"}
    return both.groupby(["metric", "measure", "method"], sort=False).agg(sums).reset_index()


def errors_of_all_labels(sample: ScoreTable, models: pd.DataFrame, truth: pd.DataFrame, metrics: list[str]) -> Any:
    """What the curves of all labels of the drawn rows are off by: 0 where these are all rows."""
    found = true_curves(sample, models, metrics).rename(columns={"truth": "estimate"})
    found = found.assign(method=ALL, lower=np.nan, upper=np.nan)
    return errors(found.fillna({"x": 0}), truth.fillna({"x": 0}), ["algorithm", "metric", "measure", "x"])


class Bench:
    """Draws that are not there yet, and their lines."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.path = asked, asked.out / "errors.csv"
        asked.out.mkdir(parents=True, exist_ok=True)

    def done(self) -> set[tuple]:
        """What errors.csv holds."""
        return set(self.lines()[KEYS].itertuples(index=False, name=None)) if self.path.exists() else set()

    def lines(self) -> pd.DataFrame:
        """errors.csv."""
        return pd.read_csv(self.path)

    def run(self, dataset: str, folder: Path) -> None:
        """All draws of one sweep."""
        asked, done = self.asked, self.done()
        table, models = read_scores([folder / "scores.npz"]), pd.read_csv(folder / "models.csv")
        truth = true_curves(table, models, asked.metrics)
        points, robust = truth[truth["measure"] == "points"], truth[truth["measure"] != "points"]
        for draw in range(asked.draws):
            chosen = np.random.default_rng([draw, STREAM]).permutation(table.n_rows)
            chosen = chosen[: asked.rows]
            sample = table.select(rows=chosen)
            for budget in asked.budgets:
                y = named(table, np.where(np.arange(len(chosen)) < budget, sample.labels, -1))
                if (dataset, len(chosen), budget, draw, ALL) not in done:
                    found = errors_of_all_labels(sample, models, truth, asked.metrics)
                    self.add(found, dataset, len(chosen), budget, draw, ALL, 0.0)
                for fit in asked.fits:
                    if (dataset, len(chosen), budget, draw, fit) in done:
                        continue
                    start = time.perf_counter()
                    own_points, own_robust = estimates(sample, models, y, asked.metrics, fit, draw)
                    seconds = time.perf_counter() - start
                    part = [
                        errors(own_points.assign(measure="points"), points, ["algorithm", "x", "metric", "measure"]),
                        errors(own_robust, robust, ["algorithm", "metric", "measure"]),
                    ]
                    self.add(pd.concat(part), dataset, len(chosen), budget, draw, fit, seconds)
            print(f"{dataset}: draw {draw + 1} of {asked.draws}", flush=True)

    def add(self, found: pd.DataFrame, dataset: str, n: int, budget: int, draw: int, fit: str, seconds: float) -> None:
        """Write the lines of one draw."""
        keys = {"dataset": dataset, "n_rows": n, "n_labeled": budget, "draw": draw, "fit": fit}
        found = found.assign(**keys, seconds=round(seconds, 2))
        if fit != self.asked.fits[0]:
            found = found[found["method"] != "labeled-only"]  # the same in every fit
        found[[*KEYS, *[c for c in found.columns if c not in KEYS]]].to_csv(
            self.path, mode="a", header=not self.path.exists(), index=False
        )


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Means over the draws, with the error as a share of that of the labels alone."""
    lines = lines.assign(fit=np.where(lines["method"] == "labeled-only", "labeled-only", lines["fit"]))
    keys = ["dataset", "n_rows", "metric", "measure", "n_labeled", "fit"]
    numbers = {
        "error": "mean",
        "covered": "mean",
        "width": "mean",
        "steep": "sum",
        "sign_right": "sum",
        "seconds": "mean",
    }
    table = lines.groupby(keys, sort=False).agg(numbers).reset_index()
    alone = table[table["fit"] == "labeled-only"].set_index(keys[:-1])["error"].rename("alone")
    table = table.join(alone, on=keys[:-1])
    table["ratio"] = table["error"] / table["alone"]
    table["sign"] = table["sign_right"] / table["steep"].where(table["steep"] > 0)
    return table


def report(lines: pd.DataFrame) -> str:
    """The summary as a table in markdown; ratio is the error as a share of that of the labels alone."""
    table = summary(lines)
    head = "data rows metric measure labels fit error ratio coverage width sign seconds".split()
    out = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in table.itertuples():
        sign = "" if np.isnan(row.sign) else f"{row.sign:.2f} of {row.steep}"
        what = f"| {row.dataset} | {row.n_rows} | {row.metric} | {row.measure} | {row.n_labeled} | {row.fit} | "
        what += f"{row.error:.4f} | {row.ratio:.2f} | {row.covered:.2f} | {row.width:.3f} | "
        out.append(f"{what}{sign} | {row.seconds:.1f} |")
    return "\n".join(out) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Do what is not there yet, then write the report."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("sweeps", nargs="+", metavar="NAME=FOLDER")
    about.add_argument("--out", type=Path, required=True)
    about.add_argument("--budgets", type=lambda text: [int(each) for each in words(text)], default=[20, 100])
    about.add_argument("--draws", type=int, default=10)
    about.add_argument("--rows", type=int, default=None, help="so many of the test rows; by default all")
    about.add_argument("--metrics", type=words, default=["accuracy"])
    about.add_argument("--blocks", action="store_true", help="also one fit for each algorithm")
    asked = about.parse_args(arguments)
    asked.fits = ["discriminant", "mean", *(["blocks"] if asked.blocks else [])]
    bench = Bench(asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # flags of single fits are not what is measured here
        for each in asked.sweeps:
            name, _, folder = each.partition("=")
            bench.run(name, Path(folder))
    text = report(bench.lines())
    (asked.out / "report.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
