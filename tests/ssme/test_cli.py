"""The command line: the numbers of the Python interface, and one clear sentence for each kind of bad input."""

from __future__ import annotations

import errno
import json
import os
import re
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
from typer.main import get_command
from typer.testing import CliRunner

import ssme._console
import ssme.cli
from ssme import SSME, ScoreTable, read_scores
from ssme._options import ARGUMENTS
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

    def fill(frame: pd.DataFrame, document: str, markdown: Any, path: Path) -> None:
        path.write_text("half a ta", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setitem(ssme._console.WRITERS, ".csv", fill)
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


@pytest.mark.parametrize(
    "command", ["estimate", "inspect", "convert", "demo", "compare", "suggest", "prevalence", "study"]
)
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
        "1 of 2 classes has no label: 0",
        "Model same has exactly the scores of model twin",
        "Model constant gives every row the same scores",
        "Model hard has only scores of 0 and 1",
        "Model always predicts class 1 in every row",
        "exactly 0 or 1",
        "1 of 2 groups of where has no labeled row: y",
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
    assert "suffix '.xlsx'" in run("convert", small, tmp_path / "out.xlsx", code=2).output


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


# --- options in errors, rows as the file has them ---


def test_every_option_that_messages_name_exists() -> None:
    commands = get_command(app).commands.values()  # type: ignore[attr-defined]
    options = {option for command in commands for parameter in command.params for option in parameter.opts}
    assert {word for word in ARGUMENTS.values() if word.startswith("--")} <= options
    assert not {word for word in ARGUMENTS.values() if not word.startswith("--")} & set(ARGUMENTS)


PYTHON_WORDS = (
    "group_columns",
    "id_column",
    "label_column",
    "class_names",
    "score_type",
    "layout=",
    "row_ids",
    "n_draws",
)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (
            "id,a,b,where\nx,0.2,0.9,web\n",
            [],
            "'web' at data row 1 (line 2), which is not a number; .*--groups, --id or",
        ),
        ("id,a\nx,0.2\n\n\ny,oops\n", [], "'oops' at data row 2 (line 5)"),
        ('id,a\n"x\nx",0.2\ny,oops\n', [], "'oops' at data row 2 (line 4)"),
        ("id,a\nx,0.2\ny,3\n", [], "data row 2 (line 3), model 'a' holds 3; .*pass --score-type logit if"),
        ("id,a,label\nx,0.2,no\n", [], "'no' at data row 1 (line 2), .*pass --class-names in the order"),
        ("id,a,b\nx,0.2,0.8\n", ["--score-type", "logit"], "pass --layout model or --layout binary"),
        ("id,a:0,b\nx,0.2,0.8\n", [], "name what is no score in --groups"),
        ("id,a\nx,0.2\n", ["--groups", "where"], "no file has the group column 'where'; correct --groups"),
        ("id,a\nx,0.2\n", ["--id", "key"], "no column 'key' for --id among"),
        ("id,a\nx,0.2\n", ["--label-column", "y"], "no file has the label column 'y'; correct --label-column"),
        ("id,a\nx,0.2\n", ["--layout", "wide"], "or pass --separator or --layout"),
        ("id,a\nx,0.2\n", ["--separator", "/"], "correct --separator, or leave it out"),
        ("id,a\nx,0.2\nx,0.2\n", [], "the id must differ from row to row, but 1 id is doubled: 'x'"),
        ("id,a\n,0.2\n", [], "the id is missing in 1 row, the first is data row 1 (line 2)"),
        ("k,model,class,score\n1,a,b,.5\n", ["--layout", "long"], "needs an id column, .*name it in --id"),
        ("id,model,class,score\n1,a,b,3\n1,a,c,.5\n", [], "the row of id '1', model 'a' holds 3"),
        ("id,a\nx,0.2\n", ["--models", "a,a"], "--models names a model twice"),
    ],
)
def test_errors_name_options_and_lines(tmp_path: Path, content: str, options: list[str], said: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(content, encoding="utf-8")
    message = complaint("estimate", path, *options)
    assert re.search(said.replace("(", r"\(").replace(")", r"\)"), message), message
    assert not [word for word in PYTHON_WORDS if word in message] and message.count(str(path)) <= 1


def test_rows_of_a_file_of_labels_are_its_own(comments: SimpleNamespace, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\ncomment-00007,1\ncomment-00003,spam\n", encoding="utf-8")
    said = complaint("estimate", comments.files[0], "--labels", labels)
    assert "labels.csv: labels holds 'spam' at data row 2 (line 3)" in said and "--class-names" in said


def test_rows_of_arrays_have_their_index(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", scores=np.array([[0.2], [7.0]]))
    assert "data row 2 (index 1)" in complaint("estimate", tmp_path / "t.npz")
    pd.DataFrame({"id": ["x", "y"], "a": [0.2, 7.0]}).to_parquet(tmp_path / "t.parquet")
    assert "data row 2 (index 1)" in complaint("estimate", tmp_path / "t.parquet")


def test_python_keeps_the_names_of_python(small: Path) -> None:
    complaint("estimate", small, "--groups", "nope")
    with pytest.raises(ValueError, match="correct group_columns"):
        read_scores(small, group_columns=["nope"])


def test_labels_that_label_nothing(comments: SimpleNamespace, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n", encoding="utf-8")
    said = complaint("estimate", comments.files[0], "--labels", labels)
    assert "holds not one label" in said and "leave --labels out" in said
    labels.write_text("id,label\ncomment-00003,\n", encoding="utf-8")
    assert "labels none of them" in run("estimate", comments.files[0], "--labels", labels, "--quiet").stderr


def test_a_file_that_is_given_twice(small: Path) -> None:
    assert "is given twice" in complaint("estimate", small, small)


def test_what_is_asked_for_twice_is_given_once(small: Path) -> None:
    options = ["--metrics", "accuracy,accuracy", "--groups", "source,source", "--json"]
    document = json.loads(run("estimate", small, *options).stdout)
    assert len(document["estimates"]) == 2 * 3  # two models, in all rows and in two groups


def test_draws(small: Path) -> None:
    default = SSME().n_draws
    document = json.loads(run("estimate", small, "--json").stdout)
    assert document["settings"]["draws"] == default
    document = json.loads(run("estimate", small, "--draws", 30, "--metrics", "accuracy", "--json").stdout)
    table = read_scores(small, group_columns=["source"])
    expected = SSME(n_draws=30, random_state=0).fit(table).estimate("accuracy")
    assert document["settings"]["draws"] == 30
    assert [row["upper"] for row in document["estimates"]] == expected["upper"].tolist()
    run("estimate", small, "--draws", 1, code=2)
    run("estimate", small, "--draws", 10**9, code=2)


# --- where to write: checked before the work, by the user's path ---


def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command may reach what comes after the checks."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("ssme.score_table.read_scores", fail)
    monkeypatch.setattr("ssme.demo.make_scores", fail)


COMMANDS = {
    "estimate": lambda scores, out: ["estimate", scores, "--out", out],
    "convert": lambda scores, out: ["convert", scores, out],
    "demo": lambda scores, out: ["demo", "--out", out],
    "compare": lambda scores, out: ["compare", scores, "--out", out],
    "suggest": lambda scores, out: ["suggest", scores, "-k", 5, "--out", out],
    "prevalence": lambda scores, out: ["prevalence", scores, "--out", out],
    "study": lambda scores, out: ["study", scores, "--out", out],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_that_takes_no_file_is_refused_before_the_work(
    small: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never(monkeypatch)
    touch = Path.touch

    def refuse(self: Path, *args: Any, **kwargs: Any) -> None:
        if self.suffix == ".csv" or ".tmp" in self.name:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        touch(self, *args, **kwargs)

    monkeypatch.setattr(Path, "touch", refuse)
    out = small.parent / ("folder" if command == "study" else "out.csv")
    said = complaint(*COMMANDS[command](small, out))
    assert (
        said == f"Error: cannot write {out} (Permission denied): make its folder writable, or choose another place.\n"
    )
    assert not out.exists()


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "study"])
def test_bad_targets_are_refused_before_the_work(small: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    never(monkeypatch)
    (small.parent / "folder.csv").mkdir()
    assert "it is a folder" in complaint(*COMMANDS[command](small, small.parent / "folder.csv"))
    nowhere = small.parent / "no" / "t.csv"
    assert f"{nowhere}: the folder {nowhere.parent} does not exist" in complaint(*COMMANDS[command](small, nowhere))
    assert "table.xlsx" in run(*COMMANDS[command](small, small.parent / "table.xlsx"), code=2).output


def test_a_study_folder_below_a_file(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never(monkeypatch)
    assert "is not a folder" in complaint("study", small, "--out", small / "study")


def test_full_disk_without_an_old_file_speaks_of_none(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(frame: pd.DataFrame, document: str, markdown: Any, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setitem(ssme._console.WRITERS, ".csv", fill)
    out = small.parent / "new.csv"
    said = complaint("estimate", small, "--out", out)
    assert f"cannot write {out} (No space left on device): make room" in said and "older" not in said
    out.write_text("old", encoding="utf-8")
    assert "the older file there is left as it was" in complaint("estimate", small, "--out", out)


# --- quiet, everywhere the same ---


def test_quiet_means_the_same_in_every_command(small: Path, tmp_path: Path) -> None:
    assert run("demo", "--out", tmp_path / "s.npz", "--quiet").stdout == ""
    assert run("convert", small, tmp_path / "c.npz", "--quiet").stdout == ""
    assert run("estimate", small, "--out", tmp_path / "t.csv", "--quiet").stdout == ""
    alone = run("demo", "--quiet").stdout
    assert "closer" in alone and "SSME was closer" not in alone and "classifiers of handwritten" not in alone
    inspected = run("inspect", small, "--no-fit", "--quiet").stdout
    assert "Agreement" in inspected and "Nothing unusual" in inspected


def test_quiet_warnings_go_to_stderr(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warned(table: ScoreTable) -> list[str]:
        warnings.warn("odd scores", UserWarning, stacklevel=1)
        return []

    monkeypatch.setattr("ssme.inspection.findings", warned)
    result = run("inspect", small, "--no-fit", "--quiet")
    assert "odd scores" not in result.stdout and "Warning: odd scores" in result.stderr
    assert "Warning: odd scores" in run("inspect", small, "--no-fit").stdout


# --- how commands end ---


def end_of(command: list[object], **options: Any) -> subprocess.CompletedProcess[str]:
    full = [sys.executable, "-m", "ssme", *map(str, command)]
    return subprocess.run(full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=120, **options)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize("options", [["--json"], ["--no-fit"]])
def test_a_reader_that_has_seen_enough_ends_the_command_silently(small: Path, options: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = end_of(["inspect", small, *options], stdout=writer)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["inspect", "--no-fit"], ["inspect", "--help"]])
def test_a_full_stdout_is_named(small: Path, command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        result = end_of([command[0], small, *command[1:]], stdout=full)
    said = "Error: cannot write to standard output (No space left on device).\n"
    assert (result.returncode, result.stderr) == (1, said)


def test_interrupt(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    break_fit(monkeypatch, interrupt)
    result = run("estimate", small, "--out", small.parent / "t.csv", code=130)
    assert result.stdout == "" and result.stderr == "Interrupted.\n" and not (small.parent / "t.csv").exists()


def test_too_little_memory_is_no_fault_of_the_program(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust() -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    break_fit(monkeypatch, exhaust)
    assert "not enough memory (Unable to allocate 9 TiB)" in complaint("estimate", small)


# --- many models ---


def test_inspect_of_many_models_shows_no_matrix(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = pd.DataFrame(rng.random((40, 60)).round(3), columns=[f"m{m:02d}" for m in range(60)])
    p["m59"] = 1 - (p.drop(columns="m59").mean(axis=1) > 0.5)  # hard, and against the others
    p.iloc[:, :7] = 0.25
    path = tmp_path / "many.csv"
    p.assign(id=range(40)).to_csv(path, index=False)
    text = run("inspect", path, "--no-fit").stdout
    assert "60: m00, m01" in text and "and 40 others" in text and max(map(len, text.splitlines())) < 250
    assert "7 models give every row the same scores: m00, m01, m02, m03, m04 and 2 more." in text
    assert "6 models have exactly the scores of another one: m01" in text and "Model m59 has only scores" in text
    found = json.loads(run("inspect", path, "--no-fit", "--json").stdout)["agreement"]
    vote = (p.to_numpy() > 0.5).astype(int)
    same = (vote[:, :, None] == vote[:, None, :]).mean(axis=0)
    expected = (same.sum(axis=1) - 1) / 59
    assert found["share_of_rows"] is None and np.allclose(found["mean_with_others"], expected)
    assert found["mean"] == pytest.approx((same.sum() - 60) / (60 * 59))
    shown = re.findall(r"^(m\d\d) +0\.\d{3}$", text, flags=re.M)
    # Those that agree least come first; several agree alike.
    assert np.allclose(expected[p.columns.get_indexer(shown)], np.sort(expected)[:20]) and shown[0] == "m59"
