"""The kernel density mixture as a fitted object: EM at the fitted rows, densities at new ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssme._em import EMResult, run_em
from ssme.bandwidth import select_bandwidth
from ssme.kernel_sums import KernelMatrix, log_kernel_sums
from ssme.transforms import softmax

Floats = NDArray[np.float64]

NO_OP_SHARE = 0.9  # mean self-kernel share above which EM is its start


@dataclass(frozen=True, eq=False)
class Mixture:
    """Points (n, d), their weights (n,), the bandwidth (d,), what EM found, and how `ssme.kernel_sums` computes."""

    points: Floats
    weights: Floats
    bandwidth: Floats
    em: EMResult
    kernels: dict[str, Any] = field(default_factory=dict)

    @property
    def is_no_op(self) -> bool:
        """Whether nearly all density at the rows is their own kernels."""
        return float(np.mean(self.em.self_kernel_share)) > NO_OP_SHARE

    def predict_proba(self, points: Floats) -> Floats:
        """P(class) (q, K) at new points."""
        weights = self.weights[:, None] * self.em.responsibilities
        log_joint = log_kernel_sums(points, self.points, weights, self.bandwidth, **self.kernels)
        reached = np.isfinite(log_joint).any(axis=1, keepdims=True)
        return softmax(np.where(reached, log_joint, 0.0))


def fit_mixture(
    points: Floats,
    weights: Floats,
    codes: NDArray[np.int64],
    start: Floats,
    bandwidth: str | float | ArrayLike,
    *,
    unlabeled_weight: float,
    max_iter: int,
    tol: float,
    leave_one_out: bool,
    kernels: dict[str, Any] | None = None,
) -> Mixture:
    """EM from responsibilities (n, K); warns when it cannot move. `kernels` goes to `ssme.kernel_sums`."""
    kernels = kernels or {}
    h = select_bandwidth(points, bandwidth, weights=density_weights(weights, codes, unlabeled_weight))
    em = run_em(
        KernelMatrix(points, h, **kernels),
        codes,
        start,
        unlabeled_weight=unlabeled_weight,
        sample_weight=weights,
        max_iter=max_iter,
        tol=tol,
        leave_one_out=leave_one_out,
    )
    found = Mixture(points, density_weights(weights, codes, unlabeled_weight), h, em, kernels)
    if found.is_no_op and not leave_one_out:
        warnings.warn(
            f"EM cannot move: {np.mean(em.self_kernel_share):.0%} of the density at a row is its own kernel, so the "
            "estimate is the start of EM. Use the default density, space='pooled' or a larger bandwidth.",
            UserWarning,
            stacklevel=4,
        )
    return found


def density_weights(weights: Floats, codes: NDArray[np.int64], unlabeled_weight: float) -> Floats:
    """What every row counts for in the mixture."""
    return np.where(codes >= 0, 1.0, unlabeled_weight) * weights


def log_density(
    points: Floats, centers: Floats, weights: Floats, bandwidth: str | float | ArrayLike, kernels: dict[str, Any]
) -> Floats:
    """Log of the weighted kernel density (q,) at points (q, d)."""
    h = select_bandwidth(centers, bandwidth, weights=weights)
    return log_kernel_sums(points, centers, (weights / weights.sum())[:, None], h, **kernels)[:, 0]
