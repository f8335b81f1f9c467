"""Losses that several algorithms share: pure functions of logits, one value a row, computed in float32 or better.

Every loss here returns a vector (B,); the algorithm takes the mean, so that a mask or weight can come between. Masked
rows stay in the denominator: ``masked_mean`` divides by the size of the whole batch, as FixMatch and its successors
do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = [
    "cross_entropy",
    "entropy",
    "exp_ramp",
    "fairness",
    "full_precision",
    "kl_divergence",
    "linear_ramp",
    "masked_mean",
    "one_vs_all_loss",
    "one_vs_all_probs",
    "soft_cross_entropy",
    "squared_error",
]


def full_precision(x: Tensor) -> Tensor:
    """Half-precision values as float32; everything else as it is. Softmax and logarithms are not safe in half
    precision."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy with class indices, one value a row.

    Parameters
    ----------
    logits : Tensor (B, C)
    target : Tensor (B,) of integers

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor([1.3863])
    """
    if target.is_floating_point() or target.ndim != 1:
        raise TypeError(
            f"cross_entropy takes class indices (B,), got {target.dtype} of shape {tuple(target.shape)}: "
            "soft targets go to soft_cross_entropy."
        )
    log_p = full_precision(logits).log_softmax(-1)
    return -log_p.gather(1, target.long()[:, None]).squeeze(1)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy with a distribution a row, ``-sum_c q_c log p_c``: linear in the target, equal to the hard one at
    one-hot.

    Integer targets are an error: a distribution that is cast to integers is all zeros and silences the loss.

    Examples
    --------
    >>> soft_cross_entropy(torch.zeros(1, 4), torch.tensor([[0.0, 0.5, 0.5, 0.0]]))
    tensor([1.3863])
    """
    if not target.is_floating_point() or target.shape != logits.shape:
        raise TypeError(
            f"soft_cross_entropy takes float targets of the logits' shape {tuple(logits.shape)}, "
            f"got {target.dtype} of shape {tuple(target.shape)}."
        )
    return -(target * full_precision(logits).log_softmax(-1)).sum(-1)


def squared_error(p: Tensor, q: Tensor) -> Tensor:
    """Mean over the classes of ``(p - q)^2``, one value a row. Both are probabilities: no softmax is taken here.

    Examples
    --------
    >>> squared_error(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    tensor([1.])
    """
    return (p - q).square().mean(-1)


def kl_divergence(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """``KL(softmax(logits_p) || softmax(logits_q))``, one value a row.

    Examples
    --------
    >>> kl_divergence(torch.zeros(1, 3), torch.zeros(1, 3))
    tensor([0.])
    """
    log_p, log_q = full_precision(logits_p).log_softmax(-1), full_precision(logits_q).log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def entropy(logits: Tensor) -> Tensor:
    """Shannon entropy of ``softmax(logits)`` in nats, one value a row.

    Examples
    --------
    >>> entropy(torch.zeros(1, 4))
    tensor([1.3863])
    """
    log_p = full_precision(logits).log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def masked_mean(values: Tensor, weights: Tensor) -> Tensor:
    """Mean over ALL rows of ``weights * values``: the rows that a mask drops stay in the denominator.

    Examples
    --------
    >>> masked_mean(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 0.0]))
    tensor(1.)
    """
    return (values * weights.to(values.dtype)).mean()


def linear_ramp(progress: float, length: float) -> float:
    """``min(progress / length, 1)``; a length of 0 means that the term counts in full from the start.

    Examples
    --------
    >>> linear_ramp(0.1, 0.4), linear_ramp(0.9, 0.4), linear_ramp(0.0, 0.0)
    (0.25, 1.0, 1.0)
    """
    return min(progress / length, 1.0) if length > 0 else 1.0


def exp_ramp(progress: float, length: float = 1.0) -> float:
    """``exp(-5 (1 - s)^2)`` with ``s = linear_ramp(progress, length)`` (Laine and Aila 2017).

    Examples
    --------
    >>> round(exp_ramp(0.0), 4), exp_ramp(1.0)
    (0.0067, 1.0)
    """
    return math.exp(-5.0 * (1.0 - linear_ramp(progress, length)) ** 2)


def fairness(logits: Tensor, mask: Tensor, prob: Tensor, hist: Tensor) -> Tensor:
    """FreeMatch's self-adaptive fairness ``sum_c a_c log(b_c + 1e-12)`` over the strong views that pass the mask.

    ``a = norm(prob / hist)`` from the running statistics, ``b = norm(pbar / hbar)`` from this batch, where ``1 / 0``
    counts as 0. It is minus a cross-entropy, so NEGATIVE by design; minimising it pulls ``b`` away from ``a`` where
    they agree too well on few classes. It is 0 when no row passes.

    Parameters
    ----------
    logits : Tensor (B, C)
        Of the strong views.
    mask : Tensor (B,)
        Rows with weight above 0 count.
    prob, hist : Tensor (C,)
        Running mean prediction and running histogram of the predicted class.
    """
    keep = (mask > 0).to(logits.dtype)
    p = full_precision(logits).softmax(-1)
    n = keep.sum().clamp_min(1)
    p_bar = (p * keep[:, None]).sum(0) / n
    h_bar = (_one_hot(p.argmax(-1), p.shape[1], p.dtype) * keep[:, None]).sum(0) / n
    a = _normalise(_divide(prob.to(p.dtype), hist.to(p.dtype)))
    b = _normalise(_divide(p_bar, h_bar))
    return (a * (b + 1e-12).log()).sum() * (keep.sum() > 0)


def one_vs_all_probs(logits: Tensor) -> Tensor:
    """Probabilities (B, 2, C) of a one-vs-all head (B, 2 C): [:, 1, c] is P(inlier of class c), [:, 0, c] its
    complement."""
    return full_precision(logits).unflatten(1, (2, -1)).softmax(1)


def one_vs_all_loss(logits: Tensor, target: Tensor) -> Tensor:
    """OpenMatch's hard-negative loss ``-log q1[y] + max_{j != y} -log q0[j]``, one value a row; ``logits`` is (B, 2 C).

    Examples
    --------
    >>> one_vs_all_loss(torch.zeros(1, 6), torch.tensor([1]))  # 2 log 2
    tensor([1.3863])
    """
    log_q = full_precision(logits).unflatten(1, (2, -1)).log_softmax(1)
    own = target.long()[:, None]
    positive = -log_q[:, 1].gather(1, own).squeeze(1)
    # With a single class there is no negative; 0 is below every -log q, so it never wins elsewhere.
    negative = (-log_q[:, 0]).scatter(1, own, 0.0).amax(1)
    return positive + negative


def _one_hot(index: Tensor, n_classes: int, dtype: torch.dtype) -> Tensor:
    return torch.zeros(index.shape[0], n_classes, dtype=dtype, device=index.device).scatter_(1, index[:, None], 1.0)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """``a / b``, and 0 where b is 0, without an infinite gradient on the way."""
    return torch.where(b > 0, a / torch.where(b > 0, b, torch.ones_like(b)), torch.zeros_like(a))


def _normalise(x: Tensor) -> Tensor:
    return x / x.sum().clamp_min(torch.finfo(x.dtype).tiny)
