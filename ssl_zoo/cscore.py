"""What training looks like from inside: five diagnostics of one step, and a detector of accuracy masking.

Natural logarithms. Everything is a pure function of tensors that a step has already computed (the weakly augmented
unlabeled batch), returns a 0-d tensor on their device and never waits for it. What is undefined in a batch (no class in
both parts, no gradient, no sample out of distribution) is NaN, never 0: an average that counts zeros in makes a rarely
defined diagnostic look small. `skipping_mean` leaves NaN out and says how many there were.

References
----------
C-Score: Beyond Accuracy for Robustness Assessment in Semi-Supervised Learning under Open-World Unlabeled Contamination,
arXiv 2608.20667. Its published Sem-Drift, Grad-Align and OOD-F average zeros in; compare those by order and trend only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ssl_zoo.masking import DIAGNOSTICS, MaskingVerdict, Summary, detect_masking
from ssl_zoo.targets import one_hot

__all__ = [
    "DIAGNOSTICS", "EpochPool", "MaskingVerdict", "Summary", "cci", "detect_masking", "grad_align",
    "last_layer_gradient", "ood_f", "over_seeds", "ple", "sem_drift", "skipping_mean",
]  # fmt: skip
EPS = 1e-12


def ple(probs: Tensor, eps: float = EPS) -> Tensor:
    """Prediction-level entropy: -(1/N) sum_i sum_c p(c|u_i) log(p(c|u_i) + eps), no threshold. High: diffuse.

    Examples
    --------
    >>> round(float(ple(torch.full((3, 4), 0.25))), 4), round(math.log(4), 4)
    (1.3863, 1.3863)
    """
    p = _check_probs(probs)
    return _nan_if(len(p) == 0, -(p * (p + eps).log()).sum(1).mean(), p)


def cci(probs: Tensor) -> Tensor:
    """Class-collapse index: KL(mean prediction || uniform) = sum_c pbar_c log(pbar_c K). High: classes drain away.

    Range [0, log K]. In small batches of near one-hot predictions it is too large by about (K - 1) / (2 N); pooled
    over an epoch (`EpochPool`) that vanishes.

    Examples
    --------
    >>> float(cci(torch.eye(4))), round(float(cci(torch.eye(4)[[0, 0]])), 4)
    (0.0, 1.3863)
    """
    p = _check_probs(probs)
    return _nan_if(len(p) == 0, _kl_from_uniform(p.mean(0)), p)


def _kl_from_uniform(mean: Tensor) -> Tensor:
    return torch.special.xlogy(mean, mean * len(mean)).sum().clamp_min(0)  # 0 log 0 = 0


def sem_drift(logits_l: Tensor, y_l: Tensor, logits_u: Tensor, pseudo: Tensor, mask: Tensor) -> Tensor:
    """Semantic drift: mean over the classes in both parts of the distance between their mean logits.

    Parameters
    ----------
    logits_l, y_l : Tensor (B, K), (B,)
        Labeled logits and classes.
    logits_u, pseudo, mask : Tensor (N, K), (N,), (N,)
        Unlabeled logits, pseudo-labels, and which of them pass: 0 or 1, or soft weights that the means then carry.

    Examples
    --------
    >>> l, u = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[4.0, 4.0], [9.0, 9.0]])
    >>> float(sem_drift(l, torch.tensor([0, 1]), u, torch.tensor([0, 1]), torch.tensor([1.0, 0.0])))
    5.0
    """
    logits_l, logits_u, weight = _wide(logits_l), _wide(logits_u), _wide(mask)
    center_l, mass_l = _class_means(logits_l, y_l, torch.ones_like(y_l, dtype=logits_l.dtype))
    center_u, mass_u = _class_means(logits_u, pseudo, weight)
    both = ((mass_l > 0) & (mass_u > 0)).to(logits_l.dtype)
    distance = torch.linalg.vector_norm(center_l - center_u, dim=1)
    return (distance * both).sum() / both.sum()  # 0 / 0 = NaN: no class in both


def _class_means(logits: Tensor, classes: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean logits and total weight by class; a class without weight gets mean 0."""
    n_classes = logits.shape[1]
    member = one_hot(classes.long().clamp(0, n_classes - 1), n_classes, logits.dtype)
    member = member * (weight * ((classes >= 0) & (classes < n_classes)))[:, None]  # an unknown class joins none
    mass = member.sum(0)
    return (member.T @ logits) / torch.where(mass > 0, mass, 1)[:, None], mass


