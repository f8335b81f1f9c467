"""torch modules and a loader -> ScoreTable (extra ``zoo`` or ``hf``, or torch by itself)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from ssme._validation import argument, check_groups, check_labels, check_row_ids
from ssme.adapters._classes import LabelMapping, find_classes, log_softmax, rename_outputs, to_classes
from ssme.adapters._extras import need
from ssme.adapters._labels import labels_by_name
from ssme.adapters._named import named_models
from ssme.adapters._progress import Progress, advancing
from ssme.score_table import ScoreTable

__all__ = ["collect_scores"]

Output = Literal["logit", "log_probability", "probability"]
WHO = "the torch adapter"


def collect_scores(
    modules: Any,
    loader: Any,
    *,
    class_names: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    label_mapping: LabelMapping | None = None,
    output: Output = "logit",
    forward: Callable[[Any, Any], Any] | None = None,
    labels: Any = None,
    row_ids: Any = None,
    groups: Any = None,
    device: Any = None,
    progress: Progress = False,
) -> ScoreTable:
    """Scores of several modules on the batches of one loader, which is read once.

    Parameters
    ----------
    modules : nn.Module, or list or dict of these
        Names are the keys of a dict, else the names of their types.
    loader : iterable of batches
        A DataLoader that does not shuffle, or a list. A batch is a tensor, ``(inputs, labels)``, or a dict of tensors
        that is passed by name.
    class_names : sequence, or dict of module name to sequence, optional
        What the outputs stand for, in their order: the same for all modules, or for each its own, matched by name. By
        default "0", "1", ...
    label_mapping : dict, optional
        As in :func:`ssme.adapters.huggingface.collect_scores`.
    output : {"logit", "log_probability", "probability"}
        What the modules give, (batch, K); one number a row is that of the second of two classes.
    forward : callable, optional
        ``forward(module, inputs)`` in the place of ``module(inputs)``, for instance to choose one of several outputs.
    labels : array-like of shape (n,), or "batch", optional
        "batch" takes them from the loader: the second part of a batch, or its entry "labels". -1 is unlabeled.
    row_ids : array-like of shape (n,), optional
        By default "0", "1", ...
    groups : dict, DataFrame or array of shape (n,), optional
    device : torch device, optional
        Where batches go; by default where each module is. Modules are never moved.
    progress : bool or callable

    Returns
    -------
    ScoreTable
        Probabilities. Modules run in evaluation mode without gradients, and come back in the mode they were in.

    Raises
    ------
    ImportError
        Where torch is not installed.
    ValueError, TypeError
        For a loader that shuffles, outputs of another shape than the classes, or numbers that are not finite.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> nets = {"small": torch.nn.Linear(4, 2), "large": torch.nn.Linear(4, 2)}  # doctest: +SKIP
    >>> data = torch.utils.data.TensorDataset(torch.zeros(6, 4), torch.tensor([0, 1, -1, -1, -1, -1]))  # doctest: +SKIP
    >>> loader = torch.utils.data.DataLoader(data, batch_size=4)  # doctest: +SKIP
    >>> collect_scores(nets, loader, class_names=["no", "yes"], labels="batch")  # doctest: +SKIP
    ScoreTable(6 rows, 2 models, 2 classes, 2 labeled)
    """
    torch = need("torch", "zoo", WHO)
    if output not in ("logit", "log_probability", "probability"):
        raise ValueError(f"output must be 'logit', 'log_probability' or 'probability', got {output!r}.")
    named = named_models(modules, lambda each: type(each).__name__, lambda each: isinstance(each, torch.nn.Module))
    for name, each in named.items():
        if not isinstance(each, torch.nn.Module):
            raise TypeError(f"the model {name!r} must be a torch module, got {type(each).__name__}.")
    _check_loader(loader, torch)
    raw, found_labels = _run(named, loader, output, forward, device, labels, progress, torch)
    n = len(next(iter(raw.values())))
    outputs = rename_outputs(_output_names(raw, class_names), label_mapping)
    given = (
        None if class_names is None or isinstance(class_names, Mapping) or label_mapping is not None else class_names
    )
    classes = find_classes(outputs, given)
    own = found_labels if isinstance(labels, str) else labels
    shared = labels_by_name(own, classes, given=given is not None)
    check_labels(shared, n, len(classes), class_names=classes, name=argument("labels"))
    scores = np.stack([np.exp(to_classes(raw[name], outputs[name], classes)) for name in named], axis=1)
    return ScoreTable.from_arrays(
        scores,
        shared,
        model_names=list(named),
        class_names=classes,
        row_ids=check_row_ids(row_ids, n, argument("row_ids")),
        groups=check_groups(groups, n),
    )


def _check_loader(loader: Any, torch: Any) -> None:
    """Refuse what cannot be matched to rows."""
    if not hasattr(loader, "__iter__") or isinstance(loader, (str, Mapping)):
        raise TypeError(f"loader must be an iterable of batches, got {type(loader).__name__}.")
    sampler = getattr(loader, "sampler", None)
    if isinstance(sampler, (torch.utils.data.RandomSampler, torch.utils.data.WeightedRandomSampler)):
        raise ValueError("loader shuffles its rows, so nothing says which is which; make it with shuffle=False.")
    if getattr(loader, "drop_last", False) and getattr(loader, "batch_size", None):
        raise ValueError("loader leaves out its last rows; make it with drop_last=False.")


def _run(
    named: Mapping[str, Any],
    loader: Any,
    output: Output,
    forward: Any,
    device: Any,
    labels: Any,
    progress: Progress,
    torch: Any,
) -> tuple[dict[str, np.ndarray], list[Any] | None]:
    """Log probabilities (n, K) of every module, and the labels of the batches where they are wanted."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in named}
    found: list[Any] | None = [] if isinstance(labels, str) else None
    if isinstance(labels, str) and labels != "batch":
        raise ValueError(f"labels must be an array or 'batch', got {labels!r}.")
    total = len(loader) * len(named) if hasattr(loader, "__len__") else 0
    with _evaluating(named.values()), torch.inference_mode(), advancing(total, progress) as advance:
        for batch in loader:
            inputs, own = _split(batch)
            if found is not None:
                if own is None:
                    raise ValueError("labels='batch', but a batch has no labels; pass them as an array.")
                found += own.tolist() if hasattr(own, "tolist") else list(own)
            for name, module in named.items():
                place = device if device is not None else next(iter(module.parameters()), torch.empty(0)).device
                parts[name].append(_log_p(name, _call(module, _moved(inputs, place, torch), forward), output, torch))
                advance(name, 1)
    if not parts[next(iter(named))]:
        raise ValueError("loader has no batches; there is nothing to score.")
    return {name: np.concatenate(each) for name, each in parts.items()}, found


