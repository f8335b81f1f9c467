"""Running a study: the draws, the numbers, the same numbers in parallel and after a kill, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib._parallel_backends import ThreadingBackend
from threadpoolctl import threadpool_info

from ssme import SSME, ScoreTable, evaluate_metric
from ssme.study import REFERENCES, method_names, run_study
from ssme.study import _cells as cells
from ssme.study import _methods as methods
from ssme.study import _plan as plan
from ssme.study import _provenance as provenance
from ssme.study import _workers as workers_module
from ssme.study._draws import LabeledScores, curve_sizes, draw_rows

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, Any] = dict(budgets=(10, 20), seeds=2, metrics=("accuracy", "ece_positive"), n_unlabeled=60)


@pytest.fixture(scope="module")
def table(simulate: Callable[..., Any]) -> ScoreTable:
    """Three binary models on 300 labeled rows."""
    data = simulate(n=300, n_models=3, prevalence=0.3)
    return ScoreTable.from_arrays(data.p, data.y, model_names=data.models)


@pytest.fixture(scope="module")
def three_classes() -> ScoreTable:
    """Two models of three classes on 200 labeled rows."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 200)
    logits = 2.0 * np.eye(3)[y][:, None] + rng.normal(size=(200, 2, 3))
    return ScoreTable.from_arrays(logits, y, class_names=["a", "b", "c"], score_type="logit")


@pytest.fixture(scope="module")
def whole(table: ScoreTable) -> pd.DataFrame:
    """A study that ran undisturbed in one process."""
    return run_study(table, **SMALL)


def without_time(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="seconds")


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(without_time(one), without_time(other), check_exact=True)


# -- draws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stratified", [False, True])
def test_halves_are_apart_and_larger_budgets_keep_the_labels(stratified: bool) -> None:
    codes = np.repeat(np.arange(5), [60, 20, 10, 8, 3])
    for seed in range(20):
        draw = draw_rows(codes, seed, stratified)
        assert sorted([*draw.pool, *draw.truth]) == list(range(len(codes)))
        assert abs(len(draw.pool) - len(draw.truth)) <= 1
    assert not np.array_equal(draw_rows(codes, 0, stratified).pool, draw_rows(codes, 1, stratified).pool)


def test_stratified_labels_each_class_first() -> None:
    codes = np.repeat(np.arange(5), [600, 20, 10, 8, 30])
    for seed in range(20):
        plain, first = draw_rows(codes, seed, False), draw_rows(codes, seed, True)
        there = set(codes[plain.pool])
        assert set(codes[first.pool[: len(there)]]) == there
        assert sorted(first.pool) == sorted(plain.pool) and np.array_equal(first.truth, plain.truth)


def test_draws_are_random_samples() -> None:
    codes = (np.arange(1000) < 200).astype(np.int64)
    shares = [codes[draw_rows(codes, seed, False).pool[:50]].mean() for seed in range(200)]
    assert abs(np.mean(shares) - 0.2) < 4 * 0.4 / np.sqrt(50 * 200)


def test_draws_leave_the_global_random_state_alone(table: ScoreTable) -> None:
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    run_study(table, 10, 1, metrics="accuracy", n_unlabeled=20)
    assert np.array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize("n_pool", [1, 4, 5, 6, 37, 1000, 30928])
def test_curve_ends_at_the_pool(n_pool: int) -> None:
    sizes = curve_sizes(n_pool)
    assert sizes[-1] == n_pool and sizes == sorted(set(sizes)) and sizes[0] == min(5, n_pool)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_the_table_is_tidy(whole: pd.DataFrame, table: ScoreTable) -> None:
    columns = "dataset n_labeled n_unlabeled seed method metric model estimate lower upper truth abs_err covered width"
    assert list(whole.columns) == [*columns.split(), "seconds"]
    contest = whole[whole["method"] != "label-curve"]
    assert len(contest) == 2 * 2 * 3 * 2 * table.n_models
    assert not contest.duplicated(["n_labeled", "seed", "method", "metric", "model"]).any()
    assert set(contest["method"]) == {"ssme", "labeled-only", "all-labels"}
    assert np.allclose(contest["abs_err"], (contest["estimate"] - contest["truth"]).abs())
    inside = contest["truth"].between(contest["lower"], contest["upper"]).astype(float)
    assert (contest["covered"] == inside).all() and (contest["seconds"] > 0).all()
    curve = whole[whole["method"] == "label-curve"]
    assert curve[["lower", "upper", "covered", "seconds"]].isna().all(axis=None)
    assert sorted(set(curve["n_labeled"])) == curve_sizes(150)


