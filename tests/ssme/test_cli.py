"""The command line: the numbers of the Python interface, and one clear sentence for each kind of bad input."""

from __future__ import annotations

import errno
import json
import runpy
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ssme.cli
from ssme import SSME, ScoreTable, read_scores
from ssme.cli import app

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: object, code: int = 0) -> Any:
    """Run a command; the exit code must be the one given."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"exit code {result.exit_code}: {result.output}{result.exception!r}"
    assert "Traceback" not in result.output
    return result


def complaint(*arguments: object) -> str:
    """Run a command on bad input: exit code 1 and one sentence on stderr."""
    result = run(*arguments, code=1)
    assert result.stdout == "" and result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(scope="module")
def comments(tmp_path_factory: pytest.TempPathFactory, simulate: Callable[..., Any]) -> SimpleNamespace:
    """Seven binary models of a rare class, one CSV file each in an order of its own, and a file of twenty labels."""
    folder, data = tmp_path_factory.mktemp("comments"), simulate(n=400, n_models=7, n_labeled=20)
    rng = np.random.default_rng(5)
    files = []
    for m, name in enumerate(data.models):
        order = rng.permutation(len(data.ids)) if m else np.arange(len(data.ids))
        files.append(folder / f"{name}.csv")
        pd.DataFrame({"id": data.ids[order], name: data.p[order, m]}).to_csv(files[-1], index=False)
    order = rng.permutation(data.labeled)
    labels = folder / "labels.csv"
    pd.DataFrame({"id": data.ids[order], "label": data.y[order]}).to_csv(labels, index=False)
    return SimpleNamespace(files=files, labels=labels, data=data)


@pytest.fixture
def small(tmp_path: Path, simulate: Callable[..., Any]) -> Path:
    """One wide file with two models, labels and a group column."""
    data, path = simulate(n=80, n_models=2, n_labeled=24, prevalence=0.5), tmp_path / "small.csv"
    labels = np.full(80, "", dtype=object)
    labels[data.labeled] = np.where(data.y[data.labeled] == 1, "yes", "no")
    columns = {"id": data.ids, "label": labels, "source": np.where(np.arange(80) % 2, "web", "mail")}
    for m, name in enumerate(("cat", "dog")):
        columns |= {f"{name}:no": 1 - data.p[:, m], f"{name}:yes": data.p[:, m]}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Equal to the last digit; NaN and text included."""
    pd.testing.assert_frame_equal(one, other, check_exact=True, check_dtype=False)


def test_end_to_end_equals_the_python_interface_to_the_last_digit(comments: SimpleNamespace, tmp_path: Path) -> None:
    metrics = ["accuracy", "ece_positive", "roc_auc", "average_precision"]
    options = [
        "--labels",
        comments.labels,
        "--metrics",
        ",".join(metrics),
        "--labeled-only",
        "--seed",
        7,
        "--level",
        0.8,
    ]
    outs = [tmp_path / f"table{suffix}" for suffix in (".csv", ".json", ".parquet")]
    for out in outs:
        run("estimate", *comments.files, *options, "--out", out, "--quiet")
    # The Python interface on arrays, past files and row ids: the order of the rows is that of the first file.
    data = comments.data
    y = np.full(len(data.y), -1)
    y[data.labeled] = data.y[data.labeled]
    table = ScoreTable.from_arrays(np.stack([1 - data.p, data.p], axis=2), y, model_names=data.models)
    expected = SSME(random_state=7).fit(table).estimate(metrics, level=0.8, labeled_only=True)
    expected = expected.assign(flags=expected["flags"].astype(str), model=expected["model"].astype(str))
    assert len(expected) == 4 * 7 * 2 and set(expected["n_labeled"]) == {20} and set(expected["n_unlabeled"]) == {380}
    numbers = ["estimate", "lower", "upper", "level"]
    from_csv = pd.read_csv(outs[0], dtype=dict.fromkeys(["metric", "model", *numbers], str), keep_default_na=False)
    from_csv = from_csv.astype(dict.fromkeys(numbers, float))
    from_json = pd.DataFrame(json.loads(outs[1].read_text(encoding="utf-8"))["estimates"])
    for found in (from_csv, from_json, pd.read_parquet(outs[2])):
        same(found.assign(flags=found["flags"].astype(str)), expected)


def test_read_scores_joins_the_files_of_the_command_line(comments: SimpleNamespace) -> None:
    table = read_scores(comments.files, labels=comments.labels)
    assert table.model_names == comments.data.models and table.n_labeled == 20
    assert np.array_equal(table.scores[:, :, 1], comments.data.p)


