"""One call by name, with the table that the estimator gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ssme._fitting import Rows, read_rows
from ssme._tables import to_frame, warn_undefined
from ssme._validation import check_level, check_sample_weight, check_seed
from ssme.baselines._registry import Baseline, get_baseline
from ssme.metrics import MetricSpec, get_metric
from ssme.results import MetricDraws

FEW_LABELS = 10
ACTIVE = "active-testing"


def estimate_with(
    name: str,
    scores: Any,
    y: Any = None,
    metrics: str | MetricSpec | Callable[..., Any] | Iterable[Any] = ("accuracy",),
    *,
    level: float = 0.9,
    score_type: str = "probability",
    class_names: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    sampling_weight: ArrayLike | None = None,
    random_state: Any = None,
    n_draws: int | None = None,
) -> pd.DataFrame:
    """Estimate metrics with one of the methods, by name.

    Parameters
    ----------
    name : str
        A name in ``BASELINES``.
    scores, y, score_type, class_names, sample_weight
        As :class:`ssme.SSME` takes them.
    metrics, level
        As :meth:`ssme.SSME.estimate` takes them.
    sampling_weight : array-like (n,), optional
        "active-testing" alone: what each labeled row counts for, given how it was chosen. See :func:`lure_weights`.
    random_state : int, RandomState or None
    n_draws : int, optional
        Draws behind the interval; by default as many as the method takes itself.

    Returns
    -------
    DataFrame
        The table of :meth:`ssme.SSME.estimate`; the method is the name. A metric that the method cannot give is NaN and
        flagged "not-given"; without labels, what needs them is NaN and flagged "no-labels". A warning has the reason.

    Examples
    --------
    >>> p1 = np.array([[0.9, 0.8], [0.2, 0.4], [0.7, 0.1], [0.3, 0.6]])
    >>> estimate_with("labeled-only", p1, [1, 0, 0, -1], random_state=0).estimate.round(3).tolist()
    [0.667, 1.0]
    """
    method, level = get_baseline(name), check_level(level)
    rows = read_rows(scores, y, sample_weight, score_type, class_names)
    single = isinstance(metrics, (str, MetricSpec)) or callable(metrics)
    specs = [get_metric(each, rows.scores.shape[2]) for each in ([metrics] if single else list(metrics))]  # type: ignore[arg-type]
    if not specs:
        raise ValueError("metrics is empty: name at least one metric, such as 'accuracy'.")
    if n_draws is not None and (isinstance(n_draws, bool) or not isinstance(n_draws, (int, np.integer)) or n_draws < 2):
        raise ValueError(f"n_draws must be a whole number of at least 2, got {n_draws!r}.")
    options: dict[str, Any] = {"seed": _seed(random_state)}
    if n_draws is not None:
        options["n_draws"] = int(n_draws)
    if sampling_weight is not None:
        if name != ACTIVE:
            raise ValueError(f"sampling_weight is for {ACTIVE!r} alone; {name!r} takes rows for chosen at random.")
        options["sampling_weight"] = check_sample_weight(sampling_weight, len(rows.codes))
    records = _records(method, specs, rows, options)
    _warn(method, specs, records, stacklevel=3)
    return pd.concat([to_frame(each, level, rows.model_names) for each in records], ignore_index=True)


def _records(method: Baseline, specs: list[MetricSpec], rows: Rows, options: dict[str, Any]) -> list[MetricDraws]:
    arrays = (rows.scores, rows.codes, rows.weights)
    if method.records is not None:
        return method.records(specs, *arrays, **options)
    labeled = int((rows.codes >= 0).sum())
    few = ("no-labels",) if labeled == 0 else ("few-labels",) if labeled < FEW_LABELS else ()
    return [
        MetricDraws(
            metric=spec.name,
            group="all",
            point=point,
            draws=draws,
            bounds=spec.bounds,
            greater_is_better=spec.greater_is_better,
            n_labeled=labeled,
            n_unlabeled=len(rows.codes) - labeled,
            method=method.name,
            flags=few if method.gives(spec) is None else (*few, "not-given"),
        )
        for spec, (point, draws) in zip(specs, method.function(specs, *arrays, **options), strict=True)
    ]


def _warn(method: Baseline, specs: list[MetricSpec], records: list[MetricDraws], stacklevel: int) -> None:
    """Say once for each reason why estimates are NaN."""
    if method.needs_labels and records[0].n_labeled == 0:
        warnings.warn(f"{method.name} needs labels, and no row has one: its estimates are NaN.", stacklevel=stacklevel)
        return
    reasons: dict[str, list[str]] = {}
    for spec in specs:
        reason = method.gives(spec)
        if reason is not None:
            reasons.setdefault(reason, []).append(spec.name)
    for reason, names in reasons.items():
        text = f"{method.name} cannot give {', '.join(names)}: {reason}. The estimates are NaN."
        warnings.warn(text, stacklevel=stacklevel)
    if method.records is None:  # the others have warned by themselves
        given = [each for spec, each in zip(specs, records, strict=True) if method.gives(spec) is None]
        warn_undefined(given, stacklevel=stacklevel + 1)


def _seed(random_state: Any) -> int:
    if isinstance(check_seed(random_state), (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
