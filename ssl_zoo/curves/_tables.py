"""Joint draws of one metric of all models -> the tidy tables of its curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ssl_zoo.curves._draws import curve_of_seeds, curves_of, interval_of, robustness_draws, share_of, verdict_shares
from ssl_zoo.curves._layout import CurveModels
from ssl_zoo.curves._masking import masking_table
from ssl_zoo.robustness import metrics_of_curves

if TYPE_CHECKING:
    from ssme.results import MetricDraws

Floats = NDArray[np.float64]
# Whether more of a measure is more robust, for a metric of which more is better; the other way round for losses but for
# GM, which says how much a curve moves and not where to. The ends of a curve's steps, wad and bad, change places then.
MORE_IS_BETTER = {"r_slope": True, "gm": False, "wad": True, "bad": True, "p_ad_nonneg": True}


@dataclass(frozen=True, eq=False)
class CurveDraws:
    """The curves of one metric by one method.

    Attributes
    ----------
    curves : list of CurveModels
    record : MetricDraws
        Estimates (M,) and joint draws (D, M) of the models.
    level : float
    truth : array (M,) or None
    tolerance : float
    ordered, over_seeds : bool
        As in `estimate_curves`.
    """

    curves: list[CurveModels]
    record: MetricDraws
    level: float
    truth: Floats | None
    tolerance: float
    ordered: bool
    over_seeds: bool
    measures: list[dict[str, tuple[float, Floats]]] = field(init=False)

    def __post_init__(self) -> None:
        found = [
            robustness_draws(
                curve.x,
                point,
                draws,
                tolerance=self.tolerance,
                ordered=self.ordered,
                plain=self.record.method == "labeled-only",
            )
            for curve, (point, draws) in zip(self.curves, map(self._curve, self.curves), strict=True)
        ]
        object.__setattr__(self, "measures", found)

    def points(self) -> pd.DataFrame:
        """One row a point of a curve."""
        rows = []
        for curve in self.curves:
            point, draws = self._curve(curve)
            true = None if self.truth is None else curves_of(self.truth, curve.models)
            for j, x in enumerate(curve.x):
                row = {"algorithm": curve.algorithm, "x": x, "n_seeds": len(curve.seeds), "metric": self.record.metric}
                rows.append(row | self._estimate(point[j], draws[:, j]) | ({} if true is None else {"truth": true[j]}))
        return pd.DataFrame(rows)

    def robustness(self) -> pd.DataFrame:
        """One row an algorithm and measure."""
        rows = []
        for curve, of_curve in zip(self.curves, self.measures, strict=True):
            true = self._true_measures(curve)
            for name, (estimate, draws) in of_curve.items():
                row: dict[str, Any] = {"algorithm": curve.algorithm, "metric": self.record.metric, "measure": name}
                row |= self._estimate(estimate, draws)
                row["p_positive"] = _share(draws, draws > 0)
                rows.append(row | ({"truth": true[name]} if true else {}))
        return pd.DataFrame(rows)

    def verdicts(self, delta_g: float, delta_w: float, delta_b: float) -> pd.DataFrame:
        """Probability of delta-robustness, one row an algorithm."""
        rows = []
        deltas = {"delta_g": delta_g, "delta_w": delta_w, "delta_b": delta_b}
        for curve, of_curve in zip(self.curves, self.measures, strict=True):
            draws = {name: values for name, (_, values) in of_curve.items()}
            shares = verdict_shares(draws, **deltas)
            row: dict[str, Any] = {"algorithm": curve.algorithm, **deltas}
            row |= dict(zip(("p_global", "p_local", "p_both"), shares, strict=True))
            if true := self._true_measures(curve):
                row["true_global"] = true["r_slope"] >= delta_g
                row["true_local"] = true["wad"] >= delta_w and true["bad"] >= delta_b
            rows.append(row | self._provenance())
        return pd.DataFrame(rows)

    def ranking(self) -> pd.DataFrame:
        """Algorithms by each measure with the probability of being the most robust."""
        from ssme.decisions import rank_models
        from ssme.results import MetricDraws

        greater, names = self.record.greater_is_better, [curve.algorithm for curve in self.curves]
        tables = []
        for name, more in MORE_IS_BETTER.items() if len(self.curves) > 1 and greater is not None else ():
            if name not in self.measures[0]:
                continue
            better = more if greater or name == "gm" else not more
            point = np.array([of_curve[name][0] for of_curve in self.measures])
            draws = np.stack([of_curve[name][1] for of_curve in self.measures], axis=1)
            record = MetricDraws(self.record.metric, "all", point, draws, (-np.inf, np.inf), better, 0, 0, "")
            table = rank_models(record, names, level=self.level).drop(columns=["group", "level"])
            table.insert(1, "measure", name)
            tables.append(table.rename(columns={"model": "algorithm"}).assign(**self._provenance()))
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def masking(self, models: pd.DataFrame, margin: float) -> pd.DataFrame:
        """Verdicts on accuracy masking, see `masking_table`."""
        record = self.record
        return masking_table(
            self.curves, models, record.point, record.draws, method=record.method, margin=margin, level=self.level
        )

    def _curve(self, curve: CurveModels) -> tuple[Floats, Floats]:
        draws = self.record.draws
        many = curve_of_seeds(draws, curve.models) if self.over_seeds else curves_of(draws, curve.models)
        return curves_of(self.record.point, curve.models), many

    def _true_measures(self, curve: CurveModels) -> dict[str, float]:
        if self.truth is None:
            return {}
        true = metrics_of_curves(
            curve.x, curves_of(self.truth, curve.models), tolerance=self.tolerance, ordered=self.ordered
        )
        return {name: float(value) for name, value in true.items()}

    def _estimate(self, estimate: float, draws: Floats) -> dict[str, Any]:
        lower, upper = interval_of(estimate, draws, self.level)
        return {"estimate": estimate, "lower": lower, "upper": upper} | self._provenance()

    def _provenance(self) -> dict[str, Any]:
        record = self.record
        return {
            "level": self.level,
            "n_labeled": record.n_labeled,
            "n_unlabeled": record.n_unlabeled,
            "method": record.method,
            "flags": ";".join(record.flags),
        }


def _share(draws: Floats, events: NDArray[np.bool_]) -> float:
    known = np.isfinite(draws)
    return share_of(events[known]) if known.any() else float("nan")
