"""Figures on matplotlib axes, in the convention of scikit-learn's displays; needs the extra `report`.

A display is made by a class method (`from_estimator`, `from_draws`, `from_frame`), holds what is drawn, and draws it
with ``.plot(ax=)``, which sets ``ax_`` and ``figure_``. The functions ``plot_...`` do both steps in one call.
"""

from ssme.plots._curves import (
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    plot_precision_recall,
    plot_reliability,
    plot_roc,
)
from ssme.plots._estimates import EstimatesDisplay, plot_estimates
from ssme.plots._sweep import (
    BudgetCurveDisplay,
    CScoreDisplay,
    RobustnessCurvesDisplay,
    plot_budget_curve,
    plot_cscore,
    plot_robustness_curves,
)

__all__ = [
    "BudgetCurveDisplay",
    "CScoreDisplay",
    "EstimatesDisplay",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RobustnessCurvesDisplay",
    "RocDisplay",
    "plot_budget_curve",
    "plot_cscore",
    "plot_estimates",
    "plot_precision_recall",
    "plot_reliability",
    "plot_robustness_curves",
    "plot_roc",
]
