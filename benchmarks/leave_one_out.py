"""Is the default estimator tuned to the sets it was developed on? Every constant chosen leave-one-data-set-out.

    python benchmarks/leave_one_out.py FOLDER --cache FILE.parquet [--seeds 25] [--search-seeds 3] [--anchors FOLDER]

Every .npz file of FOLDER is a data set (`ssme.read_scores`). For each of them in turn the constants of the estimator
are chosen on the others: coordinate descent, two sweeps over a grid of three values a constant
(`_estimator_constants.py`), from a start in which none is what is shipped. What is lowered is the mean log error over
the cells (budget x metric), sets weighing alike, plus what the mean coverage over the sets is outside .88 to .94, plus
what a set's coverage lacks to .85. Then the chosen constants are put to the set left out, on more draws. The grids and
the form of the estimator are not left out: they were made by people who had seen all sets.

A draw is `--budgets` labeled rows (one of each class first, where the budget allows) and `--unlabeled` others from a
random half of the rows; the truth is the metric on the other half. With --anchors the draws are those of
ANCHORS/draws/NAME.npz, and ANCHORS/label_budget.csv gives the errors of the reference implementation on them.

Finished fits are kept in the parquet file under what they depend on (constants, rows, draw, code); a run that was
stopped goes on from there and ends with the same numbers.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import inspect
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
for folder in (ROOT, ROOT / "benchmarks"):  # the checkout that this file stands in is what is measured
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from _estimator_constants import CONSTANTS, SHIPPED, START, constants  # noqa: E402

from ssme import SSME, read_scores  # noqa: E402
from ssme._atomic import atomic_path  # noqa: E402
from ssme.metrics import evaluate_metric  # noqa: E402
from ssme.study._cells import undisturbed  # noqa: E402
from ssme.study._draws import LabeledScores, draw_rows  # noqa: E402
from ssme.study._plan import BINARY_METRICS, METRICS_OF_MANY_CLASSES  # noqa: E402
from ssme.study._provenance import NUMERIC, code_digest, versions  # noqa: E402
from ssme.transforms import normalize  # noqa: E402

LEVEL = 0.9
NEAR = (0.88, 0.94)  # mean coverage of 90 % intervals that is as good as .90: draws of the labels tell no finer
LOWEST = 0.85  # coverage of a set below which the choice pays
SWEEPS = 2
DRAWS, SEARCH_DRAWS = 100, 50  # posterior draws of a fit: the default; half of them when thousands are compared
HOPELESS = 0.02  # what is worse by more on the first draw of each set is not tried on the others
SAVE_EVERY = 20.0  # seconds
Values = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Draws:
    """Row numbers of each seed: labeled and unlabeled rows of every budget, and the rows of the truth."""

    rows: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]
    truth: list[np.ndarray]


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """A data set with its draws."""

    name: str
    data: LabeledScores
    metrics: tuple[str, ...]
    draws: Draws

    def fingerprint(self, budget: int, seed: int) -> str:
        """Of scores, labels and the rows of one draw."""
        rows = np.concatenate([*self.draws.rows[budget, seed], self.draws.truth[seed]])
        return hashlib.sha256(self._digest.encode() + rows.astype(np.int64).tobytes()).hexdigest()[:32]

    @functools.cached_property
    def _digest(self) -> str:
        return self.data.digest()

    def case(self, budget: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n, M, K) and labels (n,), the labeled rows first, -1 elsewhere."""
        labeled, unlabeled = self.draws.rows[budget, seed]
        hidden = np.full(len(unlabeled), -1)
        return self.data.scores[np.r_[labeled, unlabeled]], np.r_[self.data.codes[labeled], hidden]

    @functools.cached_property
    def truths(self) -> list[np.ndarray]:
        """The metrics (metrics, M) on the rows that no draw of a seed touches, for each seed."""
        return [self.values(rows) for rows in self.draws.truth]

    def values(self, rows: np.ndarray) -> np.ndarray:
        """The metrics (metrics, M) of the labels of these rows."""
        scores, codes = self.data.scores[rows], self.data.codes[rows]
        return np.stack([evaluate_metric(metric, scores, codes) for metric in self.metrics])


