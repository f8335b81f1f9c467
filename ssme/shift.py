"""Are the labeled rows like the others? A test for shift, and a correction where the classes alone have shifted.

Everything that is learned from the labels is carried over to the rows without one, which needs labeled rows that were
drawn at random. :func:`shift_test` compares the scores of labeled and unlabeled rows by two energy distances, one
between the pooled scores (which classes), one between the ranks of the confidence (how sure), and takes the smaller p
value, corrected for having looked twice. p values are by permutation, so they hold for any number of labels.

Where only the shares of the classes differ (p(scores | class) stays), :func:`label_shift` estimates the shares among
the unlabeled rows and gives the labels the weights that undo the shift.

References
----------
Szekely, G. J., Rizzo, M. L. (2013). Energy statistics. J. Statist. Plann. Inference. Phipson, B., Smyth, G. K. (2010).
Permutation p-values should never be zero. Saerens, M., Latinne, P., Decaestecker, C. (2002). Adjusting the outputs of a
classifier to new a priori probabilities. Lipton, Z., Wang, Y.-X., Smola, A. (2018). Detecting and correcting for label
shift with black box predictors. ICML. Azizzadenesheli, K. et al. (2019). Regularized learning for domain adaptation
under label shifts. ICLR.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_ROWS = 2000  # of either kind; distances between more rows change the third decimal
ALPHA = 0.01  # a warning in one of a hundred studies without any shift
ANCHOR = 3.0  # the shares of the labels count as if seen on ANCHOR n_u / n_l unlabeled rows
RIDGE = 0.1  # over n_l: what keeps the inverse of a confusion matrix of few labels in bounds
LEAST_SHARE = 1e-4


class ShiftWarning(UserWarning):
    """Labeled and unlabeled rows differ more than chance explains."""


@dataclass(frozen=True)
class ShiftTest:
    """Result of :func:`shift_test`.

    Attributes
    ----------
    p_value : float
        Probability of a difference as large as this if the labeled rows had been drawn at random.
    p_classes, p_confidence : float
        The same for each of the two comparisons alone.
    n_labeled, n_unlabeled : int
    confidence_labeled, confidence_unlabeled : float
        Mean of the largest pooled score.
    alpha : float
        Level at which `shifted` is decided.
    """

    p_value: float
    p_classes: float
    p_confidence: float
    n_labeled: int
    n_unlabeled: int
    confidence_labeled: float
    confidence_unlabeled: float
    alpha: float = ALPHA

    @property
    def shifted(self) -> bool:
        """Whether the p value is at most alpha."""
        return self.p_value <= self.alpha

    def __str__(self) -> str:
        if not np.isfinite(self.p_value):
            return "Labeled and unlabeled rows cannot be compared: there must be two rows of each kind."
        sizes = f"{self.n_labeled} labeled and {self.n_unlabeled} unlabeled rows"
        if not self.shifted:
            return f"No sign of shift between {sizes} (p = {self.p_value:.3g}); with few labels only large shifts show."
        what = "how sure the models are" if self.p_confidence < self.p_classes else "which classes the models see"
        return (
            f"The labeled rows are not like the unlabeled ones (p = {self.p_value:.3g}, {sizes}): they differ most in "
            f"{what} (mean confidence {self.confidence_labeled:.2f} against {self.confidence_unlabeled:.2f}). "
            "Estimates carry over what the labels say to rows that differ from them. Draw the rows to label at random; "
            "where only the shares of the classes differ, correct for label shift."
        )

    def warn(self, stacklevel: int = 2) -> ShiftTest:
        """Give a :class:`ShiftWarning` where the rows differ; returns the result itself."""
        if self.shifted:
            warnings.warn(str(self), ShiftWarning, stacklevel=stacklevel)
        return self


def shift_test(
    p: Floats,
    labeled: Bools,
    *,
    probability: Floats | None = None,
    alpha: float = ALPHA,
    n_permutations: int = 999,
    seed: int = 0,
) -> ShiftTest:
    """Test whether the labeled rows could have been drawn at random from all rows, by their scores.

    Parameters
    ----------
    p : array (n, M, K)
        Probabilities.
    labeled : bool array (n,)
    probability : array (n,), optional
        How likely each row was to be labeled, for labels that were drawn by a design; then it is the design that is
        tested.
    alpha : float, default=0.01
    n_permutations : int, default=999
    seed : int, default=0

    Returns
    -------
    ShiftTest
        With p values NaN where there are fewer than two rows of either kind.

    Raises
    ------
    ValueError
        Where alpha does not lie between 0 and 1.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> second = random.uniform(size=(500, 1))
    >>> p = np.stack([1 - second, second], axis=2)
    >>> shift_test(p, np.arange(500) < 30).shifted, shift_test(p, second[:, 0] > 0.9).shifted
    (False, True)
    """
    if not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise ValueError(f"alpha must be a number strictly between 0 and 1, got {alpha!r}.")
    labeled = np.asarray(labeled, dtype=bool)
    pooled = p.mean(axis=1)
    confidence = pooled.max(axis=1)
    n_labeled, n_unlabeled = int(labeled.sum()), int((~labeled).sum())
    of_labeled, of_others = (float(confidence[rows].mean()) if rows.any() else np.nan for rows in (labeled, ~labeled))
    if min(n_labeled, n_unlabeled) < 2:
        return ShiftTest(np.nan, np.nan, np.nan, n_labeled, n_unlabeled, of_labeled, of_others, alpha)
    random = np.random.default_rng(seed)
    kept = _thin(labeled, random)
    sets = _sets(labeled[kept], None if probability is None else probability[kept], n_permutations, random)
    features = np.sqrt(pooled[kept]), rankdata(confidence[kept])[:, None]
    tails = np.stack([_tails(_energy(x, sets)) for x in features])
    smaller = tails.min(axis=0)
    combined = float(np.mean(smaller <= smaller[0] + 1e-9))
    classes, confident = float(tails[0, 0]), float(tails[1, 0])
    return ShiftTest(combined, classes, confident, n_labeled, n_unlabeled, of_labeled, of_others, alpha)


@dataclass(frozen=True, eq=False)
class LabelShift:
    """Result of :func:`label_shift`.

    Attributes
    ----------
    source, target : array (K,)
        Shares of the classes where the labels came from, and among the unlabeled rows.
    """

    source: Floats
    target: Floats

    @property
    def ratio(self) -> Floats:
        """target / source (K,): what a label of each class counts for."""
        return self.target / self.source

    def label_weight(self, codes: NDArray[np.int64]) -> Floats:
        """Weight (n,) of the labels that undoes the shift, with mean 1 over the labeled rows; 1 without a label."""
        weight = np.where(codes >= 0, self.ratio[np.maximum(codes, 0)], 1.0)
        labeled = codes >= 0
        if labeled.any():
            weight[labeled] /= weight[labeled].mean()
        return weight

    def adapt(self, responsibilities: Floats) -> Floats:
        """P(class) (n, K) of rows from the target, for those that hold where the labels came from."""
        out = responsibilities * self.ratio
        return np.asarray(out / out.sum(axis=1, keepdims=True))


def label_shift(
    responsibilities: Floats,
    codes: NDArray[np.int64],
    weights: Floats | None = None,
    *,
    method: str = "em",
    max_iter: int = 1000,
    tol: float = 1e-9,
) -> LabelShift:
    """Shares of the classes among the unlabeled rows, where these differ from those of the labeled rows.

    Parameters
    ----------
    responsibilities : array (n, K)
        P(class) of every row given its scores, no label pinned, as of :meth:`ssme.SSME.predict_proba`.
    codes : array (n,)
        Labels, -1 = unlabeled.
    weights : array (n,), optional
        Row weights.
    method : {"em", "bbse"}, default="em"
        "em": maximum likelihood by EM (Saerens et al. 2002), held near the source by a Dirichlet prior that is the
        weaker the more labels there are. "bbse": the confusion matrix of the consensus at the labels, inverted with a
        ridge (Lipton et al. 2018, Azizzadenesheli et al. 2019); needs labels of every class.
    max_iter, tol : int, float
        Of EM.

    Returns
    -------
    LabelShift

    Raises
    ------
    ValueError
        Without labeled or without unlabeled rows, or for another method.
    """
    labeled = codes >= 0
    if labeled.all() or not labeled.any():
        kind = "unlabeled" if labeled.all() else "labeled"
        raise ValueError(f"label shift is between labeled and unlabeled rows, and there is no {kind} row.")
    if method not in ("em", "bbse"):
        raise ValueError(f"method must be 'em' or 'bbse', got {method!r}.")
    w = np.ones(len(codes)) if weights is None else weights
    at_labels, others = responsibilities[labeled], responsibilities[~labeled]
    w_labels, w_others = w[labeled] / w[labeled].sum(), w[~labeled] / w[~labeled].sum()
    if method == "em":
        source = _shares(w_labels @ at_labels)
        return LabelShift(source, _em(others, w_others, source, ANCHOR / labeled.sum(), max_iter, tol))
    one_hot = np.eye(responsibilities.shape[1])[codes[labeled]]
    prior = 2.0 / (labeled.sum() + 2.0)  # two rows that look as the consensus says
    source = _shares((1 - prior) * w_labels @ one_hot + prior * w_labels @ at_labels)
    confusion = (at_labels * w_labels[:, None]).T @ one_hot  # (said, is)
    gap = w_others @ others - confusion.sum(axis=1)
    ridge = RIDGE / labeled.sum() * np.eye(len(source))
    step = np.linalg.solve(confusion.T @ confusion + ridge, confusion.T @ gap)
    return LabelShift(source, _shares(np.maximum(1 + step, 0.0) * source))


def _em(p: Floats, weights: Floats, source: Floats, anchor: float, max_iter: int, tol: float) -> Floats:
    """Shares (K,) that maximise the likelihood of the rows (n, K), anchored at the source."""
    target = source.copy()
    for _ in range(max_iter):
        adapted = p * (target / source)
        adapted /= adapted.sum(axis=1, keepdims=True)
        new = _shares((weights @ adapted + anchor * source) / (1 + anchor))
        moved = np.abs(new - target).max()
        target = new
        if moved < tol:
            break
    return target


def _shares(x: Floats) -> Floats:
    x = np.maximum(x / x.sum(), LEAST_SHARE / len(x))
    return np.asarray(x / x.sum())


def _thin(labeled: Bools, random: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers, rising, with at most MOST_ROWS of each kind."""
    kinds = [np.flatnonzero(labeled), np.flatnonzero(~labeled)]
    return np.sort(np.concatenate([random.permutation(rows)[:MOST_ROWS] for rows in kinds]))


