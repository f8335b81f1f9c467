"""Estimates from parquet files: the same for any batches, files and workers, and one sentence for what is wrong."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import ssme.partitioned._kept as kept_module
from ssme import METRICS, SSME, ScoreTable, estimate_partitioned
from ssme.cli import app
from ssme.partitioned._engine import sum_over
from ssme.partitioned._kept import Kept
from ssme.partitioned._source import parts_of
from ssme.study import run_study

NUMBERS = ["estimate", "lower", "upper"]
NAMES = ["accuracy", "roc_auc", "average_precision", "ece"]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some thousand rows have several parts, and not all of their rows are kept."""
    monkeypatch.setattr("ssme.partitioned._source.PART_ROWS", 400)


@pytest.fixture(scope="module")
def data(simulate: Callable[..., Any]) -> SimpleNamespace:
    made = simulate(n=3000, n_models=3, n_labeled=120)
    label = np.full(3000, None, dtype=object)
    label[made.labeled] = made.y[made.labeled]
    scores = {name: made.p[:, m] for m, name in enumerate(made.models)}
    frame = pd.DataFrame({"id": made.ids, "label": pd.array(label, dtype="Int64"), **scores})
    return SimpleNamespace(frame=frame, p=made.p, y=made.y, labeled=made.labeled, models=list(made.models))


@pytest.fixture
def folder(tmp_path: Path, data: SimpleNamespace) -> Path:
    """Two files of different sizes and row groups."""
    data.frame[:1000].to_parquet(tmp_path / "a.parquet", row_group_size=150, index=False)
    data.frame[1000:].to_parquet(tmp_path / "b.parquet", row_group_size=700, index=False)
    return tmp_path


def in_memory(data: SimpleNamespace, **options: Any) -> SSME:
    labels = np.full(3000, -1)
    labels[data.labeled] = data.y[data.labeled]
    model = SSME(random_state=0, max_exact_rows=0, **options).fit(data.p, labels)
    model.model_names_ = data.models
    return model


def estimate(paths: Any, labels: Any = None, metrics: Any = NAMES, **options: Any) -> pd.DataFrame:
    return estimate_partitioned(paths, labels, metrics, **{"random_state": 0, **options})


def assert_same(one: pd.DataFrame, two: pd.DataFrame, **tolerance: float) -> None:
    assert one.drop(columns=NUMBERS).equals(two.drop(columns=NUMBERS))
    np.testing.assert_allclose(one[NUMBERS], two[NUMBERS], **{"rtol": 0, "atol": 0, **tolerance})