def test_table_says_what_it_shows(comments: SimpleNamespace) -> None:
    text = run("estimate", *comments.files, "--labels", comments.labels, "--labeled-only").stdout
    for piece in ("400 rows (20 labeled), 7 models, 2 classes", "90% interval", "n labeled", "model6", "labeled-only"):
        assert piece in text
    assert "estimate: the metric on the population" in text and "is better)" in text
    assert max(len(line) for line in text.splitlines() if "model6" in line) < 120  # piped text is not padded


def test_same_seed_same_numbers(small: Path) -> None:
    one = run("estimate", small, "--json", "--seed", 3).stdout
    assert one == run("estimate", small, "--json", "--seed", 3).stdout


def test_json_document(small: Path) -> None:
    document = json.loads(run("estimate", small, "--json", "--groups", "source", "--metrics", "roc_auc").stdout)
    assert document["format"] == "ssme-estimates/1"
    assert document["settings"]["classes"] == ["no", "yes"] and document["settings"]["labeled"] == 24
    assert {row["group"] for row in document["estimates"]} == {"all", "source=mail", "source=web"} - (
        set() if any(row["group"] == "all" for row in document["estimates"]) else {"all"}
    )


def test_quiet(small: Path, tmp_path: Path) -> None:
    result = run("estimate", small, "--quiet", "--metrics", "accuracy")
    assert "accuracy" in result.stdout and "population" not in result.stdout
    assert run("estimate", small, "-q", "--out", tmp_path / "t.md").stdout == ""
    assert (tmp_path / "t.md").read_text(encoding="utf-8").startswith("| metric | model |")


def test_models_and_density(small: Path) -> None:
    document = json.loads(run("estimate", small, "--models", "dog", "--density", "kde", "--json").stdout)
    assert {row["model"] for row in document["estimates"]} == {"dog"} and document["settings"]["density"] == "kde"


def test_names_that_look_like_markup_are_shown_as_they_are(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.csv"
    path.write_text(small.read_text(encoding="utf-8").replace("cat:", "[red]<b>:"), encoding="utf-8")
    assert "[red]<b>" in run("estimate", path).stdout
    assert "[red]<b>" in run("inspect", path).stdout


def test_warnings_stand_under_the_table_once(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = SSME.fit

    def warned(self: SSME, *args: Any, **kwargs: Any) -> SSME:
        warnings.warn("the fit is\n odd", UserWarning, stacklevel=1)
        warnings.warn("the fit is odd", RuntimeWarning, stacklevel=1)
        warnings.warn("an old name is used", DeprecationWarning, stacklevel=1)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(SSME, "fit", warned)
    text = run("estimate", small).stdout
    assert text.count("Warning: the fit is odd") == 1 and "old name" not in text
    assert text.index("Warning: the fit") > text.index("population")
    assert "Warning: the fit is odd" in run("estimate", small, "--quiet").stderr
    assert "the fit is odd" in json.loads(run("estimate", small, "--json").stdout)["warnings"]
    assert "Warning: the fit is odd" in run("inspect", small).stdout


# --- bad input: exit code 1, one sentence ---


def test_missing_file(tmp_path: Path) -> None:
    assert "nowhere.csv" in complaint("estimate", tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "", "small.csv"),
        (lambda text: text.replace("comment-00003,", "comment-00002,"), "comment-00002"),
        (lambda text: text.replace(",yes,", ",maybe,", 1), "maybe"),
        (lambda text: text.replace("0.", "oops.", 1), "oops"),
        (lambda text: text.replace("0.", "7.", 1), "7."),
    ],
    ids=["empty", "doubled id", "unknown label", "not a number", "logit"],
)
def test_bad_files(small: Path, change: Callable[[str], str], said: str) -> None:
    small.write_text(change(small.read_text(encoding="utf-8")), encoding="utf-8")
    assert said in complaint("estimate", small)


def test_ids_that_do_not_match(comments: SimpleNamespace, tmp_path: Path) -> None:
    short = tmp_path / "short.csv"
    pd.read_csv(comments.files[1]).query("id != 'comment-00042'").to_csv(short, index=False)
    assert "comment-00042" in complaint("estimate", comments.files[0], short, "--labels", comments.labels)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--groups", "colour"], "colour"),
        (["--models", "cow"], "cow"),
        (["--id", "key"], "key"),
        (["--label-column", "truth"], "truth"),
        (["--class-names", "no,maybe"], "maybe"),
        (["--labels", "nolabels.csv"], "nolabels.csv"),
        (["--out", "no/such/folder/t.csv"], "folder"),
    ],
)
def test_bad_names(small: Path, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small.parent)
    assert said in complaint("estimate", small, *options)


