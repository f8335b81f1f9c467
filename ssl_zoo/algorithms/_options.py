"""The options of an algorithm, checked against its defaults."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["checked_options"]

_UNIT = {"tau", "momentum", "warmup_share", "mask_share"}
_POSITIVE = {"temperature", "alpha", "xi", "n_sigma", "cap", "mu", "hidden", "dim", "scale", "window", "inner_lr"}


def checked_options(
    name: str, defaults: Mapping[str, Any], choices: Mapping[str, tuple[str, ...]], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options with numbers made of the default's kind; a wrong name, kind or range is an error.

    Examples
    --------
    >>> checked_options("mine", {"rate": 0.1}, {}, {"rate": 1})
    {'rate': 1.0}
    """
    checked = {}
    for key, value in options.items():
        if key not in defaults:
            near = difflib.get_close_matches(key, defaults, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{name} has no option {key!r}{hint}; its options are: {', '.join(sorted(defaults))}.")
        checked[key] = _checked_value(name, key, value, defaults[key], choices.get(key))
    return checked


def _checked_value(name: str, key: str, value: Any, default: Any, words: tuple[str, ...] | None) -> Any:
    if words is not None:
        if value not in words:
            raise ValueError(f"{name}: {key} is {value!r}; it must be one of {', '.join(words)}.")
        return value
    if isinstance(default, bool) or isinstance(value, bool):
        if not (isinstance(default, bool) and isinstance(value, bool)):
            raise ValueError(f"{name}: {key} is {value!r}; it must be {_kind(default)}.")
        return value
    if (value is None and default is None) or not isinstance(default, (int, float, str, type(None))):
        return value
    if isinstance(default, str):
        if not isinstance(value, str):
            raise ValueError(f"{name}: {key} is {value!r}; it must be {_kind(default)}.")
        return value
    whole = isinstance(default, int) or default is None
    if not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"{name}: {key} is {value!r}; it must be {_kind(default)}.")
    lowest = -math.inf if default is not None and default < 0 else 0.0
    highest = 1.0 if key in _UNIT else math.inf
    if not (lowest <= value <= highest and math.isfinite(value)) or (key in _POSITIVE and value == 0):
        bound = "in [0, 1]" if key in _UNIT else "above 0" if key in _POSITIVE else "0 or more"
        raise ValueError(f"{name}: {key} is {value!r}; it must be {bound}.")
    return value if whole else float(value)


def _kind(default: Any) -> str:
    if isinstance(default, bool):
        return "true or false"
    return {int: "a whole number", float: "a number", str: "a word", type(None): "a whole number"}[type(default)]
