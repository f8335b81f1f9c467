"""Models get names: those the caller gives, else what tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ssme._validation import argument, check_names, first_few


def named_models(models: Any, name_of: Callable[[Any], str], is_one: Callable[[Any], bool]) -> dict[str, Any]:
    """Models by name.

    Parameters
    ----------
    models : mapping of name to model, sequence of models, or one model
    name_of : callable
        Name of a model that was given without one; the names of paths are the shortest ends that differ.
    is_one : callable
        Whether something is one model, though it may look like a sequence of them.

    Raises
    ------
    ValueError, TypeError
        Where there is none, or two have the same name.

    Examples
    --------
    >>> list(named_models(["sweep/a/last", "sweep/b/last"], str, lambda model: isinstance(model, str)))
    ['a/last', 'b/last']
    """
    if isinstance(models, Mapping):
        names, values = list(models), list(models.values())
    else:
        values = [models] if is_one(models) or not isinstance(models, Sequence) else list(models)
        names = shortest([name_of(model) for model in values])
    if not values:
        raise ValueError(f"{argument('models')} is empty; give at least one model.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"two models are called {first_few(dict.fromkeys(twice))}; give them names: {{name: model}}.")
    return dict(zip(check_names(names, len(names), argument("models")), values, strict=True))


def shortest(paths: Sequence[str]) -> list[str]:
    """The shortest ends of paths that differ from one another.

    Examples
    --------
    >>> shortest(["runs/bert", "runs/gpt"]), shortest(["x"])
    (['bert', 'gpt'], ['x'])
    """
    parts = [PurePath(path).parts or (path,) for path in paths]
    for length in range(1, max((len(each) for each in parts), default=0) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)
