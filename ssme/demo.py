"""The demo: seven classifiers of different quality on handwritten digits, twenty labels, and the truth beside.

The digits come with scikit-learn, so nothing is downloaded. A part of them trains the classifiers; on the others all
but twenty labels are hidden from the estimator. The truth is each metric on all labels of those other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ssme._format import format_interval, format_level, format_number, rich_table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from ssme.score_table import ScoreTable

N_TRAIN, N_FEW, N_LABELED = 400, 60, 20
METRICS = ("accuracy", "ece")


@dataclass(frozen=True, eq=False)
class DemoScores:
    """Scores on the test rows with few labels, and the truth that the estimator does not see.

    Attributes
    ----------
    table : ScoreTable
        Scores (n, M, 10) with 20 labels; the other rows are unlabeled.
    truth : ndarray of shape (n,)
        The class of every row.
    """

    table: ScoreTable
    truth: np.ndarray


def _classifiers(seed: int) -> dict[str, tuple[Any, int]]:
    """Name -> (classifier, number of training rows): good and weak ones, over- and underconfident ones."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic": (LogisticRegression(max_iter=5000), N_TRAIN),
        "forest": (RandomForestClassifier(100, max_depth=6, random_state=seed), N_TRAIN),
        "naive-bayes": (GaussianNB(var_smoothing=1e-3), N_TRAIN),
        "tree": (DecisionTreeClassifier(max_depth=6, random_state=seed), N_TRAIN),
        "small-tree": (DecisionTreeClassifier(max_depth=3, random_state=seed), N_TRAIN),
        "logistic-60": (LogisticRegression(C=100, max_iter=5000), N_FEW),
        "lda-60": (LinearDiscriminantAnalysis(), N_FEW),
    }


