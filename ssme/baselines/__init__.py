"""Rivals of the default estimator, by name, behind one signature.

Each is a function ``f(specs, scores, codes, weights, *, seed, n_draws)`` that returns point estimates (M,) and draws
(D, M) for every metric, NaN for one that it cannot give. :func:`estimate_with` calls one by name and returns the table
of :meth:`ssme.SSME.estimate`. docs/rivals.md has the definitions.
"""

from ssme.baselines._active_testing import lure_weights
from ssme.baselines._estimate import estimate_with
from ssme.baselines._registry import BASELINES, Baseline, get_baseline

__all__ = ["BASELINES", "Baseline", "estimate_with", "get_baseline", "lure_weights"]
