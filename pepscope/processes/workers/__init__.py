"""Work over processes or a Dask cluster, which survives that workers are killed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

from pepscope.processes.workers.cluster import PATIENCE_S, over_cluster
from pepscope.processes.workers.errors import ClusterLostError, WorkerDiedError
from pepscope.processes.workers.process_pool import over_processes, start_server

__all__ = ["PATIENCE_S", "ClusterLostError", "WorkerDiedError", "over_workers", "start_server"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def over_workers(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    *,
    processes: int,
    scheduler: str | None,
    shared: Path | None = None,
    patience_s: float = PATIENCE_S,
    imported: Sequence[str] = (),
) -> Generator[tuple[int, Outcome | Exception], None, None]:
    """The place and the outcome of each item, as they end; an item that fails gives its exception.

    `work` must be a function of a module. It is done again where a worker dies, so that what it writes must be whole or
    not there. Of a cluster, `scheduler` is the address, `shared` a file that workers must see too, because they write
    beside it; a scheduler or workers that go away are waited for so long as `patience_s`. `imported` are modules that
    processes find imported when they start. Raises UsageError where no scheduler answers, or workers do not fit, and
    ClusterLostError.
    """
    if scheduler is not None:
        return over_cluster(work, items, scheduler, shared, patience_s)
    return over_processes(work, items, processes, (work.__module__, *imported))
