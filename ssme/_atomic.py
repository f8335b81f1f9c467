"""Write a file whole or not at all: a full disk or a kill in the middle leaves the old file as it was."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def _check_target(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist; make it first.")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; add a file name.")
    if path.exists() and not path.is_file():
        # os.replace would put a plain file in the place of a device or a pipe.
        raise ValueError(f"cannot write {path}: it is a device or a pipe; name a regular file.")


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(temp: Path, target: Path) -> None:
    """Put a finished temporary file in the place of the target, with the target's permissions."""
    if target.exists():
        shutil.copymode(target, temp)
    _sync(temp, os.O_RDWR)  # the content is on disk before the name points to it
    os.replace(temp, target)
    if os.name == "posix":
        _sync(target.parent, os.O_RDONLY)


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends without an error.

    Parameters
    ----------
    path : str or path-like
        The file to write. Its folder must exist; a symbolic link is followed, so the link stays.

    Yields
    ------
    Path
        A name in the same folder, with the same suffixes. Write the whole file there.

    Notes
    -----
    The content is flushed to disk before the rename, so at every moment `path` is either the old file or the whole
    new one. After an error (also Ctrl-C) the temporary file is removed and the old file is untouched.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "table.csv"
    ...     with atomic_path(target) as temp:
    ...         _ = temp.write_text("id,score")
    ...     target.read_text()
    'id,score'
    """
    target = Path(os.path.realpath(path))
    _check_target(target)
    temp = target.with_name(f".{secrets.token_hex(6)}.tmp{''.join(target.suffixes[-2:])}")
    try:
        yield temp
        if not temp.is_file():
            raise FileNotFoundError(f"nothing was written for {path}.")
        _publish(temp, target)
    except OSError as error:
        temp.unlink(missing_ok=True)
        if error.errno in NO_ROOM:
            reason = os.strerror(error.errno) if error.errno else "no room"
            message = f"cannot write {path} ({reason}); an older file there is left as it was"
            raise OSError(error.errno, message) from error
        raise
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
