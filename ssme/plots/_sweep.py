"""Figures of many fits or runs, from tidy frames: label budgets, robustness curves, diagnostics over epochs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ssme.plots._axes import MARKERS, axes, chosen, fitting, legend, literal, need_columns, pyplot, tidy

CURVE = ("algorithm", "value", "estimate", "lower", "upper")
STUDY = "what ssme.study.run_study returns"
RUN = ("algorithm", "factor", "value", "seed", "dataset")  # columns of a C-Score frame that are no indicator


class BudgetCurveDisplay:
    """Error, or coverage, against the number of labels, a line for each method.

    Parameters
    ----------
    frame : DataFrame
        What :func:`ssme.study.run_study` or :func:`ssme.study.summarize_cells` returns.
    """

    ax_: Any
    figure_: Any

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = need_columns(frame, ("metric", "method", "n_labeled", "abs_err"), STUDY)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> BudgetCurveDisplay:
        """Take the frame of a study."""
        return cls(frame)

    def plot(
        self, ax: Any = None, *, metric: str | None = None, value: str = "abs_err", methods: Any = None
    ) -> BudgetCurveDisplay:
        """Draw one metric (the first by default); value is "abs_err" or "coverage". Returns the display itself.

        The mean over data sets, models and seeds; bands are one standard error over seeds, where the frame has them.
        """
        if value not in ("abs_err", "coverage"):
            raise ValueError(f"value must be 'abs_err' or 'coverage', got {value!r}.")
        name = chosen("metric", metric, list(dict.fromkeys(self.frame["metric"])))[0]
        part = self.frame[self.frame["metric"] == name]
        column = "covered" if value == "coverage" and "covered" in part else value
        part = need_columns(part, [column], STUDY).dropna(subset=[column])
        known = [m for m in dict.fromkeys(part["method"]) if m != "label-curve"]  # more labels than the budgets
        ax = axes(ax, (6.0, 4.2))
        for i, method in enumerate(chosen("method", methods, known)):
            rows = part[part["method"] == method]
            by_seed = None
            if "seed" in rows:
                by_seed = rows.groupby(["n_labeled", "seed"])[column].mean().groupby("n_labeled")
            mean = rows.groupby("n_labeled")[column].mean() if by_seed is None else by_seed.mean()
            (line,) = ax.plot(mean.index, mean, marker=MARKERS[i % len(MARKERS)], markersize=4.5, label=fitting(method))
            if by_seed is not None and by_seed.count().max() > 1:
                error = by_seed.sem().fillna(0.0)
                band = (np.maximum(mean - error, 0.0), mean + error)
                ax.fill_between(mean.index, *band, color=line.get_color(), alpha=0.18, linewidth=0)
        ax.set_xscale("log")
        budgets = sorted(part["n_labeled"].unique())
        ax.set_xticks(budgets, [f"{b:,}" for b in budgets])
        ax.minorticks_off()
        ax.set(xlabel="labels", ylabel="mean absolute error" if value == "abs_err" else "coverage of the intervals")
        literal(ax.set_title(fitting(name), fontsize="medium"))
        ax.set_ylim(0, 1.02 if value == "coverage" else None)
        tidy(ax)
        legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RobustnessCurvesDisplay:
    """A metric along a contamination factor with its band, a line for each algorithm.

    Parameters
    ----------
    frame : DataFrame
        Columns algorithm, value, estimate, lower, upper; truth, factor and metric where they are known.
    """

    ax_: Any
    figure_: Any

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = need_columns(frame, CURVE, f"a frame of curves with the columns {', '.join(CURVE)}")

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> RobustnessCurvesDisplay:
        """Take a frame of curves."""
        return cls(frame)

    def plot(self, ax: Any = None, *, algorithms: Any = None) -> RobustnessCurvesDisplay:
        """Draw the algorithms (all by default); the truth, where known, as open marks. Returns the display itself."""
        names = chosen("algorithm", algorithms, list(dict.fromkeys(self.frame["algorithm"])))
        ordered = bool(pd.api.types.is_numeric_dtype(self.frame["value"]))
        values = list(dict.fromkeys(self.frame["value"]))
        ax = axes(ax, (6.0, 4.2))
        for i, name in enumerate(names):
            rows = self.frame[self.frame["algorithm"] == name]
            rows = rows.sort_values("value", kind="stable") if ordered else rows
            x = rows["value"].to_numpy(float) if ordered else np.array([values.index(v) for v in rows["value"]], float)
            marker = MARKERS[i % len(MARKERS)]
            (line,) = ax.plot(x, rows["estimate"].to_numpy(float), marker=marker, markersize=4.5, label=fitting(name))
            band = (rows["lower"].to_numpy(float), rows["upper"].to_numpy(float))
            ax.fill_between(x, *band, color=line.get_color(), alpha=0.18, linewidth=0)
            if "truth" in rows and rows["truth"].notna().any():
                truth = rows["truth"].to_numpy(float)
                said = "truth" if i == len(names) - 1 else None
                open_marks = {"marker": marker, "markersize": 8, "linestyle": "none", "fillstyle": "none"}
                ax.plot(x, truth, color=line.get_color(), label=said, **open_marks)
        if not ordered:
            ax.set_xticks(range(len(values)))
            literal(ax.set_xticklabels([fitting(v, 14) for v in values]))
        literal(ax.set_xlabel(_only(self.frame, "factor", "value of the factor")))
        literal(ax.set_ylabel(_only(self.frame, "metric", "estimate")))
        tidy(ax)
        legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class CScoreDisplay:
    """Diagnostics of training over the epochs, a panel for each indicator.

    Parameters
    ----------
    frame : DataFrame
        A column epoch and a numeric column for each indicator; algorithm, value and seed where there are several runs.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
    figure_ : matplotlib Figure
    """

    axes_: Any
    figure_: Any

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = need_columns(frame, ("epoch",), "a C-Score frame with the column epoch and one for each indicator")
        numeric = frame.select_dtypes("number").columns
        self.indicators = [c for c in numeric if c not in ("epoch", *RUN)]
        if not self.indicators:
            raise ValueError("frame must have a numeric column for each indicator beside epoch, and has none.")

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> CScoreDisplay:
        """Take a C-Score frame."""
        return cls(frame)

    def plot(self, ax: Any = None, *, indicators: Any = None) -> CScoreDisplay:
        """Draw the indicators (all by default), each on one of the axes. Returns the display itself.

        The mean over seeds; the band spans them.
        """
        names = chosen("indicator", indicators, self.indicators)
        if ax is None:
            size = (3.4 * min(len(names), 3), 2.7 * -(-len(names) // 3))
            panels = pyplot().subplots(-(-len(names) // 3), min(len(names), 3), figsize=size, squeeze=False,
                                       layout="constrained")[1].ravel()  # fmt: skip
            for spare in panels[len(names) :]:
                spare.set_visible(False)
        else:
            panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(panels) < len(names):
            raise ValueError(f"ax must have one of the axes for each of {len(names)} indicators, got {len(panels)}.")
        keys = [c for c in ("dataset", "algorithm", "factor", "value") if c in self.frame]
        runs = self.frame.groupby(keys, sort=False, dropna=False) if keys else [((), self.frame)]
        for run, rows in runs:
            said = fitting(", ".join(str(part) for part in run)) if keys else None
            for panel, name in zip(panels, names, strict=False):
                by_epoch = rows.groupby("epoch")[name]
                mean = by_epoch.mean()
                (line,) = panel.plot(mean.index, mean, linewidth=1.6, label=said)
                if by_epoch.count().max() > 1:
                    band = (by_epoch.min(), by_epoch.max())
                    panel.fill_between(mean.index, *band, color=line.get_color(), alpha=0.18, linewidth=0)
        for panel, name in zip(panels, names, strict=False):
            literal(panel.set_title(fitting(name), fontsize="medium"))
            panel.set_xlabel("epoch")
            tidy(panel)
        if keys:
            legend(panels[0])
        self.axes_ = panels[: len(names)]
        self.figure_ = panels[0].figure
        return self


def _only(frame: pd.DataFrame, column: str, otherwise: str) -> str:
    """The single value of a column, or what to say where it is absent or has several."""
    values = list(dict.fromkeys(frame[column].dropna())) if column in frame else []
    return fitting(values[0]) if len(values) == 1 else otherwise


def plot_budget_curve(frame: pd.DataFrame, *, ax: Any = None, **settings: Any) -> BudgetCurveDisplay:
    """Draw error or coverage against labels; settings are those of :meth:`BudgetCurveDisplay.plot`."""
    return BudgetCurveDisplay.from_frame(frame).plot(ax, **settings)


def plot_robustness_curves(frame: pd.DataFrame, *, ax: Any = None, algorithms: Any = None) -> RobustnessCurvesDisplay:
    """Draw curves along a contamination factor, see :class:`RobustnessCurvesDisplay`."""
    return RobustnessCurvesDisplay.from_frame(frame).plot(ax, algorithms=algorithms)


def plot_cscore(frame: pd.DataFrame, *, ax: Any = None, indicators: Any = None) -> CScoreDisplay:
    """Draw diagnostics of training, see :class:`CScoreDisplay`."""
    return CScoreDisplay.from_frame(frame).plot(ax, indicators=indicators)
