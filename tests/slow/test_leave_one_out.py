"""The benchmark that chooses every constant leave-one-data-set-out keeps its promises: nothing leaks, runs resume."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ssme import SSME

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parent))
import _estimator_constants as grid
import leave_one_out
from _populations import five_models, random_population

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    """Three small sets of scores."""
    where = tmp_path / "scores"
    where.mkdir()
    for seed, name in enumerate(["first", "second", "third"]):
        scores, y = random_population(seed, 0.2)(300, np.random.default_rng(seed))
        np.savez(where / f"{name}.npz", scores=scores, labels=y, model_names=[f"m{m}" for m in range(scores.shape[1])])
    return where


@pytest.fixture
def few_constants(monkeypatch):
    """Two constants, so that the search takes seconds."""
    for kept in (grid.CONSTANTS, grid.START, grid.SHIPPED):
        for name in set(kept) - {"label power", "misfit"}:
            monkeypatch.delitem(kept, name)


def run(folder, cache, capsys):
    """The report and the number of fits that were computed."""
    small = ["--budgets", "10,20", "--seeds", "2", "--search-seeds", "1", "--unlabeled", "60"]
    leave_one_out.main([str(folder), "--cache", str(cache), *small])
    said = capsys.readouterr()
    return said.out, int(said.err.split()[-7])


def test_a_run_resumes_with_the_same_report(folder, tmp_path, capsys, few_constants):
    cache = tmp_path / "fits.parquet"
    report, computed = run(folder, cache, capsys)
    assert computed > 0 and "| third | left out |" in report and "| all | shipped |" in report
    again, none = run(folder, cache, capsys)
    assert again == report and none == 0
    table = pd.read_parquet(cache)
    keys = table.key.unique()
    table[table.key.isin(keys[::2])].to_parquet(cache)
    resumed, some = run(folder, cache, capsys)
    assert resumed == report and some == len(keys) - len(keys[::2])


def test_the_set_left_out_has_no_say(folder, tmp_path, few_constants, monkeypatch):
    sets = [leave_one_out.read_set(file, [20], 1, 60, None) for file in sorted(folder.glob("*.npz"))]
    seen = []
    monkeypatch.setattr(
        leave_one_out, "fit", lambda data, values, *draw: seen.append(data.name) or [("a", 1.0, 1.0, 1.0)]
    )
    leave_one_out.choose(leave_one_out.Fits(tmp_path / "fits.parquet"), sets[1:], [20], [0])
    assert set(seen) == {"second", "third"}


def cases():
    """Sets on which some constant or other matters: rare confidence, copies, independent errors, three classes."""
    random = np.random.default_rng(0)
    yield five_models("overconfident", 400, random)
    scores, y = five_models("underconfident", 400, random)
    scores[:, :2] = scores[:, :2] ** 8 / (scores[:, :2] ** 8).sum(axis=2, keepdims=True)
    yield scores, y
    y = random.integers(0, 3, 400)
    votes = np.where(random.random((400, 5)) < 0.25, random.integers(0, 3, (400, 5)), y[:, None])
    sure = random.uniform(0.5, 1.0, (400, 5, 1))
    yield sure * np.eye(3)[votes] + (1 - sure) / 3, y


def numbers(scores, y):
    shown = np.where(np.arange(len(y)) < 60, y, -1)
    table = SSME(random_state=0).fit(scores, shown).estimate(["accuracy", "ece"])
    return table[["estimate", "lower", "upper"]].to_numpy()


def test_every_constant_acts_and_is_put_back():
    samples = list(cases())
    shipped = [numbers(*each) for each in samples]
    for name, constant in grid.CONSTANTS.items():
        assert constant.shipped in constant.alternatives and constant.shipped != constant.alternatives[0], name
        for value in constant.alternatives:
            with grid.constants({name: value}):
                found = [numbers(*each) for each in samples]
            same = all(np.array_equal(a, b) for a, b in zip(found, shipped, strict=True))
            assert same == (value == constant.shipped), (name, value)
    with pytest.raises(KeyError), grid.constants({**grid.START, "no such constant": 1.0}):
        pass
    assert all(np.array_equal(numbers(*a), b) for a, b in zip(samples, shipped, strict=True))
