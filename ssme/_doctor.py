"""Is this installation fit for work: versions, extras, the GPU, and a small fit with a known answer."""

from __future__ import annotations

import platform
import re
import tempfile
import warnings
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# The same lines as in pyproject.toml; a test holds the two together.
CORE = (
    *("numpy>=1.24", "scipy>=1.11", "scikit-learn>=1.6", "pandas>=2.1", "KDEpy>=1.1.9", "pyarrow>=14"),
    *("typer>=0.12", "rich>=13", "joblib>=1.3"),
)
EXTRAS: dict[str, tuple[str, ...]] = {
    "zoo": ("torch>=2.1", "torchvision>=0.16", "safetensors>=0.4", "tensorboard>=2.14", "omegaconf>=2.3",
            "filelock>=3.12"),
    "hf": ("torch>=2.1", "torchvision>=0.16", "transformers>=4.56", "datasets>=2.18", "safetensors>=0.4", "pillow>=10"),
    "report": ("jinja2>=3.1", "matplotlib>=3.8"),
    "app": ("streamlit>=1.33",),
    "cluster": ("dask>=2024.1", "distributed>=2024.1"),
}  # fmt: skip
ROWS, LABELS, TOLERANCE = 400, 40, 0.1
# What a broken library may throw at its import or at its first use.
TROUBLE = (ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def examine() -> dict[str, Any]:
    """All findings: ok, python, ssme, dependencies, extras, cuda, checks. Nothing outside is asked for.

    Examples
    --------
    >>> found = examine()
    >>> found["ok"], sorted(found["extras"])
    (True, ['app', 'cluster', 'hf', 'report', 'zoo'])
    """
    import ssme

    dependencies = [state_of(line) for line in CORE]
    ready = all(each["ok"] for each in dependencies)
    checks = self_checks() if ready else []
    return {
        "ok": ready and all(check["ok"] for check in checks),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "ssme": ssme.__version__,
        "dependencies": dependencies,
        "extras": {name: extra_state(name) for name in EXTRAS},
        "cuda": cuda_state(),
        "checks": checks,
    }


def state_of(requirement: str) -> dict[str, Any]:
    """One package: its name, the least version, the version that is there (None if it is missing), and ok.

    Examples
    --------
    >>> state_of("no-such-package>=1.0")
    {'name': 'no-such-package', 'least': '1.0', 'version': None, 'ok': False}
    """
    name, least = requirement.split(">=")
    try:
        version: str | None = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = None
    ok = version is not None and _numbers(version) >= _numbers(least)
    return {"name": name, "least": least, "version": version, "ok": ok}


def _numbers(version: str) -> tuple[int, ...]:
    """The release of a version as numbers, zeros at its end left out: 2.1.0rc1 -> (2, 1)."""
    found = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def extra_state(name: str) -> dict[str, Any]:
    """Whether an extra is complete, its packages, and the command that adds what it lacks."""
    packages = [state_of(line) for line in EXTRAS[name]]
    ok = all(each["ok"] for each in packages)
    return {"ok": ok, "packages": packages, "install": None if ok else f"pip install 'ssme[{name}]'"}


def cuda_state() -> str:
    """The CUDA device in words; that there is none is no fault."""
    if find_spec("torch") is None:
        return "torch is not installed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch

            if not torch.cuda.is_available():
                return f"torch {torch.__version__} sees no CUDA device"
            return f"torch {torch.__version__}, {torch.cuda.get_device_name(0)}"
    except TROUBLE as error:
        return f"torch cannot be used ({_one_line(error)})"


def self_checks() -> list[dict[str, Any]]:
    """Fit made-up scores whose accuracies are known, and write and read them: name, ok and detail of each check."""
    checks = []
    for name, check in (("fit", _check_fit), ("files", _check_files)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ok, detail = check()
        except TROUBLE as error:
            ok, detail = False, _one_line(error)
        checks.append({"name": name, "ok": ok, "detail": detail})
    return checks


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _made_up() -> tuple[Any, Any]:
    """A ScoreTable of three models with some labels, and the labels of all rows."""
    import numpy as np

    from ssme.score_table import ScoreTable

    random = np.random.default_rng(0)
    truth = random.integers(0, 2, ROWS)
    evidence = (2 * truth - 1)[:, None] * [0.5, 1.0, 2.0] + random.normal(size=(ROWS, 3))
    labels = np.where(np.arange(ROWS) < LABELS, truth, -1)
    return ScoreTable.from_arrays(1 / (1 + np.exp(-2 * evidence)), labels, model_names=["a", "b", "c"]), truth


def _check_fit() -> tuple[bool, str]:
    import numpy as np

    from ssme.estimator import SSME

    table, truth = _made_up()
    frame = SSME(random_state=0, n_draws=50).fit(table).estimate(["accuracy"])
    right = (table.scores.argmax(axis=2) == truth[:, None]).mean(axis=0)
    estimates = frame["estimate"].to_numpy()
    ordered = bool((frame["lower"] <= estimates).all() and (estimates <= frame["upper"]).all())
    ok = ordered and bool(np.abs(estimates - right).max() <= TOLERANCE)
    pairs = ", ".join(f"{e:.2f} ({r:.2f})" for e, r in zip(estimates, right, strict=True))
    return ok, f"estimated accuracies (true ones): {pairs}"


def _check_files() -> tuple[bool, str]:
    from ssme.score_table import read_scores

    table, _ = _made_up()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".csv", ".parquet", ".npz"):
            path = Path(folder) / f"scores{suffix}"
            table.write(path)
            if not read_scores(path).equals(table):
                wrong.append(suffix)
    return not wrong, f"read back otherwise: {', '.join(wrong)}" if wrong else "csv, parquet and npz read back the same"
