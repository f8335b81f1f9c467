"""scikit-learn classifiers, and whatever has their methods -> ScoreTable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ssme._validation import argument, check_groups, check_labels, check_row_ids, first_few
from ssme.adapters._classes import LabelMapping, find_classes, log_softmax, rename_outputs, to_classes
from ssme.adapters._labels import labels_by_name
from ssme.adapters._named import named_models
from ssme.score_table import ScoreTable

__all__ = ["collect_scores"]


def collect_scores(
    estimators: Any,
    X: Any,
    *,
    labels: Any = None,
    row_ids: Any = None,
    groups: Any = None,
    class_names: Sequence[Any] | None = None,
    label_mapping: LabelMapping | None = None,
    batch_size: int | None = None,
) -> ScoreTable:
    """Scores of several fitted classifiers on the same rows.

    Parameters
    ----------
    estimators : estimator, or list or dict of these
        Fitted; pipelines and searches too. Names are the keys of a dict, else the names of their types.
    X : array-like, DataFrame, sparse matrix or list of n rows; or dict of estimator name to such
        A dict gives every estimator its own features of the same rows.
    labels : array-like of shape (n,), optional
        -1, None, NaN or "" where unlabeled.
    row_ids : array-like of shape (n,), optional
        By default the index of a DataFrame that has one, else "0", "1", ...
    groups : dict, DataFrame or array of shape (n,), optional
    class_names : sequence, optional
        Classes of the table in their order; by default ``classes_`` of the first estimator.
    label_mapping : dict, optional
        As in :func:`ssme.adapters.huggingface.collect_scores`.
    batch_size : int, optional
        Rows at a time, for estimators that need much memory; by default all.

    Returns
    -------
    ScoreTable
        Probabilities, columns matched by ``classes_``. Where an estimator has no ``predict_proba``, the softmax of its
        ``decision_function`` (the logistic function for two classes): margins are no calibrated log-odds, which shows
        in its calibration error.

    Raises
    ------
    ValueError, TypeError
        Where an estimator is not fitted, has neither method, other classes, or another number of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.svm import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"logistic": LogisticRegression(max_iter=500).fit(X, y), "svm": LinearSVC().fit(X, y)}
    >>> collect_scores(models, X, class_names=[2, 1, 0]).class_names
    ('2', '1', '0')
    """
    named = named_models(estimators, lambda each: type(each).__name__, lambda each: hasattr(each, "fit"))
    inputs = _inputs(X, list(named))
    n = _n_rows(inputs[next(iter(named))])
    outputs = rename_outputs({name: _classes_of(name, each) for name, each in named.items()}, label_mapping)
    classes = find_classes(outputs, class_names)
    ids = check_row_ids(_index(X) if row_ids is None else row_ids, n, argument("row_ids"))
    shared = labels_by_name(labels, classes, given=class_names is not None)
    check_labels(shared, n, len(classes), class_names=classes, name=argument("labels"))
    checked = check_groups(groups, n)
    scores = np.empty((n, len(named), len(classes)))
    for m, (name, each) in enumerate(named.items()):
        log_p = _log_probabilities(name, each, inputs[name], n, batch_size or max(n, 1))
        scores[:, m] = np.exp(to_classes(log_p, outputs[name], classes))
    return ScoreTable.from_arrays(
        scores, shared, model_names=list(named), class_names=classes, row_ids=ids, groups=checked
    )


def _inputs(X: Any, names: Sequence[str]) -> dict[str, Any]:
    """Features of every estimator."""
    if not isinstance(X, Mapping):
        return dict.fromkeys(names, X)
    lacking = [name for name in names if name not in X]
    if lacking:
        raise ValueError(f"X has no features for {first_few(lacking)}; its keys are {first_few(X, 20)}.")
    return {name: X[name] for name in names}


def _n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def _index(X: Any) -> Any:
    """The index of a frame, where somebody gave it one."""
    index = getattr(X, "index", None)
    if index is None or callable(index):
        return None
    plain = getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1
    return None if plain else index


def _classes_of(name: str, estimator: Any) -> list[Any]:
    if not (hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")):
        raise TypeError(f"{name} ({type(estimator).__name__}) has neither predict_proba nor decision_function.")
    try:
        classes = estimator.classes_
    except AttributeError:
        raise ValueError(f"{name} has no classes_: it is not fitted, or is no classifier.") from None
    if isinstance(classes, list):
        raise ValueError(f"{name} predicts several columns at once; collect the scores of one of them.")
    return list(classes)


def _log_probabilities(name: str, estimator: Any, X: Any, n: int, batch_size: int) -> np.ndarray:
    """Log probabilities (n, K) in the order of ``classes_``."""
    if _n_rows(X) != n:
        raise ValueError(f"X of {name} has {_n_rows(X)} rows, but that of the first estimator {n}; give the same rows.")
    if batch_size >= n:
        parts = [_one_batch(name, estimator, X)]
    else:
        rows = X.iloc if hasattr(X, "iloc") else X
        parts = [_one_batch(name, estimator, rows[i : i + batch_size]) for i in range(0, n, batch_size)]
    return np.concatenate(parts)


def _one_batch(name: str, estimator: Any, X: Any) -> np.ndarray:
    n, n_classes = _n_rows(X), len(estimator.classes_)
    if hasattr(estimator, "predict_proba"):
        p = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        _check_shape(name, "predict_proba", p, (n, n_classes))
        if not np.isfinite(p).all() or (p < 0).any():
            raise ValueError(f"predict_proba of {name} gives numbers that are no probabilities.")
        with np.errstate(divide="ignore"):
            return np.log(p)
    margins = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if margins.ndim == 1 and n_classes == 2:  # log-odds of the second class
        margins = np.stack([np.zeros(n), margins], axis=1)
    _check_shape(name, "decision_function", margins, (n, n_classes))
    if not np.isfinite(margins).all():
        raise ValueError(f"decision_function of {name} gives numbers that are not finite.")
    return log_softmax(margins)


def _check_shape(name: str, method: str, found: np.ndarray, expected: tuple[int, int]) -> None:
    if found.shape != expected:
        hint = "; pass decision_function_shape='ovr'" if method == "decision_function" and found.ndim == 2 else ""
        raise ValueError(f"{method} of {name} has the shape {found.shape}, not {expected}{hint}.")
