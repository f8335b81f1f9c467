"""Small stand-ins for the tests: a net of two layers, an augmenter that remembers its views, a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ssl_zoo.algorithms.base import Algorithm, EpochContext, StepContext
from ssl_zoo.ema import EMA
from ssl_zoo.registry import create_algorithm, list_algorithms

N_CLASSES, N_FEATURES, N_POOL = 3, 5, 24

#: Every algorithm, and the second form of DS3L.
CASES: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in list_algorithms()]
CASES.append(("ds3l", {"weighting": "centroid"}))
IDS = [name + "".join(f"-{v}" for v in options.values()) for name, options in CASES]
UNLABELED = [(name, options) for name, options in CASES if name != "supervised"]
UNLABELED_IDS = [i for i in IDS if i != "supervised"]
#: Options that let every unlabeled row count.
OPEN: dict[str, dict[str, Any]] = {
    name: {"tau": 0.0} for name in ("pseudolabel", "uda", "fixmatch", "flexmatch", "openmatch", "fix_a_step", "ds3l")
}


class TinyNet(nn.Module):
    """features = tanh(BN(W x + b)), head linear; the batch-norm can be left out."""

    def __init__(self, n_classes: int = N_CLASSES, *, width: int = 6, batch_norm: bool = True, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.body = nn.Linear(N_FEATURES, width)
            self.norm = nn.BatchNorm1d(width) if batch_norm else nn.Identity()
            self.head = nn.Linear(width, n_classes)

    def features(self, x: Tensor) -> Tensor:
        return torch.tanh(self.norm(self.body(x.flatten(1))))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


class NoWaiting(TorchDispatchMode):
    """Fails on operations that make the host wait for the device: they read a value or size their result by it."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "unique", "bincount", "equal.default")

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(function)
        assert not any(word in name for word in self.WAITING), f"{name} waits for the device"
        if "index" in name:
            indices = args[1] if isinstance(args[1], (list, tuple)) else []
            assert not any(getattr(i, "dtype", None) == torch.bool for i in indices), f"{name} with a mask waits"
        return function(*args, **(kwargs or {}))


class Views:
    """Noise per sample from a generator of its own; ``drawn`` keeps what was handed out."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.drawn: list[Tensor] = []

    def _noisy(self, x: Tensor, std: float) -> Tensor:
        self.drawn.append(x + std * torch.randn(x.shape, generator=self.generator, dtype=x.dtype))
        return self.drawn[-1]

    def weak(self, x: Tensor) -> Tensor:
        return self._noisy(x, 0.1)

    def strong(self, x: Tensor) -> Tensor:
        return self._noisy(x, 0.5)

    def plain(self, x: Tensor) -> Tensor:
        return x


@dataclass
class SmallBatch:
    x_l: Tensor
    y_l: Tensor
    idx_l: Tensor
    x_u: Tensor
    idx_u: Tensor
    ood_u: Tensor | None = None


def make_batch(n_l: int = 6, n_u: int = 8, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> SmallBatch:
    g = torch.Generator().manual_seed(seed)
    x_l = torch.randn(n_l, N_FEATURES, generator=g, dtype=torch.float64).to(dtype)
    x_u = torch.randn(n_u, N_FEATURES, generator=g, dtype=torch.float64).to(dtype)
    index = torch.randperm(N_POOL, generator=g)[:n_u]
    return SmallBatch(x_l, torch.arange(n_l) % N_CLASSES, torch.arange(n_l), x_u, index)


def make_algorithm(name: str, net: nn.Module, *, open_gate: bool = False, **options: Any) -> Algorithm:
    """Created and built; with ``open_gate`` its masks let all rows pass."""
    chosen = {**(OPEN.get(name, {}) if open_gate else {}), **options}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        algorithm = create_algorithm(name, n_classes=N_CLASSES, n_labeled=6, n_unlabeled=N_POOL, **chosen)
        algorithm.build(net)
    if open_gate and name == "openmatch":  # the second gate: inliers by the averaged one-vs-all head
        algorithm.ema_bias[N_CLASSES:] = 50.0
    return algorithm


@dataclass
class World:
    """A student, its moving average, an algorithm, an optimiser over both, and the draws."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    open_gate: bool = False
    batch_norm: bool = True
    dtype: torch.dtype = torch.float32
    lr: float = 0.05

    def __post_init__(self) -> None:
        self.net = TinyNet(batch_norm=self.batch_norm).to(self.dtype)
        self.algorithm = make_algorithm(self.name, self.net, open_gate=self.open_gate, **self.options).to(self.dtype)
        self.ema = EMA(self.net, 0.9)
        self.augment = Views()
        self.generator = torch.Generator().manual_seed(3)
        parameters = [*self.net.parameters(), *self.algorithm.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=self.lr, momentum=0.9, nesterov=True)

    def context(self, batch: Any = None, *, progress: float = 1.0, epoch: int = 0, **more: Any) -> StepContext:
        return StepContext(
            model=self.net,
            teacher=self.ema.model,
            augment=self.augment,
            batch=batch if batch is not None else make_batch(dtype=self.dtype),
            progress=progress,
            epoch=epoch,
            generator=self.generator,
            **more,
        )  # type: ignore[arg-type]

    def step(self, batch: Any = None, **more: Any) -> Any:
        result = self.algorithm.step(self.context(batch, **more), self.optimizer)
        self.ema.update(self.net)
        return result


def finish_epoch(world: World, epoch: int, *, progress: float = 1.0, **more: Any) -> None:
    """The end of an epoch as a trainer would call it."""
    g = torch.Generator().manual_seed(epoch)
    context = EpochContext(
        model=world.net,
        teacher=world.ema.model,
        augment=world.augment,
        epoch=epoch,
        progress=progress,
        generator=world.generator,
        x_l=make_batch().x_l,
        y_l=make_batch().y_l,
        x_u=torch.randn(N_POOL, N_FEATURES, generator=g),
        x_val=torch.randn(7, N_FEATURES, generator=g),
        **more,
    )  # type: ignore[arg-type]
    world.algorithm.epoch_end(context)


class NumpyNet:
    """The net without batch-norm once more, in plain numpy: tanh(x W1 + b1) W2 + b2."""

    def __init__(self, net: TinyNet) -> None:
        self.w1, self.b1 = net.body.weight.detach().numpy().T.copy(), net.body.bias.detach().numpy().copy()
        self.w2, self.b2 = net.head.weight.detach().numpy().T.copy(), net.head.bias.detach().numpy().copy()

    def h(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x @ self.w1 + self.b1)

    def z(self, x: np.ndarray) -> np.ndarray:
        return self.h(x) @ self.w2 + self.b2

    def p(self, x: np.ndarray, temperature: float = 1.0) -> np.ndarray:
        return softmax(self.z(x) / temperature)

    def input_gradient(self, x: np.ndarray, d_logits: np.ndarray) -> np.ndarray:
        """Gradient in x of a loss whose gradient in the logits is given: the chain rule, written out."""
        return ((d_logits @ self.w2.T) * (1 - self.h(x) ** 2)) @ self.w1.T


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def nll(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-log of the probability of the class, a row."""
    return -np.log(p[np.arange(len(y)), y])
