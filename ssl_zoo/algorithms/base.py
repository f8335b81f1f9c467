"""What every algorithm is: views in, losses out. The loop around it belongs to the trainer.

Batch-norm policy, for all algorithms: the running statistics of the student take in exactly one batch a step, so
``num_batches_tracked`` grows by 1. With ``bn_policy = "joint"`` that batch holds all views that go through the one
concatenated forward; with ``"labeled"`` it is the labeled batch, and unlabeled passes normalise by their own batch
without leaving a trace.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ssl_zoo.algorithms._options import checked_options
from ssl_zoo.algorithms._passes import View, compile_features, eager, forward, frozen_batch_norm, peek
from ssl_zoo.losses import full_precision

if TYPE_CHECKING:
    from ssl_zoo.data.augmentation import Augmenter
    from ssl_zoo.data.loaders import Batch

# The passes are part of what a method is written with, so they are found here too.
__all__ = [
    "Algorithm", "EpochContext", "StepContext", "StepResult", "View", "compile_features", "eager", "forward",
    "frozen_batch_norm", "peek",
]  # fmt: skip


@dataclass
class StepContext:
    """All that one step may read.

    Parameters
    ----------
    model : nn.Module
        The student, in train mode: ``model.features(x)`` (B, F), then ``model.head``.
    teacher : nn.Module or None
        Its moving average, in eval mode and without gradients; its batch-norm turns to the batch while it teaches.
    augment : Augmenter
        ``weak``, ``strong`` and ``plain`` views.
    batch : Batch
        ``x_l, y_l, idx_l, x_u, idx_u``. ``ood_u`` is for diagnostics and never read here.
    progress : float
        Share of the training done, in [0, 1].
    epoch : int
    generator : torch.Generator, optional
        On the batch's device, for mixup, noise and permutations.
    amp_dtype : torch.dtype, optional
        Autocast of the forward passes; None is full precision.
    probe : callable, optional
        Called with the StepResult while its graph is still alive, before the step is taken (gradient diagnostics).
    """

    model: nn.Module
    teacher: nn.Module | None
    augment: Augmenter
    batch: Batch
    progress: float = 0.0
    epoch: int = 0
    generator: torch.Generator | None = None
    amp_dtype: torch.dtype | None = None
    probe: Callable[[StepResult], None] | None = None

    def autocast(self) -> contextlib.AbstractContextManager[None]:
        """The autocast that the forward passes run under."""
        if self.amp_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.batch.x_l.device.type, dtype=self.amp_dtype)


@dataclass
class StepResult:
    """What a step computed. ``loss_l`` and ``loss_u`` are the two terms before their weights; ``loss`` is what is
    minimised.

    The rest is detached on arrival: ``logits_l``, ``logits_u_weak``; ``mask_u`` (mu B,) weights and ``pseudo`` (mu
    B,) labels; ``h_l`` and ``h_u_strong``, the inputs of ``model.head`` behind the two losses. ``logs`` gains
    ``pass_rate`` (share of unlabeled rows with a weight above 0) and ``mask_mean``, as tensors: nobody waits for the
    device here.
    """

    loss: Tensor
    loss_l: Tensor
    loss_u: Tensor
    logits_l: Tensor | None = None
    logits_u_weak: Tensor | None = None
    mask_u: Tensor | None = None
    pseudo: Tensor | None = None
    h_l: Tensor | None = None
    h_u_strong: Tensor | None = None
    logs: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("logits_l", "logits_u_weak", "mask_u", "pseudo", "h_l", "h_u_strong"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, value.detach())
        self.logs = {key: value.detach() for key, value in self.logs.items()}
        if self.mask_u is not None:
            self.logs.setdefault("pass_rate", (self.mask_u > 0).to(torch.float32).mean())
            self.logs.setdefault("mask_mean", self.mask_u.mean())

    def detached(self) -> StepResult:
        """The same numbers without the graph."""
        return replace(self, loss=self.loss.detach(), loss_l=self.loss_l.detach(), loss_u=self.loss_u.detach())


@dataclass
class EpochContext:
    """What an algorithm may read between epochs. The arrays are as stored (not normalised); any of them may be None."""

    model: nn.Module
    augment: Augmenter
    teacher: nn.Module | None = None
    epoch: int = 0
    progress: float = 0.0
    generator: torch.Generator | None = None
    x_l: Tensor | None = None
    y_l: Tensor | None = None
    x_u: Tensor | None = None
    x_val: Tensor | None = None
    batch_size: int = 512

    @torch.no_grad()
    def apply(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """``function`` of the plain views of ``x``, in batches and with the student in eval mode."""
        training = self.model.training
        device = next(self.model.parameters()).device  # the arrays may wait in the host's memory
        self.model.eval()
        try:
            return torch.cat([function(self.augment.plain(part.to(device))) for part in x.split(self.batch_size)])
        finally:
            self.model.train(training)


class Algorithm(nn.Module):
    """Base of all algorithms. It holds no student; its state is in registered buffers, so that ``state_dict`` is all
    of it.

    A subclass sets the class attributes below, adds annotated attributes with a default as its options, and writes
    `compute`.
    """

    name: ClassVar[str] = ""
    #: Views that ``views(ctx)`` draws: "l" or "u", "weak", "strong" or "plain", and a digit for a further draw.
    needs: ClassVar[tuple[str, ...]] = ("l_weak", "u_weak")
    open_world: ClassVar[bool] = False
    uses_unlabeled: ClassVar[bool] = True
    uses_teacher: ClassVar[bool] = False
    #: "joint" or "labeled", see the module.
    bn_policy: ClassVar[str] = "joint"
    #: Whose ``predict`` is reported: "ema", or "student" where the algorithm's own head has no moving average.
    predict_with: ClassVar[str] = "ema"
    #: Learning rate of the method's paper for SGD.
    base_lr: ClassVar[float] = 0.03
    #: True when state is kept for each unlabeled sample: ``n_unlabeled`` is then needed.
    per_sample: ClassVar[bool] = False
    #: Allowed values of options that are words.
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    mu: int = 7

    def __init__(
        self, *, n_classes: int, n_labeled: int | None = None, n_unlabeled: int | None = None, **options: Any
    ) -> None:
        super().__init__()
        if n_classes < 2:
            raise ValueError(f"{self.name}: n_classes is {n_classes}; give at least 2.")
        if self.per_sample and n_unlabeled is None:
            raise ValueError(f"{self.name} remembers each unlabeled sample: give n_unlabeled, the size of the pool.")
        self.n_classes, self.n_labeled, self.n_unlabeled = n_classes, n_labeled, n_unlabeled
        for key, value in checked_options(self.name, self.option_defaults(), self.choices, options).items():
            setattr(self, key, value)

    @classmethod
    def option_defaults(cls) -> dict[str, Any]:
        """Options of the class with their defaults, those of the base first."""
        found: dict[str, Any] = {}
        for klass in reversed(cls.__mro__[: cls.__mro__.index(Algorithm) + 1]):
            for key, annotation in inspect.get_annotations(klass).items():
                if "ClassVar" not in str(annotation) and key in vars(klass):
                    found[key] = getattr(cls, key)
        return found

    def options(self) -> dict[str, Any]:
        """Options of this instance."""
        return {key: getattr(self, key) for key in self.option_defaults()}

    @property
    def n_outputs(self) -> int:
        """Columns of ``predict``: the labeled classes, and the novel ones in the open world."""
        return self.n_classes

    def build(self, model: nn.Module) -> None:
        """Make (or reset) heads and statistics for this student. The optimiser gets ``parameters()`` of the algorithm
        too."""

    def views(self, ctx: StepContext) -> list[Tensor]:
        """The views in ``needs``, drawn in that order."""
        out = []
        for need in self.needs:
            side, kind = need.split("_")
            x = ctx.batch.x_l if side == "l" else ctx.batch.x_u
            out.append(getattr(ctx.augment, kind.rstrip("0123456789"))(x))
        return out

    def compute(self, ctx: StepContext) -> StepResult:
        """Losses of one step. It takes in statistics but does not move the student."""
        raise NotImplementedError(f"{type(self).__name__} has no compute(ctx).")

    def step(self, ctx: StepContext, optimizer: torch.optim.Optimizer) -> StepResult:
        """One step of training; schedule and moving average are the trainer's."""
        optimizer.zero_grad(set_to_none=True)
        with ctx.autocast():
            result = self.compute(ctx)
        if ctx.probe is not None:
            ctx.probe(result)
        result.loss.backward()
        optimizer.step()
        return result.detached()

    def epoch_end(self, ctx: EpochContext) -> None:
        """Called after each epoch."""

    @torch.no_grad()
    def predict(self, model: nn.Module, x: Tensor) -> Tensor:
        """Logits (B, n_outputs) of plain views."""
        return full_precision(model(x))

    @torch.no_grad()
    def teach(self, ctx: StepContext, x: Tensor) -> View:
        """The view after the teacher, without gradient and normalised by this batch."""
        if ctx.teacher is None:
            raise ValueError(f"{self.name} needs a teacher: give the moving average of the student in the context.")
        with frozen_batch_norm(ctx.teacher, teacher=True):
            return forward(ctx.teacher, x)[0]

    def extra_repr(self) -> str:
        """Options, for ``repr``."""
        return ", ".join(f"{key}={value!r}" for key, value in self.options().items())
