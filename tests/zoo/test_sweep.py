"""Sweeps: what is planned, what is trained once, what a kill, a failure and a cluster leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

from ssl_zoo.cli import app  # noqa: E402
from ssl_zoo.registry import unregister  # noqa: E402
from ssl_zoo.robustness import curve_metrics  # noqa: E402
from ssl_zoo.sweep import (  # noqa: E402
    SweepConfig,
    list_presets,
    load_scores,
    load_sweep,
    plan_sweep,
    run_sweep,
    sweep_diagnostics,
)

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, Any] = {
    "algorithms": ["supervised", "fixmatch"],
    "factors": {"r": {"key": "pool.r", "values": [0, 0.5, 1]}},
    "seeds": [0, 1],
    "options": {"mu": 2},
    "base": {
        "data": "digits",
        "model": {"name": "mlp", "options": {"hidden": [16]}},
        "pool": {"seen_classes": 5, "n_labeled": 20},
        "train": {"steps": 24, "epoch_steps": 8, "batch_size": 10, "diagnostics_every": 2},
    },
}
EXPLODES = """
from ssl_zoo.algorithms.supervised import Supervised
from ssl_zoo.registry import register

@register("explodes")
class Explodes(Supervised):
    def step(self, context, optimizer):
        raise ValueError("the third wire")
"""


def small(**changes: Any) -> SweepConfig:
    return SweepConfig.from_dict({**SMALL, **changes})


def tables(folder: Path) -> dict[str, bytes]:
    """The tables of a sweep, byte for byte."""
    return {name: (folder / name).read_bytes() for name in ("results.csv", "results.parquet")}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep, trained without an interruption."""
    folder = tmp_path_factory.mktemp("sweep")
    run_sweep(small(), folder, jobs=1, device="cpu")
    return folder


# --- the plan ---


def test_plan_is_the_product_and_shares_what_is_equal() -> None:
    plan = plan_sweep(small())
    assert [(p.algorithm, p.value, p.seed) for p in plan[:3]] == [
        ("supervised", 0, 0),
        ("supervised", 0, 1),
        ("supervised", 0.5, 0),
    ]
    assert len(plan) == 12 and len({p.config.run_id for p in plan}) == 2 + 6
    assert all(p.config.pool.r == p.value for p in plan if p.algorithm == "fixmatch")
    shared = plan_sweep(small(options={"tau": 0.9}))
    assert "tau" not in shared[0].config.algorithm.options and shared[-1].config.algorithm.options["tau"] == 0.9


def test_a_factor_sets_other_keys_too() -> None:
    factors = {"far": {"key": "pool.r", "values": [0.5], "set": {"data.ood": "noise", "pool.nearness": "far"}}}
    far = plan_sweep(small(factors=factors, algorithms=[{"name": "fixmatch", "options": {"tau": 0.8}}]))[0].config
    assert (far.data.name, far.data.ood, far.pool.nearness) == ("digits", "noise", "far")
    assert far.algorithm.options == {"mu": 2, "tau": 0.8}


