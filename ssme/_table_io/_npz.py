"""The npz format "ssme-scores/1": plain numpy arrays, no pickle."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ssme._table_io._columns import choose_layout
from ssme._table_io._frames import two_classes
from ssme._table_io._parts import ReadOptions, TableParts
from ssme._validation import argument, as_text, first_few
from ssme._validation._text import to_text

FORMAT = "ssme-scores/1"
GROUP = "groups__"
KNOWN = {"format", "scores", "labels", "model_names", "class_names", "row_ids", "score_type", "label_weight"}


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Load the arrays that this package knows; what needs pickle is refused, for pickle can run code."""
    arrays = {}
    key = ""
    try:
        # numpy leaves a file that it cannot read open, so the file is opened here.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            keys = list(archive.files)
            for key in keys:
                if key in KNOWN or key.startswith(GROUP):
                    arrays[key] = archive[key]
                    if not isinstance(arrays[key], np.ndarray):  # numpy hands out bytes of an unknown kind as they are
                        raise ValueError(f"{key} is no array")
    except ValueError as error:
        if "pickle" in str(error):
            raise ValueError(
                f"the array {key!r} is pickled, and unpickling can run code: save it as numbers or text, "
                f"for instance {key or 'array'}.astype(str)."
            ) from error
        raise ValueError(f"the file is truncated or damaged ({error}); write or copy it again.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ValueError(f"the file is truncated or damaged ({error}); write or copy it again.") from error
    if not arrays:
        raise ValueError(f"the file has none of the arrays scores and labels, but {first_few(keys) or 'nothing'}.")
    return arrays


def label_texts(arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the labels as class names: the codes of our own format are looked up, others are as they stand."""
    labels = arrays.get("labels")
    if labels is None or str(arrays.get("format", "")) != FORMAT or "class_names" not in arrays:
        return labels
    codes = np.asarray(labels)
    names = as_text(arrays["class_names"], "class_names")
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or ((codes < -1) | (codes >= len(names))).any():
        raise ValueError(f"labels must be codes from -1 to {len(names) - 1} in the format {FORMAT}.")
    return np.array([*names, None], dtype=object)[codes]


def read_npz(path: Path, options: ReadOptions) -> TableParts:
    """Read a table; a plain npz needs `scores` alone, (n, M, K) or, one column a model or class, (n, C)."""
    arrays = load_arrays(path)
    if "scores" not in arrays:
        raise ValueError(f"the file has no array called scores, but {first_few(arrays)}.")
    scores: np.ndarray = arrays["scores"]
    models: Any = arrays.get("model_names")
    classes: Any = arrays.get("class_names")
    if classes is None and options.class_names is not None:
        classes = np.asarray(options.class_names)
    if scores.ndim == 2 and scores.dtype.kind in "fiub" and _is_one_model(scores, models, classes, options):
        scores, models = scores[:, None, :], [options.model_name or "model"] if models is None else models
    if models is None and scores.ndim == 2 and scores.shape[1] == 1:
        models = [options.model_name or "model"]
    score_type = _score_type(arrays, options)
    if scores.ndim == 2:
        classes = np.array(["0", "1"]) if classes is None else classes
        scores = two_classes(scores.astype(np.float64), score_type) if scores.dtype.kind in "fiub" else scores
    return TableParts(
        scores=scores,
        labels=label_texts(arrays),
        model_names=models,
        class_names=classes,
        row_ids=None if "row_ids" not in arrays else as_text(arrays["row_ids"], "row_ids"),
        groups={k[len(GROUP) :]: v for k, v in arrays.items() if k.startswith(GROUP)},
        score_type=score_type,
        label_weight=arrays.get("label_weight"),
    )


def _is_one_model(scores: np.ndarray, models: Any, classes: Any, options: ReadOptions) -> bool:
    if options.layout in ("model", "binary"):
        return options.layout == "model"
    if models is not None and len(models) == scores.shape[1]:
        return False
    columns = [to_text(c) for c in (range(scores.shape[1]) if classes is None else classes)]
    if len(columns) != scores.shape[1]:
        return False
    return choose_layout(scores.astype(np.float64), columns, options) == "model"


def _score_type(arrays: Mapping[str, np.ndarray], options: ReadOptions) -> str:
    if "score_type" not in arrays:
        return options.score_type
    own = str(arrays["score_type"])
    if options.score_type == "logit" and own != "logit":
        said = argument("score_type", "logit")
        raise ValueError(f"{said} was passed, but the file says that its scores are {own!r}; leave it out.")
    return own


def write_npz(path: Path, parts: TableParts, codes: np.ndarray) -> None:
    """Write a table; `codes` are the labels as class codes."""
    texts = {"model_names": parts.model_names, "class_names": parts.class_names, "row_ids": parts.row_ids}
    texts |= {GROUP + name: values for name, values in parts.groups.items()}
    arrays = {key: np.asarray(values, dtype=str) for key, values in texts.items()}
    if parts.label_weight is not None:
        arrays["label_weight"] = parts.label_weight
    words = {"format": np.array(FORMAT), "score_type": np.array(parts.score_type)}
    with open(path, "wb") as file:  # given a name, numpy would append .npz to it
        np.savez_compressed(file, allow_pickle=False, scores=parts.scores, labels=codes, **words, **arrays)
