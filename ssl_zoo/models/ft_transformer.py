"""A transformer over the columns of a table (Gorishniy et al. 2021)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ssl_zoo.models._base import FeatureModel


class FTTransformer(FeatureModel):
    """Every column becomes a token ``x_k w_k + b_k``; blocks of attention mix them with a token that collects.

    Pre-norm blocks, the first one without a norm before its attention, and a feed-forward part gated by ReLU. All
    columns are numbers here (the readers of tables write categories as indicator columns). The cost grows with the
    square of the number of columns; for thousands of text features take "mlp".

    Parameters
    ----------
    in_shape : tuple of int
        (F,).
    n_classes : int
    dim : int, default=64
        Length of a token; also the number of features.
    n_blocks : int, default=3
    n_heads : int, default=8
        Must divide ``dim``.
    dropout : float, default=0.1
        On the attention weights and inside the feed-forward part.

    References
    ----------
    Gorishniy, Rubachev, Khrulkov, Babenko. Revisiting deep learning models for tabular data. NeurIPS 2021.

    Examples
    --------
    >>> FTTransformer((5,), 3, dim=16, n_heads=4).head.in_features
    16
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        n_classes: int,
        *,
        dim: int = 64,
        n_blocks: int = 3,
        n_heads: int = 8,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if len(in_shape) != 1:
            raise ValueError(f"ft_transformer takes tables (F,); inputs of shape {in_shape} need another model.")
        if min(dim, n_blocks, n_heads) < 1 or dim % n_heads:
            raise ValueError(
                f"ft_transformer: dim is {dim}, n_heads {n_heads}, n_blocks {n_blocks}; all must be at least 1 and "
                "n_heads must divide dim."
            )
        self.weight = nn.Parameter(torch.empty(in_shape[0], dim))
        self.bias = nn.Parameter(torch.empty(in_shape[0], dim))
        self.collector = nn.Parameter(torch.empty(1, dim))
        for tokens in (self.weight, self.bias, self.collector):
            nn.init.uniform_(tokens, -1 / math.sqrt(dim), 1 / math.sqrt(dim))
        self.blocks = nn.Sequential(*[_Block(dim, n_heads, dropout, first=k == 0) for k in range(n_blocks)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_classes)

    def features(self, x: Tensor) -> Tensor:
        """What the collecting token has become."""
        tokens = x[:, :, None] * self.weight + self.bias
        tokens = torch.cat([self.collector.expand(len(x), 1, -1).to(tokens.dtype), tokens], 1)
        return self.norm(self.blocks(tokens)[:, 0]).relu()


class _Block(nn.Module):
    """Attention and a gated feed-forward part, each added to what came in.

    The attention is written out: fused kernels have no second derivatives, which DS3L needs.
    """

    def __init__(self, dim: int, n_heads: int, dropout: float, *, first: bool) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm1 = nn.Identity() if first else nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        hidden = max(4 * dim // 3, 1)
        self.up, self.down = nn.Linear(dim, 2 * hidden), nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, T, dim) in and out."""
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        weight = self.dropout((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1))
        x = x + self.out((weight @ v).transpose(1, 2).flatten(2))
        value, gate = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(self.dropout(value * gate.relu()))
