"""Between the estimator and the maths: read what the caller gave, choose rows, prepare subgroups."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ssme._validation import (
    check_groups,
    check_label_weight,
    check_labels,
    check_sample_weight,
    check_scores,
    effective_rows,
)
from ssme.consensus import Consensus, hit_covariance, labeled_residual, model_bias, tilt_for_shift, votes_of
from ssme.posterior import LabelPosterior
from ssme.score_table import ScoreTable

Floats = NDArray[np.float64]

DENSITIES = ("recalibrated", "kde")
INITS = ("auto", "recalibrated", "mean-score")
SPACES = ("joint", "pooled")
CONSENSUS = ("mean", "discriminant")
NUMBERS = (
    *(("n_draws", 2, int), ("max_exact_rows", 0, int), ("max_iter", 0, int), ("memory_budget", 1, int)),
    *(("tol", 0, float), ("unlabeled_weight", 0, float)),
)
MOST_LABELED = 50_000  # labels for the sharpness of the consensus and the biases of metrics; all count in metrics
SAMPLE_SIZE = 20_000  # rows for what needs no labels; more of them change its third decimal
FEW_ROWS = 20
OWN_MASS = 0.2  # of a class without a label: least share in the rows of which it is the likeliest
GROUP_ROWS = 200.0  # a subgroup departs from the whole as far as a consensus learned from this many rows would


@dataclass(frozen=True, eq=False)
class Rows:
    """What was fitted: scores (n, M, K), codes (n,), classes (K,), row weights (n,), names, groups, label weights."""

    scores: Floats
    codes: NDArray[np.int64]
    classes: NDArray[Any]
    weights: Floats
    model_names: list[str] | None
    groups: dict[str, NDArray[Any]]
    label_weight: Floats | None = None

    @property
    def of_labels(self) -> Floats:
        """What the label of each row (n,) counts for; in sum over the labeled rows as much as their row weights."""
        if self.label_weight is None:
            return self.weights
        labeled = self.codes >= 0
        found = self.weights * self.label_weight
        return found * (self.weights[labeled].sum() / found[labeled].sum()) if labeled.any() else found


def read_rows(
    scores: Any,
    y: Any,
    sample_weight: Any,
    score_type: str,
    class_names: Sequence[Any] | None,
    label_weight: Any = None,
) -> Rows:
    """Canonical arrays from an array, DataFrame or ScoreTable."""
    names: list[str] | None = None
    groups: dict[str, NDArray[Any]] = {}
    if isinstance(scores, ScoreTable):
        names, groups, score_type = list(scores.model_names), dict(scores.groups), scores.score_type
        class_names = scores.class_names
        array = check_scores(scores.scores, score_type=score_type)
    else:
        if hasattr(scores, "columns"):
            names = [str(column) for column in scores.columns]
        array = check_scores(scores, score_type=score_type)
        y = _one_column(y)
        if getattr(scores, "ndim", 3) == 2 and class_names is None:
            _check_binary(y)
    if isinstance(scores, ScoreTable) and y is None:
        codes, classes = np.array(scores.labels), np.asarray(class_names)
        label_weight = scores.label_weight if label_weight is None else label_weight
    else:
        codes, classes = check_labels(y, array.shape[0], array.shape[2], class_names=class_names)
    weights = check_sample_weight(sample_weight, array.shape[0])
    of_labels = check_label_weight(label_weight, codes, weights)
    return Rows(array, codes, np.asarray(classes), weights, names, groups, of_labels)


def warn_few_rows(weights: Floats, stacklevel: int) -> None:
    """Warn where many rows have weights that amount to few: proportions for counts, or one row that outweighs all."""
    amount = effective_rows(weights)
    if len(weights) >= FEW_ROWS > amount:
        warnings.warn(
            f"sample_weight makes {amount:.3g} rows of {len(weights)}, and intervals are as wide as that: a weight is "
            "how many rows a row stands for. If the weights are proportions, multiply them by the number of rows.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _one_column(y: Any) -> Any:
    """A column (n, 1) as (n,), with scikit-learn's warning."""
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        return column_or_1d(y, dtype=object, warn=True)
    return y


def _check_binary(y: Any) -> None:
    """Scores (n, M) are of binary models; labels of three classes need scores (n, M, K)."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iu" and len(np.unique(y[y >= 0])) > 2:
        raise ValueError(
            "Only binary classification is supported. Scores of two dimensions are P(class 1) of binary models, and y "
            f"has {len(np.unique(y[y >= 0]))} classes: pass scores of shape (n, M, K)."
        )


def reference_sample(rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row numbers, at most SAMPLE_SIZE of them, chosen by content and not by position."""
    if len(rank) <= SAMPLE_SIZE:
        return np.arange(len(rank))
    return np.flatnonzero(rank < SAMPLE_SIZE)


