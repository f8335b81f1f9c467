"""What a sweep is, as values that are checked once; presets and files of the user's own."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssl_zoo.config_files import load_values

__all__ = ["FactorConfig", "SweepConfig", "list_presets", "load_sweep"]

PRESETS = Path(__file__).parent / "presets"
Value = float | int | str


@dataclass(frozen=True)
class FactorConfig:
    """One factor: the key of the run's config that takes the values, and what else is set for it.

    Parameters
    ----------
    key : str
        Path of a key of the run's config, such as ``"pool.r"``.
    values : tuple of numbers or words
    set : dict
        Other keys that hold for this factor, by path, such as ``{"data.ood": "noise"}``.
    """

    key: str
    values: tuple[Value, ...]
    set: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepConfig:
    """A sweep.

    Parameters
    ----------
    algorithms : tuple of (str, dict)
        Names and options of their own.
    factors : dict of str to FactorConfig
        By the name that the results give them.
    seeds : tuple of int
    base : dict
        What all runs share: sections of a run's config (`ssl_zoo.RunConfig`) other than algorithm and seed.
    options : dict
        Options of every algorithm that has them, such as ``{"mu": 2}``.

    Examples
    --------
    >>> sweep = SweepConfig.from_dict({
    ...     "algorithms": ["supervised", "fixmatch"], "factors": {"r": {"key": "pool.r", "values": [0, 0.5]}},
    ...     "base": {"data": "digits", "model": "mlp"}})
    >>> sweep.seeds, sweep.factors["r"].values
    ((0,), (0, 0.5))
    >>> SweepConfig.from_dict({"algorithm": ["supervised"]})
    Traceback (most recent call last):
        ...
    ValueError: algorithm is unknown (did you mean 'algorithms'?); a sweep has algorithms, factors, ...
    """

    algorithms: tuple[tuple[str, dict[str, Any]], ...]
    factors: dict[str, FactorConfig]
    seeds: tuple[int, ...] = (0,)
    base: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SweepConfig:
        """Nested mappings -> sweep; an unknown key or a value of another kind is an error that names it."""
        _check_keys(values, ("algorithms", "factors", "seeds", "base", "options"), "", "a sweep")
        for key in ("algorithms", "factors"):
            if not values.get(key):
                raise ValueError(f"{key} is empty; a sweep needs at least one of them.")
        base = _mapping(values.get("base") or {}, "base")
        taken = [key for key in ("algorithm", "seed") if key in base]
        if taken:
            raise ValueError(f"base.{taken[0]} is what a sweep runs over; put it into {taken[0]}s.")
        return cls(
            tuple(_algorithm(each) for each in _several(values["algorithms"], "algorithms")),
            {str(name): _factor(str(name), each) for name, each in _mapping(values["factors"], "factors").items()},
            _whole_numbers(values.get("seeds", [0])),
            base,
            _mapping(values.get("options") or {}, "options"),
        )

    def to_dict(self) -> dict[str, Any]:
        """What `from_dict` reads, with all defaults written out."""
        return {
            "algorithms": [{"name": name, "options": dict(options)} for name, options in self.algorithms],
            "factors": {
                n: {"key": f.key, "values": list(f.values), "set": dict(f.set)} for n, f in self.factors.items()
            },
            "seeds": list(self.seeds),
            "base": dict(self.base),
            "options": dict(self.options),
        }


def list_presets() -> list[str]:
    """Names of the sweeps that come with the package.

    Examples
    --------
    >>> list_presets()
    ['digits', 'letter', 'usps']
    """
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def load_sweep(source: str | Path, overrides: Sequence[str] = ()) -> SweepConfig:
    """A sweep from a preset's name or a YAML or JSON file, with overrides such as ``base.train.steps=50``.

    Parameters
    ----------
    source : str or path
        One of :func:`list_presets`, or a file.
    overrides : sequence of str
        ``key=value``; a list is written ``seeds=[0,1,2]``.

    Examples
    --------
    >>> load_sweep("digits", ["seeds=[0]", "algorithms=[supervised, fixmatch]"]).algorithms
    (('supervised', {}), ('fixmatch', {}))
    """
    path = Path(source)
    if str(source) in list_presets() and not path.is_file():
        path = PRESETS / f"{source}.yaml"
    elif not path.suffix and not path.exists():
        raise ValueError(f"{str(source)!r} is neither a file nor a preset; presets are {', '.join(list_presets())}.")
    return SweepConfig.from_dict(load_values(path, overrides))


def _check_keys(values: Any, known: Sequence[str], where: str, whole: str) -> None:
    for key in _mapping(values, where or whole):
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{where}{key} is unknown{hint}; {whole} has {', '.join(known)}.")


def _mapping(values: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise ValueError(f"{where} is {values!r}; it must hold keys.")
    return {str(key): value for key, value in values.items()}


def _several(values: Any, where: str) -> list[Any]:
    if not isinstance(values, (list, tuple)):
        raise ValueError(f"{where} is {values!r}; it must be a list.")
    return list(values)


def _algorithm(value: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(value, str):
        return value, {}
    _check_keys(value, ("name", "options"), "algorithms.", "an algorithm")
    if "name" not in value:
        raise ValueError(f"algorithms holds {value!r}, which has no name.")
    return str(value["name"]), _mapping(value.get("options") or {}, "algorithms.options")


def _factor(name: str, value: Any) -> FactorConfig:
    where = f"factors.{name}."
    _check_keys(value, ("key", "values", "set"), where, "a factor")
    if not isinstance(value.get("key"), str):
        raise ValueError(f"{where}key must be the path of a key of a run, such as pool.r.")
    values = _several(value.get("values") or [], f"{where}values")
    if not values or not all(isinstance(v, (int, float, str)) and not isinstance(v, bool) for v in values):
        raise ValueError(f"{where}values must be a list of numbers or words, and hold at least one.")
    if len(set(values)) < len(values):
        raise ValueError(f"{where}values names a value twice; name each once.")
    return FactorConfig(value["key"], tuple(values), _mapping(value.get("set") or {}, f"{where}set"))


def _whole_numbers(values: Any) -> tuple[int, ...]:
    found = _several(values, "seeds")
    if not found or not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in found):
        raise ValueError(f"seeds is {values!r}; it must be a list of whole numbers of 0 or more.")
    if len(set(found)) < len(found):
        raise ValueError("seeds names a seed twice; name each once.")
    return tuple(found)
