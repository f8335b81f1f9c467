"""`ssme collect` and then `ssme estimate`, as somebody would type them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="ssme collect needs torch")
pytest.importorskip("transformers", reason="ssme collect needs transformers")

sys.path.insert(0, str(Path(__file__).parent))
from _models import WORDS

from ssme import read_scores
from ssme.adapters.huggingface import collect_scores
from ssme.cli import app


def ssme(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


@pytest.fixture
def reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSME_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS[5:], 6)) for _ in range(60)]
    labels = ["pos" if "good" in text else "neg" for text in texts]
    pd.DataFrame({"id": [f"r{i}" for i in range(60)], "text": texts, "source": ["a", "b"] * 30}).to_csv(
        "reviews.csv", index=False
    )
    pd.DataFrame({"id": [f"r{i}" for i in range(25)], "label": labels[:25]}).to_csv("labels.csv", index=False)
    return tmp_path / "reviews.csv"


@pytest.mark.parametrize("out", ["scores.parquet", "scores.csv", "scores.npz"])
def test_from_checkpoints_to_estimates(two: tuple[Path, Path], reviews: Path, out: str) -> None:
    code, text = ssme(
        "collect",
        "--model",
        two[0],
        "-m",
        two[1],
        "--data",
        reviews,
        "--text",
        "text",
        "--groups",
        "source",
        "--out",
        out,
    )
    assert code == 0, text
    assert (
        f"{out}: 60 rows (0 labeled), 2 models, 2 classes. Go on with: ssme estimate {out} --labels labels.csv" in text
    )
    table = read_scores(out, group_columns=["source"])
    assert table.equals(
        collect_scores(list(two), reviews, text_column="text", group_columns=["source"], cache_dir=False)
    )
    code, text = ssme(
        "estimate", out, "--labels", "labels.csv", "--metrics", "accuracy", "--groups", "source", "--quiet"
    )
    assert code == 0 and "small" in text and "large" in text


def test_names_mapping_and_quiet(two: tuple[Path, Path], reviews: Path, save: Callable[..., Path]) -> None:
    loud = save("loud", ["NEG", "POS"], 3)
    words = ("collect", "-m", f"a={two[0]}", "-m", f"b={loud}", "--data", reviews, "--out", "s.csv")
    code, text = ssme(*words)
    assert code == 1 and "Error: 'b' has the labels 'NEG', 'POS', but 'a' has 'neg', 'pos'" in text
    Path("mapping.json").write_text(json.dumps({"b": {"NEG": "neg", "POS": "pos"}}))
    assert ssme(*words, "--text", "text", "--label-mapping", "mapping.json", "--quiet", "--no-cache") == (0, "")
    assert read_scores(
        "s.csv", group_columns=["source"] if "source" in Path("s.csv").read_text() else []
    ).model_names == ("a", "b")
    assert not Path("cache").exists()
    Path("mapping.json").write_text("{")
    assert "mapping.json: is not JSON" in ssme(*words, "--label-mapping", "mapping.json")[1]


def test_errors_speak_of_options(two: tuple[Path, Path], reviews: Path) -> None:
    base = ("collect", "-m", two[0], "--data", reviews, "--out", "s.csv")
    for extra, expected, wanted in (
        (("--text", "body"), "--data has no column 'body' (--text)", 1),
        (("--text", "text", "--max-length", 500), "--max-length 500 is more than the 24 tokens", 1),
        (("--device", "nowhere"), "--device nowhere is not there", 1),
        (("--batch-size", 0), "--batch-size", 2),
        (("--dtype", "int4"), "--dtype", 2),
        (("-m", f"x={two[1]}"), "give names to all models, or to none", 2),
        (("-m", "./nowhere"), "./nowhere: there is no such folder", 1),
        (("--out", "s.txt"), "s.txt", 2),
        (("--out", reviews), "is one of the files that are read", 1),
        (("--out", "no/s.csv"), "does not exist; make it first", 1),
        (("--cache", reviews / "x"), "is not a folder; choose another name", 1),
    ):
        code, text = ssme(*base, *extra)
        text = " ".join(text.replace("│", " ").split())
        assert code == wanted and expected in text, (extra, text)
    assert not Path("s.csv").exists()


def test_pickles_are_named_by_their_option(two: tuple[Path, Path], reviews: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "config.json").write_text((two[0] / "config.json").read_text())
    (folder / "pytorch_model.bin").write_bytes(b"")
    code, text = ssme("collect", "-m", folder, "--data", reviews, "--out", "s.csv")
    assert code == 1 and "pass --allow-pickle where you trust who made it" in text


def test_rows_that_are_left_out_are_told(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("id,text,label\na,good,pos\nb,,neg\nc,NA,\n")
    words = ("collect", "-m", two[0], "--data", "data.csv", "--label-column", "label", "--no-cache", "--out", "s.csv")
    code, text = ssme(*words, "--text", "text")
    assert code == 1 and "1 row of --data (id 'b') without text: fill them in, or pass --missing drop" in text
    code, text = ssme(*words, "--text", "text", "--missing", "drop")
    assert code == 0 and "Warning: 1 row of --data (id 'b') without text: left out." in text
    table = read_scores("s.csv", label_column="label")
    assert table.row_ids.tolist() == ["a", "c"] and table.labels.tolist() == [1, -1]
