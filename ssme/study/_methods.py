"""What is compared: the methods by name, and the references that are no method."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ssme.baselines import BASELINES, estimate_with
from ssme.metrics import get_metric

ALONE = "labeled-only"  # every reduction is against this one
ALL_LABELS = "all-labels"  # labeled-only with the labels of all drawn rows, which no method sees
CURVE = "label-curve"  # labeled-only with more labels than the budgets, for the effective sample size
REFERENCES = (ALL_LABELS, CURVE)
DEFAULT_METHODS = ("ssme", ALONE, ALL_LABELS)


def method_names() -> tuple[str, ...]:
    """Names that a study takes: SSME, every baseline, and the reference "all-labels".

    Examples
    --------
    >>> {"ssme", "labeled-only", "all-labels"} <= set(method_names())
    True
    """
    return tuple(dict.fromkeys(["ssme", *BASELINES, ALL_LABELS]))


def check_methods(methods: str | Sequence[str]) -> list[str]:
    """The names as a list without repetition; an unknown one is an error that offers the nearest."""
    names = list(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    if not names:
        raise ValueError("methods is empty: name at least one, such as 'ssme'.")
    for name in names:
        if name not in method_names():
            close = get_close_matches(str(name), method_names(), n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "there is no such method."
            raise ValueError(f"methods names {name!r}: {hint} Known are {', '.join(method_names())}.")
    return names


def cannot_give(methods: Sequence[str], metrics: Sequence[str], n_classes: int) -> dict[str, dict[str, str]]:
    """Why a method has no estimate of a metric, by method and metric, where that is so."""
    found: dict[str, dict[str, str]] = {}
    for method in methods:
        for metric in metrics:
            reason = BASELINES[method].gives(get_metric(metric, n_classes)) if method in BASELINES else None
            if reason is not None:
                found.setdefault(method, {})[metric] = reason
    return found


def estimate_all(
    method: str,
    scores: NDArray[np.float64],
    codes: NDArray[np.int64],
    n_labeled: int,
    metrics: Sequence[str],
    level: float,
    seed: int,
    n_draws: int | None = None,
) -> NDArray[np.float64]:
    """Estimate, lower and upper end (3, metrics, M) from rows of which the first `n_labeled` show their label."""
    shown = codes.copy()
    if method != ALL_LABELS:
        shown[n_labeled:] = -1
    name = ALONE if method == ALL_LABELS else method
    frame = estimate_with(name, scores, shown, metrics, level=level, random_state=seed, n_draws=n_draws)
    return values_of(frame, metrics, scores.shape[1])


def values_of(frame: pd.DataFrame, metrics: Sequence[str], n_models: int) -> NDArray[np.float64]:
    """The tidy table of estimates as an array (3, metrics, M)."""
    by_metric = dict(tuple(frame.groupby("metric", sort=False)))
    out = np.empty((3, len(metrics), n_models))
    for i, metric in enumerate(metrics):
        out[:, i] = by_metric[metric][["estimate", "lower", "upper"]].to_numpy(dtype=np.float64).T
    return out
