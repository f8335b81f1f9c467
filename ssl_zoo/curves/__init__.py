"""Robustness curves of a sweep from few labels: estimates with intervals, ranking and verdicts.

`estimate_curves` takes the scores of the models of a sweep on the same test rows, a table that says which model is
which point, and a few labels. Below it are pure functions on joint draws. docs/robustness-curves.md has what was
measured.
"""

from ssl_zoo.curves._draws import curve_of_seeds, curves_of, interval_of, robustness_draws, share_of, verdict_shares
from ssl_zoo.curves._estimate import CurveEstimates, estimate_curves, true_metrics
from ssl_zoo.curves._layout import CurveModels, read_curves
from ssl_zoo.curves._masking import add_diagnostics, masking_table

__all__ = [
    "CurveEstimates",
    "CurveModels",
    "add_diagnostics",
    "curve_of_seeds",
    "curves_of",
    "estimate_curves",
    "interval_of",
    "masking_table",
    "read_curves",
    "robustness_draws",
    "share_of",
    "true_metrics",
    "verdict_shares",
]
