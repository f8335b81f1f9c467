"""Under what a study ran: versions, the commit where it is known, hardware, and a fingerprint of the code."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib", "KDEpy")
NUMERIC = ("numpy", "scipy", "scikit-learn", "KDEpy")  # another version of these may give other digits
# What only shows numbers; a change there leaves finished cells valid.
PRESENTATION = {"cli.py", "__main__.py", "report.py", "_format.py", "_console.py", "_options.py", "_study_command.py"}
PRESENTATION |= {"_question_commands.py", "demo.py", "inspection.py", "adapters", "plots.py"}
PRESENTATION |= {
    f"study/{name}.py"
    for name in ("__init__", "_run", "_summary", "_report", "_tables", "_figure", "_progress", "_workers")
}
PRESENTATION |= {"study/_provenance.py"}


@functools.cache
def versions(names: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """Versions of the libraries that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@functools.cache
def code_digest() -> str:
    """A fingerprint of the source of everything that computes numbers."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in PRESENTATION and name.split("/")[0] not in PRESENTATION:
            found.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:32]


def commit() -> str | None:
    """The commit of the checkout that the package lies in, with "+changes" where it was edited; None elsewhere."""
    if not (PACKAGE.parent / ".git").exists():  # an installed package may lie in somebody else's checkout
        return None

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(PACKAGE.parent), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    head = git("rev-parse", "--verify", "HEAD")
    return None if head is None else head + ("+changes" if git("status", "--porcelain", "--", PACKAGE.name) else "")


def hardware() -> dict[str, Any]:
    """Processor, cores and memory; no name of the machine or its user."""
    found: dict[str, Any] = {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count()}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        found["processor"] = models[0] if models else platform.processor()
    else:
        found["processor"] = platform.processor()
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return found
