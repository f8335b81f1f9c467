"""Files of a run are replaced whole or not at all, and errors say what is left and what to do."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["finite", "read_json", "with_advice", "write_bytes", "write_json"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file, flushed to the disk before the name points to it."""
    temp = path.with_name(f".{path.name}.tmp")
    try:
        with open(temp, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temp, path)
    except BaseException as error:
        temp.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise with_advice(error, path) from error
        raise


def with_advice(error: OSError, path: Path) -> OSError:
    """The same error; where the disk is full, with what to do about it."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno not in _NO_ROOM:
        return type(error)(error.errno, reason, str(path))
    return OSError(
        error.errno,
        f"cannot write {path} ({reason}); the state saved before it is whole, so free some room and run the same "
        "command again to go on from there",
    )


def write_json(path: Path, value: Any) -> None:
    """A readable JSON file; NaN becomes null."""
    text = json.dumps(finite(value), indent=1, sort_keys=True, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file, or an error that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {path}; is this the folder of a run?") from None
    except ValueError as error:
        raise ValueError(f"{path} is no valid JSON ({error}).") from error


def finite(value: Any) -> Any:
    """The same value with None for NaN and infinities, which JSON has no form for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite(v) for key, v in value.items()}
    return [finite(v) for v in value] if isinstance(value, (list, tuple)) else value