def own_draws(codes: np.ndarray, budgets: Sequence[int], seeds: int, n_unlabeled: int) -> Draws:
    """Draws as in `ssme.study`, one label of each class first."""
    rows, truth = {}, []
    for seed in range(seeds):
        draw = draw_rows(codes, seed, stratified=True)
        truth.append(draw.truth)
        for budget in budgets:
            rows[budget, seed] = draw.pool[:budget], draw.pool[budget : budget + n_unlabeled]
    return Draws(rows, truth)


def anchored_draws(file: Path, n: int, budgets: Sequence[int], seeds: int) -> Draws:
    """Draws of a file: labeled_idx_BUDGET, unlabeled_idx_BUDGET (seeds, rows), pool_mask_packed (seeds, n / 8)."""
    with np.load(file, allow_pickle=False) as found:
        kept = {name: found[name] for name in found.files}
    pool = np.unpackbits(kept["pool_mask_packed"], axis=1, count=n).astype(bool)
    if len(pool) < seeds:
        raise SystemExit(f"{file} has {len(pool)} draws: give --seeds {len(pool)} or less.")
    rows = {
        (budget, seed): (kept[f"labeled_idx_{budget}"][seed], kept[f"unlabeled_idx_{budget}"][seed])
        for budget in budgets
        for seed in range(seeds)
    }
    return Draws(rows, [np.flatnonzero(~mask) for mask in pool[:seeds]])


def read_set(file: Path, budgets: Sequence[int], seeds: int, n_unlabeled: int, anchors: Path | None) -> ScoreSet:
    """A file of scores with its draws."""
    table = read_scores(file)
    labeled = np.flatnonzero(table.labeled)
    if anchors is not None and len(labeled) < table.n_rows:
        raise SystemExit(f"{file} has rows without a label, and anchors number all rows; leave out --anchors.")
    data = LabeledScores(
        normalize(np.asarray(table.scores[labeled], dtype=np.float64)), np.asarray(table.labels[labeled])
    )
    metrics = BINARY_METRICS if table.n_classes == 2 else METRICS_OF_MANY_CLASSES
    if anchors is None:
        draws = own_draws(data.codes, budgets, seeds, n_unlabeled)
    else:
        draws = anchored_draws(anchors / "draws" / file.name, table.n_rows, budgets, seeds)
    return ScoreSet(file.stem, data, metrics, draws)


@functools.cache
def fit_digest() -> str:
    """A fingerprint of all code that a fit goes through: the package, what sets its constants, and `fit`."""
    setter = (ROOT / "benchmarks" / "_estimator_constants.py").read_bytes()
    return hashlib.sha256(code_digest().encode() + setter + inspect.getsource(fit).encode()).hexdigest()[:32]


class Fits:
    """Errors, coverage and width of fits, kept in a parquet file; computed where they are not there yet."""

    COLUMNS = ["key", "budget", "seed", "metric", "error", "covered", "width"]

    def __init__(self, file: Path) -> None:
        self.file, self._saved = file, time.monotonic()
        self._rows: dict[tuple[str, int, int], list[tuple[str, float, float, float]]] = {}
        self.computed = 0
        if file.exists():
            for key, budget, seed, *rest in pd.read_parquet(file).itertuples(index=False):
                self._rows.setdefault((key, int(budget), int(seed)), []).append(tuple(rest))

    def save(self) -> None:
        """Write the file, whole or not at all."""
        rows = [(*where, *row) for where, found in self._rows.items() for row in found]
        with atomic_path(self.file) as temporary:
            pd.DataFrame(rows, columns=self.COLUMNS).to_parquet(temporary)
        self._saved = time.monotonic()

    def of(
        self, data: ScoreSet, values: Values, budgets: Sequence[int], seeds: Iterable[int], n_draws: int = DRAWS
    ) -> pd.DataFrame:
        """One row for each budget, seed and metric: error, coverage and width in the mean over the models."""
        common = [sorted(values.items()), data.metrics, LEVEL, n_draws, fit_digest(), versions(NUMERIC)]
        rows = []
        for budget in budgets:
            for seed in seeds:
                about = json.dumps([*common, data.fingerprint(budget, seed)])
                where = (hashlib.sha256(about.encode()).hexdigest()[:32], budget, seed)
                if where not in self._rows:
                    self._rows[where] = fit(data, values, budget, seed, n_draws)
                    self.computed += 1
                    if time.monotonic() - self._saved > SAVE_EVERY:
                        self.save()
                rows += [(data.name, budget, seed, *row) for row in self._rows[where]]
        return pd.DataFrame(rows, columns=["set", *self.COLUMNS[1:]])