def last_layer_gradient(features: Tensor, output_gradient: Tensor) -> Tensor:
    """Gradient of the final linear layer, weight and bias flattened, from its inputs and the gradient at its outputs.

    Examples
    --------
    >>> last_layer_gradient(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], ])).tolist()
    [3.0, 6.0, 3.0]
    """
    h, g = _wide(features), _wide(output_gradient)
    return torch.cat([(g.T @ h).flatten(), g.sum(0)])


def grad_align(gradient_l: Tensor | None, gradient_u: Tensor | None, eps: float = EPS) -> Tensor:
    """Cosine of the labeled and the unlabeled gradient, eps in the denominator. Negative: conflict. NaN without one.

    Examples
    --------
    >>> round(float(grad_align(torch.tensor([1.0, 0.0]), torch.tensor([-2.0, 0.0]))), 4)
    -1.0
    >>> float(grad_align(torch.tensor([1.0, 0.0]), torch.zeros(2)))
    nan
    """
    if gradient_l is None or gradient_u is None:
        given = gradient_l if gradient_l is not None else gradient_u
        return torch.full((), math.nan, device=None if given is None else given.device)
    a, b = _wide(gradient_l).flatten(), _wide(gradient_u).flatten()
    norm_a, norm_b = torch.linalg.vector_norm(a), torch.linalg.vector_norm(b)
    return torch.where((norm_a > 0) & (norm_b > 0), (a @ b) / (norm_a * norm_b + eps), math.nan)


def ood_f(mask: Tensor, ood: Tensor | None, eps: float = EPS) -> Tensor:
    """Share of samples out of distribution that pass, over the share of the others that pass (+ eps).

    1 is no filtering, small is good. With soft weights the mean weight stands for the share. NaN where one of the two
    groups is absent from the batch, and where nothing in distribution passes: the ratio has no denominator there, and
    one such batch would outweigh all others of a mean.

    Examples
    --------
    >>> ood = torch.tensor([True, True, False, False])
    >>> round(float(ood_f(torch.tensor([1.0, 0.0, 1.0, 1.0]), ood)), 4), float(ood_f(torch.ones(2), ood[2:]))
    (0.5, nan)
    """
    if ood is None:
        return torch.full((), math.nan, device=mask.device)
    weight = _wide(mask)
    out = ood.to(weight.dtype)
    return _filter_ratio(_pass_counts(weight, out), eps)


def _pass_counts(weight: Tensor, out: Tensor) -> Tensor:
    return torch.stack([(weight * out).sum(), out.sum(), (weight * (1 - out)).sum(), (1 - out).sum()])


def _filter_ratio(parts: Tensor, eps: float) -> Tensor:
    pass_ood, n_ood, pass_id, n_id = parts.unbind()
    ratio = (pass_ood / n_ood) / (pass_id / n_id + eps)  # NaN by 0 / 0 where a group is absent
    return torch.where(pass_id > 0, ratio, math.nan)


