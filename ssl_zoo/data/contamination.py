"""Contaminating an unlabeled pool by the book: one factor varies, every other index stays.

The labeled set and the seen part of the pool depend on the seed alone; only the unseen part follows the factor under
study. Every class has one order of its rows, drawn once a seed, and all parts are beginnings of such orders. So the
unseen part at a small r lies inside the one at a larger r, and pools that differ in one factor share all they can.

References
----------
Re-Evaluating the Impact of Unseen-Class Unlabeled Data on Semi-Supervised Learning Model, ICLR 2025 (the factors and
the principle of controlled variables); C-Score, arXiv 2608.20667 (contamination as a share of the pool).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.divisions import allocate, even_counts, merge, shortest_decimal
from ssl_zoo.data.pools import Pool

PROTOCOLS = ("re-ssl", "c-score", "previous")
_NEAR, _FAR, _ORDER, _TIES = range(4)  # each random choice has a stream of its own, so that none moves another
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ContaminationSpec:
    """What the pool is to be.

    Parameters
    ----------
    seen_classes : int or sequence of int
        The classes that have labels; a number stands for the first so many.
    n_labeled : int
        Size of the labeled set, spread evenly over the seen classes.
    r : float, default=0
        Contamination. Protocol "re-ssl": share of the unseen pool that is taken. "c-score": share of the unlabeled pool
        that is unseen, ``n_ood / (n_id + n_ood)``, with the seen part fixed. "previous": the same share with the total
        fixed, so that the seen part shrinks as r grows (the confounded protocol, for comparison).
    r_s : float, default=1
        Share of the seen pool (what labels and validation leave) that is taken.
    c_n : int, optional
        Draw from the last so many unseen classes alone.
    c_i : int, optional
        Draw from this one unseen class alone.
    c_ib : float, optional
        Imbalance of the unseen classes: sizes proportional to ``c_ib ** (i / (c_n - 1))``, in an order of the classes
        that the seed shuffles.
    total : {"fixed", "paper"}
        With `c_ib`: the size stays what r says, or grows with c_ib as in the paper's own code, where the largest class
        gets twice its even share.
    nearness : {"near", "far"}
        The unseen part comes from the unseen classes of the data set, or from another data set. r keeps its meaning
        of a share of the data set's unseen pool, so that near and far have the same size; a data set without unseen
        classes lends the far source's own size instead.
    protocol : {"re-ssl", "c-score", "previous"}
        What r means.
    total_size : int, optional
        Protocol "previous": size of the unlabeled pool, by default that of the seen part at r = 0.
    n_validation : int, default=0
        Labeled rows set aside for choosing a model, spread evenly, taken from the far end of the classes' orders.
    disjoint : bool, default=True
        Whether the labeled rows are kept out of the unlabeled pool.

    Examples
    --------
    >>> ContaminationSpec(seen_classes=5, n_labeled=100, r=0.4, r_s=0.2).r
    0.4
    """

    seen_classes: int | tuple[int, ...]
    n_labeled: int
    r: float = 0.0
    r_s: float = 1.0
    c_n: int | None = None
    c_i: int | None = None
    c_ib: float | None = None
    total: str = "fixed"
    nearness: str = "near"
    protocol: str = "re-ssl"
    total_size: int | None = None
    n_validation: int = 0
    disjoint: bool = True

    def __post_init__(self) -> None:
        for name in ("r", "r_s", "c_ib"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, float(str(value)))  # 0.2 as it is written, also from a float32
        if not isinstance(self.seen_classes, (int, np.integer)):
            object.__setattr__(self, "seen_classes", tuple(int(k) for k in self.seen_classes))
        for name in ("seen_classes", "n_labeled", "c_n", "c_i", "total_size", "n_validation"):
            if isinstance(getattr(self, name), np.integer):
                object.__setattr__(self, name, int(getattr(self, name)))
        for name, values in (("protocol", PROTOCOLS), ("nearness", ("near", "far")), ("total", ("fixed", "paper"))):
            if getattr(self, name) not in values:
                raise ValueError(f"{name} must be one of {', '.join(values)}; got {getattr(self, name)!r}")
        self._check_numbers()

    def _check_numbers(self) -> None:
        if not 0 <= self.r <= 1 or (self.protocol == "c-score" and self.r == 1):
            edge = "below 1" if self.protocol == "c-score" else "at most 1"
            raise ValueError(f"r must be at least 0 and {edge} in protocol {self.protocol!r}; got {self.r}")
        if not 0 <= self.r_s <= 1:
            raise ValueError(f"r_s must lie between 0 and 1; got {self.r_s}")
        if self.c_ib is not None and not 0 < self.c_ib <= 1:
            raise ValueError(f"c_ib must be above 0 and at most 1; got {self.c_ib}")
        if self.c_i is not None and (self.c_n is not None or self.c_ib is not None):
            raise ValueError("c_i asks for one class and excludes c_n and c_ib; leave out one or the other")
        if self.total == "paper" and self.c_ib is None:
            raise ValueError("total='paper' concerns the sizes under c_ib alone; give c_ib as well")
        if self.total_size is not None and (self.protocol != "previous" or self.total_size < 1):
            raise ValueError("total_size is a positive number of samples, for protocol 'previous' alone")
        if self.n_validation < 0:
            raise ValueError(f"n_validation must be 0 or more; got {self.n_validation}")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        out = asdict(self)
        if isinstance(self.seen_classes, tuple):
            out["seen_classes"] = list(self.seen_classes)
        return out


def build_pool(
    spec: ContaminationSpec, dataset: ArrayDataset, *, ood: ArrayDataset | None = None, seed: int = 0
) -> Pool:
    """Draw labeled set, validation set and contaminated pool.

    Parameters
    ----------
    spec : ContaminationSpec
        What to draw.
    dataset : ArrayDataset
        Train split with labels; rows of unknown class are not used.
    ood : ArrayDataset, optional
        The far source.
    seed : int
        Different seeds draw different splits; the same seed draws the same rows for every spec.

    Returns
    -------
    Pool
        Indices, manifest and hash. A request that the data cannot serve is an error that names the largest possible
        value; nothing is ever repeated.

    Examples
    --------
    >>> data = ArrayDataset(np.zeros((60, 1), np.float32), np.repeat(np.arange(6), 10), tuple("abcdef"), "tabular")
    >>> small, large = (build_pool(ContaminationSpec(3, 6, r=r), data, seed=0) for r in (0.2, 0.4))
    >>> bool((small.seen_idx == large.seen_idx).all()), set(small.unseen_idx) < set(large.unseen_idx)
    (True, True)
    >>> build_pool(ContaminationSpec(3, 6, r=0.5, c_i=4), data)
    Traceback (most recent call last):
    ...
    ValueError: r=0.5 asks for 15 unseen samples, but only 10 can be served with c_i=4; r can be at most 0.34
    """
    if seed < 0:
        raise ValueError(f"seed must be 0 or more; got {seed}")
    seen, unseen = _split_classes(spec.seen_classes, dataset)
    if spec.nearness == "far" and ood is None:
        raise ValueError("nearness='far' needs another data set; give it with ood=")
    if ood is not None and ood.in_shape != dataset.in_shape:
        raise ValueError(
            f"the far source has inputs of shape {ood.in_shape}, the data set {dataset.in_shape}; "
            "bring its images to that size with match_images, or load it with like="
        )
    orders = {c: _class_order(dataset.y, c, (seed, _NEAR, c)) for c in (*seen, *unseen)}
    labeled, validation, seen_order = _labeled_and_seen(spec, seen, orders, seed)
    n_seen = _floor(spec.r_s, len(seen_order))
    near = [orders[c] for c in unseen]
    if spec.nearness == "far" and ood is not None:
        far_classes = sorted(set(ood.y.tolist()))
        source = {c: _class_order(ood.y, c, (seed, _FAR, c + 1)) for c in far_classes}
    else:
        source = {c: orders[c] for c in unseen}
    reference = sum(map(len, near)) or sum(map(len, source.values()))
    rule = _size_rule(spec, n_seen, reference)
    drawn = _draw_unseen(spec, source, rule, seed)
    if spec.protocol == "previous":
        n_seen = _previous_seen(spec, rule, len(seen_order))
    parts = {"labeled": labeled, "validation": validation, "seen": seen_order[:n_seen]}
    parts["ood" if spec.nearness == "far" else "unseen"] = drawn
    return Pool.from_parts(parts, (*seen, *unseen), len(seen), spec=spec.to_dict(), seed=int(seed), dataset=dataset,
                           ood=ood)  # fmt: skip


# ------------------------------------------------------------------------------------------- labeled and seen parts


def _split_classes(wanted: int | tuple[int, ...], dataset: ArrayDataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    n = dataset.n_classes
    seen = tuple(range(wanted)) if isinstance(wanted, int) else wanted
    if not seen or len(set(seen)) != len(seen) or min(seen) < 0 or max(seen) >= n:
        raise ValueError(f"seen_classes must name distinct classes out of 0..{n - 1}, at most {n}; got {wanted}")
    counts = np.bincount(dataset.y[dataset.y >= 0], minlength=n)
    empty = [c for c in seen if not counts[c]]
    if empty:
        raise ValueError(f"seen class {empty[0]} ({dataset.class_names[empty[0]]}) has no rows in {dataset.source}")
    return seen, tuple(c for c in range(n) if c not in seen and counts[c])


def _class_order(y: Rows, c: int, stream: tuple[int, ...]) -> Rows:
    """Rows of one class in the order in which they are drawn; one order for each seed, whatever the spec."""
    return np.random.default_rng(stream).permutation(np.flatnonzero(y == c))


def _labeled_and_seen(
    spec: ContaminationSpec, seen: Sequence[int], orders: dict[int, Rows], seed: int
) -> tuple[Rows, Rows, Rows]:
    """Labels from the beginning of each class's order, validation from its end, the seen pool from between."""
    if spec.n_labeled < len(seen):
        raise ValueError(
            f"n_labeled={spec.n_labeled} leaves a class without a label; it must be at least {len(seen)}, "
            "the number of seen classes"
        )
    held = even_counts(spec.n_validation, [len(orders[c]) for c in seen], "n_validation")
    free = [len(orders[c]) - v for c, v in zip(seen, held, strict=True)]
    counts = even_counts(spec.n_labeled, free, "n_labeled")
    labeled, validation, rest = [], [], []
    for c, n, room in zip(seen, counts, free, strict=True):
        labeled.append(orders[c][:n])
        validation.append(orders[c][room:])
        rest.append(orders[c][n if spec.disjoint else 0 : room])
    seen_order = merge(rest, [len(rows) for rows in rest], _tie_order(len(rest), seed))
    return np.concatenate(labeled), np.concatenate(validation), seen_order


