"""The rivals by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from ssme._fitting import read_rows
from ssme._labeled_only import labeled_only
from ssme._tables import to_frame
from ssme.baselines._fitted import ssme_default, ssme_kde, ssme_m
from ssme.baselines._pooled import majority_vote, mean_score
from ssme.metrics import MetricSpec, get_metric
from ssme.results import MetricDraws

PAPER = "Shanmugam et al. (2025), arXiv:2501.11866"


def _anything(spec: MetricSpec) -> str | None:
    return None


@dataclass(frozen=True)
class Baseline:
    """One method.

    Attributes
    ----------
    name : str
    function : callable
        ``f(specs, scores, codes, weights, *, seed, n_draws)`` to a list of (point (M,), draws (D, M)).
    needs_labels : bool
        Without labels all its estimates are NaN.
    reference, description : str
    gives : callable
        Why it cannot give a metric, in words; None where it can.
    """

    name: str
    function: Callable[..., Any]
    needs_labels: bool
    reference: str
    description: str
    gives: Callable[[MetricSpec], str | None] = _anything


def _row(name: str, function: Callable[..., Any], needs_labels: bool, reference: str) -> Baseline:
    description = (function.__doc__ or "").strip().partition("\n")[0]
    return Baseline(name, function, needs_labels, reference, description)


_ROWS = (
    _row("labeled-only", labeled_only, True, "Rubin (1981), The Bayesian bootstrap"),
    _row("mean-score", mean_score, False, PAPER),
    _row("majority-vote", majority_vote, False, PAPER),
    _row("ssme", ssme_default, False, "docs/method.md"),
    _row("ssme-kde", ssme_kde, False, PAPER),
    _row("ssme-m", ssme_m, False, PAPER),
)
BASELINES: dict[str, Baseline] = {row.name: row for row in _ROWS}


def estimate_with(
    name: str,
    scores: Any,
    y: Any = None,
    metrics: str | MetricSpec | Iterable[Any] = ("accuracy",),
    *,
    level: float = 0.9,
    score_type: str = "probability",
    class_names: Sequence[Any] | None = None,
    random_state: Any = None,
    n_draws: int = 100,
) -> pd.DataFrame:
    """Estimate metrics with one of the methods, by name.

    Parameters
    ----------
    name : str
        A name in ``BASELINES``.
    scores, y, score_type, class_names
        As :class:`ssme.SSME` takes them.
    metrics, level
        As :meth:`ssme.SSME.estimate` takes them.
    random_state : int, RandomState or None
    n_draws : int

    Returns
    -------
    DataFrame
        The table of :meth:`ssme.SSME.estimate`; the method is the name.

    Examples
    --------
    >>> import numpy as np
    >>> p1 = np.array([[0.9, 0.8], [0.2, 0.4], [0.7, 0.1], [0.3, 0.6]])
    >>> estimate_with("labeled-only", p1, [1, 0, 0, -1], random_state=0).estimate.round(3).tolist()
    [0.667, 1.0]
    """
    if name not in BASELINES:
        close = get_close_matches(str(name), BASELINES, n=1)
        hint = f", did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"unknown method {name!r}{hint} Known are {', '.join(BASELINES)}.")
    rows = read_rows(scores, y, None, score_type, class_names)
    asked = [metrics] if isinstance(metrics, (str, MetricSpec)) or callable(metrics) else list(metrics)
    specs = [get_metric(each, rows.scores.shape[2]) for each in asked]
    whole = isinstance(random_state, (int, np.integer))
    seed = int(random_state if whole else check_random_state(random_state).randint(2**31 - 1))
    found = BASELINES[name].function(specs, rows.scores, rows.codes, rows.weights, seed=seed, n_draws=n_draws)
    labeled = int((rows.codes >= 0).sum())
    unlabeled = len(rows.codes) - labeled
    frames = [
        to_frame(
            MetricDraws(spec.name, "all", point, draws, spec.bounds, spec.greater_is_better, labeled, unlabeled, name),
            level,
            rows.model_names,
        )
        for spec, (point, draws) in zip(specs, found, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)
