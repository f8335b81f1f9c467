"""Deep semi-supervised algorithms, contamination of the unlabeled pool under controlled variables, and diagnostics.

Names load on first use, so that ``import ssl_zoo`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "ArrayDataset": "ssl_zoo.data",
    "ContaminationSpec": "ssl_zoo.data",
    "RunConfig": "ssl_zoo.config",
    "RunResult": "ssl_zoo.trainer",
    "Trainer": "ssl_zoo.trainer",
    "build_model": "ssl_zoo.models",
    "build_pool": "ssl_zoo.data",
    "create_algorithm": "ssl_zoo.registry",
    "export_scores": "ssl_zoo.scores",
    "list_algorithms": "ssl_zoo.registry",
    "list_models": "ssl_zoo.models",
    "load_config": "ssl_zoo.config_files",
    "load_dataset": "ssl_zoo.data",
    "register": "ssl_zoo.registry",
}
__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from ssl_zoo.config import RunConfig as RunConfig
    from ssl_zoo.config_files import load_config as load_config
    from ssl_zoo.data import ArrayDataset as ArrayDataset
    from ssl_zoo.data import ContaminationSpec as ContaminationSpec
    from ssl_zoo.data import build_pool as build_pool
    from ssl_zoo.data import load_dataset as load_dataset
    from ssl_zoo.models import build_model as build_model
    from ssl_zoo.models import list_models as list_models
    from ssl_zoo.registry import create_algorithm as create_algorithm
    from ssl_zoo.registry import list_algorithms as list_algorithms
    from ssl_zoo.registry import register as register
    from ssl_zoo.scores import export_scores as export_scores
    from ssl_zoo.trainer import RunResult as RunResult
    from ssl_zoo.trainer import Trainer as Trainer


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
