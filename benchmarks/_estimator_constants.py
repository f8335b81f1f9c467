"""The constants of the default estimator: what they are, what else they might be, and how they are set for a while.

The estimator has no options for these: they are part of the method. `constants` sets them in one place, for a block.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from ssme import _metric_bias
from ssme.consensus import _bias, _fit, _pool, _temperature

BEYOND = 1.5  # what the third centre of the prior is of the second, as the package has it
Changes = dict[tuple[ModuleType, str], Any]


@dataclass(frozen=True)
class Constant:
    """A constant or several that move together: alternatives, the start first; the one that is shipped; what to set."""

    alternatives: tuple[float, ...]
    shipped: float
    changes: Callable[[float], Changes]


def _number(module: ModuleType, name: str, *alternatives: float) -> Constant:
    return Constant(alternatives, getattr(module, name), lambda value: {(module, name): value})


def _factor(module: ModuleType, name: str, *alternatives: float) -> Constant:
    """A tuple of numbers, or of (number, weight), all of whose numbers are multiplied."""
    shipped = getattr(module, name)

    def changes(factor: float) -> Changes:
        return {(module, name): tuple((v[0] * factor, v[1]) if isinstance(v, tuple) else v * factor for v in shipped)}

    return Constant(alternatives, 1.0, changes)


def _scale_weights(power: float) -> Changes:
    """Weights to a power: 0 weighs all scales alike, 2 trusts the centres of the prior far more."""
    return {(_temperature, "SCALE_WEIGHTS"): tuple(w**power for w in _SCALE_WEIGHTS)}


def _third_centre(factor: float) -> Changes:
    """The centre of the prior beyond "the lesser of agreement and confidence" goes this many times as far."""

    @functools.wraps(_TEMPERATURE_PRIOR)
    def prior(*arguments: Any) -> _temperature.TemperaturePrior:
        found = _TEMPERATURE_PRIOR(*arguments)
        centers = found.centers.copy()
        if len(centers) > 1:
            if centers[2] != BEYOND * centers[1]:
                raise RuntimeError("the prior of the temperature has other centres now: edit _third_centre.")
            centers[2] = factor * centers[1]
        return _temperature.TemperaturePrior(centers, found.weights)

    return {(_fit, "temperature_prior"): prior}


_SCALE_WEIGHTS = _temperature.SCALE_WEIGHTS
_TEMPERATURE_PRIOR = _fit.temperature_prior

# Three values each, a factor of two or so apart, what is shipped among them; the search starts at the first, which is
# another one. In this order they are searched.
CONSTANTS: dict[str, Constant] = {
    "label power": _number(_temperature, "LABEL_POWER", 1.0, 0.5, 0.25),
    "common rows": _number(_bias, "COMMON_ROWS", 1000.0, 500.0, 250.0),
    "rows between models (factor)": _factor(_bias, "BETWEEN_ROWS", 0.5, 1.0, 2.0),
    "spread of models": _number(_bias, "SPREAD_SCALE", 0.4, 0.2, 0.1),
    "third centre": Constant((1.0, 1.5, 2.0), BEYOND, _third_centre),
    "reach": _number(_temperature, "REACH", 0.9, 0.98, 0.995),
    "scales (factor)": _factor(_temperature, "SCALES", 2.0, 1.0, 0.5),
    "scale weights (power)": Constant((0.0, 1.0, 2.0), 1.0, _scale_weights),
    "relative scale": _number(_temperature, "RELATIVE_SCALE", 0.5, 0.25, 0.125),
    "offset scale": _number(_temperature, "OFFSET_SCALE", 2.0, 1.0, 0.5),
    "independent below": _number(_temperature, "INDEPENDENT_BELOW", 0.7, 0.35, 0.175),
    "spread of confidences": _number(_pool, "SPREAD", 2.0, 1.0, 0.5),
    "floor": _number(_pool, "FLOOR", 1e-4, 1e-6, 1e-8),
    "rows of the metrics' prior (factor)": _factor(_metric_bias, "ROWS_OF_PRIOR", 0.5, 1.0, 2.0),
    "misfit": _number(_bias, "MISFIT", 1.0, 1.3, 1.6),
}

START: dict[str, float] = {name: each.alternatives[0] for name, each in CONSTANTS.items()}
SHIPPED: dict[str, float] = {name: each.shipped for name, each in CONSTANTS.items()}


@contextmanager
def constants(values: Mapping[str, float]) -> Iterator[None]:
    """Set constants of the estimator by their names in CONSTANTS; afterwards all are what they were.

    A constant that is the default of a parameter is bound when its function is made, so the defaults are set too.
    """
    before: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    try:
        for name, value in values.items():
            for (module, attribute), new in CONSTANTS[name].changes(value).items():
                old = getattr(module, attribute)
                for function in [each for each in vars(module).values() if isinstance(each, FunctionType)]:
                    defaults = function.__defaults__ or ()
                    if any(default is old for default in defaults):
                        put(function, "__defaults__", tuple(new if default is old else default for default in defaults))
                put(module, attribute, new)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)
