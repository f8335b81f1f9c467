"""Checks of single numbers, words and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ssme._validation._wording import at_row

SCORE_TYPES = ("probability", "logit")


MOST_WEIGHT = 1e9
LEAST_TOTAL = 0.5  # rows; below, no draw of the Bayesian bootstrap has any weight that can be told from 0
MOST_SEED = 2**32 - 1


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
        Weights from 0 to 1e9, not all of them 0. None counts every row once, a number gives every row that weight.
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
    bad = ~np.isfinite(weights) | (weights < 0) | (weights > MOST_WEIGHT)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"sample_weight must lie between 0 and {MOST_WEIGHT:g}, but it is {weights[row]:g} at {at_row(row)}; a "
            "weight is how many rows a row stands for."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row; at least one row must count.")
    if weights.sum() < LEAST_TOTAL:
        raise ValueError(
            f"sample_weight sums to {weights.sum():g}, less than a row: a weight is how many rows a row stands for. "
            "Multiply the weights so that they sum to the number of rows."
        )
    return weights


def check_label_weight(label_weight: Any, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray | None:
    """Check what the label of each row counts for.

    Parameters
    ----------
    label_weight : array-like of shape (n,) or None
        From 0 to 1e9, and not 0 for every label. NaN counts as 1 where a row is unlabeled.
    codes : array of shape (n,)
        Class codes, -1 = unlabeled.
    weights : array of shape (n,), optional
        Row weights; a row of weight 0 is none.

    Examples
    --------
    >>> check_label_weight([2, float("nan")], np.array([0, -1]))
    array([2., 1.])
    """
    if label_weight is None:
        return None
    try:
        found = np.array(label_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("label_weight must be numbers: pass one for each row, such as batch.label_weight.") from None
    labeled = codes >= 0 if weights is None else (codes >= 0) & (weights > 0)
    if found.shape != codes.shape:
        raise ValueError(
            f"label_weight has the shape {found.shape}, but there are {len(codes)} rows: pass ({len(codes)},)."
        )
    found[np.isnan(found) & (codes < 0)] = 1.0
    bad = ~np.isfinite(found) | (found < 0) | (found > MOST_WEIGHT)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"label_weight must lie between 0 and {MOST_WEIGHT:g}, but it is {found[row]:g} at {at_row(row)}; it is 1 "
            "where labels are drawn at random."
        )
    if labeled.any() and not found[labeled].any():
        raise ValueError("label_weight is 0 for every labeled row: at least one label must count.")
    return found


def effective_rows(weights: np.ndarray) -> float:
    """How many rows of weight 1 weights (n,) amount to: the lesser of their sum and of (sum w)^2 / sum w^2.

    The second is the size of an even sample that varies as little (Kish 1965, Survey Sampling).

    Examples
    --------
    >>> effective_rows(np.array([1.0, 1.0, 2.0])), effective_rows(np.array([0.5, 0.5]))
    (2.6666666666666665, 1.0)
    """
    total = float(weights.sum())
    return min(total, total**2 / float(weights @ weights)) if total > 0 else 0.0


def check_seed(random_state: Any, name: str = "random_state") -> Any:
    """Check what random numbers start from: None, a whole number below 2^32, or a generator of numpy.

    Returns
    -------
    What was given.

    Examples
    --------
    >>> check_seed(0)
    0
    >>> check_seed(-1)
    Traceback (most recent call last):
    ...
    ValueError: random_state must be None, a whole number from 0 to 4294967295 or a numpy RandomState, got -1.
    """
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, (bool, np.bool_))
    if random_state is None or isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return random_state
    if not whole or not 0 <= random_state <= MOST_SEED:
        raise ValueError(
            f"{name} must be None, a whole number from 0 to {MOST_SEED} or a numpy RandomState, got {random_state!r}."
        )
    return random_state
