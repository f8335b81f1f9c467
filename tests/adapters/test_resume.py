"""Outputs on disk: a run that is stopped goes on to the same result, and nothing stale is ever taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the Hugging Face adapter needs torch")
pytest.importorskip("transformers", reason="the Hugging Face adapter needs transformers")

import torch

sys.path.insert(0, str(Path(__file__).parent))
from _models import WORDS

from ssme.adapters._hf_predict import Predictor
from ssme.adapters.huggingface import collect_scores

RNG = np.random.default_rng(0)
MANY = [" ".join(RNG.choice(WORDS[5:], RNG.integers(1, 12))) for _ in range(150)]  # 75 batches of 2: 5 chunks a model


class Stop(BaseException):
    """Something that no code catches, as a kill is."""


def stop_after(n: int) -> Callable[[str, int, int], None]:
    def progress(model: str, done: int, total: int) -> None:
        assert total == 2 * len(MANY)
        if done >= n:
            raise Stop

    return progress


@pytest.fixture
def forwards(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches that went through a model."""
    sizes: list[int] = []
    plain = Predictor.__call__

    def counted(self: Predictor, items: list[str], ids: list[str]) -> object:
        sizes.append(len(items))
        return plain(self, items, ids)

    monkeypatch.setattr(Predictor, "__call__", counted)
    return sizes


@pytest.mark.parametrize("stop", [1, 100, 170, 299])
def test_a_run_that_is_stopped_goes_on(two: tuple[Path, Path], tmp_path: Path, forwards: list[int], stop: int) -> None:
    whole = collect_scores(list(two), MANY, batch_size=2, cache_dir=False)
    forwards.clear()
    with pytest.raises(Stop):
        collect_scores(list(two), MANY, batch_size=2, cache_dir=tmp_path / "cache", progress=stop_after(stop))
    first = sum(forwards)
    forwards.clear()
    resumed = collect_scores(list(two), MANY, batch_size=2, cache_dir=tmp_path / "cache")
    assert resumed.equals(whole)
    kept = 2 * len(MANY) - sum(forwards)
    assert first - 32 < kept <= first  # at most one chunk of 16 batches is lost
    forwards.clear()
    assert collect_scores(list(two), MANY, batch_size=2, cache_dir=tmp_path / "cache").equals(whole)
    assert not forwards  # all is there: no model is even loaded


def test_a_process_that_is_killed_goes_on(two: tuple[Path, Path], tmp_path: Path, forwards: list[int]) -> None:
    code = (
        "import os, signal, sys\nfrom ssme.adapters.huggingface import collect_scores\n"
        "def kill(model, done, total):\n    if done >= 200:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        f"collect_scores({[str(p) for p in two]!r}, {MANY!r}, batch_size=2, cache_dir={str(tmp_path)!r}, progress=kill)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == -9, done.stderr
    resumed = collect_scores(list(two), MANY, batch_size=2, cache_dir=tmp_path)
    assert 0 < sum(forwards) < 300 - 160
    assert resumed.equals(collect_scores(list(two), MANY, batch_size=2, cache_dir=False))


def test_what_decides_the_numbers_is_part_of_the_key(
    two: tuple[Path, Path], tmp_path: Path, forwards: list[int]
) -> None:
    cache = tmp_path / "cache"
    folder = tmp_path / "model"
    shutil.copytree(two[0], folder)
    before = collect_scores(folder, MANY[:10], cache_dir=cache)
    forwards.clear()
    collect_scores(
        folder, MANY[:10], cache_dir=cache, label_mapping={"neg": "pos", "pos": "neg"}, class_names=["pos", "neg"]
    )
    (folder / "trainer_state.json.tmp").write_text("what training left")
    collect_scores({"renamed": folder}, MANY[:10], cache_dir=cache, score_type="logit")
    assert sum(forwards) == 10  # another name is another folder; mappings and kinds of scores are made afterwards
    for change in ({"batch_size": 4}, {"max_length": 20}, {"dtype": "bfloat16"}):
        forwards.clear()
        collect_scores(folder, MANY[:10], cache_dir=cache, **change)
        assert sum(forwards) == 10, change
    forwards.clear()
    collect_scores(folder, [*MANY[:9], "awful"], cache_dir=cache)
    collect_scores(folder, MANY[9::-1], cache_dir=cache)
    assert sum(forwards) == 20
    shutil.copy(two[1] / "model.safetensors", folder)
    assert not np.allclose(collect_scores(folder, MANY[:10], cache_dir=cache).scores, before.scores)


def test_models_in_memory_are_known_by_their_weights(
    two: tuple[Path, Path], tmp_path: Path, forwards: list[int]
) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model, words = AutoModelForSequenceClassification.from_pretrained(two[0]), AutoTokenizer.from_pretrained(two[0])
    for expected in (10, 0):
        forwards.clear()
        table = collect_scores({"m": (model, words)}, MANY[:10], cache_dir=tmp_path)
        assert sum(forwards) == expected
    with torch.no_grad():
        model.classifier.bias[0] += 1
    assert (
        collect_scores({"m": (model, words)}, MANY[:10], cache_dir=tmp_path).scores[:, 0, 0] > table.scores[:, 0, 0]
    ).all()


@pytest.mark.parametrize("damage", [b"", b"not a file of arrays", None])
def test_a_damaged_chunk_is_made_anew(two: tuple[Path, Path], tmp_path: Path, damage: bytes | None) -> None:
    whole = collect_scores(two[0], MANY, batch_size=2, cache_dir=tmp_path)
    chunks = sorted(tmp_path.glob("small-*/*.npz"))
    assert len(chunks) == 5
    chunks[1].write_bytes(chunks[1].read_bytes()[:100] if damage is None else damage)
    shutil.copy(chunks[0], chunks[4])  # of another length
    assert collect_scores(two[0], MANY, batch_size=2, cache_dir=tmp_path).equals(whole)


def test_a_cache_that_cannot_be_written_is_refused_before_the_work(
    two: tuple[Path, Path], tmp_path: Path, forwards: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError, match="is not a folder; choose another name"):
        collect_scores(two[0], MANY, cache_dir=tmp_path / "file" / "cache")
    monkeypatch.setenv("SSME_CACHE", str(tmp_path / "file"))
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        collect_scores(two[0], MANY)
    assert not forwards and (tmp_path / "file").read_text() == "in the way"
    if os.geteuid() != 0:  # root writes anywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(OSError, match="cannot write"):
            collect_scores(two[0], MANY, cache_dir=tmp_path / "closed" / "cache")


def test_the_default_place(two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSME_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    collect_scores(two[0], ["good"])
    assert len(list((tmp_path / "ssme").glob("small-*/000000.npz"))) == 1


def test_a_full_disk_keeps_what_is_there(
    two: tuple[Path, Path], tmp_path: Path, forwards: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = np.savez, []

    def full(path: Path, **arrays: np.ndarray) -> None:
        calls.append(path)
        if len(calls) == 4:
            raise OSError(28, "No space left on device", str(path))
        plain(path, **arrays)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(OSError, match="make room"):
            collect_scores(two[0], MANY, batch_size=2, cache_dir=tmp_path)
    forwards.clear()
    collect_scores(two[0], MANY, batch_size=2, cache_dir=tmp_path)
    assert sum(forwards) == 150 - 3 * 32
