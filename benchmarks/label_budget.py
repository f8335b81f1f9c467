"""The label-budget study over a folder of score sets, and its report.

    python benchmarks/label_budget.py FOLDER --out DIR [--budgets 20,50,100] [--seeds 25] [--methods all] [--jobs 2]

Every file of the folder (.npz, .csv, .csv.gz, .parquet) that :func:`ssme.read_scores` reads and that has labels is one
data set, called like the file. For each seed half of its rows are the pool; `--budgets` of them show their label,
`--unlabeled` others do not, and the metrics on the other half are the truth. DIR gets results.parquet (one row for each
estimate), study.json (settings, versions, commit, hardware), report.md, figure.png and the finished cells: a study that
was stopped goes on from there when the same command is given again, and ends with the same numbers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # the checkout that this file stands in is what is measured
    sys.path.insert(0, str(ROOT))

from ssme.study import DEFAULT_METHODS, method_names, report_to_markdown, run_study, write_report  # noqa: E402

SUFFIXES = (".npz", ".csv", ".csv.gz", ".parquet")


def score_sets(folder: Path, wanted: list[str]) -> dict[str, Path]:
    """Files by data set; the file is read when its turn comes."""
    if not folder.is_dir():
        raise SystemExit(f"{folder} is no folder of score sets.")
    files = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES))
    named = {path.name.split(".")[0]: path for path in files}
    if len(named) < len(files):
        raise SystemExit(f"two files of {folder} have one name; keep one file a data set.")
    missing = [name for name in wanted if name not in named]
    if missing or not named:
        raise SystemExit(f"{folder} has no score set {missing[0] if missing else 'at all'}.")
    return {name: path for name, path in named.items() if not wanted or name in wanted}


def words(text: str) -> list[str]:
    """a,b -> ["a", "b"]"""
    return [part.strip() for part in text.split(",") if part.strip()]


def main(arguments: list[str] | None = None) -> None:
    """Run the study and write the report."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("folder", type=Path)
    about.add_argument("--out", type=Path, required=True)
    about.add_argument("--datasets", type=words, default=[], help="a,b: these files only")
    about.add_argument("--budgets", type=lambda text: [int(each) for each in words(text)], default=[20, 50, 100])
    about.add_argument("--seeds", type=int, default=25)
    about.add_argument("--methods", type=words, default=list(DEFAULT_METHODS), help=f"all, or of {method_names()}")
    about.add_argument("--metrics", type=words, default=None)
    about.add_argument("--unlabeled", type=int, default=1000)
    about.add_argument("--level", type=float, default=0.9)
    about.add_argument("--stratified", action="store_true", help="label one row of each class first")
    about.add_argument("--jobs", type=int, default=-1)
    asked = about.parse_args(arguments)
    frame = run_study(
        score_sets(asked.folder, asked.datasets),
        asked.budgets,
        asked.seeds,
        method_names() if asked.methods == ["all"] else asked.methods,
        asked.metrics,
        n_unlabeled=asked.unlabeled,
        level=asked.level,
        n_jobs=asked.jobs,
        out_dir=asked.out,
        stratified=asked.stratified,
        progress=True,
    )
    report = write_report(frame, asked.out)
    print(report_to_markdown(frame).partition("## Effective")[0])
    print(f"The report is {report}.")


if __name__ == "__main__":
    main()
