"""Forest plot: an estimate with its interval for each model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ssme._format import format_level
from ssme.plots._axes import MARKERS, axes, chosen, fitting, legend, literal, need_columns, tidy

NEEDED = ("metric", "model", "group", "estimate", "lower", "upper", "level", "method")


class EstimatesDisplay:
    """Estimates with intervals of one metric, a line for each model.

    Parameters
    ----------
    frame : DataFrame
        Rows of what :meth:`ssme.SSME.estimate` returns.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After :meth:`plot`.

    Examples
    --------
    >>> row = dict(metric="accuracy", group="all", level=0.9, method="ssme", lower=0.7, upper=0.9)
    >>> frame = pd.DataFrame([dict(row, model="a", estimate=0.8), dict(row, model="b", estimate=0.75)])
    >>> display = EstimatesDisplay.from_frame(frame).plot()  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = need_columns(frame, NEEDED, "what SSME.estimate returns")

    @classmethod
    def from_estimator(cls, estimator: Any, metrics: Any = ("accuracy",), **settings: Any) -> EstimatesDisplay:
        """Estimate with a fitted :class:`ssme.SSME`; settings are those of :meth:`ssme.SSME.estimate`."""
        return cls(estimator.estimate(metrics, **settings))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> EstimatesDisplay:
        """Take what :meth:`ssme.SSME.estimate` returned or ``ssme estimate`` wrote."""
        return cls(frame)

    def plot(
        self, ax: Any = None, *, metric: str | None = None, group: str = "all", best: str | None = None
    ) -> EstimatesDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        metric : str, optional
            The first metric of the frame by default.
        group : str, default="all"
        best : {"high", "low"}, optional
            Sort the models so that the best one comes first; in the order of the frame by default.

        Returns
        -------
        EstimatesDisplay
            The display itself.

        Raises
        ------
        ValueError
            For a metric or group that the frame does not have.
        """
        if best not in (None, "high", "low"):
            raise ValueError(f"best must be 'high', 'low' or None, got {best!r}.")
        metrics, groups = list(dict.fromkeys(self.frame["metric"])), list(dict.fromkeys(self.frame["group"]))
        name = chosen("metric", metric, metrics)[0]
        part = self.frame[(self.frame["metric"] == name) & (self.frame["group"] == chosen("group", group, groups)[0])]
        methods = list(dict.fromkeys(part["method"]))
        first = part[part["method"] == methods[0]]
        if best is not None:
            first = first.sort_values("estimate", ascending=best == "low", kind="stable")
        models = list(dict.fromkeys(first["model"]))
        place = {model: i for i, model in enumerate(models)}
        ax = axes(ax, (6.4, 1.2 + 0.28 * len(models) * max(1, len(methods) * 0.7)))
        for j, method in enumerate(methods):
            rows = part[part["method"] == method]
            y = rows["model"].map(place).to_numpy(float) + (j - (len(methods) - 1) / 2) * 0.3
            value = rows["estimate"].to_numpy(float)
            reach = np.abs(np.stack([value - rows["lower"].to_numpy(float), rows["upper"].to_numpy(float) - value]))
            ax.errorbar(value, y, xerr=reach, fmt=MARKERS[j % len(MARKERS)], markersize=5, capsize=2.5, label=method)
        ax.set_yticks(range(len(models)))
        literal(ax.set_yticklabels([fitting(m) for m in models]))
        ax.set_ylim(len(models) - 0.4, -0.6)
        levels = " or ".join(format_level(v) for v in part["level"].unique())
        literal(ax.set_xlabel(f"{fitting(name)} ({levels} intervals)"))
        tidy(ax)
        if len(methods) > 1:
            legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(methods))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_estimates(source: Any, metric: str = "accuracy", *, ax: Any = None, **settings: Any) -> EstimatesDisplay:
    """Draw estimates with their intervals, from a fitted estimator or from a frame of estimates.

    Parameters
    ----------
    source : SSME or DataFrame
    metric : str, default="accuracy"
    ax : matplotlib Axes, optional
    **settings
        Those of :meth:`EstimatesDisplay.plot`.

    Returns
    -------
    EstimatesDisplay
    """
    if isinstance(source, pd.DataFrame):
        return EstimatesDisplay.from_frame(source).plot(ax, metric=metric, **settings)
    return EstimatesDisplay.from_estimator(source, [metric]).plot(ax, metric=metric, **settings)
