"""Nested mappings -> frozen dataclasses: unknown keys and wrong kinds are errors that name the key by its path."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

__all__ = ["read_dataclass"]


def read_dataclass(cls: Any, values: Any, where: str = "") -> Any:
    """A dataclass from a mapping. A word for a class that has a name is that name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Step:
    ...     rate: float = 0.1
    >>> read_dataclass(Step, {"rate": 1}).rate
    1.0
    """
    known = [f.name for f in fields(cls)]
    if isinstance(values, str) and "name" in known:
        values = {"name": values}
    if not isinstance(values, Mapping):
        raise ValueError(f"{where or 'the config'} is {values!r}; it must hold keys: {', '.join(known)}.")
    hints, out = typing.get_type_hints(cls), {}
    for key, value in values.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{path} is unknown{hint}; {where or 'the config'} has {', '.join(known)}.")
        out[key] = _typed(hints[key], value, path)
    return cls(**out)


def _typed(hint: Any, value: Any, where: str) -> Any:
    """The value, made of the kind that the field has."""
    if is_dataclass(hint):
        return read_dataclass(hint, value, where)
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    whole = isinstance(value, int) and not isinstance(value, bool)
    for kind in kinds:
        if kind is float and (whole or isinstance(value, float)):
            return float(value)
        if kind is int and whole:
            return value
        if kind is bool and isinstance(value, bool) or kind is type(None) and value is None:
            return value
        if kind is str and isinstance(value, (str, Path)):
            return str(value)
        if typing.get_origin(kind) is dict and isinstance(value, Mapping):
            return {str(k): v for k, v in value.items()}
        if typing.get_origin(kind) is tuple and isinstance(value, (list, tuple)):
            return tuple(_typed(int, v, where) for v in value)
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a word", type(None): "null"}
    names = [words.get(k, "a list of whole numbers" if typing.get_origin(k) is tuple else "a mapping") for k in kinds]
    raise ValueError(f"{where} is {value!r}; it must be {' or '.join(names)}.")
