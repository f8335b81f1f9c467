"""From trained runs to a score table: the same rows, probabilities, the reported model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssl_zoo import run_data
from ssl_zoo.config import RunConfig
from ssl_zoo.data import ArrayDataset
from ssl_zoo.registry import create_algorithm
from ssl_zoo.scores import evaluate, export_scores, load_run
from ssl_zoo.trainer import Trainer


def run(name: str, folder: Path, *, pool: dict[str, Any] | None = None, **more: Any) -> Trainer:
    config = RunConfig.from_dict({
        "algorithm": name, "model": {"name": "mlp", "options": {"hidden": [12]}},
        "pool": {"n_labeled": 24, "seen_classes": 6, "r": 0.5, "r_s": 0.3, **(pool or {})},
        "train": {"steps": 12, "epoch_steps": 6, "batch_size": 8, "diagnostics_every": 0}, **more,
    })  # fmt: skip
    trainer = Trainer(config, folder, device="cpu")
    trainer.fit()
    return trainer


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trainer]:
    root = tmp_path_factory.mktemp("runs")
    return {name: run(name, root / name) for name in ("supervised", "meanteacher", "orca", "sorl")}


def test_table_of_closed_set_runs(trained: dict[str, Trainer]) -> None:
    folders = [trained[name].folder for name in ("supervised", "meanteacher")]
    table = export_scores(folders, device="cpu")
    assert table.model_names == ("supervised", "meanteacher") and table.class_names == tuple("012345")
    assert table.scores.shape == (len(table.row_ids), 2, 6)
    assert np.allclose(table.scores.sum(-1), 1, atol=1e-12)
    for m, name in enumerate(table.model_names):
        accuracy = (table.scores[:, m].argmax(-1) == table.labels).mean()
        assert accuracy == pytest.approx(trained[name].last_metrics["accuracy"])
    test = trained["supervised"].data.test
    assert np.array_equal(test.y[table.row_ids.astype(int)], table.labels)


def test_trainers_and_folders_give_the_same(trained: dict[str, Trainer]) -> None:
    one = export_scores([trained["meanteacher"]], names=["mt"])
    two = export_scores([trained["meanteacher"].folder], device="cpu", names=["mt"])
    assert one.equals(two)


def test_rows_of_your_own(trained: dict[str, Trainer]) -> None:
    test = trained["supervised"].data.test
    y = test.y[:40].copy()
    y[::2] = -1
    rows = test.subset(np.arange(40)).with_labels(y, test.class_names)
    table = export_scores([trained["supervised"], trained["orca"]], rows)
    assert table.n_rows == int(((y == -1) | (y < 6)).sum()) and table.n_labeled == int(((y >= 0) & (y < 6)).sum())
    assert set(np.arange(0, 40, 2).astype(str)) <= set(table.row_ids.tolist())
    with pytest.raises(ValueError, match="other classes than the training data"):
        export_scores([trained["supervised"]], rows.with_labels(y, tuple("abcdefghij")))
    table = ArrayDataset(np.zeros((3, 5), np.float32), np.zeros(3, np.int64), test.class_names, "tabular")
    with pytest.raises(ValueError, match="shape \\(5,\\), the run \\(1, 8, 8\\)"):
        export_scores([trained["supervised"]], table)


def test_arrays_are_loaded_once(tmp_path: Path, trained: dict[str, Trainer], monkeypatch: pytest.MonkeyPatch) -> None:
    other = run("meanteacher", tmp_path / "other", seed=1)
    calls, real = [], run_data.load_splits
    monkeypatch.setattr(run_data, "load_splits", lambda *a, **k: (calls.append(a), real(*a, **k))[1], raising=False)
    table = export_scores([trained["meanteacher"].folder, other.folder], device="cpu")
    assert len(calls) == 1 and table.n_models == 2
    assert table.equals(export_scores([trained["meanteacher"], other]))


def test_classes_keep_their_names_in_another_order(tmp_path: Path) -> None:
    trainer = run("supervised", tmp_path / "run", pool={"seen_classes": [7, 2, 5], "n_labeled": 12})
    table = export_scores([trainer])
    assert table.class_names == ("7", "2", "5")
    accuracy = (table.scores[:, 0].argmax(-1) == table.labels).mean()
    assert accuracy == pytest.approx(trainer.last_metrics["accuracy"])
    names = np.asarray(table.class_names)[table.labels]
    assert np.array_equal(names.astype(int), trainer.data.test.y[table.row_ids.astype(int)])


def test_open_world_runs_export_seen_classes(trained: dict[str, Trainer]) -> None:
    table = export_scores([trained[name] for name in ("supervised", "orca", "sorl")])
    assert table.scores.shape[1:] == (3, 6)
    assert np.allclose(table.scores.sum(-1), 1, atol=1e-12)


def test_logits_and_no_labels(trained: dict[str, Trainer]) -> None:
    table = export_scores([trained["supervised"]], score_type="logit", labels=False)
    assert table.score_type == "logit" and table.n_labeled == 0
    logits = trained["supervised"].logits(trained["supervised"].test.x)
    shown = table.scores if table.scores.min() < 0 else np.log(table.scores)
    gap = shown[:, 0] - logits.double().numpy()
    assert np.allclose(gap, gap[:, :1], atol=1e-6)  # a table may keep them as probabilities


def test_the_same_name_twice(tmp_path: Path, trained: dict[str, Trainer]) -> None:
    other = run("supervised", tmp_path / "supervised", pool={"n_labeled": 12})
    assert export_scores([trained["supervised"], other]).model_names == ("supervised-0", "supervised-1")


def test_errors(tmp_path: Path, trained: dict[str, Trainer]) -> None:
    with pytest.raises(ValueError, match="there are no runs"):
        export_scores([])
    with pytest.raises(ValueError, match="2 names for 1 runs"):
        export_scores([trained["supervised"]], names=["a", "b"])
    with pytest.raises(ValueError, match="must be 'probability' or 'logit'"):
        export_scores([trained["supervised"]], score_type="percent")
    other = run("supervised", tmp_path / "other", pool={"seen_classes": 5, "n_labeled": 10})
    with pytest.raises(ValueError, match="other rows or classes"):
        export_scores([trained["supervised"], other])
    with pytest.raises(FileNotFoundError, match="is this the folder of a run"):
        load_run(tmp_path)


def test_prediction_leaves_the_modes_and_the_generator(trained: dict[str, Trainer]) -> None:
    trainer = trained["meanteacher"]
    trainer.parts.student.train()
    before, drawn = trainer.parts.augment.generator.get_state(), torch.get_rng_state()
    full = trainer.logits(trainer.test.x, "student")
    assert trainer.parts.student.training and torch.equal(trainer.parts.augment.generator.get_state(), before)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert torch.allclose(full[:7], trainer.logits(trainer.test.x[:7], "student"), atol=1e-6)


def test_open_world_accuracy_by_hand() -> None:
    logits = torch.nn.functional.one_hot(torch.tensor([0, 1, 3, 3, 0]), 4).float()
    found = evaluate(logits, torch.tensor([0, 0, 2, 2, 2]), 2, create_algorithm("orca", n_classes=2))
    assert found == {"accuracy": 0.6, "seen": 0.5, "unseen": pytest.approx(2 / 3)}
