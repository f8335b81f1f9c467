"""The summary by hand, the report, the figure, the command and the benchmark."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from ssme import ScoreTable, _study_command
from ssme.cli import app as whole_app
from ssme.study import _tables as tables
from ssme.study import report_to_markdown, run_study, summarize_cells, summarize_methods, write_report
from ssme.study._progress import advancing
from ssme.study._report import explain

ROOT = Path(__file__).resolve().parents[2]


def study_of(errors: dict[str, list[float]], curve: dict[int, float] | None = None, **other: Any) -> pd.DataFrame:
    """A frame with these errors of each method, one a seed, and this curve of labeled-only."""
    rows = [(20, seed, m, e, 1.0, 0.2, 0.5) for m, of_seeds in errors.items() for seed, e in enumerate(of_seeds)]
    rows += [(n, 0, "label-curve", e, np.nan, np.nan, np.nan) for n, e in (curve or {}).items()]
    frame = pd.DataFrame(rows, columns=["n_labeled", "seed", "method", "abs_err", "covered", "width", "seconds"])
    return frame.assign(**{"dataset": "d", "metric": "accuracy", "model": "m", **other})


def cell_of(frame: pd.DataFrame, method: str) -> Any:
    return summarize_cells(frame).set_index("method").loc[method]


# -- summary -----------------------------------------------------------------------------------------------------------


def test_errors_and_ratios_by_hand() -> None:
    frame = study_of({"ssme": [0.1, 0.3], "labeled-only": [0.4, 0.6], "all-labels": [0.1, 0.1]})
    ours = cell_of(frame, "ssme")
    assert ours["abs_err"] == pytest.approx(0.2) and ours["std_error"] == pytest.approx(0.1)
    assert ours["vs_labeled"] == pytest.approx(0.4) and ours["vs_all_labels"] == pytest.approx(2)
    assert ours["seeds"] == 2 and ours["best"] and ours["tied"]
    floor = cell_of(frame, "all-labels")
    assert not floor["best"] and not floor["tied"]  # it takes no part


def test_models_weigh_alike_within_a_seed() -> None:
    frame = pd.concat([study_of({"ssme": [0.1, 0.3]}), study_of({"ssme": [0.3, np.nan]}, model="other")])
    assert cell_of(frame, "ssme")["abs_err"] == pytest.approx((0.2 + 0.3) / 2)


def test_tied_is_one_standard_error_of_the_paired_difference() -> None:
    # differences from the best: mean .01; standard error .005 (not tied), .01 (tied)
    best = np.array([0.1, 0.5, 0.2, 0.4])
    apart, close = np.array([0.0, 0.02, 0.0, 0.02]), np.array([-0.02, 0.04, 0.0, 0.02])
    assert apart.std(ddof=1) / 2 < 0.01 < close.std(ddof=1) / 2
    cells = summarize_cells(study_of({"a": list(best), "b": list(best + apart), "c": list(best + close)}))
    cells = cells.set_index("method")
    assert cells["tied"].to_dict() == {"a": True, "b": False, "c": True}
    assert cells["best"].to_dict() == {"a": True, "b": False, "c": False}


def test_one_seed_ties_only_where_errors_are_equal() -> None:
    cells = summarize_cells(study_of({"a": [0.1], "b": [0.1], "c": [0.2]})).set_index("method")
    assert cells["tied"].to_dict() == {"a": True, "b": True, "c": False}


def test_a_method_that_is_mostly_undefined_wins_nothing() -> None:
    nan = float("nan")
    frame = study_of({"lucky": [0.0, nan, nan], "ssme": [0.2, 0.2, 0.2], "labeled-only": [nan, 0.3, 0.5]})
    cells = summarize_cells(frame).set_index("method")
    assert cells["best"].to_dict() == {"lucky": False, "ssme": True, "labeled-only": False}
    assert cells.loc["ssme", "vs_labeled"] == pytest.approx(0.5)  # on the two seeds that both have
    assert cells.loc["lucky", "seeds"] == 1 and np.isnan(cells.loc["lucky", "vs_labeled"])


def test_nobody_wins_where_nobody_has_an_estimate() -> None:
    cells = summarize_cells(study_of({"a": [np.nan, np.nan], "all-labels": [0.1, 0.1]}))
    assert not cells["best"].any() and not cells["tied"].any()


@pytest.mark.parametrize("labels", [30, 77, 400])
def test_effective_sample_size_is_where_the_curve_has_the_error(labels: int) -> None:
    curve = {n: 0.5 / np.sqrt(n) for n in (5, 10, 50, 100, 1000)}
    found = cell_of(study_of({"ssme": [0.5 / np.sqrt(labels)]}, curve), "ssme")
    assert found["ess"] == pytest.approx(labels) and found["ess_bound"] == ""


def test_effective_sample_size_outside_the_pool_is_a_bound() -> None:
    curve = {n: 0.5 / np.sqrt(n) for n in (5, 10, 50, 100)}
    good, bad = (cell_of(study_of({"ssme": [error]}, curve), "ssme") for error in (0.001, 0.9))
    assert (good["ess"], good["ess_bound"]) == (pytest.approx(100), "at least")
    assert (bad["ess"], bad["ess_bound"]) == (pytest.approx(5), "at most")
    without = cell_of(study_of({"ssme": [0.1]}), "ssme")
    assert np.isnan(without["ess"]) and without["ess_bound"] == ""


def test_a_curve_that_rises_by_chance_is_levelled() -> None:
    curve = {5: 0.4, 10: 0.1, 20: 0.2, 40: 0.05}
    found = cell_of(study_of({"ssme": [0.06]}, curve), "ssme")
    assert 20 < found["ess"] < 40


def test_methods_over_cells_by_hand() -> None:
    one = study_of({"ssme": [0.1, 0.1], "labeled-only": [0.4, 0.4]}, covered=0.8)
    other = study_of({"ssme": [0.3, 0.3], "labeled-only": [0.3, 0.3]}, dataset="e")
    found = summarize_methods(summarize_cells(pd.concat([one, other]))).set_index("method")
    assert found.loc["ssme", "vs_labeled"] == pytest.approx(np.sqrt(0.25 * 1))
    assert found["cells"].tolist() == [2, 2] and found["tied"].to_dict() == {"ssme": 2, "labeled-only": 1}
    assert found.loc["ssme", "coverage"] == pytest.approx(0.9) and found.loc["ssme", "coverage_lowest"] == 0.8
    by = summarize_methods(summarize_cells(pd.concat([one, other])), ["dataset"])
    assert by["vs_labeled"].tolist() == pytest.approx([0.25, 1, 1, 1])


def test_bounds_of_a_mean_are_told() -> None:
    curve = {n: 0.5 / np.sqrt(n) for n in (5, 10, 50, 100)}
    good, bad = (study_of({"ssme": [error]}, curve, dataset=str(error)) for error in (0.001, 0.9))
    bounds = [
        summarize_methods(summarize_cells(frame))["labels_worth_bound"].item()
        for frame in (good, bad, pd.concat([good, bad]), study_of({"ssme": [0.1]}, curve))
    ]
    assert bounds == ["at least", "at most", "about", ""]


# -- report ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores(simulate: Callable[..., Any]) -> ScoreTable:
    """Two binary models on 200 labeled rows."""
    data = simulate(n=200, n_models=2, prevalence=0.3)
    return ScoreTable.from_arrays(data.p, data.y, model_names=data.models)


@pytest.fixture(scope="module")
def frame(scores: ScoreTable) -> pd.DataFrame:
    """A small study of a data set with a hostile name."""
    options: dict[str, Any] = dict(seeds=3, metrics=["accuracy", "ece"], n_unlabeled=50)
    return run_study({"set_|<b>": scores}, (10, 30), **options)


def test_the_report_says_everything(frame: pd.DataFrame) -> None:
    text = report_to_markdown(frame, figure="figure.png")
    for said in ("3 seeds", "10, 30 of its rows", "(figure.png)", "best or tied", "coverage", "seconds", "hardware"):
        assert said in text
    for heading in ("Absolute error: accuracy", "Effective sample size: ece", "Intervals: ece", "Every cell"):
        assert f"## {heading}\n" in text
    assert "trials: 3 seeds" in text and "numpy" in text and "commit: " in text and "Without an estimate" not in text
    assert "set_|" not in text and "<b>" not in text
    assert "![" not in report_to_markdown(frame)
    table_lines = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.count(" | ") + line.count("|---") > 0 for line in table_lines)


def test_numbers_of_the_report_are_those_of_the_summary(frame: pd.DataFrame) -> None:
    cells = summarize_cells(frame)
    row = cells.query("metric == 'ece' and n_labeled == 30 and method == 'ssme'").iloc[0]
    part = report_to_markdown(frame).partition("## Absolute error: ece")[2].partition("##")[0]
    line = next(line for line in part.splitlines() if line.startswith("| ssme |"))
    assert line.split(" | ")[2].rstrip(" |") == f"{tables._error(row['abs_err'])} ({1 / row['vs_labeled']:.1f}x)"


def test_a_stored_study_gives_the_same_report(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "results.parquet")
    assert report_to_markdown(pd.read_parquet(tmp_path / "results.parquet")) == report_to_markdown(frame)


def test_what_went_wrong_is_told(frame: pd.DataFrame) -> None:
    changed = frame.copy()
    changed.attrs["failures"] = [{"dataset": "d", "method": "x", "error": "ValueError: a|b", "fits": 1200}]
    changed.attrs["data"]["set_|<b>"]["cannot_give"] = {"y": {"ece": "it has none", "accuracy": "it has none"}}
    changed.attrs["data"]["set_|<b>"]["unlabeled_rows_left_out"] = 5
    changed.attrs["commit"] = "abc"
    text = report_to_markdown(changed)
    assert "- x failed in 1,200 fits on d, which count as no estimate: ValueError: a\\|b" in text
    assert "- y gives no ece, accuracy: it has none" in text
    assert "5 rows without a label left out" in text and "commit: abc;" in text
    assert any("1,200 fits" in line for line in explain(changed))


def test_a_frame_that_lost_its_record_is_refused(frame: pd.DataFrame) -> None:
    bare = frame.copy()
    bare.attrs = {}
    with pytest.raises(ValueError, match="frame has lost its attrs"):
        report_to_markdown(bare)


def test_the_figure_is_drawn(frame: pd.DataFrame, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = write_report(frame, tmp_path / "new" / "folder")
    picture = report.with_name("figure.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    assert "](figure.png)" in report.read_text(encoding="utf-8")
    only = frame[(frame["n_labeled"] == 30) & (frame["metric"] == "ece")]  # one budget, one metric
    write_report(only, tmp_path)


def test_every_rival_is_drawn_apart() -> None:
    from ssme.study._figure import styles

    names = ["ssme", "labeled-only", "all-labels", *(f"rival {i}" for i in range(20))]
    drawn = styles(names)
    looks = [(drawn[name]["color"], drawn[name].get("marker")) for name in names]
    assert list(drawn) == names and len(set(looks)) == len(names)


def test_without_matplotlib_there_is_a_report(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.warns(UserWarning, match="the report has no figure: pip install"):
        report = write_report(frame, tmp_path)
    assert "figure.png" not in report.read_text(encoding="utf-8") and [p.name for p in tmp_path.iterdir()] == [
        report.name
    ]


def test_numbers_as_text() -> None:
    nan = float("nan")
    assert tables._error(nan) == tables._times(nan) == tables._text(nan, "{}") == "-"
    assert tables._error(0.0) == "0.00000000000" or float(tables._error(0.0)) == 0
    assert tables._times(0.25) == "4.0x"


# -- progress ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [True, False])
def test_the_bar_is_silent_without_a_terminal(progress: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with advancing(3, progress) as advance:
        advance(2)
        advance(1)
    out, err = capfd.readouterr()
    assert out.strip() == "" and err.strip() == ""


# -- command -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    """An application with the command in it, and another so that it keeps its name."""
    application = typer.Typer()
    _study_command.register(application)
    application.command(name="other")(lambda: None)
    return application


@pytest.fixture
def file(scores: ScoreTable, tmp_path: Path) -> Path:
    """The scores as a csv file whose label column is called y."""
    frame = scores.to_frame().rename(columns={"label": "y"})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return tmp_path / "mine.csv"


def run(app: typer.Typer, *arguments: object, code: int = 0) -> Any:
    options = ["--seeds", "2", "--jobs", "1", "--unlabeled", "50", "--budgets", "10,20"]
    result = CliRunner().invoke(app, ["study", *map(str, arguments), *options])
    assert result.exit_code == code, f"{result.output}{result.exception!r}"
    return result


def test_one_command_over_a_file(app: typer.Typer, file: Path, scores: ScoreTable, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "study"
    shown = run(
        app, file, "--label-column", "y", "--methods", "ssme,labeled-only", "--metrics", "accuracy", "--out", out
    )
    for said in (
        "All cells",
        "Absolute error: accuracy",
        "10 labels",
        "ssme",
        "labeled-only",
        "report.md",
        "mine: 200",
    ):
        assert said in shown.stdout
    stored = pd.read_parquet(out / "results.parquet")
    direct = run_study(scores, (10, 20), 2, ("ssme", "labeled-only"), "accuracy", n_unlabeled=50)
    assert stored["estimate"].tolist() == direct["estimate"].tolist() and set(stored["dataset"]) == {"mine"}
    assert {p.name for p in out.iterdir()} == {"cells", "results.parquet", "study.json", "report.md", "figure.png"}
    silent = run(app, file, "--label-column", "y", "--out", out, "--metrics", "accuracy", "--quiet", "--stratified")
    assert silent.stdout == ""
    assert "one label of each class first" in (out / "report.md").read_text(encoding="utf-8")


def test_json_and_all_methods(app: typer.Typer, file: Path) -> None:
    result = run(app, file, "--label-column", "y", "--metrics", "accuracy", "--methods", "all", "--json")
    document = json.loads(result.stdout)
    assert document["format"] == "ssme-study/1" and document["settings"]["budgets"] == [10, 20]
    assert {"ssme", "labeled-only", "all-labels"} <= {row["method"] for row in document["methods"]}
    assert len(document["cells"]) == 2 * len(document["methods"])


def test_tables_alone_when_quiet(app: typer.Typer, file: Path) -> None:
    shown = run(app, file, "--label-column", "y", "--metrics", "accuracy", "--quiet").stdout
    assert "All cells" in shown and "Truth:" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budgets", "20,many"], "budgets are whole numbers of labels"),
        (["--methods", "labelled-only"], "did you mean"),
        (["--metrics", "auroc"], "there is no metric 'auroc'"),
        (["--jobs", "0"], "or -1 for one on each core"),
        (["--jobs", "-5"], "or -1 for one on each core"),
        (["--jobs", "100000"], "or -1 for one on each core"),
        (["--seeds", "1000000000"], "less than or equal to 100000"),
        (["--budgets", "²"], "budgets are whole numbers of labels"),
        (["--budgets", "9" * 5000], "budgets are whole numbers of labels"),
        (["--draws", "1"], "greater than or equal to 2"),
    ],
)
def test_wrong_usage(app: typer.Typer, file: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["study", str(file), *arguments])
    words = " ".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == 2 and message in words


def test_other_columns_are_declared_as_groups(app: typer.Typer, scores: ScoreTable, tmp_path: Path) -> None:
    frame = pd.DataFrame(scores.scores[:, :, 1], columns=list(scores.model_names))
    frame.assign(y=scores.labels, where="web").to_csv(tmp_path / "t.csv", index_label="id")
    options = ["--label-column", "y", "--metrics", "accuracy", "--methods", "labeled-only", "--json"]
    refused = run(app, tmp_path / "t.csv", *options, code=1)
    assert "name it in --groups, --id or --label-column" in refused.stderr
    document = json.loads(run(app, tmp_path / "t.csv", *options, "--groups", "where").stdout)
    assert document["data"]["t"]["models"] == scores.n_models


def test_draws_and_doubled_metrics(app: typer.Typer, file: Path) -> None:
    options = ["--label-column", "y", "--methods", "ssme,ssme", "--metrics", "accuracy,accuracy", "--draws", "30"]
    document = json.loads(run(app, file, *options, "--json").stdout)
    assert document["settings"]["n_draws"] == 30 and document["data"]["mine"]["metrics"] == ["accuracy"]
    assert document["settings"]["methods"] == ["ssme"]


def test_study_takes_the_files_as_estimate_does() -> None:
    commands = get_command(whole_app).commands  # type: ignore[attr-defined]
    reading = set(
        "--labels --id --label-column --groups --class-names --models --score-type --layout --separator".split()
    )
    for name in ("estimate", "inspect", "convert", "study"):
        assert reading <= {option for parameter in commands[name].params for option in parameter.opts}, name


def test_bad_input(app: typer.Typer, file: Path, scores: ScoreTable, tmp_path: Path) -> None:
    result = run(app, tmp_path / "none.csv", code=1)
    assert result.stderr.startswith("Error: ")
    scores.with_labels(["0"] * 5, row_ids=scores.row_ids[:5]).write(tmp_path / "few.csv")
    result = run(app, tmp_path / "few.csv", code=1)
    assert "few has 5 labeled rows, and half of them are the pool" in result.stderr


# -- benchmark ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark_module() -> Any:
    path = ROOT / "benchmarks" / "label_budget.py"
    if not path.exists():
        pytest.skip("the benchmarks are not beside these tests")
    spec = importlib.util.spec_from_file_location("label_budget", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_folder_of_score_sets(
    benchmark_module: Any, scores: ScoreTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    folder, out = tmp_path / "sets", tmp_path / "out"
    folder.mkdir()
    (tmp_path / "empty").mkdir()
    scores.write(folder / "one.npz")
    scores.select(models=[1]).write(folder / "two.csv")
    (folder / "notes.txt").write_text("no scores")
    options = ["--budgets", "10", "--seeds", "2", "--unlabeled", "40", "--jobs", "1", "--metrics", "accuracy"]
    benchmark_module.main([str(folder), "--out", str(out), *options])
    assert set(pd.read_parquet(out / "results.parquet")["dataset"]) == {"one", "two"}
    assert "## All cells" in capsys.readouterr().out and (out / "report.md").exists()
    for wrong in ([str(tmp_path / "no")], [str(folder), "--datasets", "three"], [str(tmp_path / "empty")]):
        with pytest.raises(SystemExit):
            benchmark_module.main([*wrong, "--out", str(tmp_path / "more")])
    scores.write(folder / "one.csv")
    with pytest.raises(SystemExit, match="have one name"):
        benchmark_module.main([str(folder), "--out", str(out)])