def fit(
    data: ScoreSet, values: Values, budget: int, seed: int, n_draws: int = DRAWS
) -> list[tuple[str, float, float, float]]:
    """Fit one draw under these constants and hold the estimates against the truth."""
    scores, y = data.case(budget, seed)
    with constants(values), undisturbed():
        names = list(range(scores.shape[2]))
        model = SSME(n_draws=n_draws, random_state=seed, class_names=names).fit(scores, y)
        table = model.estimate(data.metrics, level=LEVEL)
    out = []
    for metric, truth in zip(data.metrics, data.truths[seed], strict=True):
        found = table[table.metric == metric]
        error = np.abs(found.estimate.to_numpy() - truth).mean()
        inside = ((found.lower <= truth) & (truth <= found.upper)).mean()
        out.append((metric, float(error), float(inside), float((found.upper - found.lower).mean())))
    return out


def labeled_only_errors(data: ScoreSet, budgets: Sequence[int], seeds: Iterable[int]) -> pd.Series:
    """Mean absolute error, by budget and metric, of each metric on the labeled rows alone."""
    rows = []
    for budget in budgets:
        for seed in seeds:
            found = data.values(data.draws.rows[budget, seed][0])
            errors = np.abs(found - data.truths[seed]).mean(axis=1)
            rows += [(budget, *each) for each in zip(data.metrics, errors, strict=True)]
    return pd.DataFrame(rows, columns=["budget", "metric", "error"]).groupby(["budget", "metric"]).error.mean()


def objective(found: Sequence[pd.DataFrame]) -> float:
    """What a choice of constants is judged by, lower is better: log error, and coverage that is off."""
    errors = [np.log(each.groupby(["budget", "metric"]).error.mean()).mean() for each in found]
    coverage = np.array([each.covered.mean() for each in found])
    off = max(NEAR[0] - coverage.mean(), coverage.mean() - NEAR[1], 0.0)
    return float(np.mean(errors) + off + np.maximum(LOWEST - coverage, 0).mean())


def choose(fits: Fits, sets: Sequence[ScoreSet], budgets: Sequence[int], seeds: Iterable[int]) -> dict[str, float]:
    """Coordinate descent over the grids from START; a constant that changes nothing stays where it starts."""
    seeds = list(seeds)

    def judge(values: Values, seeds: Sequence[int]) -> float:
        return objective([fits.of(each, values, budgets, seeds, SEARCH_DRAWS) for each in sets])

    current = dict(START)
    for sweep in range(SWEEPS):
        for name, constant in CONSTANTS.items():
            for value in constant.alternatives:
                tried = {**current, name: value}
                if value == current[name] or judge(tried, seeds[:1]) > judge(current, seeds[:1]) + HOPELESS:
                    continue
                if judge(tried, seeds) < judge(current, seeds) - 1e-9:
                    current = tried
            print(
                f"  sweep {sweep + 1} {name}: {current[name]:g} ({judge(current, seeds):.4f})",
                file=sys.stderr,
                flush=True,
            )
    return current


def geometric(values: pd.Series) -> float:
    """Geometric mean; NaN of nothing."""
    return float(np.exp(np.log(values.dropna()).mean()))


def reference_errors(anchors: Path, seeds: int) -> pd.Series:
    """Mean error of the reference implementation by set, budget and metric."""
    table = pd.read_csv(anchors / "label_budget.csv")
    table = table[(table.method == "ssme_ref") & (table.seed < seeds)]
    return table.groupby(["dataset", "n_labeled", "metric"]).abs_err.mean()


