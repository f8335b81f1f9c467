"""Rivals of the default estimator, by name, behind one signature.

Each is a function ``f(specs, scores, codes, weights, *, seed, n_draws)`` that returns point estimates (M,) and draws
(D, M) for every metric. :func:`estimate_with` calls one by name and returns the table of :meth:`ssme.SSME.estimate`.
"""

from ssme.baselines._registry import BASELINES, Baseline, estimate_with

__all__ = ["BASELINES", "Baseline", "estimate_with"]
