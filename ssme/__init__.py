"""Judge several classifiers with many unlabeled and few labeled rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssme.estimator import SSME
    from ssme.metrics import METRICS, MetricSpec, evaluate_metric
    from ssme.partitioned import estimate_partitioned
    from ssme.score_table import ScoreTable, read_scores

__version__ = "0.1.0"
__all__ = ["METRICS", "SSME", "MetricSpec", "ScoreTable", "estimate_partitioned", "evaluate_metric", "read_scores"]

_HOME = {
    "SSME": "ssme.estimator",
    "METRICS": "ssme.metrics",
    "MetricSpec": "ssme.metrics",
    "estimate_partitioned": "ssme.partitioned",
    "evaluate_metric": "ssme.metrics",
    "ScoreTable": "ssme.score_table",
    "read_scores": "ssme.score_table",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import ssme` is quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'ssme' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
