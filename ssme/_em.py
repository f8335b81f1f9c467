"""EM for a mixture of class-conditional kernel densities over labeled and unlabeled rows: arrays in, arrays out.

With v_j the weight of row j (its sample weight, times lambda for unlabeled rows), V their sum and r_jk its
responsibilities, class k has the prior ``sum_j v_j r_jk / V`` and the density
``sum_j v_j r_jk K(s, s_j) / sum_j v_j r_jk``. Both carry the same weights, so these cancel: the joint density of a
score s and a class k is

    P(s, k) = sum_j v_j r_jk K(s, s_j) / V,

one product of the kernel matrix with the responsibilities. The E step divides the row P(s_i, .) by its sum; the M step
is the next product. Labeled rows are pinned to their class in both.

What these rounds climb. The sum of P(s, k) over k does not depend on the responsibilities, so the unlabeled part of the
log likelihood stays put; and a kernel density is not the maximiser of the likelihood, so the labeled part usually rises
but need not. What never rises is the roughness

    sum_ij v_i v_j K(s_i, s_j) sum_k (r_ik - r_jk)^2 / 2

(each round minimises a quadratic that lies above it, the kernel matrix being positive semidefinite), the function that
label propagation with Gaussian fields minimises [1]_. Its minimum with pinned labels is unique where every row hangs
together with a labeled one: run to the end, the rounds forget where they started; stopped early, they are the start,
smoothed. How far they get is told by the self-kernel share.

References
----------
.. [1] Zhu, X., Ghahramani, Z., Lafferty, J. (2003). "Semi-Supervised Learning Using Gaussian Fields and Harmonic
   Functions". ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssme.kernel_sums import KernelMatrix

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EMResult:
    """What `run_em` found.

    Attributes
    ----------
    responsibilities : array (n, K)
        P(class | score) of every row; labeled rows are exactly 0 / 1.
    priors : array (K,)
        Weighted share of every class.
    log_likelihood : array (n_iter + 1,)
        ``sum_labeled log P(s_i, y_i) + lambda sum_unlabeled log sum_k P(s_j, k)``, weighted, at the start and
        after every round. Not monotone in general, see the module. With leave-one-out it is ``-inf`` while a labeled
        row is the only one of its class, and a row far from its class counts about -300 and not less.
    roughness : array (n_iter + 1,)
        What every round lowers, up to rounding, as a share of its bound ``sum_ij v_i v_j K(s_i, s_j)``.
    n_iter : int
        Rounds that were done.
    converged : bool
        Whether the last round moved no responsibility by more than the tolerance.
    self_kernel_share : array (n,)
        How much of the density at a row is its own kernel. Near 1 the row cannot move from its start.
    """

    responsibilities: Floats
    priors: Floats
    log_likelihood: Floats
    roughness: Floats
    n_iter: int
    converged: bool
    self_kernel_share: Floats


def run_em(
    kernel: KernelMatrix,
    labels: ArrayLike,
    start: ArrayLike,
    *,
    unlabeled_weight: float = 1.0,
    sample_weight: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    leave_one_out: bool = False,
) -> EMResult:
    """Alternate densities and responsibilities until these stand still.

    Parameters
    ----------
    kernel : KernelMatrix
        Of the n rows.
    labels : array-like (n,)
        Class codes 0..K-1, negative for unlabeled rows.
    start : array-like (n, K)
        Responsibilities to begin with; rows are divided by their sums, labeled rows replaced. A class may be empty.
    unlabeled_weight : float
        lambda >= 0: what an unlabeled row counts for, in densities and priors alike.
    sample_weight : array-like (n,), optional
        What a row counts for; an integer does what repeating the row does.
    max_iter : int
        Most rounds; 0 returns the start with its diagnostics.
    tol : float
        Stop when no responsibility moved by more than this.
    leave_one_out : bool
        Leave every row's own kernel out of its densities. Rounds then go half of the way, since two rows that see only
        each other would otherwise exchange their classes for ever.

    Returns
    -------
    EMResult

    Examples
    --------
    >>> x = np.array([[0.0], [0.5], [4.5], [5.0]])
    >>> em = run_em(KernelMatrix(x, [1.0]), [0, -1, -1, 1], np.full((4, 2), 0.5))
    >>> em.responsibilities.round(2).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """
    codes, r = _check(kernel, labels, start)
    v = _row_weights(codes, unlabeled_weight, sample_weight)
    pinned = np.flatnonzero(codes >= 0)
    r[pinned] = np.eye(r.shape[1])[codes[pinned]]
    step = 0.5 if leave_one_out else 1.0
    trace, roughness = [], []
    n_iter, converged = 0, False
    while True:
        log_joint = kernel.log_dot(v[:, None] * r, exclude_self=leave_one_out, exact_tails=False) - np.log(v.sum())
        posterior, log_total = e_step(log_joint, r)
        trace.append(log_likelihood(log_joint, log_total, codes, v))
        roughness.append(_roughness(log_total - kernel.log_own, posterior, r, v))
        if converged or n_iter >= max_iter:
            break
        posterior[pinned] = r[pinned]
        change = np.abs(posterior - r).max(initial=0.0)
        r = posterior if step == 1 else r + step * (posterior - r)
        n_iter, converged = n_iter + 1, bool(change <= tol)
    return EMResult(
        responsibilities=r,
        priors=m_step_priors(r, v),
        log_likelihood=np.array(trace),
        roughness=np.array(roughness),
        n_iter=n_iter,
        converged=converged,
        self_kernel_share=self_kernel_share(kernel.log_own, v, log_total + np.log(v.sum()), leave_one_out),
    )


def e_step(log_joint: Floats, fallback: Floats) -> tuple[Floats, Floats]:
    """Responsibilities (n, K) and log densities (n,) from log joint densities (n, K).

    Rows that no class reaches (all ``-inf``) take their responsibilities from `fallback`.

    Examples
    --------
    >>> r, log_total = e_step(np.array([[np.log(0.1), np.log(0.3)], [-np.inf, np.log(0.2)]]), np.full((2, 2), 0.5))
    >>> r.round(2).tolist(), np.exp(log_total).round(2).tolist()
    ([[0.25, 0.75], [0.0, 1.0]], [0.4, 0.2])
    """
    top = log_joint.max(axis=1)
    lost = np.isneginf(top)
    shares = np.exp(log_joint - np.where(lost, 0.0, top)[:, None])
    total = shares.sum(axis=1)
    shares /= np.where(lost, 1.0, total)[:, None]
    shares[lost] = fallback[lost]
    return shares, top + np.log(np.where(lost, 1.0, total))


def m_step_priors(responsibilities: Floats, weights: Floats) -> Floats:
    """Weighted shares of the classes; the densities need no step of their own, the kernel product is theirs."""
    return np.asarray((weights @ responsibilities) / weights.sum())


def log_likelihood(log_joint: Floats, log_total: Floats, codes: Codes, weights: Floats) -> float:
    """Weighted sum of log P(s_i, y_i) over labeled and log P(s_j) over unlabeled rows that carry weight."""
    per_row = np.where(codes >= 0, log_joint[np.arange(len(codes)), codes], log_total)
    used = weights > 0
    return float(weights[used] @ per_row[used])


def self_kernel_share(log_own: float, weights: Floats, log_sums: Floats, leave_one_out: bool) -> Floats:
    """Share (n,) of the density at every row that is the row's own kernel; 1 for a row that stands alone.

    `log_sums` (n,) are the logs of all weighted kernels at the row, without the own one where that was left out.
    """
    share, used = np.zeros(len(weights)), weights > 0
    own, log_sums = np.log(weights[used]) + log_own, log_sums[used]
    total = np.logaddexp(own, log_sums) if leave_one_out else np.maximum(own, log_sums)  # sums may round, grids do
    share[used] = np.exp(own - total)
    return share


def _roughness(log_total: Floats, posterior: Floats, r: Floats, v: Floats) -> float:
    """``sum_ik v_i r_ik (d_i r_ik - P_ik) / sum_i v_i d_i``, d_i the density and P_ik = d_i posterior_ik."""
    d = v * np.exp(log_total)
    total = d.sum()
    return float(d @ (r * (r - posterior)).sum(axis=1) / total) if total > 0 else 0.0


def _row_weights(codes: Codes, unlabeled_weight: float, sample_weight: ArrayLike | None) -> Floats:
    if not 0 <= unlabeled_weight < np.inf:
        raise ValueError(f"unlabeled_weight must be a finite number >= 0, got {unlabeled_weight!r}")
    w = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if w.shape != codes.shape or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(f"sample_weight must be {len(codes)} finite numbers >= 0, one for every row")
    v = np.where(codes >= 0, w, unlabeled_weight * w)
    if not v.sum() > 0:
        raise ValueError("no row carries weight; give labels, a positive unlabeled_weight or a positive sample_weight")
    return v


def _check(kernel: KernelMatrix, labels: ArrayLike, start: ArrayLike) -> tuple[Codes, Floats]:
    """Codes and a copy of the start, rows divided by their sums."""
    codes, r = np.asarray(labels, dtype=np.int64), np.array(start, dtype=np.float64)
    if codes.shape != (kernel.n,) or r.ndim != 2 or len(r) != kernel.n or r.shape[1] == 0:
        raise ValueError(f"labels ({kernel.n},) and start ({kernel.n}, K) are needed, got {codes.shape} and {r.shape}")
    if codes.max() >= r.shape[1]:
        raise ValueError(
            f"labels hold the class code {codes.max()}, but start has columns for {r.shape[1]} classes only"
        )
    total = r.sum(axis=1, keepdims=True)
    if not np.isfinite(r).all() or (r < 0).any() or not (total > 0).all():
        raise ValueError("start must be finite and >= 0, with a positive sum in every row")
    return codes, r / total
