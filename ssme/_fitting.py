"""Between the estimator and the maths: read what the caller gave, choose rows, prepare subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ssme._validation import check_groups, check_labels, check_sample_weight, check_scores
from ssme.consensus import hit_covariance, labeled_residual, model_bias, tilt_for_shift
from ssme.posterior import LabelPosterior
from ssme.score_table import ScoreTable

Floats = NDArray[np.float64]

SAMPLE_SIZE = 20_000  # rows for what needs no labels; more of them change its third decimal
GROUP_ROWS = 200.0  # a subgroup departs from the whole as far as a consensus learned from this many rows would


@dataclass(frozen=True, eq=False)
class Rows:
    """What was fitted: scores (n, M, K), codes (n,), classes (K,), weights (n,), names, groups."""

    scores: Floats
    codes: NDArray[np.int64]
    classes: NDArray[Any]
    weights: Floats
    model_names: list[str] | None
    groups: dict[str, NDArray[Any]]


def read_rows(scores: Any, y: Any, sample_weight: Any, score_type: str, class_names: Sequence[Any] | None) -> Rows:
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
    else:
        codes, classes = check_labels(y, array.shape[0], array.shape[2], class_names=class_names)
    weights = check_sample_weight(sample_weight, array.shape[0])
    return Rows(array, codes, np.asarray(classes), weights, names, groups)


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


def group_posterior(posterior: LabelPosterior, weights: Floats, normal: Floats) -> LabelPosterior:
    """The posterior of a subgroup: its labels correct what the whole implies for it, shrunk, and widen the draws."""
    hits = posterior.mean_hits()
    residual, n_labeled = labeled_residual(hits, posterior.votes, posterior.codes, weights)
    implied = np.average(hits, axis=0, weights=weights)
    covariance = hit_covariance(hits, posterior.votes, weights)
    bias = model_bias(residual, covariance, implied, n_labeled, GROUP_ROWS, ((GROUP_ROWS, 1.0),))
    slope = np.maximum(np.average(hits * (1 - hits), axis=0, weights=weights), 1e-3)
    noise = bias.draws(normal, np.zeros(len(normal), dtype=np.int64)) / slope
    return posterior.tilted(tilt_for_shift(hits, bias.expected, weights), noise)
