"""The command line and the page that documents it."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.main import get_command
from typer.testing import CliRunner

import ssl_zoo
from ssl_zoo import cli
from ssl_zoo.registry import unregister
from ssl_zoo.run_parts import RunParts
from ssl_zoo.trainer import Trainer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "zoo.md"
FAST = ["model=mlp", "model.options.hidden=[8]", "train.batch_size=8", "train.epoch_steps=5", "pool.n_labeled=20"]


def invoke(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(cli.app, list(arguments))
    assert result.exit_code == code, f"{result.exit_code}\n{result.output}{result.exception or ''}"
    return result


def train(out: Path, *arguments: str, code: int = 0) -> Any:
    return invoke("train", *FAST, *arguments, "--out", str(out), "--device", "cpu", code=code)


def test_list() -> None:
    names = [line.split()[0] for line in invoke("list").stdout.splitlines()]
    assert names == ssl_zoo.list_algorithms() and len(names) == 20
    assert "    tau = 0.95" in invoke("list", "--options").stdout
    assert json.loads(invoke("list", "--json").stdout)["orca"]["open_world"] is True
    assert "digits" in invoke("list", "datasets").stdout
    assert "resnet18" in json.loads(invoke("list", "models", "--json").stdout)
    assert "is none of" in invoke("list", "cheese", code=2).output


def test_train_eval_export(tmp_path: Path) -> None:
    shown = train(tmp_path, "algorithm=meanteacher", "train.steps=10").stdout.splitlines()
    folder = Path(shown[0])
    assert folder.parent == tmp_path and re.match(r"accuracy 0\.\d{4} \(step 10, ema model\)", shown[1])
    words = invoke("eval", str(folder), "--device", "cpu").stdout
    assert words.split(": ")[1].strip() == shown[1].split(" (")[0]
    found = json.loads(invoke("eval", str(folder), "--json").stdout)[str(folder)]
    assert found["whose"] == "ema" and set(found["test"]) == {"student", "ema"}
    out = tmp_path / "scores.csv"
    assert "1 models, 10 classes" in invoke("export", str(folder), "--out", str(out), "--no-labels").stdout
    assert out.exists()


def test_a_config_file_and_a_second_run_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("algorithm: supervised\ntrain: {steps: 5}\nseed: 3\n")
    first = train(tmp_path, "--config", str(path)).stdout
    assert "supervised-digits-r0-s3" in first
    assert train(tmp_path, "--config", str(path)).stdout == first
    assert train(tmp_path, "--config", str(path), "--fresh", "--quiet").stdout == first


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> None:
    arguments = ("algorithm=supervised", "train.steps=12")
    with monkeypatch.context() as patch:
        patch.setattr(RunParts, "set_rate", lambda self, step: os.kill(os.getpid(), number) if step == 6 else None)
        result = train(tmp_path, *arguments, code=code)
    assert "Stopped at step 7 of 12 and saved; run the same command again" in result.stderr
    assert "step 12" in train(tmp_path, *arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train.step=3"], "Error: train.step is unknown (did you mean 'steps'?)"),
        (["algorithm=fixmach"], "did you mean 'fixmatch'"),
        (["train.steps"], "must read key=value"),
        (["data=digit"], "did you mean 'digits'"),
        (["pool.n_labeled=100000"], "n_labeled"),
        (["--config", "nothing.yaml"], "there is no config file nothing.yaml"),
        (["model=mlp", "model.options.widht=3"], "has no option 'widht'"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = train(tmp_path, *arguments, code=1)
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_bad_folders(tmp_path: Path) -> None:
    assert "is this the folder of a run" in invoke("eval", str(tmp_path), code=1).stderr
    assert "is this the folder of a run" in invoke("export", str(tmp_path), code=1).stderr


def test_faults_of_the_program_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "fit", lambda *_, **__: [][0])
    assert "a fault of ssl-zoo" in train(tmp_path, code=3).stderr
    assert "Traceback" in train(tmp_path, "--debug", code=3).stderr


def test_warnings_are_lines(tmp_path: Path) -> None:
    result = train(tmp_path, "algorithm=fixmatch", "algorithm.options.tau=1.0", "train.steps=5")
    assert result.stderr.startswith("Warning: fixmatch: no unlabeled sample has passed the mask")


def test_progress_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = train(tmp_path, "algorithm=uda", "algorithm.options.tau=0.0", "train.steps=5").stderr
    assert "5/5" in shown and "pass rate 1.00" in shown and "samples/s" in shown


def test_module_runs_and_importing_the_package_is_light() -> None:
    code = "import sys, ssl_zoo; print('torch' in sys.modules, 'RunConfig' in dir(ssl_zoo))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PAGE.parents[1])
    assert done.stdout.split() == ["False", "True"], done.stderr
    done = subprocess.run([sys.executable, "-m", "ssl_zoo", "--help"], capture_output=True, text=True,
                          cwd=PAGE.parents[1])  # fmt: skip
    assert done.returncode == 0 and "export" in done.stdout
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ssl_zoo.nothing  # type: ignore[attr-defined]
    assert all(getattr(ssl_zoo, name) is not None for name in ssl_zoo.__all__)


# -------------------------------------------------------------------------------------------------------- the page


def run_page(page: Path) -> None:
    """Run a page's snippets here: files are written, commands and Python lines must print what they say."""
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    names: dict[str, Any] = {}
    for block in re.findall(r"^```text ?([^\n]*)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S):
        info, text = block
        if info.endswith((".yaml", ".py")):
            Path(info).write_text(text, encoding="utf-8")
        elif text.startswith("$ "):
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                command, _, expected = part.partition("\n")
                program, *arguments = shlex.split(command)
                assert program == "ssl-zoo"
                shown = invoke(*arguments).stdout
                assert not expected.strip() or checker.check_output(expected, shown, flags), f"{command}\n{shown}"
        elif text.startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=flags)
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            names.update(test.globs)
            assert not said, "".join(said)


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    registered = set(ssl_zoo.list_algorithms())
    run_page(PAGE)
    own = set(ssl_zoo.list_algorithms()) - registered
    assert own == {"smooth-supervised"}
    table = Path("scores.npz")
    folder = next(Path("runs").glob("smooth-supervised-*"))
    invoke("export", str(folder), "--import", "smooth.py", "--out", str(table), "--device", "cpu")
    assert table.exists()
    unregister("smooth-supervised")
    assert "no algorithm 'smooth-supervised'" in invoke("eval", str(folder), code=1).stderr


