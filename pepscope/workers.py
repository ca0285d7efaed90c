"""Work over processes or a Dask cluster, which survives that workers are killed."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from pepscope.errors import PepscopeError, UsageError
from pepscope.extras import missing_package

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

#: After so many deaths, and nothing done before, no worker can start.
_HOPELESS = 5

#: 128 + SIGINT, as shells report it.
_INTERRUPTED = 130

#: A piece of work is tried so often where its worker dies; then it is to blame.
MOST_TRIES = 3


class WorkerDiedError(PepscopeError):
    """A worker died, for lack of memory or by a signal, each time it did this piece of work."""


def over_workers(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    *,
    processes: int,
    scheduler: str | None,
    shared: Path | None = None,
    imported: Sequence[str] = (),
) -> Generator[tuple[int, Outcome | Exception], None, None]:
    """The place and the outcome of each item, as they end; an item that fails gives its exception.

    `work` must be a function of a module. `shared` is a file that workers of a cluster must see too, because they write
    beside it. `imported` are modules that processes find imported when they start. Raises UsageError where no scheduler
    answers, or a worker does not see it.
    """
    if scheduler is not None:
        return _over_dask(work, items, scheduler, shared)
    return _over_processes(work, items, processes, (work.__module__, *imported))


def _over_processes(
    work: Callable[[Item], Outcome], items: Sequence[Item], processes: int, imported: Sequence[str]
) -> Generator[tuple[int, Outcome | Exception], None, None]:
    waiting = list(range(len(items)))
    suspects: dict[int, int] = {}  # tries of what was under way when a worker died: it is done alone from then on
    finished, deaths = set[int](), 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *imported])
    while waiting or suspects:
        together = waiting or [next(iter(suspects))]
        workers = min(processes, len(together))
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool:
            died = yield from _until_one_dies(pool, 2 * workers, work, items, together, finished)
        deaths += bool(died)
        if deaths == _HOPELESS and not finished:
            raise WorkerDiedError(
                "no worker process starts: a program that uses several needs a file of its own, and the line "
                "`if __name__ == '__main__':` before what it does"
            )
        for place in died:
            suspects[place] = suspects.get(place, 0) + 1
            if suspects[place] == MOST_TRIES:
                finished.add(place)
                yield place, WorkerDiedError("its worker died each time, for lack of memory or by a signal")
        waiting = [place for place in waiting if place not in finished and place not in suspects]
        suspects = {place: tries for place, tries in suspects.items() if place not in finished}


def _until_one_dies(
    pool: ProcessPoolExecutor,
    at_once: int,
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    places: Sequence[int],
    finished: set[int],
) -> Generator[tuple[int, Outcome | Exception], None, set[int]]:
    """Yields outcomes until all work is done or a worker dies; gives what was under way then."""
    queue, running = iter(places), dict[Future[Outcome], int]()

    def submit() -> None:
        place = next(queue, None)
        if place is not None:
            running[pool.submit(_done, work, items[place])] = place

    try:
        for _ in range(at_once):
            submit()
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                place = running[future]
                try:
                    outcome: Outcome | Exception = future.result()
                except BrokenProcessPool:
                    return set(running.values())
                except Exception as error:
                    outcome = error
                del running[future]
                finished.add(place)
                yield place, outcome
                submit()
    except BrokenProcessPool:
        return set(running.values())
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return set()


def _done(work: Callable[[Item], Outcome], item: Item) -> Outcome:
    """The outcome of an item. What is interrupted from the keyboard cleans up and begins nothing more."""
    try:
        return work(item)
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)


def _check_shared(client: Any, shared: Path) -> None:
    blind = sorted(worker for worker, sees in client.run(os.path.isfile, str(shared)).items() if not sees)
    if blind:
        raise UsageError(
            f"{len(blind)} workers of the cluster ({blind[0]} for one) do not see {shared.parent}: give a directory "
            "that all share"
        )


def _end_with_parent() -> None:
    """Ends a worker when its parent is killed: its siblings hold the pipe open on which it waits for work."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _over_dask(
    work: Callable[[Item], Outcome], items: Sequence[Item], scheduler: str, shared: Path | None
) -> Generator[tuple[int, Outcome | Exception], None, None]:
    try:
        import distributed
    except ImportError:
        raise UsageError(missing_package("distributed")) from None
    try:
        client: Any = distributed.Client(scheduler, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        if shared is not None:
            _check_shared(client, shared.resolve())
        futures = client.map(work, items, pure=False, retries=0)
        places = {future.key: place for place, future in enumerate(futures)}
        for future in distributed.as_completed(futures):  # type: ignore[no-untyped-call]
            failure = future.exception()
            yield places[future.key], future.result() if failure is None else failure
            future.release()
