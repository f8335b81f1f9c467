"""The page of estimates: who is best, table, intervals, curves, agreement, subgroups, diagnostics."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter, warn_explicit

import numpy as np
import pandas as pd

from ssme._format import format_level, format_number, shortened
from ssme.html_report._best import direction, leader, names, order, ranking
from ssme.html_report._figures import Figure, draw
from ssme.html_report._page import render, shade
from ssme.html_report._read import checked_estimates
from ssme.inspection import describe, findings, fit_diagnostics
from ssme.metrics import METRICS
from ssme.plots import EstimatesDisplay, PrecisionRecallDisplay, ReliabilityDisplay, RocDisplay
from ssme.report import explain

if TYPE_CHECKING:
    from ssme.estimator import SSME
    from ssme.score_table import ScoreTable

MOST_IN_FIGURE = 60  # models of a forest plot
MOST_PANELS = 30  # models with curves of their own
MOST_IN_MATRIX = 40
MOST_ROWS = 5000  # of a table, so that the page stays small
MOST_CLASSES = 20  # beyond, one-versus-rest curves of every class take long and say little
DISPLAYS = (ReliabilityDisplay, RocDisplay, PrecisionRecallDisplay)
CURVE_TITLES = ("Reliability diagrams", "ROC curves", "Precision-recall curves")


def estimates_page(
    frame: pd.DataFrame,
    *,
    title: str = "Model evaluation",
    settings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """Write the page that a table of estimates allows: no curves, no agreement, no probability of being best.

    Parameters
    ----------
    frame : DataFrame
        What :meth:`ssme.SSME.estimate` returns.
    title : str
    settings : mapping, optional
        How the estimates were made; shown at the end.
    warnings : sequence of str
        Shown at the top.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    ValueError
        Where the frame is no table of estimates.
    ImportError
        Where the extra `report` is missing.

    Examples
    --------
    >>> row = dict(metric="accuracy", group="all", level=0.9, n_labeled=20, n_unlabeled=500, method="ssme", flags="")
    >>> frame = pd.DataFrame([dict(row, model="<b>", estimate=0.8, lower=0.7, upper=0.9)])
    >>> "&lt;b&gt;" in estimates_page(frame)
    True
    """
    frame = checked_estimates(frame, "frame")
    return _page(frame, title, settings or {}, warnings, best=[leader(frame, m) for m in names(frame, "metric")])


def scores_page(
    estimator: SSME,
    table: ScoreTable,
    metrics: Sequence[str] = ("accuracy", "ece"),
    *,
    level: float = 0.9,
    groups: Sequence[str] | None = None,
    labeled_only: bool = False,
    title: str = "Model evaluation",
    settings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """Write the whole page of an estimator that was fitted to a table of scores.

    Parameters
    ----------
    estimator : SSME
        Fitted to `table`.
    table : ScoreTable
    metrics, level, groups, labeled_only
        As in :meth:`ssme.SSME.estimate`.
    title, settings, warnings
        As in :func:`estimates_page`.

    Returns
    -------
    str
        HTML.
    """
    number = itertools.count(1)
    with _recorded() as notes:
        frame = estimator.estimate(metrics, level=level, groups=groups, labeled_only=labeled_only)
        frame = checked_estimates(frame, "frame")
        diagnostics = {name: _said(value) for name, value in fit_diagnostics(estimator).items()}
        if table.n_labeled:
            diagnostics["labeled against unlabeled rows"] = str(estimator.check_shift())
        best = [ranking(estimator, frame, m, level) for m in names(frame, "metric")]
        models = order(frame, names(frame, "metric")[0])[:MOST_PANELS]
        curves = _curve_sections(estimator, table.n_classes, models, level, number)
    return _page(
        frame,
        title,
        settings or {},
        list(dict.fromkeys([*warnings, *notes])),
        best=best,
        curves=curves,
        agreement=_agreement(table),
        findings=findings(table),
        diagnostics=diagnostics,
        content=_content(table),
        number=number,
    )


@contextlib.contextmanager
def _recorded() -> Iterator[list[str]]:
    """Collect the warnings for the reader of the page, and give them to the caller as well."""
    said: list[str] = []
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        yield said
    for entry in caught:
        if issubclass(entry.category, UserWarning):
            said.append(" ".join(str(entry.message).split()))
        warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)


def _page(
    frame: pd.DataFrame,
    title: str,
    settings: Mapping[str, Any],
    warnings: Sequence[str],
    *,
    best: list[dict[str, Any]],
    number: itertools.count[int] | None = None,
    **parts: Any,
) -> str:
    metrics, number = names(frame, "metric"), number or itertools.count(1)
    whole = frame[frame["group"] == "all"]
    shown = {"curves": [], "agreement": None, "findings": [], "diagnostics": {}, "content": {}, **parts}
    return render(
        "estimates.html",
        title=title,
        best=best,
        table_content=_rows(whole),
        groups=_rows(frame[frame["group"] != "all"]),
        forests=[_forest(whole, metric, number) for metric in metrics if (whole["metric"] == metric).any()],
        meaning=explain(frame, {m: METRICS[m].description for m in metrics if m in METRICS}),
        levels=" or ".join(format_level(v) for v in frame["level"].unique()),
        settings={str(k): _said(v) for k, v in settings.items()},
        warnings=list(warnings),
        most_panels=MOST_PANELS,
        n_models=frame["model"].nunique(),
        **shown,
    )


# -- tables and figures ------------------------------------------------------------------------------------------------


def _rows(frame: pd.DataFrame) -> dict[str, Any]:
    """Cells of a table, and how many rows were left out."""
    place = {column: frame[column].factorize()[0] for column in ("metric", "group", "model")}
    together = np.lexsort([place["model"], place["group"], place["metric"]])  # the methods of a model below each other
    records = frame.iloc[together].head(MOST_ROWS).to_dict(orient="records")
    for record in records:
        record["flags"] = str(record["flags"]).replace(";", "; ")
    return {"rows": records, "left_out": max(0, len(frame) - MOST_ROWS), "flags": any(r["flags"] for r in records)}


def _forest(whole: pd.DataFrame, metric: str, number: itertools.count[int]) -> Figure:
    models, up = order(whole, metric), direction(metric)
    part = whole[(whole["metric"] == metric) & whole["model"].isin(models[:MOST_IN_FIGURE])]
    n_models, n_methods = min(len(models), MOST_IN_FIGURE), part["method"].nunique()
    best = None if up is None else "high" if up else "low"
    few = f", the best {MOST_IN_FIGURE} of {len(models)} models" if len(models) > MOST_IN_FIGURE else ""
    display, height = EstimatesDisplay.from_frame(part), 0.9 + 0.2 * n_models * (1 + 0.5 * (n_methods - 1))
    return draw(partial(display.plot, best=best), f"{metric}{few}", number, height=height)


def _curve_sections(
    estimator: SSME, n_classes: int, models: list[str], level: float, number: itertools.count[int]
) -> list[dict[str, Any]]:
    """Curves of each kind, a small figure for each model."""
    sections: list[dict[str, Any]] = []
    for kind, title in zip(DISPLAYS, CURVE_TITLES, strict=True):
        if kind is not ReliabilityDisplay and n_classes > MOST_CLASSES:
            reason = f"One-versus-rest curves are drawn for at most {MOST_CLASSES} classes; there are {n_classes}."
            sections.append({"kind": kind.kind, "title": title, "figures": [], "note": reason})
            continue
        display = kind.from_estimator(estimator, level=level)
        figures = [
            draw(partial(display.plot, models=[model]), model, number, height=2.3, small=True) for model in models
        ]
        sections.append({"kind": kind.kind, "title": title, "figures": figures, "note": ""})
    return sections


def _agreement(table: ScoreTable) -> dict[str, Any] | None:
    """Share of rows on which two models predict the same class; None for one model, or for too many."""
    called = [str(m) for m in table.model_names]
    if not 1 < len(called) <= MOST_IN_MATRIX:
        return None
    predicted = np.asarray(table.scores).argmax(axis=2)
    share = np.stack([(predicted == predicted[:, [m]]).mean(axis=0) for m in range(len(called))])
    apart = share[~np.eye(len(called), dtype=bool)]
    low, high = float(apart.min()), float(apart.max())
    cells = [[(f"{v:.2f}", shade(v, low, high) if i != j else None) for j, v in enumerate(row)]
             for i, row in enumerate(share)]  # fmt: skip
    return {"rows": list(zip(called, cells, strict=True)), "mean": format_number(float(apart.mean()))}


def _content(table: ScoreTable) -> dict[str, str]:
    facts = describe(table)
    labels = [f"{name} {count:,}" for name, count in facts["labels_by_class"].items()]
    return {
        "rows": f"{facts['rows']:,}, of which {facts['labeled']:,} labeled and {facts['unlabeled']:,} unlabeled",
        "models": f"{len(facts['models']):,}",
        "classes": f"{len(facts['classes']):,}",
        "labels of each class": shortened(labels),
        "scores are": facts["score_type"],
    }


def _said(value: Any) -> str:
    """A setting or a diagnostic in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float):
        return "undefined" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, Mapping):
        return shortened([f"{k} {_said(v)}" for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return shortened([_said(v) for v in value])
    return str(value)