def test_estimates_and_truth_are_those_of_the_draw(whole: pd.DataFrame, table: ScoreTable) -> None:
    draw = draw_rows(table.labels, 1, False)
    truth = evaluate_metric("accuracy", table.scores[draw.truth], table.labels[draw.truth])
    rows = draw.pool[:80]
    y = np.where(np.arange(80) < 20, table.labels[rows], -1)
    direct = SSME(random_state=1).fit(table.scores[rows], y).estimate(["accuracy", "ece_positive"])
    found = whole.query("seed == 1 and n_labeled == 20 and method == 'ssme'")
    assert (found["n_unlabeled"] == 60).all()
    for column in ("estimate", "lower", "upper"):
        assert found[column].tolist() == direct[column].tolist()
    assert found.query("metric == 'accuracy'")["truth"].tolist() == truth.tolist()
    for method, count in (("labeled-only", 20), ("all-labels", 80)):
        alone = evaluate_metric("accuracy", table.scores[rows[:count]], table.labels[rows[:count]])
        asked = f"seed == 1 and n_labeled == 20 and method == '{method}' and metric == 'accuracy'"
        assert np.allclose(whole.query(asked)["estimate"], alone)


def test_rows_without_a_label_are_left_out(table: ScoreTable, whole: pd.DataFrame) -> None:
    scores = np.concatenate([table.scores[:7], table.scores])
    labels = [None] * 7 + list(table.labels)
    more = ScoreTable.from_arrays(scores, labels, model_names=table.model_names)
    frame = run_study(more, **SMALL)
    same(frame, whole)
    assert frame.attrs["data"]["data"]["unlabeled_rows_left_out"] == 7


def test_several_sets_take_the_metrics_that_they_allow(table: ScoreTable, three_classes: ScoreTable) -> None:
    frame = run_study({"two": table, "three": three_classes}, 10, 1, "ssme", ["accuracy", "roc_auc", "ece_positive"])
    by_set = frame.groupby("dataset")["metric"].agg(set)
    assert by_set["two"] == {"accuracy", "roc_auc", "ece_positive"} and by_set["three"] == {"accuracy", "roc_auc"}
    assert set(run_study(three_classes, 10, 1, "ssme")["metric"]) == {"accuracy", "ece"}
    assert set(run_study(table, 10, 1, "labeled-only")["metric"]) == set(plan.BINARY_METRICS)


def test_logits_are_read_as_logits(three_classes: ScoreTable) -> None:
    from scipy.special import softmax

    as_probabilities = ScoreTable.from_arrays(
        softmax(three_classes.scores, axis=2), three_classes.labels, class_names=[0, 1, 2]
    )
    one, other = (run_study(t, 10, 1, "labeled-only", "ece") for t in (three_classes, as_probabilities))
    assert np.allclose(one["estimate"], other["estimate"], equal_nan=True)


def test_no_unlabeled_rows_and_more_than_there_are(table: ScoreTable) -> None:
    none = run_study(table, 10, 1, "ssme", "accuracy", n_unlabeled=0)
    many = run_study(table, 10, 1, "ssme", "accuracy", n_unlabeled=10**6)
    of_ssme = [frame.query("method == 'ssme'")["n_unlabeled"].unique().tolist() for frame in (none, many)]
    assert of_ssme == [[0], [140]]


def test_all_methods_run(table: ScoreTable) -> None:
    frame = run_study(table, 20, 1, method_names(), ["accuracy", "roc_auc"], n_unlabeled=60)
    assert set(frame["method"]) == {*method_names(), "label-curve"}
    assert frame.attrs["failures"] == []
    gives = frame.attrs["data"]["data"]["cannot_give"]
    missing = frame[frame["estimate"].isna() & ~frame["method"].isin(REFERENCES)]
    assert all(row.metric in gives.get(row.method, {}) for row in missing.itertuples())


