"""Scores of any kind -> one float64 array (n, M, K); what cannot be scores is refused with its row and model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ssme._validation._numbers import check_score_type
from ssme._validation._wording import argument, at_row, counted

OVERSHOOT = 1e-6  # float32 softmax lands this far outside [0, 1]; it is clipped
SUM_TOLERANCE = 1e-2  # rounded files and float16


def check_scores(scores: Any, *, score_type: str = "probability", name: str = "scores") -> np.ndarray:
    """Turn scores of several classifiers into probabilities of one shape.

    Parameters
    ----------
    scores : array-like of shape (n, M, K) or (n, M), or DataFrame of shape (n, M)
        Scores of M classifiers for K classes. Two dimensions: P(class 1) of M binary classifiers, or with
        `score_type="logit"` their log-odds of class 1.
    score_type : {"probability", "logit"}
        Logits are turned into probabilities by the softmax (the logistic function for two dimensions).
    name : str
        How errors call the scores.

    Returns
    -------
    ndarray of shape (n, M, K), float64
        A fresh array. Probabilities that miss 1 in sum by rounding (at most .01) are returned as they are.

    Raises
    ------
    ValueError, TypeError
        NaN, infinite values, rows that do not sum to 1, logits that are not declared, wrong shapes, text.

    Examples
    --------
    >>> check_scores([[0.25], [1.0]])
    array([[[0.75, 0.25]],
           [[0.  , 1.  ]]])
    >>> check_scores([[[0.0, 0.0, 0.0]]], score_type="logit").round(3)
    array([[[0.333, 0.333, 0.333]]])
    """
    values = check_score_array(scores, score_type=score_type, name=name)
    if score_type == "probability":
        return values
    values -= values.max(axis=2, keepdims=True)
    np.exp(values, out=values)
    values /= values.sum(axis=2, keepdims=True)
    return values


def check_score_array(
    scores: Any,
    *,
    score_type: str = "probability",
    name: str = "scores",
    model_names: Sequence[str] | None = None,
) -> np.ndarray:
    """Check scores as :func:`check_scores` does, but keep logits as logits: (n, M, K), [0, log-odds] for (n, M).

    `model_names` are used in errors alone.

    Examples
    --------
    >>> check_score_array([[2.0]], score_type="logit")
    array([[[0., 2.]]])
    """
    check_score_type(score_type)
    values = _as_floats(scores, name)
    _check_shape(values, name)
    _check_finite(values, name, model_names)
    if score_type == "probability":
        values = _check_range(values, name, model_names)
    if values.ndim == 2:
        if score_type == "probability":
            _warn_if_one_model(values, name)
        return np.stack([1 - values if score_type == "probability" else np.zeros_like(values), values], axis=2)
    if score_type == "probability":
        _check_sums(values, name, model_names)
    else:
        _warn_if_probabilities(values, name)
    return values


def _as_floats(scores: Any, name: str) -> np.ndarray:
    """Convert to a fresh float64 array, or say what is not a number."""
    import pandas as pd

    if sparse.issparse(scores):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array, for instance {name}.toarray().")
    if isinstance(scores, pd.DataFrame):
        return _frame_values(scores, name)
    if isinstance(scores, np.ma.MaskedArray):
        scores = np.ma.filled(scores.astype(np.float64), np.nan)
    try:
        values = np.asarray(scores)
    except ValueError as error:
        raise ValueError(f"{name} is not a regular array, its rows differ in length: {error}") from None
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
    if values.dtype.kind == "O":
        return _object_values(values, name)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got {values.dtype} such as {values.ravel()[:1].tolist()}.")
    return values.astype(np.float64, order="C")


def _object_values(values: np.ndarray, name: str) -> np.ndarray:
    text = next((v for v in values.ravel() if isinstance(v, (str, bytes))), None)
    if text is not None:
        raise TypeError(f"{name} must hold numbers, but it holds the text {text!r}; convert it to float first.")
    try:
        return values.astype(np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers in a regular array: {error}") from None


def _frame_values(frame: Any, name: str) -> np.ndarray:
    from pandas.api.types import is_numeric_dtype

    double = frame.columns[frame.columns.duplicated()]
    if len(double):
        raise ValueError(f"{name} has several columns called {double[0]!r}; rename or drop one.")
    for column, dtype in frame.dtypes.items():
        if not is_numeric_dtype(dtype):
            raise TypeError(f"column {column!r} of {name} holds {dtype}, not numbers; leave it out or convert it.")
    return frame.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def _check_shape(values: np.ndarray, name: str) -> None:
    shape = values.shape
    if values.ndim == 1:
        raise ValueError(
            f"{name} has one dimension, {shape}; Reshape your data: {name}.reshape(-1, 1) is one binary classifier, "
            f"{name}.reshape(1, -1) is one row."
        )
    if values.ndim not in (2, 3):
        raise ValueError(f"{name} must have the shape (n, M, K), or (n, M) for binary classifiers, got {shape}.")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty: 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise ValueError(f"{name} has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if values.ndim == 3 and shape[2] < 2:
        raise ValueError(
            f"{name} has {shape[2]} class (shape={shape}), but at least 2 are needed; "
            "for binary classifiers pass P(class 1) as (n, M)."
        )


def _place(values: np.ndarray, index: Sequence[Any], model_names: Sequence[str] | None) -> str:
    """Name the row and the model of one entry."""
    model = int(index[1])
    return f"{at_row(index[0])}, model {model if model_names is None else repr(model_names[model])}"


def _use_logit() -> str:
    return f"pass {argument('score_type', 'logit')} if they are logits"


def _check_finite(values: np.ndarray, name: str, model_names: Sequence[str] | None) -> None:
    for kind, bad in (("NaN", np.isnan(values)), ("infinite (inf)", np.isinf(values))):
        if bad.any():
            first = np.unravel_index(int(bad.argmax()), values.shape)
            rows = int(bad.reshape(len(values), -1).any(axis=1).sum())
            raise ValueError(
                f"{name} holds {counted(int(bad.sum()), kind + ' value')} in {rows} of {len(values)} rows, the first "
                f"at {_place(values, first, model_names)}; mend or drop these rows, none is dropped in silence."
            )


def _check_range(values: np.ndarray, name: str, model_names: Sequence[str] | None) -> np.ndarray:
    bad = (values < -OVERSHOOT) | (values > 1 + OVERSHOOT)
    if not bad.any():
        return np.clip(values, 0.0, 1.0)
    first = np.unravel_index(int(bad.argmax()), values.shape)
    place = _place(values, first, model_names)
    place = f"{name} must be probabilities in [0, 1], but {place} holds {values[first]:.6g}"
    if values.ndim == 3 and values.min() >= 0 and np.abs(values.sum(axis=2) - 100).max() <= 100 * SUM_TOLERANCE:
        raise ValueError(f"{place}; these look like percentages: divide them by 100.")
    raise ValueError(f"{place}; these look like logits: {_use_logit()}.")


def _check_sums(values: np.ndarray, name: str, model_names: Sequence[str] | None) -> None:
    sums = values.sum(axis=2)
    bad = np.abs(sums - 1) > SUM_TOLERANCE
    if not bad.any():
        return
    first = np.unravel_index(int(bad.argmax()), sums.shape)
    rows = int(bad.any(axis=1).sum())
    raise ValueError(
        f"the probabilities of {name} must sum to 1 over the classes, but {_place(values, first, model_names)} sums to "
        f"{sums[first]:.6g} (it is off by more than {SUM_TOLERANCE} in {rows} of {len(values)} rows); "
        f"rescale them, or {_use_logit()}."
    )


def _warn_if_one_model(values: np.ndarray, name: str) -> None:
    """The output of predict_proba of one model has this shape too, and would be read as several binary models."""
    if values.shape[1] < 2 or np.abs(values.sum(axis=1) - 1).max() > OVERSHOOT or (values == values[0]).all():
        return
    warnings.warn(
        f"every row of {name} sums to 1: if the columns are the classes of ONE model, pass {name}[:, None, :]; "
        f"they are taken for P(class 1) of {values.shape[1]} binary classifiers.",
        stacklevel=4,
    )


def _warn_if_probabilities(values: np.ndarray, name: str) -> None:
    if values.min() < 0 or values.max() > 1 or values.shape[0] < 2 or (values == values[0]).all():
        return
    if np.abs(values.sum(axis=2) - 1).max() <= OVERSHOOT:
        warnings.warn(
            f"{name} are declared as logits, but all are in [0, 1] and every row sums to 1: if they are probabilities, "
            f"pass {argument('score_type', 'probability')}.",
            stacklevel=4,
        )