def compare(found: pd.DataFrame, labeled_only: pd.Series, reference: pd.Series | None) -> pd.DataFrame:
    """Cells (set, budget, metric): error, coverage, width, and the error as a ratio."""
    cells = found.groupby(["set", "budget", "metric"])[["error", "covered", "width"]].mean()
    cells["vs_labeled_only"] = cells.error / labeled_only.reindex(cells.index)
    cells["vs_reference"] = np.nan if reference is None else cells.error / reference.reindex(cells.index).to_numpy()
    return cells


def report(cells: Mapping[str, pd.DataFrame], chosen: Mapping[str, Values]) -> str:
    """Markdown: errors of each set left out beside those of the start and of what is shipped, and what was chosen."""
    lines = ["| set | constants | vs labeled-only | vs reference | worst cell | coverage | width |", "|---" * 7 + "|"]
    for name in [*chosen, "all"]:
        for label, table in cells.items():
            part = table if name == "all" else table.loc[[name]]
            of_sets = part.groupby("set").covered.mean()
            coverage = f"{of_sets.mean():.3f}" + (f", lowest {of_sets.min():.3f}" if name == "all" else "")
            worst = part.vs_reference.max()
            ratios = f"{geometric(part.vs_labeled_only):.3f} | {geometric(part.vs_reference):.3f} | {worst:.2f}"
            width = part.groupby("set").width.mean().mean()
            lines.append(f"| {name} | {label} | {ratios} | {coverage} | {width:.3f} |".replace("nan", "-"))
    lines += ["", "| constant | start | shipped | " + " | ".join(chosen) + " |", "|---" * (3 + len(chosen)) + "|"]
    for name in CONSTANTS:
        values = [START[name], SHIPPED[name], *(each[name] for each in chosen.values())]
        lines.append(f"| {name} | " + " | ".join(f"{value:g}" for value in values) + " |")
    return "\n".join(lines)


def study(sets: Sequence[ScoreSet], fits: Fits, asked: argparse.Namespace) -> str:
    """Choose on all sets but one, put the choice to that one, for each; the report as markdown."""
    seeds, chosen = range(asked.seeds), {}
    found: dict[str, list[pd.DataFrame]] = {"left out": [], "start": [], "shipped": []}
    for out in sets:
        print(f"{out.name} is left out", file=sys.stderr, flush=True)
        others = [each for each in sets if each is not out]
        chosen[out.name] = choose(fits, others, asked.budgets, range(asked.search_seeds))
    for out in sets:
        for label, values in (("left out", chosen[out.name]), ("start", START), ("shipped", SHIPPED)):
            print(f"{out.name}: {label}", file=sys.stderr, flush=True)
            found[label].append(fits.of(out, values, asked.budgets, seeds))
    labeled = pd.concat({each.name: labeled_only_errors(each, asked.budgets, seeds) for each in sets})
    reference = None if asked.anchors is None else reference_errors(asked.anchors, asked.seeds)
    cells = {label: compare(pd.concat(tables), labeled, reference) for label, tables in found.items()}
    return report(cells, chosen)


def main(arguments: list[str] | None = None) -> None:
    """Run the study and print its report."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("folder", type=Path)
    about.add_argument("--cache", type=Path, required=True)
    about.add_argument("--anchors", type=Path, default=None)
    about.add_argument("--budgets", type=lambda text: [int(each) for each in text.split(",")], default=[20, 50, 100])
    about.add_argument("--seeds", type=int, default=25, help="draws on which the set left out is judged")
    about.add_argument("--search-seeds", type=int, default=3, help="draws on which constants are chosen")
    about.add_argument("--unlabeled", type=int, default=1000)
    asked = about.parse_args(arguments)
    files = sorted(asked.folder.glob("*.npz"))
    if len(files) < 2:
        raise SystemExit(f"{asked.folder} has {len(files)} .npz files: leaving one out needs at least two.")
    draws = max(asked.seeds, asked.search_seeds)
    sets = [read_set(file, asked.budgets, draws, asked.unlabeled, asked.anchors) for file in files]
    fits = Fits(asked.cache)
    try:
        print(study(sets, fits, asked))
    finally:
        fits.save()
    print(f"{fits.computed} fits were computed in this run.", file=sys.stderr)


if __name__ == "__main__":
    main()