def test_a_rival_that_cannot_give_a_metric_says_why(table: ScoreTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def gives(spec: Any) -> str | None:
        return "it ranks nothing" if spec.name == "roc_auc" else None

    def estimate_with(name: str, scores: Any, y: Any, metrics: Any, **options: Any) -> pd.DataFrame:
        assert options == {"level": 0.9, "random_state": 0, "n_draws": None}
        assert (y >= 0).sum() == 10 and scores.shape == (30, 3, 2)
        values = np.where(np.repeat(metrics, 3) == "roc_auc", np.nan, 0.5)
        columns = dict.fromkeys(["estimate", "lower", "upper"], values)
        return pd.DataFrame({"metric": np.repeat(metrics, 3), "model": [0, 1, 2] * len(metrics), **columns})

    monkeypatch.setattr(methods, "BASELINES", {"rival": SimpleNamespace(gives=gives)})
    monkeypatch.setattr(methods, "estimate_with", estimate_with)
    frame = run_study({"d": table}, 10, 1, "rival", ["accuracy", "roc_auc"], n_unlabeled=20)
    assert frame.attrs["data"]["d"]["cannot_give"] == {"rival": {"roc_auc": "it ranks nothing"}}
    given = frame.query("method == 'rival'").groupby("metric")["estimate"].count()
    assert given.to_dict() == {"accuracy": 3, "roc_auc": 0} and frame.attrs["failures"] == []


# -- in parallel -------------------------------------------------------------------------------------------------------


def test_processes_give_the_same_numbers(table: ScoreTable, whole: pd.DataFrame, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    frame = run_study(table, **SMALL, n_jobs=2, out_dir=tmp_path, progress=lambda done, n: calls.append((done, n)))
    same(frame, whole)
    total = 2 * (1 + 2 * 3)
    assert calls[-1] == (total, total) and [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert len(list(tmp_path.glob("cells/*/*.npz"))) == total
    assert frame.attrs["hardware"]["processes"] == 2


class InOnePiece(ThreadingBackend):
    """A backend that cannot hand out results one by one."""

    supports_return_generator = False


@pytest.mark.parametrize("backend", ["threading", "in one piece"])
def test_backends_of_the_caller_are_taken(table: ScoreTable, whole: pd.DataFrame, backend: str) -> None:
    joblib.register_parallel_backend("in one piece", InOnePiece)
    filters, pools = list(warnings.filters), [each["num_threads"] for each in threadpool_info()]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        frame = run_study(table, **SMALL)
    same(frame, whole)
    assert warnings.filters == filters and [each["num_threads"] for each in threadpool_info()] == pools
    assert frame.attrs["hardware"]["processes"] == 2


def test_a_cell_runs_with_one_thread_and_in_silence(table: ScoreTable, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def estimate(*arguments: Any) -> np.ndarray:
        seen.extend(each["num_threads"] for each in threadpool_info())
        warnings.warn("hush", UserWarning, stacklevel=1)
        return np.zeros((3, 1, 3))

    monkeypatch.setattr(cells, "estimate_all", estimate)
    frame = run_study(table, 10, 1, "ssme", "accuracy")
    assert seen and set(seen) == {1} and frame.attrs["failures"] == []


# -- stopped and started again -----------------------------------------------------------------------------------------

SCRIPT = """
import sys, time, numpy as np
from ssme import ScoreTable
from ssme.study import run_study
with np.load(sys.argv[1]) as file:
    table = ScoreTable.from_arrays(file["p"], file["y"], model_names=list(file["models"]))
run_study(table, budgets=(10, 20), seeds=2, metrics=("accuracy", "ece_positive"), n_unlabeled=60, out_dir=sys.argv[2],
          progress=lambda done, total: time.sleep(600 if done == 5 else 0))
"""


@pytest.fixture
def killed(table: ScoreTable, tmp_path: Path) -> Iterator[Path]:
    """The folder of a study that was killed in the middle."""
    np.savez(tmp_path / "in.npz", p=table.scores[:, :, 1], y=table.labels, models=np.array(table.model_names))
    folder = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "in.npz"), str(folder)], cwd=ROOT)
    try:
        while len(list(folder.glob("cells/*/[!.]*.npz"))) < 5 and process.poll() is None:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        yield folder
    finally:
        process.kill()
        process.wait()


def test_a_killed_study_goes_on_with_the_same_numbers(killed: Path, table: ScoreTable, whole: pd.DataFrame) -> None:
    assert not (killed / "results.parquet").exists()
    done = {path: path.stat().st_mtime_ns for path in killed.glob("cells/*/[!.]*.npz")}
    assert len(done) == 5
    frame = run_study(table, **SMALL, out_dir=killed)
    same(frame, whole)
    assert all(path.stat().st_mtime_ns == written for path, written in done.items())
    again = run_study(table, **SMALL, out_dir=killed)  # nothing is left to do: the seconds are the same, too
    pd.testing.assert_frame_equal(again, frame, check_exact=True)
    stored = pd.read_parquet(killed / "results.parquet")
    pd.testing.assert_frame_equal(stored, frame, check_exact=True)
    assert stored.attrs == frame.attrs == json.loads((killed / "study.json").read_text(encoding="utf-8"))


WORKERS = """
import sys, time, numpy as np
from ssme import ScoreTable
from ssme.study import run_study
rng = np.random.default_rng(0)
table = ScoreTable.from_arrays(rng.random((200, 3)), np.arange(200) % 2)
run_study(table, 20, 1500, "labeled-only", "accuracy", n_jobs=2, out_dir=sys.argv[1])
"""


def parent_of(process: int) -> int | None:
    """The parent of a process; None where it has ended, waited for or not."""
    try:
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()[:2]
    except OSError:
        return None
    return None if state in "ZX" else int(parent)


def workers_of(process: int) -> list[int]:
    """Its children that compute."""
    running = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    children = [each for each in running if parent_of(each) == process]
    return [each for each in children if b"LokyProcess" in Path(f"/proc/{each}/cmdline").read_bytes()]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_workers_of_a_killed_study_end(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WORKERS, str(tmp_path)], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while not list(tmp_path.glob("cells/*/[!.]*.npz")) and process.poll() is None:
            time.sleep(0.05)
        workers = workers_of(process.pid)
        assert len(workers) == 2
    finally:
        process.kill()
        process.wait()
    until = time.monotonic() + 60  # by themselves they would wait for five minutes
    while any(parent_of(each) is not None for each in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert [each for each in workers if parent_of(each) is not None] == []


def test_only_a_worker_of_the_owner_watches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(
        workers_module.threading, "Thread", lambda **options: started.append(options) or SimpleNamespace(start=int)
    )
    monkeypatch.setattr(workers_module, "_watched", set())
    workers_module.end_with(os.getpid())  # the owner computes by itself
    monkeypatch.setattr(workers_module.multiprocessing, "parent_process", lambda: SimpleNamespace(pid=7))
    workers_module.end_with(8)  # a worker of somebody else
    assert started == []
    workers_module.end_with(7)
    workers_module.end_with(7)
    assert len(started) == 1 and started[0]["daemon"]


@pytest.mark.parametrize("gone", ["the owner", "the parent"])
def test_a_worker_ends_when_owner_or_parent_is_gone(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([7, 7, 1]) if gone == "the parent" else iter([7] * 9)
    there = iter([True, True, False]) if gone == "the owner" else iter([True] * 9)
    ended: list[int] = []
    monkeypatch.setattr(workers_module.os, "getppid", lambda: next(looks))
    monkeypatch.setattr(workers_module, "_is_there", lambda process: next(there))
    monkeypatch.setattr(workers_module, "SECONDS", 0)
    monkeypatch.setattr(workers_module.os, "_exit", ended.append)
    workers_module._watch(7, 7)
    assert ended == [1]


def test_a_process_that_has_ended_is_not_there() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert workers_module._is_there(os.getpid()) and not workers_module._is_there(process.pid)


def test_only_what_is_missing_is_computed(
    table: ScoreTable, whole: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_study(table, **{**SMALL, "seeds": 1}, out_dir=tmp_path)
    computed: list[str] = []

    def compute(data: Any, cell: Any, real: Any = cells.compute) -> Any:
        computed.append(cell.method)
        return real(data, cell)

    monkeypatch.setattr(cells, "compute", compute)
    same(run_study(table, **SMALL, out_dir=tmp_path), whole)
    assert len(computed) == 1 + 2 * 3  # the second seed
    computed.clear()
    run_study(table, **{**SMALL, "level": 0.5}, out_dir=tmp_path)
    assert len(computed) == 14
    computed.clear()
    monkeypatch.setattr(plan, "code_digest", lambda: "other code")
    run_study(table, **SMALL, out_dir=tmp_path)
    assert len(computed) == 14


def test_damaged_and_foreign_files_are_not_trusted(table: ScoreTable, whole: pd.DataFrame, tmp_path: Path) -> None:
    run_study(table, **SMALL, out_dir=tmp_path)
    files = sorted(tmp_path.glob("cells/*/*.npz"))
    files[0].write_bytes(files[0].read_bytes()[:100])
    files[1].write_bytes(b"")
    files[2].write_bytes(files[3].read_bytes())  # another cell under this name
    files[4].unlink()
    same(run_study(table, **SMALL, out_dir=tmp_path), whole)


def test_another_score_is_another_cell(table: ScoreTable) -> None:
    data = LabeledScores(np.array(table.scores), np.array(table.labels))
    changed = np.array(table.scores)
    changed[0, 0, 0] = np.nextafter(changed[0, 0, 0], 1)
    assert LabeledScores(changed, data.codes).digest() != data.digest()
    assert LabeledScores(data.scores, 1 - data.codes).digest() != data.digest()
    assert LabeledScores(data.scores.copy(), data.codes.copy()).digest() == data.digest()


def test_a_method_that_fails_is_a_finding(table: ScoreTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def estimate(method: str, *arguments: Any, real: Any = methods.estimate_all) -> Any:
        if method == "ssme":
            raise ValueError("too few\n labels")
        return real(method, *arguments)

    monkeypatch.setattr(cells, "estimate_all", estimate)
    frame = run_study({"d": table}, **SMALL)
    assert frame.query("method == 'ssme'")[["estimate", "abs_err", "covered"]].isna().all(axis=None)
    assert frame.query("method == 'labeled-only'")["estimate"].notna().all()
    assert frame.attrs["failures"] == [
        {"dataset": "d", "method": "ssme", "error": "ValueError: too few labels", "fits": 4}
    ]


def test_trouble_of_the_machine_ends_the_study(table: ScoreTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def estimate(*arguments: Any) -> Any:
        raise MemoryError("none left")

    monkeypatch.setattr(cells, "estimate_all", estimate)
    with pytest.raises(MemoryError):
        run_study(table, **SMALL)


# -- what is recorded and refused --------------------------------------------------------------------------------------


def test_results_say_under_what_they_were_made(whole: pd.DataFrame) -> None:
    info = whole.attrs
    assert info["settings"]["budgets"] == [10, 20] and info["settings"]["seeds"] == [0, 1] and info["trials"] == 2
    assert {"ssme", "numpy", "scipy", "scikit-learn"} <= set(info["versions"])
    assert info["hardware"]["cores"] == os.cpu_count() and info["code"] == provenance.code_digest()
    facts = info["data"]["data"]
    assert (facts["rows"], facts["pool"], facts["truth_rows"], facts["models"]) == (300, 150, 150, 3)
    json.dumps(info, allow_nan=False)


def test_commit_is_known_in_a_checkout_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "ssme"
    package.mkdir()
    monkeypatch.setattr(provenance, "PACKAGE", package)
    assert provenance.commit() is None
    (tmp_path / ".git").mkdir()  # no repository after all
    assert provenance.commit() is None

    answers = {"rev-parse": "abc\n", "status": " M ssme/estimator.py\n"}

    def run(command: list[str], **options: Any) -> Any:
        return subprocess.CompletedProcess(command, 0, answers[command[3]], "")

    monkeypatch.setattr(provenance.subprocess, "run", run)
    assert provenance.commit() == "abc+changes"
    answers["status"] = ""
    assert provenance.commit() == "abc"

    def missing(command: list[str], **options: Any) -> Any:
        raise FileNotFoundError("git")

    monkeypatch.setattr(provenance.subprocess, "run", missing)
    assert provenance.commit() is None


def test_the_fingerprint_covers_what_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [name for name in provenance.PRESENTATION if (provenance.PACKAGE / name).exists()]
    assert {"report.py", "study/_report.py", "cli.py"} <= set(listed)
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    fresh = provenance.code_digest.__wrapped__
    (tmp_path / "estimator.py").write_text("a = 1")
    (tmp_path / "report.py").write_text("a = 1")
    first = fresh()
    (tmp_path / "report.py").write_text("a = 2")
    assert fresh() == first
    (tmp_path / "estimator.py").write_text("a = 2")
    assert fresh() != first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budgets": 150}, "half of them are the pool.*need at least 302"),
        ({"budgets": []}, "budgets is empty"),
        ({"budgets": (20, 0)}, "budgets must be whole numbers of at least 1, got 0"),
        ({"budgets": 2.5}, "budgets must be whole numbers.*2.5"),
        ({"seeds": 0}, "seeds must be whole numbers of at least 1"),
        ({"seeds": [-1]}, "seeds must be whole numbers of at least 0"),
        ({"seeds": True}, "seeds must be whole numbers"),
        ({"methods": []}, "methods is empty"),
        ({"methods": "labelled-only"}, "did you mean 'labeled-only'"),
        ({"methods": "xyzzy"}, "there is no such method.*Known are ssme"),
        ({"metrics": "auroc"}, "did you mean 'roc_auc'"),
        ({"metrics": []}, "metrics is empty"),
        ({"n_unlabeled": -1}, "n_unlabeled must be"),
        ({"level": 1.5}, "level"),
    ],
)
def test_what_cannot_be_studied_is_refused(table: ScoreTable, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_study(table, **{"budgets": 10, "seeds": 1, **arguments})


def test_more_refusals(table: ScoreTable, three_classes: ScoreTable) -> None:
    with pytest.raises(ValueError, match="tables is empty"):
        run_study({})
    with pytest.raises(ValueError, match="is defined for two classes"):
        run_study(three_classes, 10, 1, metrics=["accuracy", "ece_positive"])
    with pytest.raises(ValueError, match="three has 3 classes, and every metric asked for is for two"):
        run_study({"two": table, "three": three_classes}, 10, 1, metrics="ece_positive")
    with pytest.raises(TypeError, match="metrics of a study are names"):
        run_study(table, 10, 1, metrics=[np.mean])  # type: ignore[list-item]


def test_paths_are_read_when_their_turn_comes(table: ScoreTable, whole: pd.DataFrame, tmp_path: Path) -> None:
    table.write(tmp_path / "scores.npz")
    same(run_study({"data": tmp_path / "scores.npz"}, **SMALL), whole)
    same(run_study(tmp_path / "scores.npz", **SMALL), whole)


def test_draws_reach_the_methods_and_name_the_cell(table: ScoreTable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = methods.estimate_with

    def estimate_with(*arguments: Any, **options: Any) -> pd.DataFrame:
        asked.append(options["n_draws"])
        return real(*arguments, **options)

    monkeypatch.setattr(methods, "estimate_with", estimate_with)
    frame = run_study(table, 10, 1, "ssme", "accuracy", n_unlabeled=20, n_draws=40)
    assert asked == [40] and frame.attrs["settings"]["n_draws"] == 40
    with pytest.raises(ValueError, match="n_draws must be whole numbers of at least 2, got 1"):
        run_study(table, 10, 1, "ssme", "accuracy", n_draws=1)


def test_results_that_cannot_be_written_are_refused_before_the_first_fit(
    table: ScoreTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "estimate_all", None)
    (tmp_path / "study.json").mkdir()
    with pytest.raises(IsADirectoryError, match="study.json: it is a folder"):
        run_study(table, 10, 1, "ssme", "accuracy", out_dir=tmp_path)