def make_scores(seed: int = 0) -> DemoScores:
    """Train the classifiers and score the rows that they have not seen.

    Parameters
    ----------
    seed : int, default=0
        Decides the split, the classifiers and which twenty rows keep their label.

    Returns
    -------
    DemoScores

    Examples
    --------
    >>> scores = make_scores(0)
    >>> scores.table.n_rows, scores.table.n_models, scores.table.n_labeled
    (1397, 7, 20)
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from ssme.score_table import ScoreTable

    pixels, digit = load_digits(return_X_y=True)
    fit_x, test_x, fit_y, test_y = train_test_split(
        pixels / 16, digit, train_size=N_TRAIN, random_state=seed, stratify=digit
    )
    classifiers = _classifiers(seed)
    # The first N_FEW rows of a stratified, shuffled split are a random few; all ten digits must be among them.
    first = _first_of_each_class(fit_y, N_FEW)
    columns = []
    for classifier, size in classifiers.values():
        rows = first if size == N_FEW else np.arange(N_TRAIN)
        columns.append(classifier.fit(fit_x[rows], fit_y[rows]).predict_proba(test_x))
    labels = np.full(len(test_y), -1)
    shown = np.random.default_rng(seed).choice(len(test_y), N_LABELED, replace=False)
    labels[shown] = test_y[shown]
    table = ScoreTable.from_arrays(
        np.stack(columns, axis=1), labels, model_names=tuple(classifiers), class_names=tuple(str(k) for k in range(10))
    )
    return DemoScores(table, test_y)


def _first_of_each_class(y: np.ndarray, count: int) -> np.ndarray:
    """Indices of ``count`` rows with every class equally often."""
    classes = np.unique(y)
    return np.sort(np.concatenate([np.flatnonzero(y == c)[: count // len(classes)] for c in classes]))


def compare(scores: DemoScores, seed: int = 0, *, level: float = 0.9) -> pd.DataFrame:
    """Estimate every metric from the labels alone and with SSME, and set the truth beside them.

    Parameters
    ----------
    scores : DemoScores
    seed : int, default=0
        Seed of the estimator.
    level : float, default=0.9
        Level of the intervals.

    Returns
    -------
    DataFrame
        One row for each metric and model: ``labeled_only``, ``ssme`` (each with ``_lower`` and ``_upper``), ``truth``,
        ``closer``, ``level``, ``n_labeled``, ``n_unlabeled``.
    """
    import pandas as pd

    from ssme.estimator import SSME
    from ssme.metrics import evaluate_metric

    table = scores.table
    estimates = SSME(random_state=seed).fit(table).estimate(METRICS, level=level, labeled_only=True)
    by_method = dict(tuple(estimates.set_index(["metric", "model"]).groupby("method", sort=False)))
    ours, alone = by_method["ssme"], by_method["labeled-only"]
    frame = pd.DataFrame(index=ours.index)
    for name, part in (("labeled_only", alone), ("ssme", ours)):
        frame[name], frame[f"{name}_lower"], frame[f"{name}_upper"] = part["estimate"], part["lower"], part["upper"]
    truth = {
        (metric, model): value
        for metric in METRICS
        for model, value in zip(table.model_names, evaluate_metric(metric, table.scores, scores.truth), strict=True)
    }
    frame["truth"] = pd.Series(truth)
    error = (frame["ssme"] - frame["truth"]).abs()
    rival = (frame["labeled_only"] - frame["truth"]).abs().fillna(np.inf)
    frame["closer"] = np.select([error < rival, error > rival], ["SSME", "labels"], "even")
    frame["level"], frame["n_labeled"], frame["n_unlabeled"] = level, ours["n_labeled"], ours["n_unlabeled"]
    return frame.reset_index()


def summary(frame: pd.DataFrame) -> dict[str, Any]:
    """Count who was closer and how many intervals hold the truth, for each metric and method.

    Parameters
    ----------
    frame : DataFrame
        From :func:`compare`.

    Returns
    -------
    dict
        ``figures``, ``ssme_closer`` and, for each metric and method, ``mean_error``, ``covered`` and ``mean_width``.
    """
    closer = int((frame["closer"] == "SSME").sum())
    found: dict[str, Any] = {"figures": len(frame), "ssme_closer": closer, "metrics": {}}
    for metric, part in frame.groupby("metric", sort=False):
        found["metrics"][metric] = {
            name: {
                "mean_error": float((part[name] - part["truth"]).abs().mean()),
                "covered": int(part["truth"].between(part[f"{name}_lower"], part[f"{name}_upper"]).sum()),
                "mean_width": float((part[f"{name}_upper"] - part[f"{name}_lower"]).mean()),
                "figures": len(part),
            }
            for name in ("ssme", "labeled_only")
        }
    return found


def to_tables(frame: pd.DataFrame) -> list[RenderableType]:
    """Lay out the comparison, one table for each metric: labels alone, SSME and the truth side by side.

    Parameters
    ----------
    frame : DataFrame
        From :func:`compare`.

    Returns
    -------
    list of what rich can print
    """
    interval, count = f"{format_level(frame['level'].iloc[0])} interval", f"{frame['n_labeled'].iloc[0]} labels"
    heading = ["model", count, interval, "SSME", interval, "truth", "closer"]
    tables = []
    for metric, part in frame.groupby("metric", sort=False):
        rows = [
            [
                str(row["model"]),
                format_number(row["labeled_only"]),
                format_interval(row["labeled_only_lower"], row["labeled_only_upper"]),
                format_number(row["ssme"]),
                format_interval(row["ssme_lower"], row["ssme_upper"]),
                format_number(row["truth"]),
                str(row["closer"]),
            ]
            for row in part.to_dict(orient="records")
        ]
        tables.append(rich_table(heading, rows, title=str(metric), numeric=(count, "SSME", "truth")))
    return tables


def introduction(scores: DemoScores) -> list[str]:
    """Say what the tables below it compare."""
    table = scores.table
    return [
        f"{table.n_models} classifiers of handwritten digits, {table.n_rows:,} rows that none of them was trained on.",
        f"{table.n_labeled} rows keep their label, {table.n_rows - table.n_labeled:,} labels are hidden.",
        f"truth: the metric with all {table.n_rows:,} labels. closer: whose estimate is nearer to it.",
    ]


def verdict(frame: pd.DataFrame) -> list[str]:
    """Say who was closer to the truth and how many intervals hold it, whoever won."""
    facts, count = summary(frame), int(frame["n_labeled"].iloc[0])
    lines = [f"SSME was closer to the truth in {facts['ssme_closer']} of {facts['figures']} figures."]
    for metric, methods in facts["metrics"].items():
        for name, label in (("ssme", "SSME"), ("labeled_only", f"the {count} labels alone")):
            m = methods[name]
            lines.append(
                f"{metric}, {label}: mean absolute error {m['mean_error']:.3f}; intervals of mean width "
                f"{m['mean_width']:.3f} hold the truth in {m['covered']} of {m['figures']} cases."
            )
    return lines
