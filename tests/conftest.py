"""What all tests share: the same hypothesis examples in every run, and simulated scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

try:
    from hypothesis import settings
except ImportError:  # the tests of the import rules run without it
    pass
else:
    # The same examples every time: a failure that a run of the suite finds can be found again.
    settings.register_profile("suite", deadline=None, derandomize=True, max_examples=25)
    settings.load_profile("suite")

ROOT = Path(__file__).resolve().parents[1]
HAS_TORCH = find_spec("torch") is not None
collect_ignore = [] if HAS_TORCH else ["zoo"]


def pytest_report_header() -> str:
    """Say at the top of every run whether the tests that need torch are part of it."""
    return f"torch: {'there' if HAS_TORCH else 'not installed, tests/zoo is left out'}"


@dataclass(frozen=True)
class Simulated:
    """P(class 1) of several models (n, M), the true classes (n,), and the rows whose label is known."""

    p: np.ndarray
    y: np.ndarray
    labeled: np.ndarray
    models: tuple[str, ...]
    ids: np.ndarray


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Simulated]:
    """Binary classifiers of a rare class: rows of shared difficulty, models of different skill and calibration."""

    def make(
        n: int = 400, n_models: int = 7, n_labeled: int = 20, prevalence: float = 0.15, seed: int = 0
    ) -> Simulated:
        rng = np.random.default_rng(seed)
        y = (rng.random(n) < prevalence).astype(int)
        signal = 2.0 * y - 1.0 + rng.normal(0, 0.8, n)  # what all models see of a row
        skill, scale = rng.uniform(0.8, 1.6, n_models), rng.uniform(0.7, 2.0, n_models)
        logit = scale * (skill * signal[:, None] + rng.normal(0, 0.7, (n, n_models)) - 0.8)
        labeled = np.sort(rng.choice(n, n_labeled, replace=False))
        ids = np.array([f"comment-{i:05d}" for i in range(n)])
        return Simulated(1 / (1 + np.exp(-logit)), y, labeled, tuple(f"model{m}" for m in range(n_models)), ids)

    return make
