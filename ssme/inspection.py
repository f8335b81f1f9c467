"""What is in a score table and what is wrong with it: plain counts and findings, before any estimate is made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ssme._validation import argument, counted

if TYPE_CHECKING:
    import pandas as pd

    from ssme.score_table import ScoreTable

FEW_LABELS = 10
MAX_NAMES = 5
MAX_PAIRED = 20  # models whose agreement is shown pair by pair; a larger matrix says nothing to a reader
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


@dataclass(frozen=True, eq=False)
class Agreement:
    """On which share of the rows models predict the same class.

    Attributes
    ----------
    with_others : Series of length M
        For each model, the mean over the other models; NaN of a single model.
    pairs : DataFrame of shape (M, M) or None
        For every pair; None for more than ``MAX_PAIRED`` models.
    """

    with_others: pd.Series
    pairs: pd.DataFrame | None

    @property
    def mean(self) -> float:
        """The mean over all pairs of two models."""
        return float(self.with_others.mean())


def agreement(table: ScoreTable) -> Agreement:
    """Compare the predicted classes of the models, in memory that grows with the table and not with pairs of models.

    Parameters
    ----------
    table : ScoreTable

    Returns
    -------
    Agreement
    """
    import pandas as pd

    predicted = np.asarray(table.scores).argmax(axis=2)  # (n, M)
    n, n_models = predicted.shape
    names = [str(m) for m in table.model_names]
    # A model agrees with all others that vote for its class: the votes are (n, K) numbers, the pairs would be (M, M).
    votes = np.stack([np.count_nonzero(predicted == k, axis=1) for k in range(table.n_classes)], axis=1)
    others = np.array([votes[np.arange(n), predicted[:, m]].mean() for m in range(n_models)]) - 1
    with_others = pd.Series(others / (n_models - 1) if n_models > 1 else np.full(1, np.nan), index=names)
    if n_models > MAX_PAIRED:
        return Agreement(with_others, None)
    share = np.stack([(predicted == predicted[:, [m]]).mean(axis=0) for m in range(n_models)])
    return Agreement(with_others, pd.DataFrame(share, index=names, columns=names))


def agreement_record(found: Agreement) -> dict[str, Any]:
    """The agreement as plain values, ready for JSON.

    Parameters
    ----------
    found : Agreement

    Returns
    -------
    dict
        ``models``, ``mean``, ``mean_with_others`` and ``share_of_rows`` (None for many models).
    """
    return {
        "models": list(found.with_others.index),
        "mean": found.mean,
        "mean_with_others": found.with_others.to_numpy(),
        "share_of_rows": None if found.pairs is None else found.pairs.to_numpy(),
    }


def _label_findings(table: ScoreTable) -> list[str]:
    labels = table.labels[table.labels >= 0]
    found = []
    if len(labels) == 0:
        ways = f"{argument('labels')}, or {argument('label_column')}"
        found.append(f"No row has a label, so nothing anchors the estimates: pass {ways}.")
    elif len(labels) < FEW_LABELS:
        few = counted(len(labels), "row is", "rows are")
        found.append(f"Only {few} labeled; with fewer than {FEW_LABELS} the intervals are wide.")
    if len(labels) == table.n_rows:
        found.append("Every row is labeled, so there are no unlabeled rows to learn from.")
    absent = [str(c) for k, c in enumerate(table.class_names) if not (labels == k).any()]
    if absent and len(labels):
        have = "has" if len(absent) == 1 else "have"
        found.append(f"{len(absent)} of {table.n_classes} classes {have} no label: {_first(absent)}.")
    return found


def _model_findings(table: ScoreTable) -> list[str]:
    """What is odd about models: a line for each, or one line for all where they are many."""
    scores, names = np.asarray(table.scores), [str(m) for m in table.model_names]
    predicted = scores.argmax(axis=2)
    constant = (scores == scores[0]).all(axis=(0, 2)) & (table.n_rows > 1)
    one_class = (predicted == predicted[0]).all(axis=0) & ~constant
    hard = ((scores == 0) | (scores == 1)).all(axis=(0, 2)) & (table.score_type == "probability")
    twins = _twins(scores)
    no_information = "it adds no information"
    of_one_class = {m: f"predicts class {table.class_names[k]} in every row" for m, k in enumerate(predicted[0])}
    return [
        *_lines(
            names,
            {m: f"has exactly the scores of model {names[twin]}; {no_information}" for m, twin in twins.items()},
            "have exactly the scores of another one",
        ),
        *_lines(
            names,
            dict.fromkeys(_places(constant), f"gives every row the same scores; {no_information}"),
            "give every row the same scores",
        ),
        *_lines(names, {m: of_one_class[m] for m in _places(one_class)}, "predict one class in every row"),
        *_lines(
            names,
            dict.fromkeys(_places(hard), "has only scores of 0 and 1: hard decisions, not probabilities"),
            "have only scores of 0 and 1: hard decisions, not probabilities",
        ),
    ]


def _places(mask: np.ndarray) -> list[int]:
    return [int(place) for place in np.flatnonzero(mask)]


def _twins(scores: np.ndarray) -> dict[int, int]:
    """Models with the scores of an earlier one -> that one; a digest of each is kept, not the scores."""
    first: dict[bytes, int] = {}
    found = {}
    for m in range(scores.shape[1]):
        twin = first.setdefault(hashlib.sha256(np.ascontiguousarray(scores[:, m]).data).digest(), m)
        if twin != m:
            found[m] = twin
    return found


def _lines(names: list[str], said: dict[int, str], of_many: str) -> list[str]:
    if len(said) > MAX_NAMES:
        return [f"{len(said):,} models {of_many}: {_first([names[m] for m in said])}."]
    return [f"Model {names[m]} {what}." for m, what in said.items()]


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
            have = "has" if len(bare) == 1 else "have"
            found.append(f"{len(bare)} of {len(values)} groups of {column} {have} no labeled row: {_first(bare)}.")
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