@contextmanager
def _evaluating(modules: Any) -> Iterator[None]:
    modes = [(part, part.training) for module in modules for part in module.modules()]
    for part, _ in modes:
        part.training = False
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _split(batch: Any) -> tuple[Any, Any]:
    """Inputs and labels of a batch."""
    if isinstance(batch, Mapping):
        return {k: v for k, v in batch.items() if k != "labels"}, batch.get("labels")
    if isinstance(batch, (list, tuple)):
        return batch[0], batch[1] if len(batch) > 1 else None
    return batch, None


def _moved(inputs: Any, device: Any, torch: Any) -> Any:
    if isinstance(inputs, Mapping):
        return {name: _moved(value, device, torch) for name, value in inputs.items()}
    return inputs.to(device) if isinstance(inputs, torch.Tensor) else inputs


def _call(module: Any, inputs: Any, forward: Any) -> Any:
    if forward is not None:
        return forward(module, inputs)
    return module(**inputs) if isinstance(inputs, Mapping) else module(inputs)


def _log_p(name: str, out: Any, output: Output, torch: Any) -> np.ndarray:
    """Log probabilities (batch, K) in double precision."""
    out = getattr(out, "logits", out)
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"{name} gives a {type(out).__name__} and no tensor; choose its output with forward=.")
    values = out.detach().double().cpu().numpy()
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1:
        second = {"logit": values, "probability": values, "log_probability": np.exp(values)}[output]
        first = np.zeros_like(values) if output == "logit" else 1 - second
        values = np.stack([first, second], axis=1)
        output = "logit" if output == "logit" else "probability"
    if values.ndim != 2:
        raise ValueError(f"{name} gives outputs of shape {values.shape}; they must be (batch, classes).")
    if np.isnan(values).any() or (output == "logit" and not np.isfinite(values).all()):
        raise ValueError(f"{name} gives scores that are not finite; correct the module, or leave it out.")
    if output == "probability":
        if (values < 0).any() or (np.abs(values.sum(axis=1) - 1) > 1e-3).any():
            raise ValueError(f"{name} gives numbers that are no probabilities; say what they are with output=.")
        with np.errstate(divide="ignore"):
            return np.log(values / values.sum(axis=1, keepdims=True))
    return log_softmax(values)


def _output_names(
    raw: Mapping[str, np.ndarray], class_names: Sequence[Any] | Mapping[str, Sequence[Any]] | None
) -> dict[str, list[Any]]:
    """What the outputs of every module stand for."""
    found = {}
    for name, scores in raw.items():
        own = class_names.get(name) if isinstance(class_names, Mapping) else class_names
        if isinstance(class_names, Mapping) and own is None:
            raise ValueError(f"{argument('class_names')} does not name the outputs of {name!r}.")
        names = list(range(scores.shape[1])) if own is None else list(own)
        if len(names) != scores.shape[1]:
            raise ValueError(
                f"{name} has {scores.shape[1]} outputs, but {argument('class_names')} names {len(names)}; name each."
            )
        found[name] = names
    return found
