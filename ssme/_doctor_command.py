"""``ssme doctor``: what is installed, what is missing and how to add it, and whether a small fit is right."""

from __future__ import annotations

from typing import Any

import typer

from ssme import _options as o
from ssme._console import EXIT_BAD_INPUT, exit_codes, put


@exit_codes
def doctor(as_json: o.AsJson = False, debug: o.Debug = False) -> None:
    """Show versions, extras and the GPU, and check that a small fit gives what it should.

    Exit code 0 where the core works; extras and a GPU may be missing.

    Example: ssme doctor
    """
    from ssme import _doctor, report

    found = _doctor.examine()
    put(report.to_json(found) if as_json else "\n".join(lines(found)))
    if not found["ok"]:
        raise typer.Exit(EXIT_BAD_INPUT)


def lines(found: dict[str, Any]) -> list[str]:
    """The findings as text, one line each."""
    out = [f"ssme {found['ssme']}, Python {found['python']}, {found['platform']}", "", "Dependencies"]
    out += [_line(each["ok"], each["name"], _version(each)) for each in found["dependencies"]]
    out += ["", "Extras"]
    for name, extra in found["extras"].items():
        lacking = [each for each in extra["packages"] if not each["ok"]]
        text = ", ".join(f"{each['name']} {each['version']}" for each in extra["packages"])
        if lacking:
            missing = ", ".join(f"{each['name']} {_version(each)}" for each in lacking)
            text = f"{missing}; add with: {extra['install']}"
        out.append(_line(extra["ok"], name, text, bad=" - "))
    out += ["", "GPU", f"   {found['cuda']}", "", "Self-check"]
    out += [_line(each["ok"], each["name"], each["detail"]) for each in found["checks"]] or ["   not run"]
    lacking = [f"'{each['name']}>={each['least']}'" for each in found["dependencies"] if not each["ok"]]
    if lacking:
        out += ["", f"Dependencies are missing or old; add them with: pip install {' '.join(lacking)}"]
    elif not found["ok"]:
        out += ["", "The self-check failed: install ssme anew into an environment of its own."]
    else:
        out += ["", "All is well."]
    return out


def _line(ok: bool, name: str, text: str, bad: str = "NO ") -> str:
    return f"{'ok ' if ok else bad} {name:<13} {text}"


def _version(package: dict[str, Any]) -> str:
    if package["version"] is None:
        return "missing"
    return package["version"] if package["ok"] else f"{package['version']} is older than {package['least']}"


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(doctor)
