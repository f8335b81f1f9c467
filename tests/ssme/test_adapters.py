"""Adapters without torch: scikit-learn estimators, data of many kinds, names, and a missing extra."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

from ssme.adapters._cache import ChunkCache
from ssme.adapters._classes import find_classes, rename_outputs
from ssme.adapters._content import fingerprint
from ssme.adapters._rows import Columns, read_rows
from ssme.adapters.sklearn import collect_scores
from ssme.cli import app

X, CODES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
Y = NAMES[CODES]


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
        "forest": RandomForestClassifier(5, random_state=0).fit(X, Y),
        "ridge": RidgeClassifier().fit(X, Y),
    }


def test_probabilities_and_margins(models: dict[str, Any]) -> None:
    labels = np.where(np.arange(150) % 10, None, Y)
    table = collect_scores(models, X, labels=labels, groups={"half": np.arange(150) // 75})
    for m, name in enumerate(("logistic", "forest")):
        np.testing.assert_allclose(table.scores[:, m], models[name].predict_proba(X))
    margins = models["ridge"].decision_function(X)
    np.testing.assert_allclose(table.scores[:, 2], np.exp(margins) / np.exp(margins).sum(1, keepdims=True))
    assert table.model_names == tuple(models) and table.class_names == tuple(NAMES)
    assert table.n_labeled == 15 and table.labels[0] == 0 and set(table.groups["half"]) == {"0", "1"}


def test_classes_are_matched_by_name(models: dict[str, Any]) -> None:
    other = LogisticRegression(max_iter=500).fit(X, np.array(["b", "c", "a"])[CODES])
    with pytest.raises(ValueError, match="'other' has the labels 'a', 'b', 'c', but 'logistic' has 'setosa', 'versi"):
        collect_scores({"logistic": models["logistic"], "other": other}, X)
    mapping = {"other": {"b": "setosa", "c": "versicolor", "a": "virginica"}}
    table = collect_scores({"logistic": models["logistic"], "other": other}, X, label_mapping=mapping)
    np.testing.assert_allclose(table.scores[:, 1], other.predict_proba(X)[:, [1, 2, 0]])
    numbers = LogisticRegression(max_iter=500).fit(X, CODES)
    assert collect_scores(numbers, X, labels=CODES, class_names=[2, 1, 0]).labels.tolist() == (2 - CODES).tolist()


def test_two_classes_and_batches_and_other_forms_of_rows() -> None:
    y = CODES == 0
    svm = SVC().fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(150)])
    table = collect_scores({"svm": svm}, X)
    np.testing.assert_allclose(table.scores[:, 0, 1], 1 / (1 + np.exp(-svm.decision_function(X))))
    assert table.class_names == ("False", "True")
    logistic = LogisticRegression(max_iter=500).fit(frame, y)
    whole = collect_scores([logistic], frame)
    assert whole.row_ids[3] == "r3" and whole.model_names == ("LogisticRegression",)
    assert collect_scores(logistic, frame, batch_size=40).equals(whole)
    sparse = LogisticRegression(max_iter=500).fit(csr_array(X), y)
    both = collect_scores({"dense": svm, "sparse": sparse}, {"dense": X, "sparse": csr_array(X)}, batch_size=64)
    np.testing.assert_allclose(both.scores[:, 1], sparse.predict_proba(X))


def test_what_is_refused(models: dict[str, Any]) -> None:
    ovo = SVC(decision_function_shape="ovo").fit(np.tile(X, (2, 1)), np.r_[CODES, CODES + 3])
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (LogisticRegression(), X, {}, "is not fitted"),
        ({"a": ovo}, X, {}, "decision_function_shape='ovr'"),
        (models, {"logistic": X}, {}, "X has no features for 'forest', 'ridge'"),
        (
            {k: models[k] for k in ("logistic", "forest")},
            {"logistic": X, "forest": X[:3]},
            {},
            "X of forest has 3 rows",
        ),
        ([], X, {}, "is empty"),
        ([models["ridge"], models["ridge"]], X, {}, "two models are called 'RidgeClassifier'"),
        (models, X, {"labels": ["setosa"] * 149 + ["rose"]}, "'rose' at row 149"),
        (models, X, {"row_ids": ["x"] * 150}, "must differ from row to row"),
    ]
    for estimators, rows, options, match in cases:
        with pytest.raises(ValueError, match=match):
            collect_scores(estimators, rows, **options)
    with pytest.raises(TypeError, match="neither predict_proba nor decision_function"):
        collect_scores({"x": StandardScaler().fit(X)}, X)
    many = RandomForestClassifier(2).fit(X, np.c_[CODES, CODES])
    with pytest.raises(ValueError, match="predicts several columns at once"):
        collect_scores(many, X)

    class Broken(LogisticRegression):
        def predict_proba(self, X: Any) -> np.ndarray:
            return super().predict_proba(X) * np.nan

    class BrokenMargins(RidgeClassifier):
        def decision_function(self, X: Any) -> np.ndarray:
            return super().decision_function(X) * np.inf

    for broken in (Broken(max_iter=500).fit(X, Y), BrokenMargins().fit(X, Y)):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="are no probabilities|not finite"):
            collect_scores(broken, X)


def test_a_missing_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    from ssme.adapters import huggingface, torch

    message = r"the Hugging Face adapter needs transformers, which is not installed: pip install 'ssme\[hf\]'"
    with pytest.raises(ImportError, match=message):
        huggingface.collect_scores("any", ["text"])
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r"the torch adapter needs torch, which is not installed: pip install 'ssme\[zoo\]'"
    ):
        torch.collect_scores([], [])
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("text\ngood\n")
    result = CliRunner().invoke(app, ["collect", "--model", "any", "--data", "data.csv", "--out", "s.csv"])
    assert result.exit_code == 1 and "pip install 'ssme[hf]'" in result.output and "Traceback" not in result.output


def test_rows_of_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("id,text\na,caf\xe9\n".encode("latin-1"))
    with pytest.raises(ValueError, match="is not UTF-8 text \\(byte"):
        read_rows(path, "text", Columns())
    path.write_text('id,text\n007,"a, b"\n008,NA\n', encoding="utf-8-sig")
    rows = read_rows(path, "text", Columns())
    assert rows.ids.tolist() == ["007", "008"] and rows.items == ["a, b", "NA"]
    path.write_text("id,text\na,b\na,b,c,d\n")
    with pytest.raises(ValueError, match="rows.csv: cannot be read"):
        read_rows(path, "text", Columns())
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        read_rows(tmp_path / "none.csv", "text", Columns())
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(ValueError, match="must end in one of .csv"):
        read_rows(tmp_path / "rows.xlsx", "text", Columns())
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(ValueError, match="bad.parquet: cannot be read"):
        read_rows(tmp_path / "bad.parquet", "text", Columns())
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "x.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="x.txt: not UTF-8 text"):
        read_rows(tmp_path / "texts", "text", Columns())


def test_rows_in_memory() -> None:
    frame = pd.DataFrame({"text": ["a", "b"]}, index=["x", "y"])
    assert read_rows(frame, "text", Columns()).ids.tolist() == ["x", "y"]
    assert read_rows(frame["text"], "text", Columns()).ids.tolist() == ["x", "y"]
    assert read_rows(frame.reset_index(drop=True)["text"], "text", Columns()).ids.tolist() == ["0", "1"]
    assert read_rows([{"text": "a", "id": 7}], "text", Columns()).ids.tolist() == ["7"]
    assert read_rows(np.array(["a", "b"]), "text", Columns()).items == ["a", "b"]
    pairs = read_rows(pd.DataFrame({"a": ["p"], "b": ["q"]}), "text", Columns("a", "b"))
    assert pairs.items == [("p", "q")]
    with pytest.raises(ValueError, match="without text"):
        read_rows(pd.DataFrame({"a": ["p"], "b": [None]}), "text", Columns("a", "b"))
    with pytest.raises(ValueError, match="without image"):
        read_rows(pd.DataFrame({"image": ["x.png", None]}), "image", Columns(), missing="empty")
    with pytest.warns(UserWarning, match="left out"):
        kept = read_rows(pd.DataFrame({"image": ["x.png", None, "y.png"]}), "image", Columns(), missing="drop")
    assert list(kept.items) == ["x.png", "y.png"] and kept.ids.tolist() == ["0", "2"]


def test_fingerprints_see_every_change(tmp_path: Path) -> None:
    picture = tmp_path / "p"
    picture.write_bytes(b"one")
    prints = [fingerprint([picture]), fingerprint([str(picture)], paths=True), fingerprint([{"bytes": b"one"}])]
    assert len(set(prints)) == 1
    picture.write_bytes(b"two")
    others = [fingerprint([picture]), fingerprint([str(picture)]), fingerprint([("a", "b")]), fingerprint([("ab", "")])]
    others += [
        fingerprint([np.zeros(4, np.uint8)]),
        fingerprint([np.zeros((2, 2), np.uint8)]),
        fingerprint([tmp_path / "gone"]),
    ]
    assert len({*prints, *others}) == 8


def test_names_of_outputs() -> None:
    outputs = {"a": ["x", "y"], "b": ["X", "Y"]}
    assert rename_outputs(outputs, {"X": "x", "Y": "y"})["b"] == ["x", "y"]
    for mapping, match in (
        ({"Z": "x"}, "no model has the label 'Z'"),
        ({"c": {"X": "x"}}, "there is no model 'c'"),
        ({"a": {"x": "y"}, "b": "x"}, "must be a mapping or a list"),
        (["x"], "must be a mapping from labels"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            rename_outputs(outputs, mapping)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one class only"):
        find_classes({"a": ["x", "x"]}, None)
    with pytest.raises(ValueError, match="the class of its first label"):
        find_classes({"a": ["x", "y"], "b": ["p", "q"]}, None)


def test_chunks_come_back_as_they_were(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path / "new" / "cache", "org/a model", {"k": 1})
    assert cache.folder is not None and cache.folder.name.startswith("org_a_model-")
    cache.put(3, np.arange(6, dtype=np.float32).reshape(3, 2), 2)
    found = cache.get(3, 3)
    assert found is not None and found[1] == 2 and found[0].dtype == np.float32
    assert cache.get(3, 4) is None and cache.get(0, 3) is None
    assert ChunkCache(tmp_path / "new" / "cache", "org/a model", {"k": 2}).get(3, 3) is None
    none = ChunkCache(None, "a", {})
    none.put(0, np.zeros((1, 2)), 0)
    assert none.get(0, 1) is None
