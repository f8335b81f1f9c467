"""What comes out: frozen records, no maths and no printing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MetricDraws:
    """One metric of all models on one group of rows.

    Attributes
    ----------
    metric, group : str
        The group is "all" or "column=value".
    point : array (M,)
        Estimates; NaN where the metric is undefined.
    draws : array (D, M)
        Posterior draws of the population value, jointly for all models; NaN where undefined in a draw.
    bounds : tuple of float
        Least and greatest possible value.
    greater_is_better : bool or None
    n_labeled, n_unlabeled : int
        Rows behind the numbers.
    method : str
    flags : tuple of str
        Words that say when not to trust the numbers.
    """

    metric: str
    group: str
    point: Floats
    draws: Floats
    bounds: tuple[float, float]
    greater_is_better: bool | None
    n_labeled: int
    n_unlabeled: int
    method: str
    flags: tuple[str, ...] = ()
