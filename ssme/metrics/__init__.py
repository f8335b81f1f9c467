"""Metrics on soft labels, every draw at once.

One :class:`MetricSpec` describes a metric. Its ``prepare(scores, weights=None)`` does all that does not depend on the
labels (best class, sort order, bins) and returns ``evaluate(labels, weights=None)``, which turns label draws (D, n, K)
into values (D, M). ``labels[d, i, k]`` is the probability (or 0 / 1) that row i has class k in draw d: every metric is
its formula on soft counts, hence exact for one-hot labels. For K = 2 only ``labels[..., 1]`` is read. The weights of a
draw (D, n) are what the rows count for in it; whole weights equal repeated rows. Those of `prepare` (n,) are what the
rows count for in the data, whatever the draw: only the edges of the bins of ``ece_positive`` have use for them.
Temporary arrays are as large as the labels, so a caller with very many rows passes the draws in blocks.

A ratio without support is NaN, without a warning. A class is absent from a draw when its soft count is below one half
(a weight counts by its ceiling here, so that a small weight does not make a class disappear): macro averages and
balanced accuracy skip absent classes; the recall of an absent class and the ranking of one-class labels are undefined.

Adding a metric is one function and one row:

1. Write ``name(scores)`` in the module of its kind, or ``name(scores, weights)`` with ``reads_weights=True`` in its
   row. ``scores`` is a float64 array (n, M, K); what it returns is a function of :class:`LabelDraws` that gives (D, M).
   Shapes are checked before, and values are clipped to the bounds after. The docstring says formula, bounds, direction
   and reference; its first line is the description.
2. Add ``_row(name, bounds, greater_is_better, reference)`` to ``_ROWS`` in ``_registry.py``.

Outside the package the row is ``METRICS["name"] = MetricSpec("name", prepare, bounds, greater_is_better)``, and a plain
function ``f(y_true, y_score)`` of hard labels needs no row.
"""

from ._draws import LabelDraws
from ._registry import METRICS, evaluate_metric, get_metric
from ._specs import Evaluate, MetricSpec

__all__ = ["METRICS", "Evaluate", "LabelDraws", "MetricSpec", "evaluate_metric", "get_metric"]
