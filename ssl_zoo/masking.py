"""Accuracy masking: the accuracy of a contaminated run looks unharmed while its diagnostics got worse.

Three verdicts. Let *harmed* mean that a diagnostic worsened significantly (one-sided, Holm-corrected over the
diagnostics) or that accuracy fell both by more than the margin and significantly; let *visible* mean that accuracy fell
by more than the margin or significantly. Then

- ``"stable"``: not harmed;
- ``"masked"``: harmed, and not visible;
- ``"open collapse"``: harmed, and visible.

The smallest drop of accuracy that so many seeds could have seen is always reported beside the verdict: with five seeds
"accuracy did not fall" is often weak evidence.

References
----------
The phenomenon: C-Score, arXiv 2608.20667 (which gives no detector). Welch (1947); Holm (1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# +1: larger is worse
DIAGNOSTICS = {"ple": 1, "cci": 1, "sem_drift": 1, "grad_align": -1, "ood_f": 1}


class Summary(NamedTuple):
    """Mean and standard deviation (ddof 1) over n seeds, where the single values are not at hand."""

    mean: float
    std: float
    n: int


Values = Summary | Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class DiagnosticChange:
    """Change of one diagnostic from the clean to the contaminated runs."""

    name: str
    clean: float
    contaminated: float
    p_value: float
    p_holm: float
    worsened: bool


@dataclass(frozen=True)
class MaskingVerdict:
    """What `detect_masking` found.

    Attributes
    ----------
    verdict : {"stable", "masked", "open collapse"}
    accuracy_drop : float
        In points; negative where accuracy rose.
    accuracy_p : float
        One-sided, for a drop.
    detectable_drop : float
        The smallest true drop that this number of seeds, with this scatter, detects with probability `power`.
    diagnostics : tuple of DiagnosticChange
    skipped : dict
        Diagnostics that could not be compared, and why.
    """

    verdict: str
    accuracy_drop: float
    accuracy_p: float
    margin: float
    alpha: float
    detectable_drop: float
    power: float
    diagnostics: tuple[DiagnosticChange, ...]
    skipped: dict[str, str]

    @property
    def worsened(self) -> tuple[str, ...]:
        """Names of the diagnostics that worsened significantly."""
        return tuple(d.name for d in self.diagnostics if d.worsened)

    def __str__(self) -> str:
        lines = [
            f"{self.verdict}: accuracy fell by {self.accuracy_drop:.2f} points (p = {self.accuracy_p:.3g}, "
            f"margin {self.margin:g})"
        ]
        lines += [
            f"  {d.name}: {d.clean:.4g} -> {d.contaminated:.4g}, p = {d.p_value:.3g}, Holm {d.p_holm:.3g}"
            f"{', worse' if d.worsened else ''}"
            for d in self.diagnostics
        ]
        lines += [f"  {name}: not compared, {why}" for name, why in self.skipped.items()]
        weak = "; a smaller one would have been missed more often" if self.detectable_drop > self.margin else ""
        lines.append(
            f"  power: a drop of {self.detectable_drop:.2f} points is the smallest that these seeds detect with "
            f"probability {self.power:g}{weak}"
        )
        return "\n".join(lines)


def detect_masking(
    clean: Mapping[str, Values],
    contaminated: Mapping[str, Values],
    *,
    margin: float = 3.0,
    alpha: float = 0.05,
    power: float = 0.8,
    paired: bool = False,
    diagnostics: Sequence[str] | None = None,
) -> MaskingVerdict:
    """Compare contaminated runs with clean ones.

    Parameters
    ----------
    clean, contaminated : mapping
        "accuracy" (in percent) and diagnostics of `DIAGNOSTICS`, each as one value for every seed or as a `Summary`.
        NaN stands for a seed where a diagnostic is undefined.
    margin : float, default=3
        Points of accuracy that count as about equal.
    alpha : float, default=0.05
        Level of the tests: one-sided for accuracy, Holm-corrected over the diagnostics.
    power : float, default=0.8
        For `detectable_drop`.
    paired : bool, default=False
        Whether entry k of both sides belongs to the same seed. Otherwise Welch's test.
    diagnostics : sequence of str, optional
        Those to compare; by default all that both sides have. OOD-F is left out where the clean side is 0 in every
        seed: a pool without contamination has none, and 0 is how tables print that.

    Examples
    --------
    >>> clean = {"accuracy": Summary(71.34, 4.31, 5), "cci": Summary(0.143, 0.081, 5)}
    >>> svhn = {"accuracy": Summary(70.51, 5.60, 5), "cci": Summary(0.552, 0.173, 5)}
    >>> print(detect_masking(clean, svhn))
    masked: accuracy fell by 0.83 points (p = 0.4, margin 3)
      cci: 0.143 -> 0.552, p = 0.00177, Holm 0.00177, worse
      power: a drop of 8.67 points is the smallest that these seeds detect with probability 0.8; a smaller one ...
    """
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError(f"alpha and power must lie between 0 and 1; got {alpha} and {power}")
    names = list(DIAGNOSTICS) if diagnostics is None else list(diagnostics)
    unknown = [name for name in names if name not in DIAGNOSTICS]
    if unknown:
        raise ValueError(f"unknown diagnostic {unknown[0]!r}; there are {', '.join(DIAGNOSTICS)}")
    accuracy = _compare(_accuracy(clean, "clean"), _accuracy(contaminated, "contaminated"), -1, paired, "accuracy")
    if margin >= 1 and max(accuracy.clean, accuracy.other) <= 1:
        raise ValueError(f"accuracies of at most 1 look like shares, but margin={margin} is in percent; use one unit")
    skipped: dict[str, str] = {}
    compared: dict[str, _Comparison] = {}
    for name in names:
        why = _why_not(name, clean.get(name), contaminated.get(name))
        if why is None:
            compared[name] = _compare(clean[name], contaminated[name], DIAGNOSTICS[name], paired, name)
        elif diagnostics is not None or name in clean or name in contaminated:
            skipped[name] = why
    adjusted = _holm([c.p for c in compared.values()])
    changes = tuple(
        DiagnosticChange(name, c.clean, c.other, c.p, p, p <= alpha)
        for (name, c), p in zip(compared.items(), adjusted, strict=True)
    )
    drop, significant = accuracy.clean - accuracy.other, accuracy.p <= alpha
    harmed = any(d.worsened for d in changes) or (significant and drop > margin)
    visible = significant or drop > margin
    verdict = "stable" if not harmed else "open collapse" if visible else "masked"
    detectable = _detectable(accuracy.error, accuracy.dof, alpha, power)
    return MaskingVerdict(verdict, drop, accuracy.p, margin, alpha, detectable, power, changes, skipped)


@dataclass(frozen=True)
class _Comparison:
    clean: float
    other: float
    p: float  # one-sided, for a change to the worse
    error: float  # standard error of the change
    dof: float


def _compare(clean: Values, other: Values, direction: int, paired: bool, name: str) -> _Comparison:
    """One-sided t test for a change in `direction`: paired by seed, or Welch's."""
    if paired:
        x, y = _paired(clean, other, name)
        error, dof = float((y - x).std(ddof=1)) / math.sqrt(len(x)), float(len(x) - 1)
        means = float(x.mean()), float(y.mean())
    else:
        a, b = _summary(clean), _summary(other)
        variances = a.std**2 / a.n, b.std**2 / b.n
        error = math.sqrt(sum(variances))
        parts = variances[0] ** 2 / (a.n - 1) + variances[1] ** 2 / (b.n - 1)
        dof = sum(variances) ** 2 / parts if parts > 0 else float(a.n + b.n - 2)
        means = a.mean, b.mean
    worse = direction * (means[1] - means[0])
    if error == 0:  # no scatter at all: any change is certain
        return _Comparison(*means, 0.0 if worse > 0 else 1.0, error, dof)
    from scipy.stats import t

    return _Comparison(*means, float(t.sf(worse / error, dof)), error, dof)