def test_planning_changes_nothing_that_was_given() -> None:
    sweep = small()
    before = json.dumps(sweep.to_dict(), sort_keys=True)
    plan_sweep(sweep)
    assert json.dumps(sweep.to_dict(), sort_keys=True) == before
    assert SweepConfig.from_dict(sweep.to_dict()).to_dict() == sweep.to_dict()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": ["fixmatch"]}, "did you mean 'algorithms'"),
        ({"algorithms": []}, "algorithms is empty"),
        ({"algorithms": "fixmatch"}, "must be a list"),
        ({"algorithms": [{"options": {}}]}, "has no name"),
        ({"factors": {"r": {"key": "pool.r", "value": [1]}}}, "factors.r.value is unknown"),
        ({"factors": {"r": {"key": "pool.r", "values": [0, 0]}}}, "names a value twice"),
        ({"factors": {"r": {"key": "pool.r", "values": [True]}}}, "numbers or words"),
        ({"factors": {"r": {"values": [1]}}}, "must be the path of a key"),
        ({"seeds": [-1]}, "whole numbers of 0 or more"),
        ({"seeds": [1, 1]}, "names a seed twice"),
        ({"base": {"seed": 3}}, "base.seed is what a sweep runs over"),
    ],
)
def test_bad_sweeps_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        small(**changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithms": ["fixmach"]}, "fixmatch"),
        ({"factors": {"q": {"key": "pool.q", "values": [1]}}}, "at q = 1: pool.q is unknown"),
        ({"base": {**SMALL["base"], "train": {"step": 3}}}, "train.step is unknown"),
    ],
)
def test_bad_runs_are_refused_before_the_first_is_trained(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        run_sweep(small(**changes), tmp_path / "s", jobs=1)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", list_presets())
def test_presets_hold(name: str) -> None:
    plan = plan_sweep(load_sweep(name))
    assert len(plan) >= 200 and {p.algorithm for p in plan} >= {"supervised", "fixmatch", "ict"}


def test_the_digits_preset_is_the_whole_sweep() -> None:
    plan = plan_sweep(load_sweep("digits"))
    assert len(plan) == 18 * 7 * 3 and len({p.algorithm for p in plan}) == 18


def test_load_sweep_names_what_it_cannot_find(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a file nor a preset; presets are digits, letter, usps"):
        load_sweep("digit")
    with pytest.raises(FileNotFoundError, match="no config file"):
        load_sweep(tmp_path / "none.yaml")


# --- what is trained ---


def test_results(done: Path) -> None:
    frame = pd.read_csv(done / "results.csv", keep_default_na=False, dtype={"value": str})
    assert frame["status"].tolist() == ["finished"] * 12 and (frame["error"] == "").all()
    assert frame["value"].unique().tolist() == ["0", "0.5", "1"] and frame["x"].astype(float).max() == 1
    for _, of_seed in frame[frame["algorithm"] == "supervised"].groupby("seed"):
        accuracy = of_seed["accuracy"].astype(float)
        assert accuracy.nunique() == 1 and curve_metrics([0, 0.5, 1], accuracy).r_slope == 0
    for row in frame.to_dict(orient="records"):
        result = json.loads((done / row["run"] / "result.json").read_text())
        assert result["metrics"]["accuracy"] == float(row["accuracy"])


def test_scores_are_those_of_the_reported_models(done: Path) -> None:
    table, models = load_scores(small(), done)
    frame = pd.read_csv(done / "results.csv")
    assert table.n_models == 12 and list(models["model"]) == list(table.model_names)
    assert models["model"][3] == "supervised/r=0.5/1"
    hits = table.scores.argmax(axis=2) == table.labels[:, None]
    np.testing.assert_allclose(hits.mean(axis=0), frame["accuracy"], rtol=1e-12)
    bare, _ = load_scores(small(), done, labels=False)
    assert bare.n_labeled == 0


def test_diagnostics(done: Path) -> None:
    frame = sweep_diagnostics(small(), done)
    fixmatch = frame[frame["algorithm"] == "fixmatch"]
    assert len(fixmatch) == 6 * 3 and fixmatch[["ple", "cci", "cci_pooled"]].notna().all(axis=None)
    assert frame.loc[frame["algorithm"] == "supervised", "cci"].isna().all()
    ends = sweep_diagnostics(small(), done, last=2)
    assert len(ends) == 12
    first = fixmatch[(fixmatch["value"] == "0") & (fixmatch["seed"] == 0)]
    got = ends[(ends["algorithm"] == "fixmatch") & (ends["value"] == "0") & (ends["seed"] == 0)]
    assert got["cci"].item() == pytest.approx(first["cci"].tail(2).mean())


def test_what_is_finished_is_not_trained_again(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssl_zoo.sweep._run.train_run", lambda *a: pytest.fail("trained again"))
    before, seen = tables(done), []
    run_sweep(small(), done, jobs=1, progress=lambda d, n: seen.append((d, n)))
    assert tables(done) == before and seen == [(8, 8)]
    part = run_sweep(small(seeds=[1], algorithms=["fixmatch"]), done, jobs=1)  # another sweep finds the same runs
    assert len(part) == 3 and (part["status"] == "finished").all()
    run_sweep(small(), done, jobs=1)


def test_two_processes_give_the_same_tables(done: Path, tmp_path: Path) -> None:
    run_sweep(small(), tmp_path, jobs=2, device="cpu")
    assert tables(tmp_path) == tables(done)


def test_a_kill_at_any_moment_changes_no_result(done: Path, tmp_path: Path) -> None:
    config = tmp_path / "small.yaml"
    config.write_text(json.dumps(SMALL))
    command = [sys.executable, "-m", "ssl_zoo", "sweep", str(config), "--out", str(tmp_path / "s"), "--device", "cpu"]
    for number, jobs in ((signal.SIGKILL, "1"), (signal.SIGTERM, "2"), (signal.SIGINT, "1")):
        have = len(list((tmp_path / "s").glob("*/result.json")))
        with subprocess.Popen(
            [*command, "--jobs", jobs],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        ) as process:
            end = time.monotonic() + 120
            while time.monotonic() < end and process.poll() is None:
                if len(list((tmp_path / "s").glob("*/result.json"))) > have:
                    break
                time.sleep(0.02)
            process.send_signal(number)
    assert len(list((tmp_path / "s").glob("*/result.json"))) >= 2
    frame = run_sweep(small(), tmp_path / "s", jobs=1, device="cpu")
    assert (frame["status"] == "finished").all()
    assert tables(tmp_path / "s") == tables(done)


def test_a_failure_is_a_row_and_is_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "explodes.py"
    file.write_text(EXPLODES)
    out = tmp_path / "s"
    result = CliRunner().invoke(
        app,
        ["sweep", str(_written(tmp_path, algorithms=["explodes", "supervised"], seeds=[0])), "--out", str(out)]
        + ["--jobs", "1", "--device", "cpu", "--import", str(file)],
    )
    assert result.exit_code == 1
    assert "Error: explodes at r=0, seed 0: ValueError: the third wire" in result.stderr
    frame = pd.read_csv(out / "results.csv")
    assert frame["status"].tolist() == ["failed"] * 3 + ["finished"] * 3
    assert frame["accuracy"][:3].isna().all() and frame["error"][0] == "ValueError: the third wire"
    failure = json.loads((out / frame["run"][0] / "failure.json").read_text())
    assert "in step" in failure["traceback"]
    file.write_text(EXPLODES.replace('raise ValueError("the third wire")', "return super().step(context, optimizer)"))
    mended = run_sweep(small(algorithms=["explodes", "supervised"], seeds=[0]), out, jobs=1, device="cpu", files=[file])
    unregister("explodes")
    assert (mended["status"] == "finished").all() and not list(out.glob("*/failure.json"))


def _written(folder: Path, **changes: Any) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(json.dumps({**SMALL, **changes}))
    return path


def test_command_shows_the_plan(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["sweep", str(_written(tmp_path)), "seeds=[3]", "--plan"])
    assert result.exit_code == 0 and result.stdout.count("seed 3") == 6
    bad = CliRunner().invoke(app, ["sweep", str(_written(tmp_path)), "sead=[3]", "--plan"])
    assert bad.exit_code == 1 and "sead is unknown" in bad.stderr


def test_runs_with_other_test_rows_are_not_put_side_by_side(tmp_path: Path) -> None:
    factors = {"classes": {"key": "pool.seen_classes", "values": [4, 5]}}
    sweep = small(factors=factors, algorithms=["supervised"], seeds=[0])
    run_sweep(sweep, tmp_path, jobs=1, device="cpu")
    with pytest.raises(ValueError, match="has other test rows or classes than supervised/classes=4/0"):
        load_scores(sweep, tmp_path)
    with pytest.raises(ValueError, match="no finished run"):
        load_scores(small(seeds=[9]), tmp_path)


def test_a_cluster_that_loses_a_worker_gives_the_same_tables(done: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dask's own about ports and garbage
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, processes=True
        ) as cluster:
            workers = [w.process.pid for w in cluster.workers.values()]
            killed: list[int] = []

            def kill_one(finished: int, total: int) -> None:
                if finished >= 2 and not killed:
                    killed.append(workers[0])
                    os.kill(workers[0], signal.SIGKILL)

            frame = run_sweep(small(), tmp_path, scheduler=cluster.scheduler_address, device="cpu", progress=kill_one)
    assert killed and (frame["status"] == "finished").all()
    assert tables(tmp_path) == tables(done)


def test_no_cluster_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    import ssl_zoo.sweep._run as module

    monkeypatch.setattr(module, "PATIENCE", "1s")
    with pytest.raises(OSError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        list(module._on_cluster("tcp://127.0.0.1:9", plan_sweep(small())[:1], tmp_path, "cpu", []))
