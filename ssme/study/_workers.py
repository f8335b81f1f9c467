"""Worker processes end when the process that started them is gone, killed or not."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

SECONDS = 0.5  # between two looks
_watched: set[int] = set()


def end_with(owner: int) -> None:
    """In a worker that the process `owner` started: end it soon after the owner. Elsewhere nothing is done.

    A killed process cannot stop its workers, and joblib's wait for minutes for their next task. A thread of the worker
    sees that its parent is gone. (Linux could send a signal instead, but it does so already when the thread ends that
    started the worker.)
    """
    parent = multiprocessing.parent_process()
    if os.name != "posix" or parent is None or parent.pid != owner or owner in _watched:
        return
    _watched.add(owner)
    threading.Thread(target=_watch, args=(owner, os.getppid()), name="end-with-owner", daemon=True).start()


def _watch(owner: int, parent: int) -> None:
    # The parent may be a server that forks for the owner. A killed owner that nobody waits for keeps its number.
    while os.getppid() == parent and _is_there(owner):
        time.sleep(SECONDS)
    os._exit(1)  # nobody waits for what the worker computes, or reads its exit code


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
