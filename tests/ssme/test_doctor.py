"""`ssme doctor`: what it finds is true, and what is broken is said and gives exit code 1."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ssme import _doctor
from ssme.cli import app

PROJECT = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["doctor", *arguments])
    assert result.exit_code == code, f"{result.output}{result.exception!r}"
    return result.output


def required(name: str) -> set[str]:
    found = re.search(rf"^{name} = \[(.*?)\]$", PROJECT, flags=re.M | re.S)
    assert found is not None
    return set(re.findall(r'"([^"]+)"', found[1]))


def test_the_lists_are_those_of_the_project() -> None:
    assert set(_doctor.CORE) == required("dependencies")
    for extra, lines in _doctor.EXTRAS.items():
        assert set(lines) == required(extra), extra


def test_json_has_versions_and_checks() -> None:
    found = json.loads(run("--json"))
    assert found["ok"] and [check["ok"] for check in found["checks"]] == [True, True]
    versions = {each["name"]: each["version"] for each in found["dependencies"]}
    assert versions == {name: metadata.version(name) for name in versions}


def test_text_says_that_all_is_well() -> None:
    text = run()
    assert text.rstrip().endswith("All is well.")
    assert "numpy" in text and "estimated accuracies" in text


def test_an_extra_that_is_missing_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_doctor.EXTRAS, "app", ("no-such-package>=1",))
    assert "no-such-package missing; add with: pip install 'ssme[app]'" in run()


def test_a_dependency_that_is_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "CORE", ("numpy>=999.1", "no-such-package>=1"))
    text = run(code=1)
    assert "is older than 999.1" in text and "pip install 'numpy>=999.1' 'no-such-package>=1'" in text
    assert "not run" in text


def test_a_wrong_estimate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "TOLERANCE", 1e-9)
    found = json.loads(run("--json", code=1))
    assert [check["ok"] for check in found["checks"]] == [False, True]
    assert "self-check failed" in run(code=1)


def test_files_that_cannot_be_written_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from ssme import ScoreTable

    def fail(self: Any, path: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ScoreTable, "write", fail)
    found = json.loads(run("--json", code=1))
    assert found["checks"][1] == {"name": "files", "ok": False, "detail": "OSError: [Errno 28] No space left on device"}


@pytest.mark.parametrize(("version", "numbers"), [("2.1.0rc1", (2, 1)), ("14", (14,)), ("0.12.3+cu1", (0, 12, 3))])
def test_versions_are_compared_by_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert _doctor._numbers(version) == numbers