def test_the_page_of_sweeps_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE.with_name("sweeps.md"))


def test_files_that_cannot_be_imported(tmp_path: Path) -> None:
    assert "there is no file nowhere.py" in invoke("list", "--import", "nowhere.py", code=1).stderr
    bad = tmp_path / "bad.py"
    bad.write_text("import nothing_of_this_name\n")
    message = invoke("list", "--import", str(bad), code=1).stderr
    assert message.startswith(f"Error: {bad} could not be imported: ModuleNotFoundError") and message.count("\n") == 1
    (tmp_path / "notes.txt").write_text("")
    assert "must end in .py" in invoke("list", "--import", str(tmp_path / "notes.txt"), code=1).stderr


def test_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch, "compile", lambda function, **_: (asked.append(function), function)[1])
    plain = train(tmp_path, "algorithm=supervised", "train.steps=5").stdout
    assert not asked
    assert train(tmp_path, "algorithm=supervised", "train.steps=5", "--compile", "--fresh").stdout == plain
    assert len(asked) == 1


def test_every_option_is_documented() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, command in get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        assert f"`ssl-zoo {name}`" in text
        for parameter in command.params:
            for option in [o for o in parameter.opts + parameter.secondary_opts if o.startswith("--")]:
                assert option in text or option == "--help", f"ssl-zoo {name} {option} is not in docs/zoo.md"
