"""The methods by name: a row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from ssme._labeled_only import labeled_only
from ssme.baselines._active_testing import active_testing
from ssme.baselines._atc import accuracy_only, atc
from ssme.baselines._autoeval import autoeval, autoeval_gives
from ssme.baselines._bayesian_calibration import bayesian_calibration
from ssme.baselines._cbpe import cbpe, cbpe_gives
from ssme.baselines._common import Estimates
from ssme.baselines._dawid_skene import dawid_skene
from ssme.baselines._doc import doc
from ssme.baselines._fitted import default_records, kde_records, ssme_default, ssme_kde, ssme_m
from ssme.baselines._majority_vote import majority_vote
from ssme.baselines._mean_score import mean_score
from ssme.baselines._pseudo_labeling import pseudo_labeling
from ssme.baselines._spe import spe
from ssme.baselines._weighted_vote import weighted_vote
from ssme.metrics import MetricSpec
from ssme.results import MetricDraws

PAPER = "Shanmugam et al. (2025), arXiv:2501.11866"


def _anything(spec: MetricSpec) -> str | None:
    return None


@dataclass(frozen=True)
class Baseline:
    """One method.

    Attributes
    ----------
    name : str
    function : callable
        ``f(specs, scores, codes, weights, *, seed, n_draws)`` to a list of (point (M,), draws (D, M)), NaN throughout
        for a metric that the method cannot give.
    needs_labels : bool
        Without labels all its estimates are NaN.
    gives : callable
        Why it cannot give a metric (a MetricSpec), in words; None where it can.
    reference, description : str
    records : callable, optional
        The same as `function`, with the flags that the method raises itself.
    """

    name: str
    function: Callable[..., Estimates]
    needs_labels: bool
    gives: Callable[[MetricSpec], str | None]
    reference: str
    description: str
    records: Callable[..., list[MetricDraws]] | None = None


def _row(
    name: str,
    function: Callable[..., Estimates],
    reference: str,
    *,
    needs_labels: bool = False,
    gives: Callable[[MetricSpec], str | None] = _anything,
    records: Callable[..., list[MetricDraws]] | None = None,
) -> Baseline:
    description = (function.__doc__ or "").strip().partition("\n")[0]
    return Baseline(name, function, needs_labels, gives, reference, description, records)


_ROWS = (
    _row("labeled-only", labeled_only, "Rubin (1981)", needs_labels=True),
    _row("mean-score", mean_score, PAPER),
    _row("majority-vote", majority_vote, "Penrose (1946)"),
    _row("weighted-vote", weighted_vote, "Littlestone and Warmuth (1994)", needs_labels=True),
    _row("pseudo-labeling", pseudo_labeling, "Lee (2013)", needs_labels=True),
    _row("dawid-skene", dawid_skene, "Dawid and Skene (1979)"),
    _row(
        "autoeval",
        autoeval,
        "Boyeau et al. (2024), arXiv:2403.07008; Angelopoulos et al. (2023), arXiv:2311.01453",
        needs_labels=True,
        gives=autoeval_gives,
    ),
    _row("bayesian-calibration", bayesian_calibration, "Ji et al. (2020), arXiv:2010.09851"),
    _row("spe", spe, "Welinder et al. (2013), arXiv:1210.2162"),
    _row("active-testing", active_testing, "Kossen et al. (2021), arXiv:2103.05331", needs_labels=True),
    _row("cbpe", cbpe, "NannyML, CBPE", gives=cbpe_gives),
    _row("atc", atc, "Garg et al. (2022), arXiv:2201.04234", needs_labels=True, gives=accuracy_only),
    _row("doc", doc, "Guillory et al. (2021), arXiv:2107.03315", needs_labels=True, gives=accuracy_only),
    _row("ssme", ssme_default, "docs/method.md", records=default_records),
    _row("ssme-kde", ssme_kde, PAPER, records=kde_records),
    _row("ssme-m", ssme_m, PAPER),
)
BASELINES: dict[str, Baseline] = {row.name: row for row in _ROWS}


def get_baseline(name: str) -> Baseline:
    """The method with this name.

    Examples
    --------
    >>> from ssme.metrics import get_metric
    >>> get_baseline("atc").gives(get_metric("roc_auc", 2))
    'it is defined for accuracy alone'
    >>> get_baseline("majority")
    Traceback (most recent call last):
    ...
    ValueError: unknown method 'majority', did you mean 'majority-vote'? Known are labeled-only, ...
    """
    if name not in BASELINES:
        close = get_close_matches(str(name), BASELINES, n=1)
        hint = f", did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"unknown method {name!r}{hint} Known are {', '.join(BASELINES)}.")
    return BASELINES[name]
