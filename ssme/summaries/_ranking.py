"""Area under the ROC curve and average precision from counts in cells of the score, with bounds of the error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssme.metrics._calibration import N_MASS_BINS

Floats = NDArray[np.float64]

SMALL = 1e-3  # share of the rows above below which a cell is short enough for the midpoint rule


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Rows of one model, and one class, in S rising cells of the score.

    Attributes
    ----------
    rows, scores : array (S,)
        Sum of the weights, and of the weights times the scores.
    positives : array (S, D)
        Weight of the class in each draw.
    tied : array (S,)
        Whether all rows of the cell have one score.
    mass_bins : array (S,), optional
        The bin of equal mass that each cell belongs to, where it is known.
    heaviest : float
        Largest weight of a row.
    squares : array (S, D), optional
        Sum over the rows of weight times the square of the share of the class: with `positives` it says how much of the
        class a row has by itself, all of it where labels are known.
    counts : array (S,), optional
        Number of rows.
    """

    rows: Floats
    scores: Floats
    positives: Floats
    tied: NDArray[np.bool_]
    mass_bins: NDArray[np.int64] | None = None
    heaviest: float = 1.0
    squares: Floats | None = None
    counts: Floats | None = None

    def of_single_rows(self) -> tuple[Floats, Floats]:
        """Weight of a row (S, 1), and weight of the class (S, D) in a row that has it, in the mean; 0 if not known."""
        if self.squares is None or self.counts is None:
            return np.zeros((len(self.rows), 1)), np.zeros_like(self.positives)
        weight = np.nan_to_num(_ratio(self.rows, self.counts))[:, None]
        return weight, np.clip(weight * np.nan_to_num(_ratio(self.squares, self.positives)), 0.0, self.positives)


def roc_auc(cells: CellCounts) -> tuple[Floats, Floats]:
    """Areas (D,) with rows of a cell as tied, and how far off they may be (D,).

    A pair within a cell counts one half and may in truth count 0 or 1, unless the cell is tied.

    Examples
    --------
    >>> cells = CellCounts(np.array([4.0, 4.0]), np.zeros(2), np.array([[1.0], [3.0]]), np.array([False, True]))
    >>> roc_auc(cells)
    (array([0.75]), array([0.09375]))
    """
    positive = cells.positives
    negative = cells.rows[:, None] - positive
    below = np.cumsum(negative, axis=0) - negative
    pairs = positive.sum(axis=0) * negative.sum(axis=0)
    own = positive * negative
    won = (positive * below).sum(axis=0) + 0.5 * own.sum(axis=0)
    return _ratio(won, pairs), _ratio(0.5 * own[~cells.tied].sum(axis=0), pairs)


def average_precision(cells: CellCounts) -> tuple[Floats, Floats]:
    """Average precision (D,) with the class spread evenly over each cell that is not tied, and its bounds (D,).

    A row is itself among the rows at or above its score, which matters where few rows have the class. The bounds are
    those of all rows of the class above, or below, the other rows of their cell. Above, a row counts
    with its own weight in the precision at its score: what that adds to the mean over the cell is bounded by the step
    of a single row.

    Examples
    --------
    >>> cells = CellCounts(np.array([4.0, 4.0]), np.zeros(2), np.array([[0.0], [4.0]]), np.array([False, True]))
    >>> average_precision(cells)
    (array([1.]), array([0.]))
    """
    a, b = cells.positives[::-1], np.broadcast_to(cells.rows[::-1, None], cells.positives.shape)
    before, above = np.cumsum(a, axis=0) - a, np.cumsum(b, axis=0) - b
    every = a.sum(axis=0)
    tied = cells.tied[::-1]
    weight, own = (each[::-1] for each in cells.of_single_rows())
    even = _mean_precision(before + own, a - own, above + weight / 2, b)
    first = _mean_precision(before, a, above, a)
    last = _mean_precision(before, a, above + b - a, a)
    even[tied] = _ratio(before[tied] + a[tied], above[tied] + b[tied])
    gained = np.where(a > 0, a, 0.0)
    rise = np.where(above > 0, _ratio(before + a, above + a) - _ratio(before, above), 0.0)
    first += np.minimum(_ratio(np.full(a.shape, cells.heaviest), a), 1.0) * rise
    off = np.maximum(first - even, even - last)
    off[tied] = 0.0
    return _ratio(np.nansum(gained * even, axis=0), every), _ratio(np.nansum(gained * off, axis=0), every)


def ece_positive(cells: CellCounts) -> Floats:
    """Calibration errors (D,) of P(class 1) in bins of equal mass, as the metric of that name."""
    bins = mass_bins_of(cells.rows, cells.tied) if cells.mass_bins is None else cells.mass_bins
    in_bin = (bins == np.arange(N_MASS_BINS)[:, None]).astype(np.float64)
    mass = in_bin @ cells.rows
    gaps = np.abs((in_bin @ cells.scores)[:, None] - in_bin @ cells.positives)
    filled = mass > 0
    return np.asarray((gaps[filled] / mass[filled, None]).mean(axis=0))


def mass_bins_of(rows: Floats, tied: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Bin of equal mass (S,) of each cell of rows (S,): its edges are those of the cells next to the quantiles.

    Examples
    --------
    >>> mass_bins_of(np.full(20, 5.0), np.zeros(20, dtype=bool))[:6]
    array([0, 0, 1, 1, 2, 2])
    """
    upto = np.cumsum(rows)
    position = np.floor(np.arange(1, N_MASS_BINS) / N_MASS_BINS * (upto[-1] - 1))  # of the row below each quantile
    cell = np.searchsorted(upto, position, side="right")
    lower = position + 1 - (upto[cell] - rows[cell]) < upto[cell] - position - 1  # the edge below is nearer
    last = np.where(lower & ~tied[cell], cell - 1, cell)
    return np.searchsorted(last, np.arange(len(rows)))


def _mean_precision(before: Floats, a: Floats, above: Floats, c: Floats) -> Floats:
    """Mean of (before + t a) / (above + t c) over t in (0, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share, step = a / c, c / above
        found = share + (before - share * above) / c * np.log1p(step)
    found = np.where(above > 0, found, share)
    return np.where(step < SMALL, _ratio(before + a / 2, above + c / 2), found)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    out: Floats = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
