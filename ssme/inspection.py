"""What is in a score table and what is wrong with it: plain counts and findings, before any estimate is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from ssme.score_table import ScoreTable

FEW_LABELS = 10
MAX_NAMES = 5
DIAGNOSTIC_NAMES = {
    "agreement": "agreement of the models",
    "confidence": "mean confidence of the models",
    "labels_against_consensus": "labels against consensus (standard deviations; beyond 2.5 they disagree)",
}


def _first(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    rest = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def describe(table: ScoreTable) -> dict[str, Any]:
    """Count rows, models, classes, labels and groups.

    Parameters
    ----------
    table : ScoreTable

    Returns
    -------
    dict
        Plain Python values, ready for JSON.
    """
    labels = table.labels[table.labels >= 0]
    counts = np.bincount(labels, minlength=table.n_classes)
    groups = {}
    for column, values in table.groups.items():
        names, codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        labeled = np.bincount(codes[table.labels >= 0], minlength=len(names))
        total = np.bincount(codes, minlength=len(names))
        counted = zip(names.tolist(), total.tolist(), labeled.tolist(), strict=True)
        groups[column] = {name: {"rows": rows, "labeled": known} for name, rows, known in counted}
    return {
        "rows": table.n_rows,
        "labeled": int(len(labels)),
        "unlabeled": int(table.n_rows - len(labels)),
        "models": [str(m) for m in table.model_names],
        "classes": [str(c) for c in table.class_names],
        "score_type": table.score_type,
        "labels_by_class": {str(c): int(k) for c, k in zip(table.class_names, counts, strict=True)},
        "groups": groups,
    }


def agreement(table: ScoreTable) -> pd.DataFrame:
    """Share of rows on which two models predict the same class, for every pair of models (M, M)."""
    import pandas as pd

    predicted = np.asarray(table.scores).argmax(axis=2)  # (n, M)
    share = np.stack([(predicted == predicted[:, [m]]).mean(axis=0) for m in range(predicted.shape[1])])
    names = [str(m) for m in table.model_names]
    return pd.DataFrame(share, index=names, columns=names)


def _label_findings(table: ScoreTable) -> list[str]:
    labels = table.labels[table.labels >= 0]
    found = []
    if len(labels) == 0:
        found.append("No row has a label, so nothing anchors the estimates: pass --labels, or --label-column.")
    elif len(labels) < FEW_LABELS:
        found.append(f"Only {len(labels)} rows are labeled; with fewer than {FEW_LABELS} the intervals are wide.")
    if len(labels) == table.n_rows:
        found.append("Every row is labeled, so there are no unlabeled rows to learn from.")
    absent = [str(c) for k, c in enumerate(table.class_names) if not (labels == k).any()]
    if absent and len(labels):
        found.append(f"{len(absent)} of {table.n_classes} classes have no label: {_first(absent)}.")
    return found


def _model_findings(table: ScoreTable) -> list[str]:
    scores, found = np.asarray(table.scores), []
    seen: dict[bytes, str] = {}
    for m, name in enumerate(map(str, table.model_names)):
        own = np.ascontiguousarray(scores[:, m])
        twin = seen.setdefault(own.tobytes(), name)
        if twin != name:
            found.append(f"Model {name} has exactly the scores of model {twin}; it adds no information.")
        if (own == own[0]).all() and table.n_rows > 1:
            found.append(f"Model {name} gives every row the same scores; it adds no information.")
        elif len(np.unique(own.argmax(axis=1))) == 1:
            found.append(f"Model {name} predicts class {table.class_names[own[0].argmax()]} in every row.")
        if table.score_type == "probability" and ((own == 0) | (own == 1)).all():
            found.append(f"Model {name} has only scores of 0 and 1: hard decisions, not probabilities.")
    return found


def _score_findings(table: ScoreTable) -> list[str]:
    if table.score_type != "probability":
        return []
    scores, found = np.asarray(table.scores), []
    off = np.abs(scores.sum(axis=2) - 1).max(axis=1)
    if (off > 1e-6).any():
        found.append(
            f"In {int((off > 1e-6).sum()):,} of {table.n_rows:,} rows the scores of a model do not sum to 1 "
            f"(by {off.max():.2g} at most, probably rounding); they are rescaled."
        )
    extreme = ((scores == 0) | (scores == 1)).any(axis=(1, 2)).mean()
    if extreme > 0:
        found.append(f"{100 * extreme:.3g}% of the rows hold a probability of exactly 0 or 1; the fit clips it.")
    return found


def _group_findings(table: ScoreTable) -> list[str]:
    found = []
    for column, values in describe(table)["groups"].items():
        bare = [name for name, count in values.items() if count["labeled"] == 0]
        if len(values) == 1:
            found.append(f"Group column {column} has one value only.")
        elif bare:
            found.append(f"{len(bare)} of {len(values)} groups of {column} have no labeled row: {_first(bare)}.")
    return found


def findings(table: ScoreTable) -> list[str]:
    """List in plain sentences what is unusual or wrong with a table; an empty list when nothing is.

    Parameters
    ----------
    table : ScoreTable

    Returns
    -------
    list of str
    """
    return [*_label_findings(table), *_score_findings(table), *_model_findings(table), *_group_findings(table)]


def fit_diagnostics(model: Any) -> dict[str, Any]:
    """Collect the diagnostics of a fitted :class:`ssme.SSME` that it carries (those it lacks are left out).

    Parameters
    ----------
    model : SSME
        A fitted estimator.

    Returns
    -------
    dict
    """
    found: dict[str, Any] = {"density": model.density}
    for label, name in (("rounds of EM", "n_iter_"), ("converged", "converged_")):
        value = getattr(model, name, None)
        if value is not None:
            found[label] = np.asarray(value).item()
    priors = getattr(model, "priors_", None)
    if priors is not None:
        classes = [str(c) for c in model.classes_]
        found["class shares"] = {c: float(p) for c, p in zip(classes, np.asarray(priors), strict=True)}
    bandwidth, trace = getattr(model, "bandwidth_", None), getattr(model, "log_likelihood_", None)
    if bandwidth is not None:
        found["bandwidth, smallest and largest"] = [float(np.min(bandwidth)), float(np.max(bandwidth))]
    if trace is not None and np.size(trace):
        found["log-likelihood, first and last"] = [float(trace[0]), float(trace[-1])]
    share = getattr(model, "self_kernel_share_", None)
    if share is not None:
        found["self-kernel share (near 1: EM cannot move)"] = float(np.mean(share))
    for name, value in getattr(model, "diagnostics_", {}).items():
        found[DIAGNOSTIC_NAMES.get(name, name.replace("_", " "))] = value
    return {name: value for name, value in found.items() if name not in ("n labeled", "n unlabeled")}
