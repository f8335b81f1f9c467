"""Sums over rows under their names, that add to the sums over more rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class Summary:
    """Arrays by name. Two summaries of different rows add to the summary of both.

    With whole row weights every sum is exact, so the order of adding has no effect on the last bit.

    Attributes
    ----------
    sums : dict of str to array
        These add.
    low, high : dict of str to array
        Of these the lesser and the greater one is kept.

    Examples
    --------
    >>> a, b = Summary({"rows": np.array([2.0])}), Summary({"rows": np.array([3.0])})
    >>> (a + b).sums["rows"]
    array([5.])
    """

    sums: dict[str, NDArray[Any]] = field(default_factory=dict)
    low: dict[str, NDArray[Any]] = field(default_factory=dict)
    high: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __iadd__(self, other: Summary) -> Summary:
        for mine, others, join in (
            (self.sums, other.sums, np.add),
            (self.low, other.low, np.minimum),
            (self.high, other.high, np.maximum),
        ):
            for name, values in others.items():
                if name in mine:
                    join(mine[name], values, out=mine[name])
                else:
                    mine[name] = values.copy()
        return self

    def __add__(self, other: Summary) -> Summary:
        return total([self, other])


def total(summaries: Iterable[Summary]) -> Summary:
    """The summary of all rows of several summaries."""
    out = Summary()
    for each in summaries:
        out += each
    return out
