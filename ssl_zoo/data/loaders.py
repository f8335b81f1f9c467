"""Batches from data that stays on the device: index samplers, the two streams, and their exact resume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ssl_zoo.data.array_dataset import ArrayDataset
from ssl_zoo.data.pools import Pool

_RESERVE = 0.5  # share of free GPU memory that data may take


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step reads: stored inputs (uint8 or float), all on the device.

    Attributes
    ----------
    x_l, y_l, idx_l : Tensor
        Labeled inputs (B, ...), their classes, and their positions in the labeled set.
    x_u, idx_u : Tensor or None
        Unlabeled inputs (mu B, ...) and their positions in the unlabeled pool; None where there is no unlabeled stream.
    ood_u : Tensor of bool or None
        Which unlabeled inputs are out of distribution. For diagnostics; no algorithm may read it.
    """

    x_l: Tensor
    y_l: Tensor
    idx_l: Tensor
    x_u: Tensor | None = None
    idx_u: Tensor | None = None
    ood_u: Tensor | None = None


class IndexSampler:
    """Endless batches of indices: passes over a permutation, each index once a pass.

    The rest of a pass that does not fill a batch is carried over into a batch with the beginning of the next pass, so
    no sample is left out and every batch has the full size.

    Parameters
    ----------
    n : int
        Number of samples.
    batch_size : int
        Indices a batch; may exceed `n`.
    seed : int
        Of the generator that draws the permutations.
    device : str or torch.device
        Where the indices are.

    Examples
    --------
    >>> sampler = IndexSampler(9, 4, seed=0)
    >>> drawn = torch.cat([sampler.next() for _ in range(9)])
    >>> [sorted(drawn[k : k + 9].tolist()) == list(range(9)) for k in (0, 9, 18, 27)]
    [True, True, True, True]
    """

    def __init__(self, n: int, batch_size: int, *, seed: int = 0, device: torch.device | str = "cpu") -> None:
        if n < 1:
            raise ValueError("there are no samples to draw from; n must be at least 1")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        self.n, self.batch_size, self.device = n, batch_size, torch.device(device)
        self.generator = torch.Generator(device=self.device).manual_seed(seed)
        self.passes = 0  # complete passes so far
        self._begin_pass()

    def next(self) -> Tensor:
        """The next batch of indices (batch_size,)."""
        parts, need = [], self.batch_size
        while need:
            part = self._order[self._position : self._position + need]
            parts.append(part)
            need -= len(part)
            self._position += len(part)
            if self._position == self.n:
                self.passes += 1
                self._begin_pass()
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def state_dict(self) -> dict[str, Tensor]:
        """Generator state at the start of the pass, and the position in it."""
        return {"generator": self._start, "position": torch.tensor([self._position, self.passes, self.n])}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state, index for index."""
        position, passes, n = (int(v) for v in state["position"])
        if n != self.n:
            raise ValueError(f"the saved state is of a sampler over {n} samples, this one has {self.n}")
        self.generator.set_state(state["generator"].cpu())
        self._begin_pass()
        self._position, self.passes = position, passes

    def _begin_pass(self) -> None:
        self._start = self.generator.get_state()
        self._order = torch.randperm(self.n, generator=self.generator, device=self.device)
        self._position = 0


class SemiLoader:
    """Endless batches of a labeled and an unlabeled stream that know nothing of each other.

    The labeled stream depends on the labeled set and the seed alone: it is the same whatever the pool holds.

    Parameters
    ----------
    x_l, y_l : array or Tensor
        Labeled inputs and classes.
    x_u : array or Tensor, optional
        Unlabeled pool.
    ood_u : array of bool, optional
        Which of the pool are out of distribution; handed through for diagnostics.
    batch_size : int, default=64
        Labeled samples a step (B).
    mu : int, default=7
        Unlabeled samples a step, in units of B; 0 leaves the unlabeled stream out.
    seed : int, default=0
        Of both streams, which draw from generators of their own.
    device : str or torch.device
        Where batches are. Data are kept there too, unless a GPU lacks the room; then they stay in pinned memory and
        each batch is copied.

    Examples
    --------
    >>> loader = SemiLoader(np.zeros((5, 2), np.float32), np.arange(5), np.ones((9, 2), np.float32), batch_size=2, mu=3)
    >>> batch = loader.next()
    >>> batch.x_l.shape, batch.x_u.shape
    (torch.Size([2, 2]), torch.Size([6, 2]))
    """

    def __init__(
        self,
        x_l: Any,
        y_l: Any,
        x_u: Any = None,
        *,
        ood_u: Any = None,
        batch_size: int = 64,
        mu: int = 7,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if mu < 0:
            raise ValueError(f"mu must be 0 or more; got {mu}")
        self.batch_size, self.mu, self.device = batch_size, mu, torch.device(device)
        self.x_l = place(x_l, self.device)
        self.y_l = place(y_l, self.x_l.device).long()  # beside the inputs, since one index serves both
        if len(self.x_l) != len(self.y_l):
            raise ValueError(f"there are {len(self.x_l)} labeled inputs, but {len(self.y_l)} labels")
        if not len(self.x_l):
            raise ValueError("the labeled set is empty; at least one labeled sample is needed")
        self.labeled = IndexSampler(len(self.x_l), batch_size, seed=_seed(seed, 1), device=self.x_l.device)
        self.x_u = self.ood_u = self.unlabeled = None
        if mu and x_u is not None:
            if not len(x_u):
                raise ValueError("the unlabeled pool is empty; enlarge r or r_s, or set mu=0 for a supervised run")
            self.x_u = place(x_u, self.device)
            self.ood_u = None if ood_u is None else place(ood_u, self.x_u.device).bool()
            if self.ood_u is not None and len(self.ood_u) != len(self.x_u):
                raise ValueError(f"ood_u has {len(self.ood_u)} entries for {len(self.x_u)} unlabeled inputs")
            self.unlabeled = IndexSampler(len(self.x_u), mu * batch_size, seed=_seed(seed, 2), device=self.x_u.device)

    @property
    def n_labeled(self) -> int:
        """Size of the labeled set."""
        return len(self.x_l)

    @property
    def n_unlabeled(self) -> int:
        """Size of the unlabeled pool, 0 without an unlabeled stream."""
        return 0 if self.x_u is None else len(self.x_u)

    def next(self) -> Batch:
        """The next batch."""
        index = self.labeled.next()
        x_l, y_l, idx_l = (self._take(t, index) for t in (self.x_l, self.y_l, None))
        if self.unlabeled is None or self.x_u is None:
            return Batch(x_l, y_l, idx_l)
        index = self.unlabeled.next()
        ood = None if self.ood_u is None else self._take(self.ood_u, index)
        return Batch(x_l, y_l, idx_l, self._take(self.x_u, index), self._take(None, index), ood)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self.next()

    def state_dict(self) -> dict[str, Tensor]:
        """Flat dict of tensors: both samplers."""
        state = {f"labeled.{k}": v for k, v in self.labeled.state_dict().items()}
        if self.unlabeled is not None:
            state |= {f"unlabeled.{k}": v for k, v in self.unlabeled.state_dict().items()}
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state, batch for batch."""
        for prefix, sampler in (("labeled.", self.labeled), ("unlabeled.", self.unlabeled)):
            part = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            if bool(part) != (sampler is not None):
                raise ValueError(f"the saved state and this loader do not both have an {prefix[:-1]} stream")
            if sampler is not None:
                sampler.load_state_dict(part)

    def _take(self, data: Tensor | None, index: Tensor) -> Tensor:
        """Rows of data (or the index itself), on the device of the batches."""
        rows = index if data is None else data.index_select(0, index)
        return rows if rows.device == self.device else rows.to(self.device, non_blocking=True)


