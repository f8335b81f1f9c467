"""``metrics.jsonl``, a line an epoch, and TensorBoard's event files when asked for."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ssl_zoo._files import finite, with_advice, write_bytes

__all__ = ["MetricsLog"]


class MetricsLog:
    """The log of a run's folder.

    Parameters
    ----------
    folder : Path
    tensorboard : bool, default=False
        Write ``tensorboard/`` too.
    """

    def __init__(self, folder: Path, *, tensorboard: bool = False) -> None:
        self.path, self.tensorboard = folder / "metrics.jsonl", tensorboard
        self._writer: Any = None

    def open(self, step: int) -> None:
        """Keep the lines up to a step: what was logged after the state that the run goes on from is logged again."""
        kept = [json.dumps(r) + "\n" for r in self.read() if r["step"] <= step]
        if kept or self.path.exists():
            write_bytes(self.path, "".join(kept).encode())
        if self.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise ImportError("TensorBoard files need tensorboard: pip install 'ssme[zoo]'") from error
            self._writer = SummaryWriter(str(self.path.parent / "tensorboard"), purge_step=step + 1)

    def read(self) -> list[dict[str, Any]]:
        """All whole lines; a last one that a full disk cut short is left out."""
        records = []
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):
                    records.append(json.loads(line))
        return records

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a line."""
        try:
            with open(self.path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(finite(record), allow_nan=False) + "\n")
        except OSError as error:
            raise with_advice(error, self.path) from error
        if self._writer is not None:
            for key, value in _flat(record):
                if key not in ("step", "epoch") and math.isfinite(value):
                    self._writer.add_scalar(key, value, record["step"])

    def close(self) -> None:
        """Flush the event files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", float(value)
