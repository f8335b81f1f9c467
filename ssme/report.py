"""Results as text: tables for the terminal, markdown and JSON. Reads results only; no estimate is computed here.

Every function takes the tidy frame of :meth:`ssme.SSME.estimate` (its columns are ``RESULT_COLUMNS``) or plain
dictionaries, and returns text or something that rich can print; nothing is printed here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ssme._format import (
    MOST_SHOWN,
    UNDEFINED,
    format_interval,
    format_level,
    format_number,
    mapping_to_table,
    markdown_table,
    matrix_to_table,
    plain,
    rich_table,
    shortened,
    to_text,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from ssme.inspection import Agreement

__all__ = [
    "RESULT_COLUMNS",
    "estimates_to_json",
    "estimates_to_markdown",
    "estimates_to_table",
    "explain",
    "findings_to_text",
    "inspection_to_tables",
    "to_json",
    "to_text",
]

RESULT_COLUMNS = tuple("metric model group estimate lower upper level n_labeled n_unlabeled method flags".split())
METHOD_MEANINGS = {
    "ssme": "from the labeled and the unlabeled rows together",
    "ssme-kde": "from the labeled and the unlabeled rows together, by the kernel density mixture as published",
    "labeled-only": "from the labeled rows alone",
}
FLAG_MEANINGS = {
    "no-labels": "no row of the group is labeled; the estimate rests on the models alone",
    "few-labels": "very few rows of the group are labeled",
    "too-high-by-noise": "a calibration error of so few labels is mostly noise, which lifts it and its interval",
    "labels-disagree": "the labels contradict what the agreement of the models leads one to expect; label more rows",
    "few-effective-rows": "the weights make few rows of many, and the interval is as wide as that",
    "coarse-level": "the level asks for more than the draws resolve; more draws (n_draws, or --draws) mend it",
    "no-width": "every draw gives the same number, so the interval says nothing",
    "no-op-fit": "EM could not move, so the estimate is the mean score of the models",
    "undefined": "in some draws the metric was undefined, for example because a class was absent",
}


def _text_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]], list[bool]]:
    """Heading, cells, and whether a new metric or group starts at a row; columns that say nothing are left out."""
    missing = [c for c in RESULT_COLUMNS if c not in frame.columns]
    if missing:
        raise ValueError(f"frame must have the columns of SSME.estimate; {', '.join(missing)} is missing.")
    with_group = frame["group"].astype(str).ne("all").any()
    with_flags = frame["flags"].astype(str).ne("").any()
    levels = frame["level"].unique()
    interval = f"{format_level(levels[0])} interval" if len(levels) == 1 else "interval"
    heading = ["metric", "model", *(["group"] if with_group else []), "estimate", interval]
    heading += ["n labeled", "n unlabeled", "method", *(["flags"] if with_flags else [])]
    cells, starts, previous = [], [], None
    for row in _side_by_side(frame).to_dict(orient="records"):
        cell = [str(row["metric"]), str(row["model"]), *([str(row["group"])] if with_group else [])]
        cell += [format_number(row["estimate"]), format_interval(row["lower"], row["upper"])]
        cell += [f"{row['n_labeled']:,}", f"{row['n_unlabeled']:,}", str(row["method"])]
        cells.append(cell + ([str(row["flags"]).replace(";", "; ")] if with_flags else []))
        starts.append((row["metric"], row["group"]) != previous)
        previous = (row["metric"], row["group"])
    return heading, cells, starts


def _side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """The methods of one model below each other; metrics, groups and models keep the order in which they come."""
    place = {column: frame[column].factorize()[0] for column in ("metric", "group", "model")}
    order = sorted(range(len(frame)), key=lambda i: tuple(codes[i] for codes in place.values()))
    return frame.iloc[order]


def estimates_to_table(frame: pd.DataFrame, *, title: str | None = None) -> RenderableType:
    """Lay out estimates as a table for the terminal.

    Parameters
    ----------
    frame : DataFrame
        What :meth:`ssme.SSME.estimate` returns.
    title : str, optional
        A line above the table.

    Returns
    -------
    What rich can print

    Examples
    --------
    >>> import pandas as pd
    >>> row = dict(metric="accuracy", model="bert", group="all", estimate=0.9, lower=0.8, upper=0.95, level=0.9,
    ...            n_labeled=20, n_unlabeled=1000, method="ssme", flags="")
    >>> print(to_text(estimates_to_table(pd.DataFrame([row]))).strip())
    metric    model  estimate  90% interval    n labeled  n unlabeled  method
    ─────────────────────────────────────────────────────────────────────────
    accuracy  bert      0.900  0.800 to 0.950         20        1,000  ssme
    """
    heading, rows, starts = _text_rows(frame)
    return rich_table(heading, rows, title=title, starts=starts, numeric=("estimate", "n labeled", "n unlabeled"))


def estimates_to_markdown(frame: pd.DataFrame) -> str:
    """Write estimates as a markdown table; hostile names are escaped.

    Examples
    --------
    >>> import pandas as pd
    >>> row = dict(metric="ece", model="a|b", group="all", estimate=0.05, lower=0.02, upper=0.09, level=0.9,
    ...            n_labeled=20, n_unlabeled=1000, method="ssme", flags="")
    >>> print(estimates_to_markdown(pd.DataFrame([row])))
    | metric | model | estimate | 90% interval | n labeled | n unlabeled | method |
    |---|---|---:|---|---:|---:|---|
    | ece | a\\|b | 0.050 | 0.020 to 0.090 | 20 | 1,000 | ssme |
    """
    heading, rows, _ = _text_rows(frame)
    numeric = {"estimate", "n labeled", "n unlabeled"}
    return markdown_table(heading, rows, numeric)


def to_json(document: Any) -> str:
    """Write a document as JSON: strict (no NaN), in full precision, indented."""
    return json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)


def estimates_to_json(
    frame: pd.DataFrame, *, settings: Mapping[str, Any] | None = None, warnings: Sequence[str] = ()
) -> str:
    """Write estimates, what they mean and how they were made as one JSON document.

    Numbers are written in full, so that reading them back gives the same floats; NaN is ``null``.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> row = dict(metric="ece", model="a", group="all", estimate=0.1 + 0.2, lower=0.02, upper=float("nan"), level=0.9,
    ...            n_labeled=20, n_unlabeled=1000, method="ssme", flags="")
    >>> document = json.loads(estimates_to_json(pd.DataFrame([row]), settings={"seed": 0}))
    >>> document["estimates"][0]["estimate"] == 0.1 + 0.2, document["estimates"][0]["upper"] is None
    (True, True)
    """
    document = {
        "format": "ssme-estimates/1",
        "settings": dict(settings or {}),
        "meaning": explain(frame),
        "estimates": frame.to_dict(orient="records"),
        "warnings": list(warnings),
    }
    return to_json(document)


def explain(frame: pd.DataFrame, metric_notes: Mapping[str, str] | None = None) -> list[str]:
    """Say in plain sentences what the numbers of a table are: estimate, interval, counts, methods, flags, metrics.

    Parameters
    ----------
    frame : DataFrame
        What :meth:`ssme.SSME.estimate` returns.
    metric_notes : mapping, optional
        A short description of each metric, by name.

    Returns
    -------
    list of str
    """
    levels = " or ".join(format_level(v) for v in frame["level"].unique())
    lines = [
        "estimate: the metric on the population that the rows were drawn from, not on the labeled rows.",
        f"interval: meant to contain that population value in {levels} of such studies; it allows for the labels that "
        "are not known, the fit and the limited number of rows.",
        "n labeled, n unlabeled: the rows of the group with a known label, and without.",
    ]
    for method in frame["method"].unique():
        if method in METHOD_MEANINGS:
            lines.append(f"method {method}: {METHOD_MEANINGS[method]}.")
    said = {flag.split("-in-")[0] for flags in frame["flags"].unique() for flag in str(flags).split(";")}
    lines += [f"flag {flag}: {meaning}." for flag, meaning in FLAG_MEANINGS.items() if flag in said]
    for metric in frame["metric"].unique():
        note = (metric_notes or {}).get(metric)
        if note:
            lines.append(f"{metric}: {note}")
    return lines


def _counts(values: Mapping[str, Any]) -> str:
    """Names with their numbers in one line."""
    return shortened([f"{k} {format_number(v) if isinstance(v, float) else format(v, ',')}" for k, v in values.items()])


def findings_to_text(findings: Sequence[str]) -> RenderableType:
    """What is unusual, a line each; names are shown literally."""
    from rich.text import Text

    return Text("\n".join(f"Finding: {line}" for line in findings) or "Nothing unusual was found.")


def _agreement_table(agreement: Agreement) -> RenderableType:
    """Every pair of a few models; of many, those that agree least with the others."""
    if agreement.pairs is not None:
        title = "Agreement: share of rows on which two models predict the same class"
        return matrix_to_table(agreement.pairs, title=title)
    least = agreement.with_others.sort_values(kind="stable")[:MOST_SHOWN]
    title = (
        f"Agreement: two models predict the same class on a share of {format_number(agreement.mean)} of the rows, the "
        f"mean over all pairs; the {len(least)} models that agree least with the others"
    )
    rows = [(str(name), format_number(share)) for name, share in least.items()]
    return rich_table(("model", "agreement"), rows, title=title, numeric=("agreement",))


def inspection_to_tables(
    content: Mapping[str, Any], agreement: Agreement, diagnostics: Mapping[str, Any]
) -> list[RenderableType]:
    """Lay out what :mod:`ssme.inspection` says of a score table and of a fit.

    Parameters
    ----------
    content : mapping
        From :func:`ssme.inspection.describe`.
    agreement : Agreement
        From :func:`ssme.inspection.agreement`.
    diagnostics : mapping
        From :func:`ssme.inspection.fit_diagnostics`; empty when nothing was fitted.

    Returns
    -------
    list of what rich can print
    """
    facts = {
        "rows": f"{content['rows']:,}",
        "labeled rows": f"{content['labeled']:,}",
        "unlabeled rows": f"{content['unlabeled']:,}",
        "models": f"{len(content['models']):,}: {shortened(content['models'])}",
        "classes": f"{len(content['classes']):,}: {shortened(content['classes'])}",
        "scores are": content["score_type"],
        "labels of each class": _counts(content["labels_by_class"]),
    }
    for column, values in content["groups"].items():
        sizes = [f"{k} {v['rows']:,} ({v['labeled']:,} labeled)" for k, v in values.items()]
        facts[f"groups of {column}"] = shortened(sizes)
    tables = [mapping_to_table(facts, title="Content")]
    if len(agreement.with_others) > 1:
        tables.append(_agreement_table(agreement))
    if diagnostics:
        lines = {name: _diagnostic(value) for name, value in diagnostics.items()}
        tables.append(mapping_to_table(lines, title="Diagnostics of a fit"))
    return tables


def _diagnostic(value: Any) -> str:
    """One diagnostic as text: a yes, a number, a range or a share for each class."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return _counts(value)
    if isinstance(value, list):
        return " to ".join(f"{v:.4g}" for v in value)
    if isinstance(value, float):
        return UNDEFINED if math.isnan(value) else f"{value:.4g}"
    return str(value)