def labeled_rows(codes: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of the labeled rows; of more than MOST_LABELED those of lowest rank."""
    labeled = np.flatnonzero(codes >= 0)
    if len(labeled) <= MOST_LABELED:
        return labeled
    return np.sort(labeled[np.argsort(rank[labeled])[:MOST_LABELED]])


def only_some_labeled(codes: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes (n,), of which no more are labels than :func:`labeled_rows` has."""
    if np.count_nonzero(codes >= 0) <= MOST_LABELED:
        return codes
    out, rows = np.full_like(codes, -1), labeled_rows(codes, rank)
    out[rows] = codes[rows]
    return out


def normal_draws(p: Floats, n_draws: int, seed: Sequence[int]) -> Floats:
    """Antithetic standard normals (D, M) that belong to the models and not to their order."""
    random = np.random.default_rng(seed)
    half = random.standard_normal(((n_draws + 1) // 2, p.shape[1]))
    draws = random.permutation(np.concatenate([half, -half])[:n_draws])
    order = np.argsort(p.max(axis=2).mean(axis=0), kind="stable")
    out = np.empty_like(draws)
    out[:, order] = draws
    return out


def group_rows(rows: Rows, groups: Any) -> list[tuple[str, NDArray[np.int64]]]:
    """Names and row numbers: the whole as "all", then every group as "column=value"."""
    n = len(rows.codes)
    if isinstance(groups, str):
        groups = [groups]
    if isinstance(groups, (list, tuple)) and len(groups) != n and all(isinstance(each, str) for each in groups):
        unknown = [each for each in groups if each not in rows.groups]
        if unknown:
            known = ", ".join(rows.groups) or "none"
            raise ValueError(f"groups names {unknown[0]!r}, which is no group column; there are: {known}.")
        groups = {each: rows.groups[each] for each in groups}
    out = [("all", np.arange(n))]
    for column, values in check_groups(groups, n).items():
        out += [(f"{column}={value}", np.flatnonzero(values == value)) for value in sorted(set(values))]
    return out


def group_posterior(posterior: LabelPosterior, weights: Floats, of_labels: Floats, normal: Floats) -> LabelPosterior:
    """The posterior of a subgroup: its labels correct what the whole implies for it, shrunk, and widen the draws."""
    hits = posterior.mean_hits()
    residual, n_labeled = labeled_residual(hits, posterior.votes, posterior.codes, of_labels)
    implied = np.average(hits, axis=0, weights=weights)
    covariance = hit_covariance(hits, posterior.votes, weights)
    bias = model_bias(residual, covariance, implied, n_labeled, GROUP_ROWS, ((GROUP_ROWS, 1.0),))
    slope = np.maximum(np.average(hits * (1 - hits), axis=0, weights=weights), 1e-3)
    noise = bias.draws(normal, np.zeros(len(normal), dtype=np.int64)) / slope
    return posterior.tilted(tilt_for_shift(hits, bias.expected, weights), noise)


def existing_classes(mean: Floats, codes: NDArray[np.int64], weights: Floats) -> NDArray[np.bool_]:
    """Which classes (K,) occur, from responsibilities (n, K): either of two, one of a label, one with rows of its own.

    Sharp as it may be, a consensus leaves a little mass to every class of every row. Over many rows that amounts to
    rows of a class that does not occur, and a mean over the classes would count it like any other. A class that does
    occur has most of its mass in the rows of which it is the likeliest class (.5 and more on six sets of scores; .05
    and less for classes that are options of a model and never true).
    """
    n_classes = mean.shape[1]
    best = mean.argmax(axis=1)
    own = np.bincount(best, weights * mean[np.arange(len(mean)), best], minlength=n_classes)
    labeled = np.isin(np.arange(n_classes), codes[(codes >= 0) & (weights > 0)])
    return labeled | (own > OWN_MASS * (weights @ mean)) | (n_classes == 2)


def check_parameters(given: dict[str, Any]) -> None:
    """Parameters of the estimator that can be judged without data; raises ValueError naming the one that is wrong."""
    for name, allowed in (
        *(("density", DENSITIES), ("space", SPACES), ("consensus", CONSENSUS)),
        *(("kernel_dtype", ("float64", "float32")), ("backend", ("numpy", "torch"))),
    ):
        if given[name] not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {given[name]!r}.")
    if isinstance(given["init"], str) and given["init"] not in INITS:
        raise ValueError(f"init must be one of {', '.join(map(repr, INITS))} or an array, got {given['init']!r}.")
    for name, least, kind in NUMBERS:
        value = given[name]
        number = isinstance(value, (int, np.integer)) or (kind is float and isinstance(value, (float, np.floating)))
        if not number or isinstance(value, bool) or not np.isfinite(value) or value < least:
            whole = "whole " if kind is int else ""
            raise ValueError(f"{name} must be a {whole}number of at least {least}, got {value!r}.")
    if given["correct_bias"] not in ("auto", True, False):
        raise ValueError(f"correct_bias must be 'auto', True or False, got {given['correct_bias']!r}.")


def diagnose(rows: Rows, fitted: Consensus) -> dict[str, float]:
    """Which part of the answer comes from the consensus and which from the labels, and how far they are apart."""
    labeled = np.flatnonzero((rows.codes >= 0) & (rows.of_labels > 0))
    found = {
        "n_labeled": int(((rows.codes >= 0) & (rows.weights > 0)).sum()),
        "n_unlabeled": len(rows.codes) - int((rows.codes >= 0).sum()),
        "agreement": fitted.clues.agreement,
        "confidence": fitted.clues.confidence,
        "dependence": fitted.clues.dependence,
        "implied_accuracy_without_labels": fitted.prior_accuracy,
        "implied_accuracy_spread_without_labels": fitted.prior_spread,
        "share_of_uncertainty_removed_by_labels": float("nan"),
        "labels_against_consensus": float("nan"),
    }
    if fitted.prior_spread > 0 and len(labeled):
        left = (fitted.accuracy_spread / fitted.prior_spread) ** 2
        found["share_of_uncertainty_removed_by_labels"] = max(0.0, 1 - left)
    if len(labeled):
        w = rows.of_labels[labeled] / rows.of_labels[labeled].sum()
        accuracy = float(w @ np.mean(votes_of(rows.scores[labeled]) == rows.codes[labeled, None], axis=1))
        size = 1 / float(w @ w)  # labels of equal weight that would say as much (Kish 1965)
        error = np.sqrt(accuracy * (1 - accuracy) / size + 0.25 / size**2 + fitted.prior_spread**2)
        found["labels_against_consensus"] = float((accuracy - fitted.prior_accuracy) / error)
    return found
