"""A config from a file and from overrides such as ``train.steps=200``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ssl_zoo.config import RunConfig

__all__ = ["load_config", "load_values"]

_SHORT = ("algorithm", "data", "model")  # sections for which a word is enough


def load_config(path: str | Path | None = None, overrides: Sequence[str] = ()) -> RunConfig:
    """A YAML or JSON file, then overrides such as ``train.steps=200``.

    ``algorithm=NAME``, ``data=NAME`` and ``model=NAME`` replace the whole section, the file's options included.

    Examples
    --------
    >>> config = load_config(overrides=["algorithm=mixmatch", "algorithm.options.T=0.4"])
    Traceback (most recent call last):
        ...
    ValueError: ...
    >>> config = load_config(overrides=["algorithm=mixmatch", "algorithm.options.temperature=0.4", "pool.r=0.5"])
    >>> config.algorithm.options, config.pool.r
    ({'temperature': 0.4}, 0.5)
    """
    return RunConfig.from_dict(load_values(path, overrides, names=_SHORT))


def load_values(
    path: str | Path | None = None, overrides: Sequence[str] = (), *, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Keys of a YAML or JSON file, with overrides such as ``train.steps=200``.

    Parameters
    ----------
    path : path, optional
    overrides : sequence of str
    names : sequence of str
        Sections for which a word is enough: it is their name, and as an override replaces the section.
    """
    try:
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException
        from yaml import YAMLError  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("config files and overrides need omegaconf: pip install 'ssme[zoo]'") from error
    try:
        loaded = {} if path is None else OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no config file {path}.") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; name a config file.") from None
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(loaded, dict):
        raise ValueError(f"{path} must hold keys such as 'algorithm' and 'train', not a list.")
    merged: Any = OmegaConf.create(_names_as_mappings(loaded, names))
    # Whole sections first, so that the order of the words does not matter.
    for text in sorted(overrides, key=lambda text: text.partition("=")[0].strip() not in names):
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"the override {text!r} must read key=value, such as train.steps=200.")
        key = key.strip()
        try:
            if key in names:  # another algorithm does not know the options of the one in the file
                merged[key] = {"name": value.strip()}
            else:
                merged = OmegaConf.merge(merged, OmegaConf.from_dotlist([f"{key}={value}"]))
        except (YAMLError, OmegaConfBaseException) as error:
            raise ValueError(f"the override {text!r} cannot be read: {' '.join(str(error).split())}") from error
    values = OmegaConf.to_container(merged, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def _names_as_mappings(values: dict[Any, Any], names: Sequence[str]) -> dict[Any, Any]:
    """``algorithm: fixmatch`` -> ``algorithm: {name: fixmatch}``, so that overrides find their place."""
    return {k: {"name": v} if k in names and isinstance(v, str) else v for k, v in values.items()}