class EpochPool:
    """Diagnostics over all samples of an epoch, in place of averages over its batches.

    Pooled CCI has no small-batch bias, and pooled OOD-F does not blow up in batches where nothing in distribution
    passes. Sums stay on the device; nothing waits until a value is read.

    Examples
    --------
    >>> pool = EpochPool()
    >>> for row in torch.eye(4):
    ...     pool.update(row[None])
    >>> float(pool.cci()), float(cci(torch.eye(4)[:1]))  # one sample a batch: collapse in each, none in the epoch
    (0.0, 1.3862943649291992)
    """

    def __init__(self) -> None:
        self._sum: Tensor | None = None
        self._entropy: Tensor | float = 0.0
        self._passes: Tensor | None = None
        self.count = 0

    def update(self, probs: Tensor, mask: Tensor | None = None, ood: Tensor | None = None) -> None:
        """Add a batch of predictions (N, K) and, for OOD-F, which of them pass and which are out of distribution."""
        p = _check_probs(probs).double()
        total = p.sum(0)
        self._sum = total if self._sum is None else self._sum + total
        self._entropy = self._entropy - (p * (p + EPS).log()).sum()
        self.count += len(p)
        if mask is not None and ood is not None:
            parts = _pass_counts(mask.detach().double(), ood.double())
            self._passes = parts if self._passes is None else self._passes + parts

    def ple(self) -> Tensor:
        """Entropy over all samples."""
        return torch.as_tensor(self._entropy / self.count if self.count else math.nan).float()

    def cci(self) -> Tensor:
        """Collapse of the mean prediction of the epoch."""
        if self._sum is None or not self.count:
            return torch.tensor(math.nan)
        return _kl_from_uniform(self._sum / self.count).float()

    def ood_f(self) -> Tensor:
        """Ratio of the shares that passed in the epoch."""
        return torch.tensor(math.nan) if self._passes is None else _filter_ratio(self._passes, EPS).float()


def skipping_mean(values: Iterable[Tensor | float]) -> tuple[float, int]:
    """Mean of the defined values, and how many were NaN and left out. Reads the values: not for the training step.

    Examples
    --------
    >>> skipping_mean([1.0, float("nan"), 3.0])
    (2.0, 1)
    >>> skipping_mean([])
    (nan, 0)
    """
    numbers = [v if isinstance(v, Tensor) else torch.as_tensor(float(v)) for v in values]
    if not numbers:
        return math.nan, 0
    stacked = torch.stack([v.detach().double().cpu() for v in numbers])
    known = stacked[~stacked.isnan()]
    return (float(known.mean()) if len(known) else math.nan), len(stacked) - len(known)


def over_seeds(epochs_by_seed: Sequence[Sequence[float]], last: int = 10) -> tuple[float, float, int]:
    """The protocol of the paper: mean over the last epochs of every seed, then mean and std (ddof 1) over seeds.

    Returns mean, std and the number of epochs left out as undefined.

    Examples
    --------
    >>> over_seeds([[9.0, 1.0, 1.0], [9.0, 2.0, 4.0]], last=2)[:2]
    (2.0, 1.4142135623730951)
    """
    if last < 1:
        raise ValueError(f"last must be at least 1 epoch; got {last}")
    means, skipped = zip(*(skipping_mean(epochs[-last:]) for epochs in epochs_by_seed), strict=True)
    known = torch.tensor([m for m in means if not math.isnan(m)], dtype=torch.float64)
    if not len(known):
        return math.nan, math.nan, sum(skipped)
    std = float(known.std()) if len(known) > 1 else math.nan
    return float(known.mean()), std, sum(skipped)


def _check_probs(probs: Tensor) -> Tensor:
    if probs.ndim != 2:
        raise ValueError(f"probs must have shape (N, K), one distribution a row; got {tuple(probs.shape)}")
    return _wide(probs)


def _wide(values: Tensor) -> Tensor:
    """Detached, and in float32 at least: sums over a batch are too coarse in half precision."""
    dtype = torch.promote_types(values.dtype, torch.float32)
    return values.detach().to(dtype)


def _nan_if(undefined: bool, value: Tensor, like: Tensor) -> Tensor:
    return torch.full((), math.nan, device=like.device) if undefined else value
