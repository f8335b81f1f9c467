"""States on disk: tensors in safetensors, the rest in JSON, nothing pickled, and never a half-written pair.

``NAME.json`` is the checkpoint; it names the file that holds its tensors, ``NAME-STEP.safetensors``. The tensors are
written first and the JSON is replaced last, so at every moment ``NAME.json`` points to a whole state: after a full disk
or a kill that is the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssl_zoo._files import read_json, write_bytes, write_json

__all__ = ["flatten_optimizer", "load_checkpoint", "remove_checkpoint", "restore_optimizer", "save_checkpoint"]

FORMAT = "ssl-zoo-checkpoint/1"


def save_checkpoint(folder: Path, name: str, step: int, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write a state in the place of the one before.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> save_checkpoint(folder, "last", 3, {"w": torch.ones(2)}, {"epoch": 1})
    >>> tensors, meta = load_checkpoint(folder, "last")
    >>> tensors["w"].tolist(), meta["step"], meta["epoch"]
    ([1.0, 1.0], 3, 1)
    """
    from safetensors.torch import save

    # Copies of their own on the CPU: two names for one memory are an error in safetensors.
    plain = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in tensors.items()}
    data = folder / f"{name}-{step:08d}.safetensors"
    existed = data.exists()
    try:
        write_bytes(data, save(plain))
        write_json(folder / f"{name}.json", {"format": FORMAT, "step": step, "tensors": data.name, **meta})
    except OSError:
        if not existed:
            data.unlink(missing_ok=True)
        raise
    _remove_tensors(folder, name, keep=data.name)


def load_checkpoint(folder: Path, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (on the CPU) and the rest."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = folder / f"{name}.json"
    meta = read_json(path)
    if meta.get("format") != FORMAT:
        raise ValueError(f"{path} is of format {meta.get('format')!r}; this version reads {FORMAT!r}.")
    data = folder / meta["tensors"]
    try:
        return load(data.read_bytes()), meta
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} points to {data.name}, which is not there.") from None
    except SafetensorError as error:
        raise ValueError(f"{data} is damaged ({error}).") from error


def remove_checkpoint(folder: Path, name: str) -> None:
    """Take a state away; other files of the folder stay."""
    (folder / f"{name}.json").unlink(missing_ok=True)
    _remove_tensors(folder, name)


def _remove_tensors(folder: Path, name: str, keep: str = "") -> None:
    for old in folder.glob(f"{name}-{'[0-9]' * 8}*.safetensors"):
        if old.name != keep:
            old.unlink(missing_ok=True)


def flatten_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of each parameter as ``INDEX.NAME`` -> tensor. Rates are not part of it: they follow from the step."""
    state = optimizer.state_dict()["state"]
    return {f"{k}.{name}": v for k, values in state.items() for name, v in values.items() if isinstance(v, Tensor)}


def restore_optimizer(optimizer: torch.optim.Optimizer, flat: Mapping[str, Tensor]) -> None:
    """Put back what `flatten_optimizer` gave."""
    whole = optimizer.state_dict()
    whole["state"] = {}
    for key, value in flat.items():
        index, _, name = key.partition(".")
        whole["state"].setdefault(int(index), {})[name] = value
    optimizer.load_state_dict(whole)
