"""Metrics over very many rows: sums that add over rows, from which every draw of a metric follows.

- `_grid`: where scores and pooled log-odds are cut.
- `_summary`: sums by name that add.
- `_binary`: two classes, every draw from one pass.
- `_classes`: more classes, some draws from one pass, the others through a sample.
- `_ranking`, `_values`: metrics from the sums.
- `_draws`: these together, with the random row weights of the intervals.

docs/scale.md has the reasons and what was measured.
"""

from ._binary import BinaryPlan
from ._classes import ClassesPlan
from ._draws import (
    SAMPLE_ROWS,
    Thinned,
    draw_metrics_of_many,
    draws_of_summary,
    make_plan,
    thin,
)
from ._summary import Summary, total
from ._values import is_summable

__all__ = [
    "BinaryPlan",
    "SAMPLE_ROWS",
    "ClassesPlan",
    "Summary",
    "Thinned",
    "draw_metrics_of_many",
    "draws_of_summary",
    "is_summable",
    "make_plan",
    "thin",
    "total",
]
