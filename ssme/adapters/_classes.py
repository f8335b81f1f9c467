"""Outputs of a model -> classes of the table, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from ssme._validation import argument, check_names, first_few

SHOWN = 20
LabelMapping = Mapping[str, Any]


def rename_outputs(outputs: Mapping[str, Sequence[Any]], label_mapping: LabelMapping | None) -> dict[str, list[str]]:
    """Names of the outputs of every model, as the caller wants them called.

    Parameters
    ----------
    outputs : mapping of model name to the names of its outputs
    label_mapping : mapping, optional
        Either ``{output: class}``, for every model that has such an output, or ``{model: {output: class}}``, or
        ``{model: [class of its first output, of its second, ...]}``. Outputs that are not named keep their name.

    Raises
    ------
    ValueError, TypeError
        For a model or an output that is not there.

    Examples
    --------
    >>> rename_outputs({"a": ["NEG", "POS"], "b": ["LABEL_0", "LABEL_1"]},
    ...                {"a": {"NEG": "negative", "POS": "positive"}, "b": ["positive", "negative"]})
    {'a': ['negative', 'positive'], 'b': ['positive', 'negative']}
    """
    own = {model: list(check_names(names, len(names), f"labels of {model}")) for model, names in outputs.items()}
    word = argument("label_mapping")
    if label_mapping is None:
        return own
    if not isinstance(label_mapping, Mapping):
        raise TypeError(f"{word} must be a mapping from labels, or from models, got {type(label_mapping).__name__}.")
    if all(not isinstance(value, (Mapping, list, tuple)) for value in label_mapping.values()):
        _known(label_mapping, {name for names in own.values() for name in names}, "no model has the label")
        return {model: [str(label_mapping.get(name, name)) for name in names] for model, names in own.items()}
    _known(label_mapping, own, "there is no model")
    return {model: _renamed(model, names, label_mapping.get(model, {})) for model, names in own.items()}


def _renamed(model: str, names: list[str], mapping: Any) -> list[str]:
    word = argument("label_mapping")
    if isinstance(mapping, Mapping):
        _known(mapping, names, f"{model} does not have the label")
        return [str(mapping.get(name, name)) for name in names]
    if not isinstance(mapping, (list, tuple)):
        raise TypeError(f"{word}[{model!r}] must be a mapping or a list, got {type(mapping).__name__}.")
    if len(mapping) != len(names):
        raise ValueError(
            f"{word}[{model!r}] has {len(mapping)} classes, but the model has {len(names)} outputs "
            f"({first_few(names, SHOWN)}); name one for each."
        )
    return [str(name) for name in mapping]


def _known(asked: Any, there: Any, complaint: str) -> None:
    for name in asked:
        if name not in there:
            close = get_close_matches(str(name), [str(each) for each in there], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there is {first_few(there, SHOWN)}."
            raise ValueError(f"{argument('label_mapping')}: {complaint} {name!r}{hint}")


def find_classes(outputs: Mapping[str, Sequence[str]], class_names: Sequence[Any] | None) -> tuple[str, ...]:
    """The classes of the table: those asked for, else those of the first model; every model must have just these.

    Parameters
    ----------
    outputs : mapping of model name to the (renamed) names of its outputs
        Outputs of one model may share a name: their probabilities are summed.
    class_names : sequence, optional

    Raises
    ------
    ValueError
        Where a model has other classes; the message shows both lists.

    Examples
    --------
    >>> find_classes({"a": ["no", "yes"], "b": ["yes", "no"]}, None)
    ('no', 'yes')
    >>> find_classes({"a": ["no", "yes"], "b": ["NO", "YES"]}, None)
    Traceback (most recent call last):
    ValueError: 'b' has the labels 'NO', 'YES', but 'a' has 'no', 'yes'; where they mean the same, say so with
    label_mapping={'b': {'NO': 'no', 'YES': 'yes'}}.
    """
    first = next(iter(outputs))
    if class_names is None:
        classes, owner = tuple(dict.fromkeys(outputs[first])), f"{first!r} has"
    else:
        classes = check_names(class_names, len(list(class_names)), argument("class_names"))
        owner = f"{argument('class_names')} is"
    for model, names in outputs.items():
        if set(names) != set(classes):
            raise ValueError(
                f"{model!r} has the labels {first_few(names, SHOWN)}, but {owner} {first_few(classes, SHOWN)}; "
                f"where they mean the same, say so with {_example(model, list(names), classes)}."
            )
    if len(classes) < 2:
        raise ValueError(f"{first!r} has one class only ({classes[0]!r}); there must be two or more.")
    return classes


def _example(model: str, names: list[str], classes: tuple[str, ...]) -> str:
    """How the mapping of this model might be written; a list where the names alone tell nothing."""
    folded = {name.casefold(): name for name in classes}
    pairs = {name: folded.get(name.casefold()) for name in dict.fromkeys(names) if name not in classes}
    if pairs and all(pairs.values()) and len(pairs) <= 5:
        return f"label_mapping={{{model!r}: {pairs!r}}}"
    return f"label_mapping={{{model!r}: [the class of its first label, of its second, ...]}}"


def to_classes(log_p: np.ndarray, names: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """Columns in the order of the classes; of outputs that share a name the probabilities are summed.

    Parameters
    ----------
    log_p : ndarray of shape (n, J)
        Log probabilities, or logits.
    names : sequence of J str
    classes : sequence of K str

    Returns
    -------
    ndarray of shape (n, K)

    Examples
    --------
    >>> np.exp(to_classes(np.log([[0.2, 0.5, 0.3]]), ["good", "bad", "good"], ["bad", "good"])).round(2)
    array([[0.5, 0.5]])
    """
    columns = [np.flatnonzero([name == each for name in names]) for each in classes]
    return np.stack([np.logaddexp.reduce(log_p[:, index], axis=1) for index in columns], axis=1)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log probabilities (n, K) in double precision.

    Examples
    --------
    >>> np.exp(log_softmax(np.array([[1000.0, 1000.0]])))
    array([[0.5, 0.5]])
    """
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
