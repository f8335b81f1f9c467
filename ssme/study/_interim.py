"""Stand-in until ssme.baselines has BASELINES and estimate_with; remove it then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ssme._tables import to_frame
from ssme.baselines import labeled_only
from ssme.estimator import SSME
from ssme.metrics import get_metric
from ssme.results import MetricDraws


class _Stub:
    @staticmethod
    def gives(spec: Any) -> None:
        return None


BASELINES: dict[str, Any] = {"labeled-only": _Stub(), "ssme-kde": _Stub()}


def estimate_with(name: str, scores: Any, y: Any, metrics: Any, *, level: float, random_state: int) -> pd.DataFrame:
    if name != "labeled-only":
        density = "kde" if name == "ssme-kde" else "recalibrated"
        return SSME(density=density, random_state=random_state).fit(scores, y).estimate(metrics, level=level)
    specs = [get_metric(m, scores.shape[2]) for m in metrics]
    found = labeled_only(specs, scores, y, np.ones(len(y)), seed=random_state)
    n = int((y >= 0).sum())
    frames = [
        to_frame(MetricDraws(s.name, "all", p, d, s.bounds, None, n, len(y) - n, name), level, None)
        for s, (p, d) in zip(specs, found, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)
