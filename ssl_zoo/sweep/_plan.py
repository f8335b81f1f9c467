"""Sweep -> runs: a pure function. Runs that train the same are one, and have one folder."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields
from typing import Any

from ssl_zoo.config import PoolConfig, RunConfig
from ssl_zoo.registry import algorithm_class
from ssl_zoo.sweep._config import SweepConfig, Value

__all__ = ["PlannedRun", "plan_sweep"]

# What an algorithm that sees no unlabeled row cannot depend on: the labeled set is fixed whatever these are.
UNLABELED = ("r", "r_s", "c_n", "c_i", "c_ib", "total", "nearness", "protocol", "total_size")


@dataclass(frozen=True)
class PlannedRun:
    """A place in the table of results, and the run that fills it."""

    algorithm: str
    factor: str
    value: Value
    seed: int
    config: RunConfig


def plan_sweep(sweep: SweepConfig) -> list[PlannedRun]:
    """All runs: algorithm by algorithm, then by factor, value and seed.

    An algorithm that uses no unlabeled rows is trained once for a seed: its runs over the values are the same run.

    Raises
    ------
    ValueError
        Where a key, an algorithm or an option is not known; the message names the factor and the value.

    Examples
    --------
    >>> from ssl_zoo.sweep import SweepConfig
    >>> sweep = SweepConfig.from_dict({
    ...     "algorithms": ["supervised", "fixmatch"], "factors": {"r": {"key": "pool.r", "values": [0, 0.5]}},
    ...     "base": {"data": "digits", "model": "mlp", "pool": {"seen_classes": 5}}})
    >>> [(run.algorithm, run.value, run.config.pool.r) for run in plan_sweep(sweep)]
    [('supervised', 0, 0.0), ('supervised', 0.5, 0.0), ('fixmatch', 0, 0.0), ('fixmatch', 0.5, 0.5)]
    """
    out = []
    for name, options in sweep.algorithms:
        cls = algorithm_class(name)
        shared = {key: value for key, value in sweep.options.items() if key in cls.option_defaults()}
        for factor, how in sweep.factors.items():
            for value in how.values:
                for seed in sweep.seeds:
                    values = copy.deepcopy(sweep.base)
                    for key, fixed in {**how.set, how.key: value}.items():
                        _put(values, key, fixed)
                    values |= {"algorithm": {"name": name, "options": {**shared, **options}}, "seed": seed}
                    try:
                        config = RunConfig.from_dict(values if cls.uses_unlabeled else _without_pool(values))
                    except ValueError as error:
                        raise ValueError(f"{name} at {factor} = {value}: {error}") from error
                    out.append(PlannedRun(cls.name, factor, value, seed, config))
    return out


def _put(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a key of nested mappings by its path; a section that is a mere name becomes a mapping."""
    *parents, last = path.split(".")
    for parent in parents:
        inner = values.get(parent, {})
        values[parent] = {"name": inner} if isinstance(inner, str) else inner
        values = values[parent]
    values[last] = value


def _without_pool(values: dict[str, Any]) -> dict[str, Any]:
    """The same run with the unlabeled part of its pool as it is by default."""
    out = copy.deepcopy(values)
    usual = {f.name: f.default for f in fields(PoolConfig)}
    pool = out.get("pool")
    if isinstance(pool, dict):
        pool |= {key: usual[key] for key in UNLABELED if key in pool}
    if isinstance(out.get("data"), dict):
        for key in ("ood", "ood_options"):
            out["data"].pop(key, None)
    return out
