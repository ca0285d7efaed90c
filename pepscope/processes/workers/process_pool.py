"""Work over processes of this machine, any of which may be killed."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import NoReturn, TypeVar

from pepscope.processes.signals import ENDING_SIGNALS, LOOK_S, EndedBySignal, signals_held, take_signals
from pepscope.processes.workers.errors import MOST_TRIES, WorkerDiedError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

#: After so many deaths, and nothing done before, no worker can start.
_HOPELESS = 5

#: What is under way when work is given up may take so long to clean up.
_GRACE_S = 5.0


def start_server(imported: Sequence[str]) -> None:
    """Start what processes are forked from, which imports modules beside what this process does until it needs them.

    Once it runs, with whatever modules, this does nothing more.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(["__main__", *imported])
    with signals_held():
        multiprocessing.forkserver.ensure_running()


def over_processes(
    work: Callable[[Item], Outcome], items: Sequence[Item], processes: int, imported: Sequence[str]
) -> Generator[tuple[int, Outcome | Exception], None, None]:
    """The place and the outcome of each item, as they end. `imported` are modules that all processes start with. Raises
    WorkerDiedError where no process can start."""
    waiting = list(range(len(items)))
    suspects: dict[int, int] = {}  # what was under way when a worker died is done alone then: how often it died alone
    finished, deaths = set[int](), 0
    start_server(imported)
    context = multiprocessing.get_context("forkserver")
    while waiting or suspects:
        together = waiting or [next(iter(suspects))]
        workers = min(processes, len(together))
        ending, giving_up = context.Pipe(duplex=False)
        # Where work is given up or a worker dies, `giving_up` closes first, which tells all workers to end: the pool
        # tells none that is just starting. Then it waits, since Python writes at its exit to a pipe that the pool's
        # thread may be closing.
        with (
            ending,
            ProcessPoolExecutor(workers, mp_context=context, initializer=_obey_parent, initargs=(ending,)) as pool,
            giving_up,
        ):
            died = yield from _until_one_dies(pool, 2 * workers, work, items, together, finished)
            if not died:
                pool.shutdown()
        deaths += bool(died)
        if deaths == _HOPELESS and not finished:
            raise WorkerDiedError(
                "no worker process starts: a program that uses several needs a file of its own, and the line "
                "`if __name__ == '__main__':` before what it does"
            )
        for place in died:
            suspects[place] = suspects.get(place, 0) + (len(died) == 1)
            if suspects[place] == MOST_TRIES:
                finished.add(place)
                yield place, WorkerDiedError.of_one()
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
            with signals_held():
                running[pool.submit(_done, work, items[place])] = place

    try:
        for _ in range(at_once):
            submit()
        while running:
            for future in wait(running, LOOK_S, FIRST_COMPLETED).done:
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
    return set()


def _done(work: Callable[[Item], Outcome], item: Item) -> Outcome:
    """The outcome of an item. What is given up cleans up, and its process begins nothing more."""
    try:
        try:
            signal.signal(signal.SIGTERM, _give_up)
            return work(item)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    except EndedBySignal as end:
        os._exit(end.status)


def _give_up(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the pool sends one more, which would disturb the cleaning up
    raise EndedBySignal(number)


def _obey_parent(ending: Connection) -> None:
    """Have a worker end when its parent gives the work up or is killed: either closes the other end of `ending`.

    A terminal's Ctrl-C, which reaches workers as well, is for the parent.
    """
    for each in ENDING_SIGNALS:
        signal.signal(each, signal.SIG_DFL if each == signal.SIGTERM else signal.SIG_IGN)
    take_signals()

    def watch() -> None:
        with suppress(EOFError, OSError):
            ending.recv_bytes()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(_GRACE_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
