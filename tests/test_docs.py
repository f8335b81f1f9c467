"""Every python and console snippet of README and docs runs, links lead somewhere, and the pictures are true."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from ssme.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CHECKER = doctest.OutputChecker()
NEEDS = {"hugging-face.md": "transformers"}  # pages whose snippets need an extra
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands behind the language, its text and the line where it starts."""

    language: str
    info: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", text, flags=re.M | re.S)
    return [Block(m[1], m[2].strip(), m[3], text[: m.start()].count("\n") + 2) for m in found]


def run_console(block: Block, page: Path) -> None:
    """Run each `$ ssme ...` line; the lines below it, if there are any, must be what it prints."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "ssme", f"{page.name}:{block.line}: only ssme commands can be run here, got {command}"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{page.name}:{block.line}: {command}\n{result.output}{result.exception or ''}"
        assert not expected.strip() or CHECKER.check_output(expected, result.output, FLAGS), (
            f"{page.name}:{block.line}: {command} printed\n{result.output}"
        )


def check_shell(block: Block, page: Path) -> None:
    """What cannot be run inside the tests must at least exist: make targets and extras."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    for line in block.text.splitlines():
        words = line.split()
        if words[0] == "make":
            assert set(words[1:]) <= targets, f"{page.name}:{block.line}: {line}"
        else:
            assert words[:2] in (["pip", "install"], ["ssme", "COMMAND"]), f"{page.name}:{block.line}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason=f"the snippets of {page.name} need {NEEDS[page.name]}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSME_CACHE", str(tmp_path / "cache"))
    names: dict[str, object] = {"__name__": "snippet"}
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        elif block.language == "console":
            run_console(block, page)
        elif block.language == "csv":
            Path(block.info).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            check_shell(block, page)
        else:
            assert block.language == "text", f"{page.name}:{block.line}: nobody runs a block of {block.language!r}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_option_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"## ssme {name}" in text
        for parameter in command.params:
            for option in parameter.opts + parameter.secondary_opts:
                known = option in text or option in {"--fit", "--help"} or not option.startswith("--")
                assert known, f"ssme {name} {option} is not in docs/cli.md"


def test_architecture_names_the_modules_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.split("```text")[1].split("```")[0].split("benchmarks/")[0]
    named = set(re.findall(r"^  (\w+(?:\.py|/))", picture, flags=re.M))
    entries = [p for p in (ROOT / "ssme").iterdir() if p.name not in {"__init__.py", "__pycache__", "py.typed"}]
    there = {p.name if p.is_file() else f"{p.name}/" for p in entries}
    assert named == there


def test_no_path_of_a_machine() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "Makefile", ROOT / "pyproject.toml"]:
        assert not re.search(r"(?<![\w.])/(work|tmp|root|home|opt)/", page.read_text(encoding="utf-8")), page.name


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name == "docs"], ids=lambda p: p.name)
def test_every_page_is_in_the_nav(page: Path) -> None:
    assert f": {page.name}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    for package in ("mkdocs", "material", "mkdocstrings", "markdown_exec", "mkdocs_include_markdown_plugin"):
        pytest.importorskip(package, reason="the site needs the extra `docs`; `make test-docs` has it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [p.relative_to(tmp_path / "site").as_posix() for p in (tmp_path / "site").rglob("*.html")]
    assert {"index.html", "gallery.html", "api/estimator.html", "api/ssl-zoo.html"} <= set(pages)
    text = {name: (tmp_path / "site" / name).read_text(encoding="utf-8") for name in pages}
    # the gallery was executed
    assert len(re.findall(r'<img alt="[^"]+" src="data:image/svg', text["gallery.html"])) == 4
    for name, page in text.items():
        fetched = re.findall(r"<(?:script|img|iframe)[^>]+src=\"?https?:|<link[^>]+stylesheet[^>]+https?:", page)
        assert not fetched, f"{name} fetches from the network: {fetched}"
