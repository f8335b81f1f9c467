"""The folder of a run.

``config.json``, ``manifest.json`` (the pool), ``metrics.jsonl`` (a line an epoch), ``last.json`` and ``best.json`` with
their safetensors, ``result.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ssl_zoo._files import read_json, write_bytes, write_json
from ssl_zoo.checkpoint import load_checkpoint, remove_checkpoint, save_checkpoint
from ssl_zoo.config import RunConfig
from ssl_zoo.data import Pool

__all__ = ["RunFolder"]


class RunFolder:
    """States of one run; a state of another run or pool is refused.

    Parameters
    ----------
    path : Path
    config : RunConfig
    pool : Pool
    device_type : str
        A state goes on only on a device of the type that it was trained on.
    """

    def __init__(self, path: Path, config: RunConfig, pool: Pool, device_type: str) -> None:
        self.path, self.config, self.pool, self.device_type = path, config, pool, device_type

    def open(self, *, fresh: bool) -> None:
        """Make the folder and write config and manifest. ``fresh`` takes away the states of the run that it holds."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._check_owner(fresh=fresh)
        if fresh:
            for name in ("last", "best"):
                remove_checkpoint(self.path, name)
            (self.path / "result.json").unlink(missing_ok=True)
            (self.path / "metrics.jsonl").unlink(missing_ok=True)
        write_json(self.path / "config.json", self.config.to_dict())
        write_bytes(self.path / "manifest.json", (self.pool.to_json() + "\n").encode())

    def _check_owner(self, *, fresh: bool) -> None:
        """A ``config.json`` that no run wrote is somebody's file, and is never replaced."""
        path = self.path / "config.json"
        if not path.exists():
            return
        try:
            saved = RunConfig.from_dict(read_json(path))
        except ValueError as error:
            raise ValueError(
                f"{path} is not the config of a run that this version reads ({error}); choose another folder."
            ) from error
        if saved.run_id != self.config.run_id and not fresh:
            raise ValueError(
                f"{self.path} holds another run ({saved.run_id}, not {self.config.run_id}); choose another folder"
                " or start it anew."
            )

    def has(self, name: str) -> bool:
        """Whether there is a state of that name."""
        return (self.path / f"{name}.json").exists()

    def save(self, name: str, step: int, state: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Put a state in the place of the one of that name."""
        meta = {"run_id": self.config.run_id, "pool": self.pool.hash, "device": self.device_type, **notes}
        save_checkpoint(self.path, name, step, state, meta)

    def read(self, name: str, *, to_train: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and notes of a state."""
        state, meta = load_checkpoint(self.path, name)
        for key, mine in (("run_id", self.config.run_id), ("pool", self.pool.hash)):
            if meta[key] != mine:
                raise ValueError(f"{self.path / name}.json belongs to another {key} ({meta[key]}, not {mine}).")
        if to_train and meta["device"] != self.device_type:
            raise ValueError(f"{self.path} was trained on a {meta['device']} device; it can go on only on one.")
        return state, meta

    def notes(self, name: str) -> dict[str, Any]:
        """Notes of a state without its tensors; empty where there is no such state."""
        return read_json(self.path / f"{name}.json") if self.has(name) else {}

    def write_result(self, result: Mapping[str, Any]) -> None:
        """``result.json``."""
        write_json(self.path / "result.json", result)
