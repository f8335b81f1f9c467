"""Write a file whole or not at all: a full disk or a kill in the middle leaves the old file as it was."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def _check_target(path: str | os.PathLike[str], target: Path) -> None:
    """Refuse what no file can be put in the place of; `target` is where `path` leads."""
    if not target.parent.is_dir():
        folder = target.parent if Path(path).is_symlink() else Path(path).parent
        raise FileNotFoundError(f"cannot write {path}: the folder {folder} does not exist; make it first.")
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; add a file name.")
    if target.exists() and not target.is_file():
        # os.replace would put a plain file in the place of a device or a pipe.
        raise ValueError(f"cannot write {path}: it is a device or a pipe; name a regular file.")


def _temporary(target: Path) -> Path:
    return target.with_name(f".{secrets.token_hex(6)}.tmp{''.join(target.suffixes[-2:])}")


def _trouble(path: str | os.PathLike[str], error: OSError, *, old: bool = False) -> OSError:
    """The error in terms of the path that the caller knows, not of the temporary file."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    mend = "make room" if error.errno in NO_ROOM else "make its folder writable"
    kept = "; the older file there is left as it was" if old else ""
    return OSError(error.errno, f"cannot write {path} ({reason}): {mend}, or choose another place{kept}")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse now, before any work, a path that :func:`atomic_path` could not write later.

    An empty file is made beside it and removed, since no look at permissions tells what a file system allows.

    Examples
    --------
    >>> check_writable("no/such/folder/table.csv")
    Traceback (most recent call last):
    FileNotFoundError: cannot write no/such/folder/table.csv: the folder no/such/folder does not exist; make it first.
    """
    target = Path(os.path.realpath(path))
    _check_target(path, target)
    _try(_temporary(target), path)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse now a folder that cannot be made, or that no file can be written to; nothing is left behind."""
    folder = Path(os.path.realpath(path))
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"cannot write to {path}: {folder} is not a folder; choose another name.")
    _try(_temporary(folder / "check"), path)


def _try(temp: Path, path: str | os.PathLike[str]) -> None:
    try:
        temp.touch()
        temp.unlink()
    except OSError as error:
        raise _trouble(path, error) from error


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
    _check_target(path, target)
    temp = _temporary(target)
    try:
        yield temp
        if not temp.is_file():
            raise FileNotFoundError(f"nothing was written for {path}.")
        _publish(temp, target)
    except BaseException as error:
        with suppress(OSError):
            temp.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.errno in NO_ROOM or error.filename == str(temp)):
            raise _trouble(path, error, old=target.exists()) from error
        raise
