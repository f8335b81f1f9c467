"""Checks of single numbers, words and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

SCORE_TYPES = ("probability", "logit")


def check_level(level: Any) -> float:
    """Check the level of an interval, a number strictly between 0 and 1.

    Examples
    --------
    >>> check_level(0.9)
    0.9
    """
    try:
        value = float(level)
    except (TypeError, ValueError):
        raise TypeError(f"level must be a number strictly between 0 and 1, got {level!r}.") from None
    if not 0 < value < 1:
        raise ValueError(f"level must be strictly between 0 and 1, got {level!r}; for 90 % pass level=0.9.")
    return value


def check_score_type(score_type: Any) -> str:
    """Check that `score_type` is "probability" or "logit"."""
    if score_type not in SCORE_TYPES:
        raise ValueError(f"score_type must be 'probability' or 'logit', got {score_type!r}.")
    return str(score_type)


def check_sample_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Check the weights of the rows.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), number or None
        Weights of at least 0, not all of them 0. None counts every row once, a number gives every row that weight.
    n_rows : int
        Number of rows of the scores.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        A fresh array.

    Examples
    --------
    >>> check_sample_weight([1, 2], 2)
    array([1., 2.])
    """
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must hold numbers, one for each row.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has the shape {weights.shape}, but there are {n_rows} rows: pass ({n_rows},).")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"sample_weight must be finite and at least 0, but it is {weights[row]:g} at row {row}.")
    if not weights.any():
        raise ValueError("sample_weight is zero in every row; at least one row must count.")
    return weights
