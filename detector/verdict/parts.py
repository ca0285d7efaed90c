"""Judge many connections by parts: in this process, or in several that share its memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkProcess
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

from pepscope.errors import PepscopeError

Made = TypeVar("Made")

#: Places in a part, at most: what a part costs beside the work is shared by so many.
_MOST_PLACES = 1024
#: Parts for each process, where there are enough places: a process that finishes early takes another part.
_PARTS_EACH = 8


def usable_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def by_parts(
    work: Callable[[Sequence[int]], Made],
    places: Sequence[int],
    jobs: int,
    stretches: Sequence[int] | None = None,
) -> Iterator[tuple[Sequence[int], Made]]:
    """Parts of `places` in their order, each with what `work` makes of it.

    With more than one of `jobs`, processes are forked where the system can do so; what `work` makes must be picklable
    then. Each of `stretches`, so many places, is then the work of one process, part after part; without them any
    process takes any part. Raises what `work` raises, and PepscopeError where a process ends without a result.
    """
    size = max(1, min(_MOST_PLACES, len(places) // (_PARTS_EACH * jobs)))
    parts = list[Sequence[int]]()
    tasks = list[range]()  # numbers of the parts that one process does
    begin = 0
    for length in [len(places)] if stretches is None else stretches:
        first = len(parts)
        parts += [places[at : min(at + size, begin + length)] for at in range(begin, begin + length, size)]
        tasks.append(range(first, len(parts)))
        begin += length
    if stretches is None:
        tasks = [range(number, number + 1) for number in range(len(parts))]
    jobs = min(jobs, len(tasks))
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return ((part, work(part)) for part in parts)
    return zip(parts, _from_processes(work, parts, tasks, jobs), strict=True)


def _from_processes(
    work: Callable[[Sequence[int]], Made], parts: Sequence[Sequence[int]], tasks: Sequence[range], jobs: int
) -> Iterator[Made]:
    context = multiprocessing.get_context("fork")
    counter = context.Value("q", 0)
    processes: dict[Connection, ForkProcess] = {}
    early: dict[int, Made] = {}
    try:
        for _ in range(jobs):
            link, process = _started(context, work, parts, tasks, counter)
            processes[link] = process
        for number in range(len(parts)):
            while number not in early:
                early |= _received(processes)
            yield early.pop(number)
    finally:
        for process in processes.values():
            process.terminate()
            process.join()


def _started(
    context: ForkContext,
    work: Callable[[Sequence[int]], Made],
    parts: Sequence[Sequence[int]],
    tasks: Sequence[range],
    counter: Synchronized[int],
) -> tuple[Connection, ForkProcess]:
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(work, parts, tasks, counter, theirs), daemon=True)
    with warnings.catch_warnings():
        # Python 3.12 warns of locks that other threads may hold; those of linear algebra and file reading are idle.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()  # held open here, it would hide that the process ended
    return ours, process


def _serve(
    work: Callable[[Sequence[int]], Made],
    parts: Sequence[Sequence[int]],
    tasks: Sequence[range],
    counter: Synchronized[int],
    link: Connection,
) -> None:
    """Do one task after the other that no process has taken yet."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends the others
    while True:
        with counter.get_lock():
            task = counter.value
            counter.value += 1
        if task >= len(tasks):
            return
        for number in tasks[task]:
            try:
                link.send((number, work(parts[number]), None))
            except Exception as error:
                link.send((number, None, error))
                return


def _received(processes: dict[Connection, ForkProcess]) -> dict[int, Made]:
    """What processes have made by now, at least one part or an end; processes that ended are taken out."""
    made: dict[int, Made] = {}
    for link in wait(list(processes)):
        assert isinstance(link, Connection)
        try:
            number, part, error = link.recv()
        except EOFError:
            process = processes.pop(link)
            process.join()
            if process.exitcode:
                raise PepscopeError(_ended(process.exitcode)) from None
            continue
        if error is not None:
            raise error
        made[number] = part
    return made


def _ended(exit_code: int) -> str:
    how = f"signal {-exit_code}" if exit_code < 0 else f"exit status {exit_code}"
    return f"a process that judges connections ended with {how}: give it more memory, or use one job"
