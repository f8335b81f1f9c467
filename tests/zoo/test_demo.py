"""The demo: a small sweep judged with few labels, again from what is on disk, and its files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("torch", reason="the zoo needs torch")

from ssl_zoo._demo_command import to_tables, write_demo
from ssl_zoo.demo import Demo, compare, cscore_table, demo_sweep, robustness_table, run_demo, summary


@pytest.fixture(scope="module")
def sweep():
    return demo_sweep(0, algorithms=("supervised", "fixmatch"), values=(0.0, 1.0), n_seeds=2, steps=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(sweep, folder: Path) -> Demo:
    return run_demo(folder, jobs=1, sweep=sweep, n_draws=40)


def test_tables_compare_with_the_truth(demo: Demo):
    points = compare(demo.curves.points)
    assert len(points) == 4
    assert set(points["n_labeled"]) == {20}
    assert points["estimate"].between(points["lower"], points["upper"]).all()
    assert points["truth"].between(0, 1).all()
    nearer = (points["estimate"] - points["truth"]).abs() < (points["labels_alone"] - points["truth"]).abs()
    assert list(nearer) == [closer == "ssme" for closer in points["closer"]]
    said = summary(points)
    assert said["figures"] == 4
    assert said["error"] == pytest.approx((points["estimate"] - points["truth"]).abs().mean())
    slopes = robustness_table(demo.curves)
    assert sorted(slopes["algorithm"]) == ["fixmatch", "supervised"]
    flat = slopes.set_index("algorithm").loc["supervised"]
    assert flat["truth"] == pytest.approx(0) and flat["estimate"] == pytest.approx(0, abs=1e-9)
    rows = cscore_table(demo).set_index(["algorithm", "x"])
    assert rows.loc[("fixmatch", 1.0), "ple"] > 0
    assert rows.loc["supervised", "ple"].isna().all()


def test_again_from_disk_gives_the_same(demo: Demo, sweep, folder: Path):
    again = run_demo(folder, jobs=1, sweep=sweep, n_draws=40)
    pd.testing.assert_frame_equal(again.curves.points, demo.curves.points)
    pd.testing.assert_frame_equal(again.curves.robustness, demo.curves.robustness)


def test_files(demo: Demo, tmp_path: Path):
    written, missing = write_demo(demo, tmp_path)
    names = {path.name for path in written}
    assert {"points.csv", "robustness.csv", "compared.csv", "cscore-by-r.csv", "demo.md"} <= names
    assert all(path.stat().st_size > 0 for path in written)
    assert missing or {"curves-accuracy.png", "cscore.png", "report.html"} <= names
    assert len(to_tables(demo)) >= 6


@pytest.mark.parametrize("n_labeled", [0, 10**6])
def test_number_of_labels_is_checked(sweep, folder: Path, demo: Demo, n_labeled: int):
    with pytest.raises(ValueError, match="n_labeled is"):
        run_demo(folder, jobs=1, sweep=sweep, n_labeled=n_labeled)
