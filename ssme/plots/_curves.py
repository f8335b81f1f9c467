"""Reliability, ROC and precision-recall curves with bands from the posterior draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ssme.curves import CurveDraws, curve_draws
from ssme.plots._axes import MARKERS, axes, chosen, fitting, legend, tidy

if TYPE_CHECKING:
    from typing_extensions import Self


class _CurveDisplay:
    """One kind of curve of several models.

    Parameters
    ----------
    curve : CurveDraws
    level : float, default=0.9
        Of the pointwise bands.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After ``plot``.
    """

    kind: ClassVar[str]
    labels: ClassVar[tuple[str, str]]
    ax_: Any
    figure_: Any

    def __init__(self, curve: CurveDraws, *, level: float = 0.9) -> None:
        if curve.kind != self.kind:
            raise ValueError(f"curve must be of kind {self.kind!r}, got {curve.kind!r}.")
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        self.curve, self.level = curve, level

    @classmethod
    def from_estimator(cls, estimator: Any, *, level: float = 0.9) -> Self:
        """Draw the curves from the posterior of a fitted :class:`ssme.SSME`."""
        return cls(curve_draws(estimator, cls.kind), level=level)

    @classmethod
    def from_draws(cls, curve: CurveDraws, *, level: float = 0.9) -> Self:
        """Take what :func:`ssme.curves.curve_draws` returned."""
        return cls(curve, level=level)

    def plot(self, ax: Any = None, *, models: Any = None) -> Self:
        """Draw the curves of the models (all by default), each with its band; returns the display itself."""
        names = list(self.curve.models)
        asked = chosen("model", None if models is None else models, names)
        low, high = self.curve.band(self.level)
        ax = axes(ax, (5.2, 5.2))
        self._reference(ax)
        for i, name in enumerate(asked):
            m = names.index(name)
            x, y = self.curve.x[m], self.curve.point[m]
            there = np.isfinite(x) & np.isfinite(y)
            marker = MARKERS[i % len(MARKERS)] if self.kind == "reliability" else None
            (line,) = ax.plot(x[there], y[there], marker=marker, markersize=4, linewidth=1.6, label=fitting(name))
            ax.fill_between(x[there], low[m][there], high[m][there], color=line.get_color(), alpha=0.22, linewidth=0)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=self.labels[0], ylabel=self.labels[1], aspect="equal")
        tidy(ax)
        if len(asked) > 1:
            legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _reference(self, ax: Any) -> None:
        import matplotlib

        ink = matplotlib.rcParams["text.color"]
        if self.kind != "precision_recall":
            ax.plot([0, 1], [0, 1], linestyle=(0, (4, 3)), linewidth=1, color=ink, alpha=0.6)


class ReliabilityDisplay(_CurveDisplay):
    """Share of right predictions against the confidence of the model, in bins of the highest score.

    Parameters
    ----------
    curve : CurveDraws
    level : float, default=0.9
        Of the pointwise bands.
    """

    kind = "reliability"
    labels = ("confidence", "share right")


class RocDisplay(_CurveDisplay):
    """True positive rate against false positive rate; of more than two classes the mean of one-versus-rest curves.

    Parameters
    ----------
    curve : CurveDraws
    level : float, default=0.9
        Of the pointwise bands.
    """

    kind = "roc"
    labels = ("false positive rate", "true positive rate")


class PrecisionRecallDisplay(_CurveDisplay):
    """Precision against recall; of more than two classes the mean of one-versus-rest curves.

    Parameters
    ----------
    curve : CurveDraws
    level : float, default=0.9
        Of the pointwise bands.
    """

    kind = "precision_recall"
    labels = ("recall", "precision")


def plot_reliability(estimator: Any, *, models: Any = None, level: float = 0.9, ax: Any = None) -> ReliabilityDisplay:
    """Draw reliability diagrams of a fitted :class:`ssme.SSME`; returns the display."""
    return ReliabilityDisplay.from_estimator(estimator, level=level).plot(ax, models=models)


def plot_roc(estimator: Any, *, models: Any = None, level: float = 0.9, ax: Any = None) -> RocDisplay:
    """Draw ROC curves of a fitted :class:`ssme.SSME`; returns the display."""
    return RocDisplay.from_estimator(estimator, level=level).plot(ax, models=models)


def plot_precision_recall(
    estimator: Any, *, models: Any = None, level: float = 0.9, ax: Any = None
) -> PrecisionRecallDisplay:
    """Draw precision-recall curves of a fitted :class:`ssme.SSME`; returns the display."""
    return PrecisionRecallDisplay.from_estimator(estimator, level=level).plot(ax, models=models)