# --------------------------------------------------------------------------------------------------- the unseen part


@dataclass(frozen=True)
class _SizeRule:
    """Size of the unseen part: what the spec asks for, and which r would ask for another size."""

    asked: int
    total: int  # of the pool, in the previous protocol
    r_from: Callable[[int], Fraction]  # smallest r that asks for so many samples


def _size_rule(spec: ContaminationSpec, n_seen: int, reference: int) -> _SizeRule:
    r = Fraction(str(spec.r))
    if spec.protocol == "re-ssl":
        return _SizeRule(int(r * reference), 0, lambda n: Fraction(n, max(reference, 1)))
    if spec.protocol == "c-score":
        return _SizeRule(int(n_seen * r / (1 - r)), 0, lambda n: Fraction(n, max(n_seen + n, 1)))
    total = spec.total_size or n_seen
    return _SizeRule(int(r * total), total, lambda n: Fraction(n, max(total, 1)))


def _previous_seen(spec: ContaminationSpec, rule: _SizeRule, available: int) -> int:
    """Seen samples that fill the pool up to its fixed total."""
    needed = rule.total - rule.asked
    if needed > available:
        r = Fraction(str(spec.r))
        largest = int((available + 1) / (1 - r))  # total - floor(r total) grows with the total: step down to what fits
        while largest - int(r * largest) > available:
            largest -= 1
        raise ValueError(
            f"total_size={rule.total} needs {needed} seen samples at r={spec.r}, but the seen pool holds {available}; "
            f"total_size can be at most {largest}"
        )
    return needed


