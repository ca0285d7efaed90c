"""Texts that several processes make, forked so that they share this one's memory, and that are written in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator

from pepscope.processes.forked import ForkedProcess, end_all, forked
from pepscope.processes.signals import signals_held
from pepscope.results.encoding.templates import Octets


def made_in_order(make: Callable[[int], Octets], count: int, jobs: int) -> Generator[Octets, None, None]:
    """What `make` makes of each number below `count`, in order, by one piece or several.

    Of so many `jobs` this process is one. It makes the last of each few texts while the others make those before it. It
    also makes what another one does not deliver, so that an error of `make` is raised here, as with one job.
    """
    makers = max(1, min(jobs, count)) if hasattr(os, "fork") else 1
    others: list[ForkedProcess | None] = []
    try:
        with signals_held(multiprocessing=False):
            for place in range(makers - 1):
                others.append(_maker(make, range(place, count - 1, makers), others))
        for first in range(0, count, makers):
            *theirs, own = range(first, min(first + makers, count))
            last = make(own)
            for other, number in zip(others, theirs, strict=False):
                yield from _delivered(other, make, number)
            yield last
            del last  # its memory serves for the next one
    finally:
        end_all(other for other in others if other is not None)


def _delivered(other: ForkedProcess | None, make: Callable[[int], Octets], number: int) -> Iterator[Octets]:
    """The text of a number, of which this process makes what the other one does not deliver."""
    length = None if other is None else other.announced()
    delivered = 0
    if other is not None and length is not None:
        for piece in other.pieces(length):
            delivered += len(piece)
            yield piece
    if delivered != length:
        yield memoryview(make(number))[delivered:]


def _maker(
    make: Callable[[int], Octets], numbers: Iterable[int], others: Iterable[ForkedProcess | None]
) -> ForkedProcess | None:
    """A process that makes the texts of these numbers."""

    def work(send: Callable[[Octets], None]) -> None:
        for number in numbers:
            send(make(number))

    return forked(work, filter(None, others))
