"""Processes that work on parts of a sequence, forked so that they share this one's memory."""

from __future__ import annotations

import os
import pickle
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from pepscope.errors import PepscopeError
from pepscope.processes.forked import ForkedProcess, end_all, forked
from pepscope.processes.signals import LOOK_S, signals_held

Made = TypeVar("Made")

#: Turns that any pipe holds: one of a user who has many may be a page large.
_TURN_BYTES, _MOST_TURNS = 8, 512


def from_processes(
    work: Callable[[Sequence[int]], Made], parts: Sequence[Sequence[int]], tasks: Sequence[range], jobs: int
) -> Iterator[Made]:
    """What `work` makes of each of the parts, in their order, by so many forked processes.

    `tasks` are numbers of the parts that one process does. Where no process is to be had this one does the work.

    Raises what `work` raises, and PepscopeError where a process ends without a result.
    """
    processes: dict[int, ForkedProcess] = {}  # by their pipes
    early: dict[int, Made] = {}
    try:
        _start(processes, work, parts, tasks, jobs)
        if not processes:
            yield from map(work, parts)
            return
        for number in range(len(parts)):
            while number not in early:
                if not processes:
                    raise PepscopeError(_ended(0))
                early |= _received(processes)
            yield early.pop(number)
    finally:
        end_all(processes.values())


def _start(
    processes: dict[int, ForkedProcess],
    work: Callable[[Sequence[int]], Made],
    parts: Sequence[Sequence[int]],
    tasks: Sequence[range],
    jobs: int,
) -> None:
    """Add so many processes, or as many as are to be had."""

    def serve(send: Callable[[bytes], None]) -> None:
        """Do one task after the other that no process has taken yet."""
        while turn := os.read(turns, _TURN_BYTES):
            first = int.from_bytes(turn, "little")
            for number in (part for task in tasks[first : first + together] for part in task):
                try:
                    made, error = work(parts[number]), None
                except Exception as raised:
                    made, error = None, raised
                send(pickle.dumps((number, made, error), pickle.HIGHEST_PROTOCOL))
                if error is not None:
                    return

    together = -(-len(tasks) // _MOST_TURNS)
    # Who reads a turn has it: there is no lock that a process which is killed would hold.
    with suppress(OSError):  # no pipe is to be had
        turns, sink = os.pipe()
        with os.fdopen(turns, "rb", buffering=0):
            with os.fdopen(sink, "wb", buffering=0) as queue:
                queue.write(b"".join(at.to_bytes(_TURN_BYTES, "little") for at in range(0, len(tasks), together)))
            with signals_held(multiprocessing=False):
                for _ in range(jobs):
                    if (process := forked(serve, processes.values())) is None:
                        break  # those that are there do all tasks
                    processes[process.pipe] = process


def _received(processes: dict[int, ForkedProcess]) -> dict[int, Made]:
    """What processes have made by now, at least one part or an end; processes that ended are taken out."""
    made: dict[int, Made] = {}
    waiting = select.poll()
    for pipe in processes:
        waiting.register(pipe, select.POLLIN)
    while not (ready := waiting.poll(LOOK_S * 1000)):
        pass
    for pipe, _ in ready:
        message = processes[pipe].received()
        if message is None:
            if exit_code := processes.pop(pipe).end():
                raise PepscopeError(_ended(exit_code))
            continue
        number, part, error = pickle.loads(message)
        if error is not None:
            raise error
        made[number] = part
    return made


def _ended(exit_code: int) -> str:
    how = f"signal {-exit_code}" if exit_code < 0 else f"exit status {exit_code}"
    return f"a process that shares the work ended with {how}: give it more memory, or use one job"
