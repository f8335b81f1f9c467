"""`ssme compare`, `suggest` and `prevalence`: the numbers of the Python interface, and files that go round."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ssme import SSME, read_scores
from ssme.cli import app


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"exit code {result.exit_code}: {result.output}{result.exception!r}"
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def scores(tmp_path: Path, simulate: Callable[..., Any]) -> Path:
    """Three models, 200 rows of which 40 are labeled, a group column; the labels are in labels.csv too."""
    data, path = simulate(n=200, n_models=3, n_labeled=40, prevalence=0.5), tmp_path / "scores.csv"
    frame = pd.DataFrame({"id": data.ids, "system": np.where(np.arange(200) % 3, "x", "y")})
    for m, name in enumerate(("a", "b", "c")):
        frame[f"{name}:no"], frame[f"{name}:yes"] = 1 - data.p[:, m], data.p[:, m]
    frame.to_csv(path, index=False)
    names = np.where(data.y == 1, "yes", "no")
    pd.DataFrame({"id": data.ids[data.labeled], "label": names[data.labeled]}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    pd.DataFrame({"id": data.ids, "label": names}).to_csv(tmp_path / "truth.csv", index=False)
    return path


def fitted(path: Path, labels: Path, draws: int) -> SSME:
    return SSME(n_draws=draws, random_state=0).fit(read_scores(path, labels=labels, group_columns=["system"]))


def test_compare_is_rank_and_select_best(scores: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    asked = ("compare", scores, "--labels", labels, "--groups", "system", "--metric", "ece")
    document = json.loads(run(*asked, "--json").stdout)
    shown = run(*asked, "--pairs").stdout
    model = fitted(scores, labels, 400)
    pd.testing.assert_frame_equal(
        pd.DataFrame(document["ranking"]).astype({"p_better_than_next": float}),
        model.rank("ece", groups=["system"]),
        check_exact=True,
        check_dtype=False,
    )
    pairs = pd.DataFrame(document["pairs"])
    pd.testing.assert_frame_equal(pairs, model.compare("ece", groups=["system"]), check_exact=True, check_dtype=False)
    best = str(model.select_best("ece"))
    assert document["select"] == best and best in shown
    assert document["labeled"] == 40 and "40 of 200 rows labeled" in shown and "p_best: probability" in shown


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json", ".md"])
def test_compare_writes_every_format(scores: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"ranking{suffix}"
    assert run("compare", scores, "--labels", tmp_path / "labels.csv", "--out", out, "--quiet").stdout == ""
    if suffix == ".csv":
        assert list(pd.read_csv(out)["rank"]) == [1, 2, 3]
    if suffix == ".md":
        assert out.read_text(encoding="utf-8").startswith("| metric | group | rank | model |")


def test_only_one_metric_is_compared(scores: Path) -> None:
    assert "give one metric" in run("compare", scores, "--metric", "accuracy,ece", code=2).stderr


def test_suggested_labels_go_round(scores: Path, tmp_path: Path) -> None:
    """The file of suggest, filled in, gives estimates with the weights of the design, like the Python interface."""
    labels, out = tmp_path / "labels.csv", tmp_path / "next.csv"
    shown = run("suggest", scores, "--labels", labels, "-k", 30, "--out", out).stdout
    assert "30 rows to label next" in shown
    given = pd.read_csv(out, keep_default_na=False, dtype={"id": str})
    assert list(given.columns) == ["id", "label", "label_weight", "next"]
    assert len(given) == 200 and (given["next"][:30] == 1).all() and (given["next"][30:] == 0).all()
    assert (given["label"][:30] == "").all() and (given["label"] != "").sum() == 40
    batch = fitted(scores, labels, 100).suggest_labels(30)
    table = read_scores(scores)
    assert set(given["id"][:30]) == set(table.row_ids[batch.rows])
    truth = pd.read_csv(tmp_path / "truth.csv", dtype=str).set_index("id")["label"]
    given.loc[:29, "label"] = truth[given["id"][:30]].to_numpy()
    given.to_csv(out, index=False)
    filled = read_scores(scores, labels=out)
    assert filled.n_labeled == 70
    np.testing.assert_allclose(filled.label_weight, batch.label_weight, rtol=1e-15)
    document = json.loads(run("estimate", scores, "--labels", out, "--metrics", "accuracy", "--json").stdout)
    estimates = document["estimates"]
    codes = filled.labels
    direct = SSME(random_state=0).fit(filled.scores, codes, label_weight=batch.label_weight).estimate("accuracy")
    assert [each["estimate"] for each in estimates] == pytest.approx(direct["estimate"].tolist(), rel=1e-12)
    plain = SSME(random_state=0).fit(filled.scores, codes).estimate("accuracy")
    assert (plain["estimate"] != direct["estimate"]).all()


def test_suggest_for_some_models_and_as_json(scores: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    document = json.loads(run("suggest", scores, "--labels", labels, "-k", 5, "--for", "b", "--json").stdout)
    rows = fitted(scores, labels, 100).suggest_labels(5, models=["b"]).rows
    assert {each["id"] for each in document["next"]} == set(read_scores(scores).row_ids[rows])
    assert "Without --out nothing is kept" in run("suggest", scores, "--labels", labels, "-k", 5).stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["-k", "0"], 2, "Invalid value"),
        (["-k", "161"], 1, "160"),
        (["-k", "5", "--for", "zebra"], 1, "zebra"),
        (["-k", "5", "--out", "next.json"], 2, "must end in .csv or .parquet"),
        ([], 2, "number"),
    ],
)
def test_suggest_refuses(scores: Path, tmp_path: Path, options: list[str], code: int, said: str) -> None:
    result = run("suggest", scores, "--labels", tmp_path / "labels.csv", *options, code=code)
    assert said in result.stderr and result.stdout == ""


def test_prevalence_by_group(scores: Path, tmp_path: Path) -> None:
    labels, out = tmp_path / "labels.csv", tmp_path / "shares.parquet"
    shown = run("prevalence", scores, "--labels", labels, "--groups", "system", "--out", out).stdout
    direct = fitted(scores, labels, 400).prevalence(groups=["system"])
    pd.testing.assert_frame_equal(pd.read_parquet(out), direct, check_exact=True, check_dtype=False)
    assert "Intervals hold with probability 0.9" in shown and "No sign of shift" in shown


def test_prevalence_warns_of_shift(scores: Path, tmp_path: Path) -> None:
    truth = pd.read_csv(tmp_path / "truth.csv", dtype=str)
    truth[truth["label"] == "yes"].head(40).to_csv(tmp_path / "yes.csv", index=False)
    document = json.loads(run("prevalence", scores, "--labels", tmp_path / "yes.csv", "--json").stdout)
    assert any("shift" in note or "differ" in note for note in document["warnings"])
