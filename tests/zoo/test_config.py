"""A config is frozen, complete and strict; equal runs have equal ids."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from ssl_zoo.config import PoolConfig, RunConfig
from ssl_zoo.config_files import load_config
from ssl_zoo.data import ContaminationSpec
from ssl_zoo.run_data import load_run_data


def test_round_trip_and_id() -> None:
    config = RunConfig.from_dict({"algorithm": "FixMatch", "pool": {"seen_classes": [0, 1], "r": 1}, "seed": 2})
    again = RunConfig.from_dict(json.loads(config.to_json()))
    assert again == config and again.run_id == config.run_id
    assert config.algorithm.name == "fixmatch" and config.pool.seen_classes == (0, 1)
    assert config.run_name.startswith("fixmatch-digits-r1-s2-")


def test_the_id_does_not_depend_on_how_defaults_are_given() -> None:
    assert RunConfig.from_dict({"train": {"lr": None, "momentum": 0.9}}).run_id == RunConfig().run_id
    assert RunConfig.from_dict({"seed": 1}).run_id != RunConfig().run_id
    assert RunConfig.from_dict({"pool": {"r": 0}}).run_id == RunConfig.from_dict({"pool": {"r": 0.0}}).run_id


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig().seed = 1  # type: ignore[misc]


def test_the_pool_has_the_fields_of_the_specification() -> None:
    ours = {f.name: f.default for f in fields(PoolConfig)}
    theirs = {f.name: f.default for f in fields(ContaminationSpec)}
    assert set(ours) - {"seed"} == set(theirs)
    given = {k: v for k, v in theirs.items() if k not in ("seen_classes", "n_labeled")}
    assert {k: ours[k] for k in given} == given


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"trian": {}}, "trian is unknown \\(did you mean 'train'\\?\\); the config has algorithm"),
        ({"train": {"step": 2}}, "train.step is unknown \\(did you mean 'steps'"),
        ({"train": 3}, "train is 3; it must hold keys: steps"),
        ({"train": {"steps": 2.5}}, "train.steps is 2.5; it must be a whole number"),
        ({"train": {"steps": True}}, "whole number"),
        ({"train": {"lr": "big"}}, "train.lr is 'big'; it must be a number or null"),
        ({"pool": {"disjoint": 1}}, "true or false"),
        ({"pool": {"seen_classes": ["a"]}}, "pool.seen_classes is 'a'; it must be a whole number"),
        ({"data": {"options": 3}}, "data.options is 3; it must be a mapping"),
        ({"data": {"name": 3}}, "data.name is 3; it must be a word"),
        ({"train": {"steps": 0}}, "at least 1"),
        ({"train": {"lr": 0}}, "above 0"),
        ({"train": {"momentum": 1.0}}, "below 1"),
        ({"train": {"weight_decay": -1}}, "0 or more"),
        ({"train": {"diagnostics_every": -1}}, "0 \\(none\\) or more"),
        ({"train": {"precision": "fp8"}}, "auto, fp32, bf16"),
        ({"train": {"select": "test"}}, "train.select is 'test'; it must be one of last, validation"),
        ({"train": {"select": "validation"}}, "set pool.n_validation"),
        ({"seed": -1}, "0 or more"),
        ({"algorithm": "fixmach"}, "did you mean 'fixmatch'"),
        ({"algorithm": {"name": "fixmatch", "options": {"taw": 0.9}}}, "did you mean 'tau'"),
    ],
)
def test_errors_name_the_key(values: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RunConfig.from_dict(values)


def test_a_value_without_a_form_in_json() -> None:
    with pytest.raises(ValueError, match="JSON has no form"):
        RunConfig.from_dict({"model": {"options": {"hidden": {1, 2}}}}).to_json()


def test_file_and_overrides(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("algorithm: fixmatch\ntrain: {steps: 50}\nmodel: {name: mlp, options: {hidden: [8]}}\n")
    config = load_config(path, ["train.lr=0.1", "algorithm.options.tau=0.8", "pool.seen_classes=[1,2]", "data=digits"])
    assert (config.train.steps, config.train.lr, config.algorithm.options) == (50, 0.1, {"tau": 0.8})
    assert config.pool.seen_classes == (1, 2) and config.model.options == {"hidden": [8]}
    other = load_config(path, ["algorithm.options.tau=0.7", "algorithm=uda", "model=small_cnn"])  # in any order
    assert other.algorithm.name == "uda" and other.algorithm.options == {"tau": 0.7} and not other.model.options


def test_a_runs_own_config_can_be_loaded(tmp_path: Path) -> None:
    config = RunConfig.from_dict({"algorithm": "vat", "pool": {"seen_classes": [3, 4]}})
    (tmp_path / "config.json").write_text(config.to_json())
    assert load_config(tmp_path / "config.json") == config


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        ("- a\n", [], "not a list"),
        ("a: [1\n", [], "no valid YAML"),
        ("", ["train.steps"], "must read key=value"),
        ("", ["train.steps=[1"], "cannot be read"),
        ("", ["train.stepz=3"], "did you mean 'steps'"),
        ("seed: ${nowhere}\n", [], "no valid YAML"),
    ],
)
def test_bad_files_and_overrides(tmp_path: Path, text: str, overrides: list[str], words: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        load_config(path, overrides)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no config file"):
        load_config(tmp_path / "run.yaml")


def test_data_of_a_config() -> None:
    base = {"pool": {"seen_classes": 6, "n_labeled": 12, "r": 0.5}}
    data = load_run_data(RunConfig.from_dict(base))
    assert len(data.pool.labeled_idx) == 12 and len(data.pool.unseen_idx) and data.ood is None
    pool = {**base["pool"], "nearness": "far", "seed": 0}
    far = load_run_data(RunConfig.from_dict({"data": {"ood": "noise"}, "pool": pool, "seed": 5}))
    assert np.array_equal(far.pool.labeled_idx, data.pool.labeled_idx) and len(far.pool.ood_idx)
    named = {"data": {"ood": "digits", "ood_options": {"split": "test"}}, "pool": {**base["pool"], "nearness": "far"}}
    assert len(load_run_data(RunConfig.from_dict(named)).pool.ood_idx)
