"""What is not installed is named together with the command that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, extra: str, who: str) -> Any:
    """Import a module of an extra.

    Parameters
    ----------
    module : str
    extra : str
        Extra of this package that brings it.
    who : str
        What needs it, for the message.

    Raises
    ------
    ImportError
        Where it is not installed, or does not import.

    Examples
    --------
    >>> need("no_such_module", "hf", "the Hugging Face adapter")
    Traceback (most recent call last):
    ImportError: the Hugging Face adapter needs no_such_module, which is not installed: pip install 'ssme[hf]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise ImportError(
                f"{who} needs {module}, which does not import ({error}): pip install 'ssme[{extra}]'"
            ) from error
        raise ImportError(f"{who} needs {module}, which is not installed: pip install 'ssme[{extra}]'") from None
