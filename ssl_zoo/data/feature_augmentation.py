"""What all augmenters share, and the one for feature vectors.

References
----------
Bahri et al. (2022), SCARF (swapping features with other rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


class Augmenter:
    """Base: normalisation and the generator.

    Parameters
    ----------
    mean, std : sequence of float
        By channel (images, in units of [0, 1]) or by feature.
    generator : torch.Generator
        Source of all random numbers; its device is where the batches must be.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], *, generator: torch.Generator) -> None:
        if not isinstance(generator, torch.Generator):
            raise TypeError("generator must be a torch.Generator; random numbers have no other source here")
        self.generator = generator
        self.mean = torch.as_tensor(np.asarray(mean), dtype=torch.float32, device=generator.device)
        self.std = torch.as_tensor(np.asarray(std), dtype=torch.float32, device=generator.device)
        if not bool((self.std > 0).all()):
            raise ValueError("std must be positive in every channel or feature; give constant ones a std of 1")

    def plain(self, x: Tensor) -> Tensor:
        """The normalised inputs themselves."""
        raise NotImplementedError

    def weak(self, x: Tensor) -> Tensor:
        """A slightly changed view."""
        raise NotImplementedError

    def strong(self, x: Tensor) -> Tensor:
        """A much changed view."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Tensor]:
        """State of the generator."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state."""
        self.generator.set_state(state["generator"].cpu())

    def _rand(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator, device=self.generator.device)


class FeatureAugmenter(Augmenter):
    """For tables and texts as feature vectors. Weak: noise. Strong: more noise, masked features, swapped features.

    Parameters
    ----------
    mean, std : sequence of float
        By feature.
    generator : torch.Generator
        Source of all random numbers.
    weak_noise, strong_noise : float
        Standard deviation of Gaussian noise, in units of the feature's own.
    weak_mask, strong_mask : float
        Probability that a feature is set to its mean.
    mix : float
        Probability that a feature of a strong view is taken from another row of the batch, one row for each sample.

    Examples
    --------
    >>> augment = FeatureAugmenter([0.0, 1.0], [1.0, 2.0], generator=torch.Generator().manual_seed(0))
    >>> augment.plain(torch.tensor([[1.0, 5.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        *,
        generator: torch.Generator,
        weak_noise: float = 0.1,
        strong_noise: float = 0.2,
        weak_mask: float = 0.0,
        strong_mask: float = 0.2,
        mix: float = 0.1,
    ) -> None:
        super().__init__(mean, std, generator=generator)
        for name, value in (("weak_mask", weak_mask), ("strong_mask", strong_mask), ("mix", mix)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} is a probability below 1; got {value}")
        self.weak_noise, self.strong_noise = weak_noise, strong_noise
        self.weak_mask, self.strong_mask, self.mix = weak_mask, strong_mask, mix

    def plain(self, x: Tensor) -> Tensor:
        """The standardised features."""
        return (x.float() - self.mean) / self.std

    def weak(self, x: Tensor) -> Tensor:
        """Noise and perhaps a few masked features."""
        return self._mask(self._noise(self.plain(x), self.weak_noise), self.weak_mask)

    def strong(self, x: Tensor) -> Tensor:
        """Features swapped with another row, noise, masked features."""
        x = self.plain(x)
        if self.mix and len(x) > 1:
            step = 1 + (self._rand(len(x)) * (len(x) - 1)).long()  # any row but the sample itself
            other = (torch.arange(len(x), device=x.device) + step) % len(x)
            x = torch.where(self._rand(*x.shape) < self.mix, x[other], x)
        return self._mask(self._noise(x, self.strong_noise), self.strong_mask)

    def _noise(self, x: Tensor, std: float) -> Tensor:
        if not std:
            return x
        return x + std * torch.randn(x.shape, generator=self.generator, device=x.device)

    def _mask(self, x: Tensor, p: float) -> Tensor:
        return x * (self._rand(*x.shape) >= p) if p else x
