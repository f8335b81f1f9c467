"""Algorithms by name: register, list, create. An algorithm of your own is one file that never touches this package.

Examples
--------
Supervised training with label smoothing, written outside the package. Annotated class attributes with a default are
options:

>>> import torch
>>> from ssl_zoo.algorithms.base import Algorithm, StepContext, StepResult, forward
>>> from ssl_zoo.losses import cross_entropy
>>> from ssl_zoo.registry import create_algorithm, register, unregister
>>>
>>> @register("smooth-supervised")
... class SmoothSupervised(Algorithm):
...     '''(1 - smoothing) CE(z, y) - smoothing mean_c log p_c on the labeled batch.'''
...
...     needs = ("l_weak",)  # the views that views() draws, in this order
...     uses_unlabeled = False  # the trainer then never reads the unlabeled pool
...     bn_policy = "labeled"
...     smoothing: float = 0.1  # an option, with its default
...
...     def compute(self, ctx: StepContext) -> StepResult:
...         (x,) = self.views(ctx)
...         (labeled,) = forward(ctx.model, x)
...         hard = cross_entropy(labeled.logits, ctx.batch.y_l).mean()
...         flat = -labeled.logits.log_softmax(-1).mean()
...         loss = (1 - self.smoothing) * hard + self.smoothing * flat
...         return StepResult(loss=loss, loss_l=hard, loss_u=flat)
>>>
>>> algorithm = create_algorithm("smooth-supervised", n_classes=10, smoothing=0.2)
>>> algorithm.options()
{'mu': 7, 'smoothing': 0.2}
>>> create_algorithm("smooth-supervised", n_classes=10, smothing=0.2)
Traceback (most recent call last):
    ...
ValueError: smooth-supervised has no option 'smothing' (did you mean 'smoothing'?); its options are: mu, smoothing.

Import the file before you train (`import my_algorithm`, or `import_file` from a path, which is what ``ssl-zoo train
--import`` does), and the name is known everywhere. To take it away again:

>>> unregister("smooth-supervised")
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ssl_zoo.algorithms.base import Algorithm

__all__ = ["algorithm_class", "create_algorithm", "import_file", "list_algorithms", "register", "unregister"]

_REGISTRY: dict[str, type[Algorithm]] = {}
_T = TypeVar("_T", bound="type[Algorithm]")


def register(name: str) -> Callable[[_T], _T]:
    """Class decorator that makes an Algorithm known by ``name``. Case, ``-`` and ``_`` do not count; a taken name is
    an error."""

    def decorate(cls: _T) -> _T:
        taken = _REGISTRY.get(_key(name))
        # The same file imported again is not a rival.
        if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(
                f"register: the name {name!r} is taken by {taken.__module__}.{taken.__qualname__}; choose another name."
            )
        cls.name = name
        _REGISTRY[_key(name)] = cls
        return cls

    return decorate


def unregister(name: str) -> None:
    """Forget an algorithm, for tests and notebooks that define one twice."""
    del _REGISTRY[_key(algorithm_class(name).name)]


def import_file(path: str | Path) -> None:
    """Run a Python file for the algorithms that it registers.

    Examples
    --------
    >>> import_file("nowhere.py")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no file nowhere.py with algorithms to import.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path} with algorithms to import.")
    name = f"ssl_zoo_file_{path.resolve().stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file; its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"{path} could not be imported: {type(error).__name__}: {error}") from error


def list_algorithms(open_world: bool | None = None) -> list[str]:
    """Names of all algorithms, sorted.

    Parameters
    ----------
    open_world : bool, optional
        True: only those that also find new classes. False: only those of a closed set. None: all.

    Examples
    --------
    >>> list_algorithms(open_world=True)
    ['orca', 'sorl']
    """
    _load()
    return sorted(cls.name for cls in _REGISTRY.values() if open_world is None or cls.open_world == open_world)


def algorithm_class(name: str) -> type[Algorithm]:
    """The class behind a name; an unknown name is an error that shows what is near."""
    _load()
    cls = _REGISTRY.get(_key(name))
    if cls is None:
        near = difflib.get_close_matches(_key(name), _REGISTRY, n=3, cutoff=0.5)
        names = " or ".join(repr(_REGISTRY[k].name) for k in near)
        hint = f"did you mean {names}?" if near else "see list_algorithms()."
        raise ValueError(f"There is no algorithm {name!r}; {hint}")
    return cls


def create_algorithm(
    name: str, *, n_classes: int, n_labeled: int | None = None, n_unlabeled: int | None = None, **options: Any
) -> Algorithm:
    """Make an algorithm. It holds no student; call its ``build(model)`` before the first step.

    Parameters
    ----------
    name : str
        One of `list_algorithms`.
    n_classes : int
        Classes that have labels; open-world methods add ``n_novel`` to it.
    n_labeled, n_unlabeled : int, optional
        Sizes of the two sets. Methods that remember each unlabeled sample need the second.
    **options
        As the class documents them; an unknown one is an error that lists them.

    Examples
    --------
    >>> create_algorithm("FixMatch", n_classes=10, tau=0.9).options()["tau"]
    0.9
    >>> create_algorithm("fixmach", n_classes=10)
    Traceback (most recent call last):
        ...
    ValueError: There is no algorithm 'fixmach'; did you mean 'fixmatch' or ...?
    """
    return algorithm_class(name)(n_classes=n_classes, n_labeled=n_labeled, n_unlabeled=n_unlabeled, **options)


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c not in "-_ ")


def _load() -> None:
    importlib.import_module("ssl_zoo.algorithms")