def _draw_unseen(spec: ContaminationSpec, source: dict[int, Rows], rule: _SizeRule, seed: int) -> Rows:
    if spec.r == 0:  # a pool without contamination, whatever the other factors say
        return np.zeros(0, dtype=np.int64)
    classes = _choose_classes(spec, tuple(source))
    rows = [source[c] for c in classes]
    weights = [float(len(part)) for part in rows]
    if spec.c_ib is not None:
        rank = dict(zip(source, np.random.default_rng((seed, _ORDER)).permutation(len(source)), strict=True))
        place = {c: i for i, c in enumerate(sorted(classes, key=rank.__getitem__))}
        weights = [spec.c_ib ** (place[c] / max(len(classes) - 1, 1)) for c in classes]
    ties = _tie_order(len(rows), seed)

    def counts(size: int) -> list[int]:
        if spec.c_ib is not None and spec.total == "paper" and len(classes) > 1:
            return [int(2 * size / len(classes) * w + 1e-9) for w in weights]
        return allocate(size, weights, ties)

    def served(size: int) -> bool:
        return all(n <= len(part) for n, part in zip(counts(size), rows, strict=True))

    if not served(rule.asked):
        raise ValueError(_too_many(spec, rule, served))
    taken = [part[:n] for part, n in zip(rows, counts(rule.asked), strict=True)]
    return merge(taken, weights, ties)


