"""Processes that judge parts of the connections, forked so that they share this one's memory."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkProcess
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

from pepscope.errors import PepscopeError

Made = TypeVar("Made")


def from_processes(
    work: Callable[[Sequence[int]], Made], parts: Sequence[Sequence[int]], tasks: Sequence[range], jobs: int
) -> Iterator[Made]:
    """What `work` makes of each of the parts, in their order, by so many forked processes.

    `tasks` are numbers of the parts that one process does. Where no process is to be had this one does the work.

    Raises what `work` raises, and PepscopeError where a process ends without a result.
    """
    context = multiprocessing.get_context("fork")
    counter = context.Value("q", 0)
    processes: dict[Connection, ForkProcess] = {}
    early: dict[int, Made] = {}
    try:
        with suppress(OSError):  # no further one is to be had: those that are do all tasks
            for _ in range(jobs):
                link, process = _started(context, work, parts, tasks, counter)
                processes[link] = process
        if not processes:
            yield from map(work, parts)
            return
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