def make_loader(dataset: ArrayDataset, pool: Pool, *, ood: ArrayDataset | None = None, **options: Any) -> SemiLoader:
    """Loader of a contaminated pool; labels are positions in `pool.class_order`, the seen classes first.

    The unlabeled pool is ordered seen part, unseen part, far part; the latter two are marked as out of distribution.
    """
    x_u, ood_u = pool.unlabeled(dataset, ood)
    y = pool.relabel(dataset.y[pool.labeled_idx])
    return SemiLoader(dataset.x[pool.labeled_idx], y, x_u, ood_u=ood_u, **options)


def eval_batches(x: Tensor, batch_size: int = 512) -> Iterator[Tensor]:
    """Consecutive batches for evaluation; the last one may be smaller."""
    for start in range(0, len(x), batch_size):
        yield x[start : start + batch_size]


def place(data: Any, device: torch.device | str) -> Tensor:
    """Data as a tensor on the device, or in pinned memory when a GPU lacks the room."""
    device = torch.device(device)
    tensor = data if isinstance(data, Tensor) else torch.from_numpy(np.array(data))  # never a view of the caller's
    if device.type == "cpu":
        return tensor.cpu()
    if device.type == "cuda" and tensor.numel() * tensor.element_size() > _RESERVE * torch.cuda.mem_get_info(device)[0]:
        return tensor.cpu().pin_memory()
    return tensor.to(device)


def _seed(seed: int, stream: int) -> int:
    """A seed of its own for each stream, so that equal sizes do not give equal orders."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1))