class TestResult:
    def test_is_that_of_the_estimator_in_memory(self, folder: Path, data: SimpleNamespace) -> None:
        names = [name for name in METRICS if name != "ece_positive"]
        assert_same(estimate(folder, metrics=names), in_memory(data).estimate(names), atol=1e-9)
        a, b = estimate(folder, metrics="ece_positive"), in_memory(data).estimate("ece_positive")
        assert np.abs(a["estimate"] - b["estimate"]).max() < 1e-3  # its bins end at cells

    @pytest.mark.parametrize("batch_rows", [1, 64, 997])
    def test_does_not_depend_on_batches(self, folder: Path, batch_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
        if batch_rows == 1:
            whole = pd.read_parquet(folder / "a.parquet")[:200]
            folder = folder / "few"
            folder.mkdir()
            whole.to_parquet(folder / "few.parquet", index=False)
        names = tuple(METRICS) if batch_rows > 1 else NAMES
        for size in (20_000, 700):  # all rows are kept, or a sample
            monkeypatch.setattr(kept_module, "SAMPLE_SIZE", size)
            one = estimate(folder, metrics=names, labeled_only=True)
            assert_same(one, estimate(folder, metrics=names, labeled_only=True, batch_rows=batch_rows))

    def test_does_not_depend_on_the_order_of_rows_and_columns_where_all_are_kept(
        self, folder: Path, data: SimpleNamespace, tmp_path: Path
    ) -> None:
        shuffled = data.frame.sample(frac=1, random_state=1)[["model2", "label", "model0", "id", "model1"]]
        (tmp_path / "c").mkdir()
        shuffled.to_parquet(tmp_path / "c" / "c.parquet", row_group_size=3000, index=False)
        one = estimate([folder / "b.parquet", folder / "a.parquet"])
        two = estimate(tmp_path / "c")
        two = pd.concat(two[two["metric"] == name].sort_values("model") for name in NAMES).reset_index(drop=True)
        assert_same(one, two, atol=1e-9)

    def test_kept_rows_of_parts_are_those_of_the_whole(
        self, data: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kept_module, "SAMPLE_SIZE", 100)
        monkeypatch.setattr(kept_module, "MOST_LABELED", 50)
        scores, codes = np.stack([1 - data.p, data.p], axis=2), np.full(3000, -1)
        codes[data.labeled] = data.y[data.labeled]
        none = np.zeros(0, dtype=np.int64)
        whole = Kept.of(0, scores, codes, none)
        blocks = np.split(np.arange(3000), [7, 1000, 1200])
        parts = [Kept.of(int(rows[0]), scores[rows], codes[rows], none) for rows in blocks]
        for joined in ((parts[0] + parts[1]) + (parts[2] + parts[3]), parts[3] + parts[1] + parts[0] + parts[2]):
            np.testing.assert_array_equal(whole.scores, joined.scores)
            np.testing.assert_array_equal(whole.codes, joined.codes)
            assert (joined.n_rows, joined.n_labeled) == (3000, 120)
        assert (whole.codes >= 0).sum() >= 50 and 100 <= len(whole.codes) <= 150

    def test_the_rows_kept_are_a_sample_of_repeated_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Scores of few values: every kind of row is there as often as among all."""
        monkeypatch.setattr(kept_module, "SAMPLE_SIZE", 2000)
        kind = np.random.default_rng(0).choice(4, 50_000, p=[0.6, 0.3, 0.08, 0.02])
        second = np.array([0.0, 1.0, 0.5, 0.9])[kind]
        kept = Kept.of(
            0, np.stack([1 - second, second], axis=1)[:, None], np.full(50_000, -1), np.zeros(0, dtype=np.int64)
        )
        shares = [(kept.scores[:, 0, 1] == value).mean() for value in (0.0, 1.0, 0.5, 0.9)]
        np.testing.assert_allclose(shares, [0.6, 0.3, 0.08, 0.02], atol=0.04)

    def test_more_labels_than_are_kept(
        self, data: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All labels count in the metrics, whether they teach the consensus or not."""
        monkeypatch.setattr(kept_module, "SAMPLE_SIZE", 400)
        monkeypatch.setattr(kept_module, "MOST_LABELED", 300)
        frame = data.frame.assign(label=data.y)
        frame.to_parquet(tmp_path / "all.parquet", row_group_size=500, index=False)
        found = estimate(tmp_path / "all.parquet", metrics=["accuracy", "brier"])
        assert (found["n_labeled"] == 3000).all() and (found["n_unlabeled"] == 0).all()
        truth = [((data.p > 0.5) == data.y[:, None]).mean(axis=0), ((data.p - data.y[:, None]) ** 2).mean(axis=0)]
        np.testing.assert_allclose(found["estimate"], np.concatenate(truth), atol=1e-7)

    def test_labels_by_id(self, folder: Path, data: SimpleNamespace, tmp_path: Path) -> None:
        known = data.frame.loc[data.labeled, ["id"]].assign(label=data.y[data.labeled])
        known.to_csv(tmp_path / "labels.csv", index=False)
        series = pd.Series(data.y[data.labeled], index=known["id"])
        one = estimate(folder)
        for labels in (tmp_path / "labels.csv", series, series.to_dict()):
            assert_same(one, estimate(folder, labels))

    def test_more_classes_in_the_wide_layout_with_names_and_logits(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 1500)
        logits = rng.normal(size=(1500, 2, 3))
        logits[np.arange(1500), :, y] += 2
        columns = {f"m{m}:{c}": logits[:, m, k] for m in range(2) for k, c in enumerate(("cat", "dog", "emu"))}
        label = np.where(np.arange(1500) < 100, np.array(["cat", "dog", "emu"])[y], None)
        frame = pd.DataFrame({"label": label, **columns, "source": "web"})
        frame[:600].to_parquet(tmp_path / "1.parquet", row_group_size=200)
        frame[600:].to_parquet(tmp_path / "2.parquet", row_group_size=200)
        names = [name for name, spec in METRICS.items() if not spec.binary_only]
        model = SSME(score_type="logit", random_state=0, max_exact_rows=0, class_names=["cat", "dog", "emu"])
        there = model.fit(logits, label).estimate(names)
        there["model"] = [f"m{m}" for m in there["model"]]
        assert_same(estimate(tmp_path, metrics=names, score_type="logit"), there, atol=1e-9)
        turned = estimate(tmp_path, metrics=names, score_type="logit", class_names=["emu", "cat", "dog"])
        assert np.abs(turned["estimate"] - there["estimate"]).max() < 1e-3

    def test_one_model_with_a_column_a_class(self, tmp_path: Path) -> None:
        p = np.random.default_rng(0).dirichlet(np.ones(3), 500)
        frame = pd.DataFrame(
            {"y": pd.array([0] * 20 + [None] * 480, dtype="Int64"), "0": p[:, 0], "1": p[:, 1], "2": p[:, 2]}
        )
        frame.to_parquet(tmp_path / "resnet.parquet", row_group_size=100)
        found = estimate(tmp_path / "resnet.parquet", metrics="ece")
        assert found["model"].tolist() == ["resnet"] and found["n_labeled"].tolist() == [20]

    def test_functions_of_the_user_come_from_the_rows_kept(
        self, folder: Path, data: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def error(truth: np.ndarray, score: np.ndarray) -> float:
            return float(np.mean((score > 0.5) != truth))

        monkeypatch.setattr(kept_module, "SAMPLE_SIZE", 800)
        monkeypatch.setattr("ssme._fitting.SAMPLE_SIZE", 800)
        found = estimate(folder, metrics=[error, "accuracy"], n_draws=50)
        assert found["flags"].tolist() == ["from-800-rows"] * 3 + [""] * 3
        assert np.abs(1 - found["estimate"][:3].to_numpy() - found["estimate"][3:].to_numpy()).max() < 0.03

    def test_nothing_labeled_is_flagged(self, folder: Path) -> None:
        found = estimate(folder, pd.Series({"comment-00001": None}))
        assert (found["n_labeled"] == 0).all() and (found["flags"] == "no-labels").all()

    def test_progress_is_told(self, folder: Path) -> None:
        told: list[str] = []
        estimate(folder, progress=told.append)
        assert told[0] == "first pass: part 1 of 6" and told[-2:] == ["second pass: part 6 of 6", "drawing"]


class TestHostile:
    """Every fault of a file is one sentence that names the file."""

    def message(self, paths: Any, labels: Any = None, kind: type[Exception] = ValueError, **options: Any) -> str:
        with pytest.raises(kind) as caught:
            estimate(paths, labels, **options)
        text = str(caught.value)
        assert "\n" not in text
        return text

    def test_files_that_are_none(self, folder: Path, tmp_path: Path) -> None:
        assert "there is no file" in self.message(tmp_path / "c.parquet", kind=FileNotFoundError)
        assert "paths is empty" in self.message([])
        assert "given twice" in self.message([folder / "a.parquet", folder / "a.parquet"])
        assert "must be a path" in self.message([3], kind=TypeError)
        (tmp_path / "empty").mkdir()
        assert "holds no file that ends in .parquet" in self.message(tmp_path / "empty")
        text = tmp_path / "text.parquet"
        for content in (b"", b"id,label\n1,2\n", (folder / "a.parquet").read_bytes()[:-50]):
            text.write_bytes(content)
            assert "text.parquet: this is no parquet file, or it is truncated" in self.message(text)

    def test_a_damaged_page(self, folder: Path) -> None:
        path = folder / "b.parquet"
        content = bytearray(path.read_bytes())
        content[2000:9000] = b"\xff" * 7000
        path.write_bytes(content)
        with pytest.raises(ValueError, match="b.parquet: .*(damaged|missing|match|hold)"):
            estimate(folder)

    def test_no_rows(self, data: SimpleNamespace, folder: Path, tmp_path: Path) -> None:
        none = tmp_path / "none.parquet"
        data.frame[:0].to_parquet(none)
        assert "there is not one row" in self.message(none)
        assert_same(estimate([none, folder / "a.parquet"]), estimate(folder / "a.parquet"))

    def test_a_row_group_of_no_rows(self, data: SimpleNamespace, folder: Path, tmp_path: Path) -> None:
        table = pa.Table.from_pandas(data.frame[:1000], preserve_index=False)
        with pq.ParquetWriter(tmp_path / "gap.parquet", table.schema) as writer:
            for part in (table[:300], table[:0], table[300:]):
                writer.write_table(part)
        assert_same(estimate(tmp_path / "gap.parquet"), estimate(folder / "a.parquet"))

    def test_a_file_that_lacks_a_column(self, data: SimpleNamespace, folder: Path) -> None:
        data.frame.drop(columns="model1").to_parquet(folder / "z.parquet")
        assert "z.parquet: the file lacks 1 column of the first one: 'model1'" in self.message(folder)

    def test_bad_cells_are_named_with_file_row_and_column(self, data: SimpleNamespace, folder: Path) -> None:
        for value, words in ((np.nan, "missing or NaN"), (1.5, "must be probabilities")):
            frame = data.frame[1000:].reset_index(drop=True)
            frame.loc[1234, "model1"] = value
            frame.to_parquet(folder / "b.parquet", row_group_size=500, index=False)
            text = self.message(folder, batch_rows=100)
            assert "b.parquet: " in text and words in text and "data row 1235 (index 1234)" in text

    def test_a_label_of_no_class_and_a_text_among_numbers(self, data: SimpleNamespace, folder: Path) -> None:
        frame = data.frame[1000:].reset_index(drop=True)
        frame.loc[7, "label"] = 5
        frame.to_parquet(folder / "b.parquet", index=False)
        assert "b.parquet: labels holds 5 at data row 8 (index 7)" in self.message(folder)
        frame = data.frame[1000:].astype({"model1": object})
        frame["model1"] = "high"
        frame.to_parquet(folder / "b.parquet", index=False)
        assert "b.parquet: column 'model1' holds 'high'" in self.message(folder)

    def test_layouts_and_columns(self, folder: Path, tmp_path: Path, data: SimpleNamespace) -> None:
        long = pd.DataFrame({"id": ["a", "a"], "model": "m", "class": ["0", "1"], "score": [0.5, 0.5]})
        long.to_parquet(tmp_path / "long.parquet")
        assert "long layout cannot be read batch by batch" in self.message(tmp_path / "long.parquet")
        data.frame.assign(source="web").to_parquet(tmp_path / "extra.parquet")
        assert "'source'" in self.message(tmp_path / "extra.parquet")
        found = estimate(tmp_path / "extra.parquet", ignore_columns=["source"])
        assert found["model"].tolist() == data.models * 4
        assert "no column 'sauce' to ignore" in self.message(folder, ignore_columns=["sauce"])
        assert "no column 'truth'" in self.message(folder, label_column="truth")

    def test_labels_that_do_not_fit(self, folder: Path, tmp_path: Path, data: SimpleNamespace) -> None:
        assert "labels has 1 row id that the scores lack: 'nobody'" in self.message(folder, {"nobody": 1})
        assert "labels must be a path" in self.message(folder, [0, 1], kind=TypeError)
        twice = pd.Series([0, 1], index=["comment-00001", "comment-00001"])
        assert "labels: the row id 'comment-00001' comes twice" in self.message(folder, twice)
        assert "matches no class" in self.message(folder, {"comment-00001": "maybe"})
        data.frame.drop(columns="id").to_parquet(tmp_path / "bare.parquet", index=False)
        assert "no id column by which labels are matched" in self.message(
            tmp_path / "bare.parquet", {"comment-00001": 1}
        )
        data.frame[:1000].to_parquet(tmp_path / "again.parquet", index=False)
        files = [folder / f"{name}.parquet" for name in ("a", "b", "again")]
        text = self.message(files, {"comment-00001": 1, "comment-02000": 1})
        assert "labels has 1 row id that several rows of the scores have: 'comment-00001'" in text

    def test_weights_of_labels_are_refused(self, folder: Path, tmp_path: Path, data: SimpleNamespace) -> None:
        weighted = data.frame.assign(label_weight=np.where(data.frame["label"].isna(), np.nan, 2.0))
        weighted.to_parquet(tmp_path / "weighted.parquet", index=False)
        assert "label weights is not supported batch by batch" in self.message(tmp_path / "weighted.parquet")
        weighted[["id", "label", "label_weight"]].dropna().to_csv(tmp_path / "labels.csv", index=False)
        text = self.message(folder / "a.parquet", tmp_path / "labels.csv")
        assert "labels.csv: a column of label weights is not supported batch by batch" in text

    @pytest.mark.parametrize("value", [0, -3, 2.5, True])
    def test_batch_rows(self, folder: Path, value: Any) -> None:
        assert "batch_rows must be a whole number of at least 1" in self.message(folder, batch_rows=value)

    def test_schedulers_that_are_none(self, folder: Path) -> None:
        pytest.importorskip("distributed")
        assert "scheduler must be an address" in self.message(folder, scheduler=8786, kind=TypeError)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert "no Dask scheduler answers at" in self.message(folder, scheduler="nonsense")


def test_parts_cover_every_row_once(folder: Path) -> None:
    files = [str(folder / "a.parquet"), str(folder / "b.parquet")]
    parts = parts_of(files, ["id"])
    assert [(part.first_row, part.groups) for part in parts if part.path == files[0]] == [
        (0, (0, 1, 2)),
        (450, (3, 4, 5)),
        (900, (6,)),
    ]
    assert [(part.first_row, part.rows_before) for part in parts if part.path == files[1]] == [
        (0, 1000),
        (700, 1000),
        (1400, 1000),
    ]


class TestCommand:
    def test_out_of_core(self, folder: Path, tmp_path: Path) -> None:
        out = tmp_path / "table.csv"
        options = ["--metrics", ",".join(NAMES), "--out", str(out), "--quiet", "--labeled-only"]
        done = CliRunner().invoke(app, ["estimate", str(folder), "--out-of-core", *options])
        assert done.exit_code == 0, done.output
        found = pd.read_csv(out, keep_default_na=False)
        assert_same(found, estimate(folder, labeled_only=True).astype({"model": str}), atol=1e-12)
        shown = CliRunner().invoke(app, ["estimate", str(folder / "a.parquet"), "--out-of-core"])
        assert "1,000 rows" in shown.output and "3 models, 2 classes" in shown.output

    @pytest.mark.parametrize("option", [["--groups", "id"], ["--models", "model0"], ["--density", "kde"]])
    def test_what_needs_all_rows_is_refused(self, folder: Path, option: list[str]) -> None:
        done = CliRunner().invoke(app, ["estimate", str(folder), "--out-of-core", *option])
        assert done.exit_code == 2 and "needs all rows in memory" in done.output

    def test_a_fault_is_one_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "x.parquet").write_bytes(b"PAR1")
        done = CliRunner().invoke(app, ["estimate", str(tmp_path), "--out-of-core"])
        assert (
            done.exit_code == 1
            and "x.parquet: this is no parquet file" in done.output
            and "Traceback" not in done.output
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as made:
            yield made


@pytest.mark.filterwarnings("ignore")  # what Dask says of a lost worker, and of its own neighbours
class TestCluster:
    def test_equals_one_process(self, cluster: Any, folder: Path) -> None:
        one = estimate(folder, metrics=tuple(METRICS), labeled_only=True)
        assert_same(
            one, estimate(folder, metrics=tuple(METRICS), labeled_only=True, scheduler=cluster.scheduler_address)
        )

    def test_equals_one_process_when_a_worker_is_killed(
        self, cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from distributed import Client

        one, killed = estimate(folder), []
        with Client(cluster.scheduler_address, set_as_default=False) as client:
            wait_for_workers(client, 2)
            real = sum_over

            def slowly(parts: Any, work: Any, *rest: Any) -> Any:
                """The second pass lasts until a worker has died in its midst, with parts done and parts to do."""
                if not killed and "count" in repr(work):
                    killed.append(Killer(cluster))
                    killed[0].start()
                    work = Slow(work)
                return real(parts, work, *rest)

            monkeypatch.setattr("ssme.partitioned._estimate.sum_over", slowly)
            assert_same(one, estimate(folder, scheduler=client))
            ended = time.monotonic()
            killed[0].join()
            assert killed[0].killed_at < ended
            wait_for_workers(client, 2)  # the nanny starts another one
            assert killed[0].victim not in [nanny.pid for nanny in cluster.workers.values()]

    def test_errors_of_workers_reach_the_user(self, cluster: Any, data: SimpleNamespace, folder: Path) -> None:
        frame = data.frame[1000:].reset_index(drop=True)
        frame.loc[1234, "model1"] = np.nan
        frame.to_parquet(folder / "b.parquet", row_group_size=500, index=False)
        with pytest.raises(ValueError, match=r"b.parquet: 1 score is missing .* data row 1235 \(index 1234\)"):
            estimate(folder, scheduler=cluster.scheduler_address)

    def test_a_study_goes_to_the_cluster_through_joblib(self, cluster: Any, data: SimpleNamespace) -> None:
        from distributed import Client
        from joblib import parallel_config

        table = ScoreTable.from_arrays(data.p[:400], data.y[:400])
        options: dict[str, Any] = {"budgets": 20, "seeds": 2, "n_unlabeled": 100, "methods": ["ssme", "labeled-only"]}
        here = run_study(table, **options).drop(columns="seconds")
        with Client(cluster.scheduler_address) as client, parallel_config(backend="dask"):
            there = run_study(table, **options).drop(columns="seconds")
            assert any(client.run(has_worked).values())
        assert here.equals(there)

    def test_command(self, cluster: Any, folder: Path) -> None:
        address = cluster.scheduler_address
        done, alone = (
            CliRunner().invoke(app, ["estimate", str(folder), "--json", *options])
            for options in (["--scheduler", address], ["--out-of-core"])
        )
        assert done.exit_code == 0 and done.stdout == alone.stdout


def has_worked() -> bool:
    """Whether this process has computed cells of a study."""
    return "ssme.study._cells" in sys.modules


class Slow:
    """Work that takes half a second more."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work

    def __call__(self, part: Any) -> Any:
        time.sleep(0.5)
        return self.work(part)


class Killer(threading.Thread):
    """Kills one worker process, once it has had time to finish a part and to begin another."""

    def __init__(self, cluster: Any) -> None:
        super().__init__()
        self.cluster, self.victim, self.killed_at = cluster, 0, float("inf")

    def run(self) -> None:
        time.sleep(0.8)
        nanny = next(iter(self.cluster.workers.values()))
        self.victim = nanny.pid
        nanny.process.process._process.kill()  # the process of a child of ours, by its handle
        self.killed_at = time.monotonic()


def wait_for_workers(client: Any, number: int) -> None:
    client.wait_for_workers(number, timeout=60)
