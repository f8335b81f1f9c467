"""Clusters and accuracies for methods that find new classes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["open_world_accuracy", "seeded_kmeans"]


def open_world_accuracy(prediction: np.ndarray, y: np.ndarray, n_seen: int) -> dict[str, float]:
    """Accuracy on seen classes, on unseen classes, and over all rows.

    A seen class must be predicted by its own name. The novel columns (``>= n_seen``) are matched one to one with the
    unseen classes so that as many rows as possible agree (Hungarian method). A row of an unseen class that is given a
    seen class is wrong, whatever the match, and so is a row of a seen class that is given a novel column. Without
    rows the value is NaN.

    Parameters
    ----------
    prediction : ndarray (n,)
        Columns of ``predict``.
    y : ndarray (n,)
        True classes, seen ones below ``n_seen``.
    n_seen : int

    Examples
    --------
    >>> open_world_accuracy(np.array([0, 1, 3, 3, 0]), np.array([0, 0, 2, 2, 2]), n_seen=2)
    {'seen': 0.5, 'unseen': 0.66..., 'all': 0.6}
    """
    from scipy.optimize import linear_sum_assignment

    prediction, y = np.asarray(prediction), np.asarray(y)
    seen = y < n_seen
    correct_seen = int((prediction[seen] == y[seen]).sum())
    novel = ~seen & (prediction >= n_seen)
    correct_unseen = 0
    if novel.any():
        size = int(max(prediction[novel].max(), y[~seen].max())) - n_seen + 1
        table = np.zeros((size, size), dtype=np.int64)
        np.add.at(table, (prediction[novel] - n_seen, y[novel] - n_seen), 1)
        correct_unseen = int(table[linear_sum_assignment(table, maximize=True)].sum())
    return {
        "seen": correct_seen / int(seen.sum()) if seen.any() else float("nan"),
        "unseen": correct_unseen / int((~seen).sum()) if not seen.all() else float("nan"),
        "all": (correct_seen + correct_unseen) / len(y) if len(y) else float("nan"),
    }


@torch.no_grad()
def seeded_kmeans(x: Tensor, seeds: Tensor, n_new: int, *, max_iter: int = 100) -> Tensor:
    """Centres (S + n_new, d): the S seeds stay where they are, the new ones start far away and move to their means.

    A new centre starts at the row that is farthest from all centres so far. A centre that loses all its rows stays.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [0.2], [9.0], [11.0]])
    >>> seeded_kmeans(x, torch.tensor([[0.0]]), 1)
    tensor([[ 0.],
            [10.]])
    """
    centres = seeds.clone()
    for _ in range(n_new):
        centres = torch.cat([centres, x[torch.cdist(x, centres).amin(1).argmax()][None]])
    fixed = len(seeds)
    for _ in range(max_iter):
        label = torch.cdist(x, centres).argmin(1)
        total = torch.zeros_like(centres).index_add_(0, label, x)
        count = torch.zeros_like(centres[:, 0]).index_add_(0, label, torch.ones_like(x[:, 0]))
        moved = torch.where((count > 0)[:, None], total / count.clamp_min(1)[:, None], centres)
        moved[:fixed] = seeds
        if torch.equal(moved, centres):
            break
        centres = moved
    return centres