def _choose_classes(spec: ContaminationSpec, classes: tuple[int, ...]) -> tuple[int, ...]:
    """Classes of the source that may be drawn from."""
    where = "the far source" if spec.nearness == "far" else "the data set"
    if not classes:
        raise ValueError(f"r={spec.r} asks for unseen samples, but {where} has no unseen classes; r can be at most 0")
    if spec.c_i is not None:
        if spec.c_i not in classes:
            raise ValueError(f"c_i={spec.c_i} is no unseen class of {where}; it can be {', '.join(map(str, classes))}")
        return (spec.c_i,)
    if spec.c_n is not None:
        if not 1 <= spec.c_n <= len(classes):
            raise ValueError(
                f"c_n={spec.c_n}, but {where} has {len(classes)} unseen classes; c_n can be at most {len(classes)}"
            )
        return classes[-spec.c_n :]
    return classes


def _too_many(spec: ContaminationSpec, rule: _SizeRule, served: Callable[[int], bool]) -> str:
    """What to say when the source is too small: the largest size and the largest r that can be served."""
    low, high = 0, rule.asked  # counts grow with the size, so bisection finds the last one served
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if served(middle) else (low, middle)
    given = [f"{name}={getattr(spec, name)}" for name in ("c_n", "c_i", "c_ib") if getattr(spec, name) is not None]
    given += ["the far source"] if spec.nearness == "far" else []
    largest = shortest_decimal(rule.r_from(low), rule.r_from(low + 1))
    return (
        f"r={spec.r} asks for {rule.asked} unseen samples, but only {low} can be served"
        f"{' with ' + ' and '.join(given) if given else ''}; r can be at most {largest}"
    )


def _tie_order(k: int, seed: int) -> Sequence[int]:
    """Which class goes first where the proportions leave it open."""
    return np.random.default_rng((seed, _TIES)).permutation(k).tolist()


def _floor(share: float, n: int) -> int:
    """floor(share * n) of the number as it is written: 0.29 * 100 is 29, not 28."""
    return int(Fraction(str(share)) * n)