def test_metric_for_two_classes_on_three(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    p = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    pd.DataFrame(p, columns=["m:a", "m:b", "m:c"]).assign(label=["a", "b", "c"] * 10).to_csv(path, index=False)
    assert "ece_positive" in complaint("estimate", path, "--metrics", "ece_positive")


def test_out_is_never_an_input_or_a_folder(small: Path) -> None:
    before = small.read_bytes()
    assert "choose another name" in complaint("estimate", small, "--out", small)
    assert small.read_bytes() == before
    (small.parent / "folder.csv").mkdir()
    assert "is a folder" in complaint("estimate", small, "--out", small.parent / "folder.csv")


def test_full_disk_leaves_the_old_file_whole(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = small.parent / "table.csv"
    out.write_text("old", encoding="utf-8")
    before = sorted(p.name for p in small.parent.iterdir())

    def fill(frame: pd.DataFrame, document: str, path: Path) -> None:
        path.write_text("half a ta", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setitem(ssme.cli.WRITERS, ".csv", fill)
    assert "No space left" in complaint("estimate", small, "--out", out)
    assert out.read_text(encoding="utf-8") == "old" and sorted(p.name for p in small.parent.iterdir()) == before


# --- wrong usage: exit code 2 ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metrics", "acuracy"], "accuracy"),
        (["--metrics", "zzz"], "Choose from"),
        (["--metrics", "accuracy,"], "commas"),
        (["--groups", ""], "commas"),
        (["--level", "90"], "between 0 and 1"),
        (["--density", "fancy"], "recalibrated"),
        (["--layout", "tall"], "wide"),
        (["--score-type", "odds"], "logit"),
        (["--seed", "-1"], "seed"),
        (["--out", "table.xlsx"], ".parquet"),
        (["--frobnicate"], "frobnicate"),
    ],
)
def test_wrong_usage(small: Path, options: list[str], said: str) -> None:
    assert said in run("estimate", small, *options, code=2).output


def test_no_file_shows_help() -> None:
    assert "Usage" in run("estimate", code=2).output
    assert "estimate" in run(code=2).output


@pytest.mark.parametrize("command", ["estimate", "inspect", "convert", "demo"])
def test_help(command: str) -> None:
    assert "--debug" in run(command, "--help").stdout


# --- faults of the program: exit code 3 ---


def break_fit(monkeypatch: pytest.MonkeyPatch, error: Callable[[], object]) -> None:
    monkeypatch.setattr(SSME, "fit", lambda self, *args, **kwargs: error())


@pytest.mark.parametrize("error", [lambda: 1 / 0, lambda: np.ones(2) + np.ones(3)], ids=["ZeroDivision", "numpy"])
def test_a_fault_is_not_taken_for_bad_input(
    small: Path, monkeypatch: pytest.MonkeyPatch, error: Callable[[], object]
) -> None:
    break_fit(monkeypatch, error)
    result = run("estimate", small, code=3)
    assert result.stderr.startswith("Unexpected error") and "--debug" in result.stderr
    assert result.stderr.count("\n") == 1
    shown = CliRunner().invoke(app, ["estimate", str(small), "--debug"])
    assert shown.exit_code == 3 and "Traceback" in shown.stderr and "test_cli" in shown.stderr


# --- inspect, convert, demo, version ---


def test_inspect_shows_what_is_there(small: Path) -> None:
    text = run("inspect", small, "--groups", "source").stdout
    for piece in ("rows", "2: cat, dog", "2: no, yes", "mail 40", "Agreement", "Diagnostics of a fit", "converged"):
        assert piece in text


def test_inspect_finds_what_is_wrong(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = np.round(rng.random(60), 6)
    columns = {"twin": p, "same": p, "constant": 0.5, "hard": np.round(p), "always": 0.6 + 0.3 * p}
    frame = pd.DataFrame(columns).assign(id=range(60), label=["1", "1", "1"] + [""] * 57, where=["x"] * 3 + ["y"] * 57)
    frame.to_csv(tmp_path / "odd.csv", index=False)
    document = json.loads(run("inspect", tmp_path / "odd.csv", "--groups", "where", "--no-fit", "--json").stdout)
    found = " ".join(document["findings"])
    for piece in (
        "Only 3 rows are labeled",
        "1 of 2 classes have no label: 0",
        "Model same has exactly the scores of model twin",
        "Model constant gives every row the same scores",
        "Model hard has only scores of 0 and 1",
        "Model always predicts class 1 in every row",
        "exactly 0 or 1",
        "1 of 2 groups of where have no labeled row: y",
    ):
        assert piece in found
    assert document["agreement"]["share_of_rows"][0][1] == 1.0 and document["fit"] == {}
    assert document["content"]["groups"]["where"]["x"] == {"rows": 3, "labeled": 3}


def test_inspect_more_findings(tmp_path: Path) -> None:
    rounded = pd.DataFrame({"id": range(20), "m:a": [0.333] * 20, "m:b": [0.333] * 20, "m:c": [0.333] * 20})
    rounded.iloc[::2, 1:] = [0.2, 0.5, 0.3]
    rounded.to_csv(tmp_path / "rounded.csv", index=False)
    found = run("inspect", tmp_path / "rounded.csv", "--no-fit").stdout
    assert "No row has a label" in found and "do not sum to 1" in found and "10 of 20 rows" in found
    full = rounded.assign(label=["a", "b", "c", "a"] * 5, g="x")
    full.to_csv(tmp_path / "full.csv", index=False)
    found = run("inspect", tmp_path / "full.csv", "--no-fit", "--groups", "g").stdout
    assert "Every row is labeled" in found and "one value only" in found


def test_inspect_shows_the_diagnostics_of_the_published_mixture(small: Path) -> None:
    fit = json.loads(run("inspect", small, "--density", "kde", "--json").stdout)["fit"]
    assert fit["density"] == "kde" and fit["rounds of EM"] >= 1
    lowest, highest = fit["bandwidth, smallest and largest"]
    assert 0 < lowest <= highest and 0 <= fit["self-kernel share (near 1: EM cannot move)"] <= 1
    assert sum(fit["class shares"].values()) == pytest.approx(1)
    text = run("inspect", small, "--density", "kde").stdout
    assert "log-likelihood, first and last" in text and "self-kernel share" in text


def test_inspect_clean_file(small: Path) -> None:
    document = json.loads(run("inspect", small, "--json").stdout)
    assert document["findings"] == [] and document["fit"]["density"] == "recalibrated"
    assert "Nothing unusual" in run("inspect", small, "--no-fit").stdout


@pytest.mark.parametrize("name", ["t.npz", "t.parquet", "t.csv", "t.csv.gz"])
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_convert_keeps_everything(small: Path, tmp_path: Path, name: str, layout: str) -> None:
    result = run("convert", small, tmp_path / name, "--groups", "source", "--to-layout", layout)
    assert "80 rows (24 labeled), 2 models, 2 classes" in result.stdout
    original, back = (
        read_scores(small, group_columns=["source"]),
        read_scores(tmp_path / name, group_columns=["source"]),
    )
    assert original.equals(back)


def test_convert_replaces_nothing_unasked(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    out.write_text("old", encoding="utf-8")
    assert "--force" in complaint("convert", small, out)
    assert out.read_text(encoding="utf-8") == "old"
    assert run("convert", small, out, "--force", "--quiet").stdout == ""
    assert read_scores(out).n_rows == 80
    assert "choose another name" in complaint("convert", small, small, "--force")
    run("convert", small, code=2)
    complaint("convert", small, tmp_path / "out.xlsx")


def test_demo_and_going_on_with_its_scores(tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    text = run("demo", "--out", out).stdout
    for piece in (
        "7 classifiers",
        "20 rows keep their label",
        "truth",
        "closer",
        "SSME was closer to the truth in",
        "hold",
    ):
        assert piece in text
    table = read_scores(out)
    assert table.n_models == 7 and table.n_labeled == 20 and table.n_classes == 10
    document = json.loads(run("demo", "--json", "--quiet").stdout)
    going_on = json.loads(run("estimate", out, "--json").stdout)
    ours = {(row["metric"], row["model"]): row["ssme"] for row in document["comparison"]}
    assert {(row["metric"], row["model"]): row["estimate"] for row in going_on["estimates"]} == ours
    assert document["figures"] == 14


def test_version() -> None:
    assert run("--version").stdout.strip() == f"ssme {ssme.__version__}"


def test_main_is_the_app(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["ssme", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("ssme", run_name="__main__")
    assert end.value.code == 0 and capsys.readouterr().out.startswith("ssme ")


def test_installed_entry_points_show_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ssme", "estimate", str(tmp_path / "nowhere.csv")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 1 and result.stdout == "" and "nowhere.csv" in result.stderr
    assert "Traceback" not in result.stderr and result.stderr.count("\n") == 1


def test_a_seed_that_no_generator_takes_is_wrong_usage() -> None:
    result = CliRunner().invoke(app, ["demo", "--seed", str(2**32)])
    assert result.exit_code == 2
