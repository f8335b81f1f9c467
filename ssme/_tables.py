"""Records of metric draws as rows of the tidy table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssme.intervals import interval
from ssme.results import MetricDraws


def to_frame(found: MetricDraws, level: float, model_names: Sequence[Any] | None) -> pd.DataFrame:
    """One row a model: metric, model, group, estimate, lower, upper, level, counts, method, flags."""
    low, high = interval(found.draws, found.point, level)
    return pd.DataFrame(
        {
            "metric": found.metric,
            "model": list(range(len(found.point))) if model_names is None else list(model_names),
            "group": found.group,
            "estimate": found.point,
            "lower": low,
            "upper": high,
            "level": level,
            "n_labeled": found.n_labeled,
            "n_unlabeled": found.n_unlabeled,
            "method": found.method,
            "flags": [
                _flags(found, share, width, level)
                for share, width in zip(np.isnan(found.draws).mean(axis=0), high - low, strict=True)
            ],
        }
    )


def is_coarse(level: float, n_draws: int) -> bool:
    """Whether a tail outside an interval of this level holds less than one draw.

    Examples
    --------
    >>> is_coarse(0.9, 100), is_coarse(0.99, 100)
    (False, True)
    """
    return (1 - level) / 2 * n_draws < 1 - 1e-9


def warn_coarse(records: Sequence[MetricDraws], level: float, stacklevel: int) -> None:
    """One warning when the level asks for more than the draws resolve."""
    fewest = min(len(each.draws) for each in records)
    if is_coarse(level, fewest):
        warnings.warn(
            f"level={level:g} asks for tails of {(1 - level) / 2:.2g}, and {fewest} draws do not resolve them: set "
            f"n_draws to {int(np.ceil(10 / (1 - level) - 1e-6))} or more.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _flags(found: MetricDraws, undefined: float, width: float, level: float) -> str:
    flags = [*found.flags]
    if is_coarse(level, len(found.draws)):
        flags.append("coarse-level")
    if undefined > 0:
        flags.append(f"undefined-in-{undefined:.0%}-of-draws")
    if width < 1e-12:  # as where every label seen is right: the draws know of no other kind of row
        flags.append("no-width")
    return ";".join(flags)


def warn_undefined(records: Sequence[MetricDraws], stacklevel: int) -> None:
    """One warning when estimates are NaN, however many they are."""
    bad = [each for each in records if np.isnan(each.point).any()]
    if not bad:
        return
    first = bad[0]
    valid = int(np.isfinite(first.draws).all(axis=1).sum())
    more = f" (and in {len(bad) - 1} more places)" if len(bad) > 1 else ""
    warnings.warn(
        f"{first.metric} is undefined for group {first.group!r}{more}: it is defined in {valid} of {len(first.draws)} "
        f"draws, with {first.n_labeled} labeled and {first.n_unlabeled} unlabeled rows; the estimate is NaN.",
        UserWarning,
        stacklevel=stacklevel,
    )
