"""Work on parts, and the sum of what comes of them: one part after another, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any, TypeVar

T = TypeVar("T")

SPLIT_EVERY = 4  # results that are added at a time on a cluster


def sum_over(parts: Sequence[Any], work: Callable[[Any], T], client: Any, note: Callable[[str], None]) -> T:
    """``work(part)`` of every part, added up with ``+``; on the cluster of a client where there is one.

    A part whose worker is lost is done again by another one: that is what Dask does.
    """
    if client is None:
        return reduce(add, _noted(map(work, parts), len(parts), note))
    from dask import bag

    note(f"{len(parts)} parts on {len(client.scheduler_info(n_workers=-1)['workers'])} workers")
    items = bag.from_sequence(parts, npartitions=len(parts))
    return items.map(work).reduction(_total, _total, split_every=SPLIT_EVERY).compute(scheduler=client)


@contextmanager
def connected(scheduler: Any) -> Iterator[Any]:
    """A Dask client of an address, that is closed again; a client as it is; None for this process alone."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("a scheduler needs Dask: pip install 'ssme[cluster]'.") from None
    if isinstance(scheduler, Client):
        yield scheduler
        return
    if not isinstance(scheduler, str):
        raise TypeError(f"scheduler must be an address such as 'tcp://host:8786' or a Client, got {scheduler!r}.")
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {scheduler!r}: check the address, and that it runs.") from error
    with client:
        yield client


def _total(results: Iterable[T]) -> T:
    return reduce(add, results)


def _noted(results: Iterable[T], n_parts: int, note: Callable[[str], None]) -> Iterator[T]:
    for number, each in enumerate(results, 1):
        note(f"part {number} of {n_parts}")
        yield each