def _sets(labeled: Bools, probability: Floats | None, n_sets: int, random: np.random.Generator) -> Floats:
    """Indicators (n, 1 + B) of sets of rows: the labeled ones, and B that could have been drawn in their place."""
    n, size = len(labeled), int(labeled.sum())
    out: Floats = np.zeros((n, n_sets + 1))
    out[labeled, 0] = 1.0
    even = probability is None or np.ptp(probability) <= 1e-9
    for b in range(1, n_sets + 1):
        order = random.permutation(n)
        if even or probability is None:
            out[order[:size], b] = 1.0
            continue
        edges = np.cumsum(probability[order])
        points = (random.random() + np.arange(size)) * edges[-1] / size
        out[order[np.searchsorted(edges, points, side="right").clip(max=n - 1)], b] = 1.0
    return out


def _energy(x: Floats, sets: Floats) -> Floats:
    """Energy distance (1 + B,) between each set of rows and the others, features (n, F)."""
    distances = cdist(x, x)
    inside = np.einsum("nb,nb->b", sets, distances @ sets)
    size = sets.sum(axis=0)
    rest = len(x) - size
    across = distances.sum(axis=1) @ sets - inside
    outside = distances.sum() - inside - 2 * across
    return np.asarray(2 * across / (size * rest) - inside / size**2 - outside / rest**2)


def _tails(statistic: Floats) -> Floats:
    """Share of the sets with at least the statistic of each, rounding aside."""
    tolerance = 1e-9 * np.abs(statistic).max(initial=1e-300)
    ordered = np.sort(statistic)
    return (len(statistic) - np.searchsorted(ordered, statistic - tolerance)) / len(statistic)
