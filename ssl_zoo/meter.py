"""What happened since the last line of the log, kept on the device until it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ssl_zoo import cscore

__all__ = ["Meter"]


class Meter:
    """Tensors kept as they come and read all at once, so that no step waits for the device.

    Examples
    --------
    >>> meter = Meter()
    >>> for value in (1.0, float("nan"), 3.0):
    ...     meter.add({"x": torch.tensor(value)})
    >>> meter.read()
    ({'x': 2.0}, {'x': 1})
    """

    #: Mean predictions by batch, (C,) each: at the epoch's end they become ``cci_pooled``.
    POOLED: ClassVar[str] = "_mean_prediction"

    def __init__(self) -> None:
        self._rows: dict[str, list[Tensor]] = {}

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Keep one value of each name."""
        for key, value in values.items():
            self._rows.setdefault(key, []).append(value.detach())

    def read(self) -> tuple[dict[str, float], dict[str, int]]:
        """Means of what is defined, and how often a value was NaN and left out; the meter is empty then."""
        means, skipped = {}, {}
        for key, rows in self._rows.items():
            if key == self.POOLED:
                means["cci_pooled"] = float(cscore.cci(torch.stack(rows).mean(0, keepdim=True)))
                continue
            means[key], n = cscore.skipping_mean(torch.stack(rows).cpu())  # one wait, not one a value
            if n:
                skipped[key] = n
        self._rows = {}
        return means, skipped

    def first_bad(self, key: str) -> int | None:
        """How many values ago the first one came that is NaN or infinite; None: all are finite. Waits for the
        device."""
        rows = self._rows.get(key, [])
        if not rows:
            return None
        bad = ~torch.stack(rows).isfinite()
        return len(rows) - 1 - int(bad.to(torch.uint8).argmax()) if bool(bad.any()) else None

    def state_dict(self) -> dict[str, Tensor]:
        """One tensor a name."""
        return {key: torch.stack(rows) for key, rows in self._rows.items()}

    def load_state_dict(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore what ``state_dict`` gave."""
        self._rows = {key: list(value.to(device).unbind()) for key, value in state.items()}
