"""The metrics of one model from sums over the rows: the formulas of `ssme.metrics` with the rows already added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ssme.metrics import METRICS, MetricSpec
from ssme.summaries._ranking import CellCounts, average_precision, ece_positive, roc_auc

Floats = NDArray[np.float64]

RANKED = frozenset({"roc_auc", "average_precision", "ece_positive"})  # need cells of the score
LINEAR = frozenset({"brier", "log_loss"})


@dataclass(frozen=True, eq=False)
class ModelSums:
    """Sums over all rows for one model, in D draws.

    Attributes
    ----------
    rows, confidence : array (K, B)
        By predicted class and bin of confidence: sum of the weights, and of the weights times the confidence.
    hits : array (K, B, D)
        Weight of the rows whose label is the predicted class.
    true, support : array (K, D)
        Weight of every class, and the same with weights rounded up.
    exists : bool array (K,), optional
        Which classes occur at all.
    linear : dict of str to array (D,)
        Sums that divided by the weight of all rows are the metric of that name.
    cells : list of CellCounts
        Of class 1 alone where K = 2.
    """

    rows: Floats
    confidence: Floats
    hits: Floats
    true: Floats
    support: Floats
    exists: NDArray[np.bool_] | None = None
    linear: dict[str, Floats] = field(default_factory=dict)
    cells: Sequence[CellCounts] = ()

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether a class (K, D) is there at all."""
        present = self.support >= 0.5
        return present if self.exists is None else present & self.exists[:, None]

    @property
    def ranked(self) -> NDArray[np.bool_]:
        """Whether a class (K, D) is there, and other rows too."""
        return self.present & (self.support.sum(axis=0) - self.support >= 0.5)


def is_summable(spec: MetricSpec) -> bool:
    """Whether a metric can be had from sums over the rows: the metrics by name can, functions of the caller's cannot.

    Examples
    --------
    >>> from ssme.metrics import get_metric
    >>> is_summable(get_metric("ece", 2)), is_summable(get_metric(lambda y, p: 0.0, 2))
    (True, False)
    """
    return spec.name in VALUES and METRICS[spec.name].prepare is spec.prepare


def values_of(spec: MetricSpec, sums: ModelSums) -> Floats:
    """The metric in every draw (D,)."""
    return np.clip(VALUES[spec.name](sums), *spec.bounds)


def error_bound(spec: MetricSpec, sums: ModelSums) -> float:
    """How far the cells of the score may have moved the metric in any draw, its sums given; 0 for sums over rows."""
    if spec.name not in ("roc_auc", "average_precision"):
        return 0.0
    areas = roc_auc if spec.name == "roc_auc" else average_precision
    return float(np.nanmax([areas(cells)[1] for cells in sums.cells], initial=0.0))


def _accuracy(sums: ModelSums) -> Floats:
    return np.asarray(sums.hits.sum(axis=(0, 1)) / sums.rows.sum())


def _ece(sums: ModelSums) -> Floats:
    gaps = sums.confidence.sum(axis=0)[:, None] - sums.hits.sum(axis=0)
    return np.asarray(np.abs(gaps).sum(axis=0) / sums.rows.sum())


def _balanced_accuracy(sums: ModelSums) -> Floats:
    return _mean_over(_ratio(sums.hits.sum(axis=1), sums.true), sums.present)


def _precision(sums: ModelSums) -> Floats:
    values = _ratio(sums.hits.sum(axis=1), sums.rows.sum(axis=1)[:, None])
    return values[1] if len(values) == 2 else _mean_over(values, sums.present)


def _recall(sums: ModelSums) -> Floats:
    values = _ratio(sums.hits.sum(axis=1), sums.true)
    return np.where(sums.present[1], values[1], np.nan) if len(values) == 2 else _mean_over(values, sums.present)


def _f1(sums: ModelSums) -> Floats:
    values = _ratio(2.0 * sums.hits.sum(axis=1), sums.rows.sum(axis=1)[:, None] + sums.true)
    return values[1] if len(values) == 2 else _mean_over(values, sums.present)


def _ranking(areas: Callable[[CellCounts], tuple[Floats, Floats]]) -> Callable[[ModelSums], Floats]:
    def evaluate(sums: ModelSums) -> Floats:
        use = sums.ranked[[1]] if len(sums.true) == 2 else sums.ranked
        values = np.stack([areas(cells)[0] for cells in sums.cells])
        total = np.where(use, np.nan_to_num(values), 0.0).sum(axis=0)
        return _ratio(total, use.sum(axis=0))

    return evaluate


def _linear(name: str) -> Callable[[ModelSums], Floats]:
    return lambda sums: np.asarray(sums.linear[name] / sums.rows.sum())


VALUES: dict[str, Callable[[ModelSums], Floats]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "roc_auc": _ranking(roc_auc),
    "average_precision": _ranking(average_precision),
    "ece": _ece,
    "ece_positive": lambda sums: ece_positive(sums.cells[0]),
    "brier": _linear("brier"),
    "log_loss": _linear("log_loss"),
}


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    out: Floats = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def _mean_over(values: Floats, use: NDArray[np.bool_]) -> Floats:
    return _ratio(np.where(use, np.nan_to_num(np.broadcast_to(values, use.shape)), 0.0).sum(axis=0), use.sum(axis=0))