def _summary(values: Values) -> Summary:
    if isinstance(values, Summary):
        return values
    known = _known(values)
    return Summary(float(known.mean()), float(known.std(ddof=1)), len(known))


def _known(values: Values) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]


def _paired(clean: Values, other: Values, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(clean, Summary) or isinstance(other, Summary):
        raise ValueError(f"{name}: a paired comparison needs the value of every seed, not a summary; use paired=False")
    a, b = np.asarray(clean, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"{name}: {a.size} clean and {b.size} contaminated seeds cannot be paired; use paired=False")
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 2:
        raise ValueError(f"{name}: fewer than two seeds are defined on both sides; use paired=False")
    return a[both], b[both]


def _accuracy(side: Mapping[str, Values], name: str) -> Values:
    if "accuracy" not in side:
        raise ValueError(f"the {name} runs lack 'accuracy'; they have {', '.join(side) or 'nothing'}")
    values = side["accuracy"]
    whole = np.isfinite(np.asarray(values, dtype=np.float64)).all()
    if not whole or (values.n if isinstance(values, Summary) else len(values)) < 2:
        raise ValueError(f"the accuracy of the {name} runs must be finite, from at least two seeds")
    return values


def _why_not(name: str, clean: Values | None, other: Values | None) -> str | None:
    """Why a diagnostic cannot be compared, or None."""
    for side, values in (("clean", clean), ("contaminated", other)):
        if values is None:
            return f"it is missing from the {side} runs"
        if isinstance(values, Summary):
            if not math.isfinite(values.mean) or not math.isfinite(values.std) or values.n < 2:
                return f"it has no mean and standard deviation over two seeds in the {side} runs"
        elif len(_known(values)) < 2:
            return f"it is defined in fewer than two seeds of the {side} runs"
    if name == "ood_f" and clean is not None:
        summary = _summary(clean)
        if summary.mean == 0 and summary.std == 0:
            return "the clean pool holds nothing out of distribution"
    return None


def _holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment.

    Examples
    --------
    >>> _holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, running, m = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, k in enumerate(np.argsort(p_values, kind="stable")):
        running = max(running, min(1.0, (m - rank) * p_values[k]))
        adjusted[k] = running
    return adjusted


def _detectable(error: float, dof: float, alpha: float, power: float) -> float:
    """Smallest true change that the one-sided t test finds with this probability."""
    if error == 0:
        return 0.0
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    critical = t.isf(alpha, dof)
    high = critical + 1.0
    while nct.sf(critical, dof, high) < power:
        high *= 2
    return error * float(brentq(lambda shift: nct.sf(critical, dof, shift) - power, 0.0, high))
