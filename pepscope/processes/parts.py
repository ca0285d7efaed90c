"""Work on many places of a sequence by parts: in this process, or in several that share its memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Made = TypeVar("Made")

#: Places in a part, at most: what a part costs beside the work is shared by so many. Fewer where several processes wait
#: for the last part, or where memory is short.
_MOST_PLACES = 2048
_MOST_SHARED_PLACES = 1024
#: Parts for each process, where there are enough places: a process that finishes early takes another part. And where
#: parts would be too small to be worth what each takes.
_PARTS_EACH = 8
_FEWEST_PARTS_EACH = 2


def by_parts(
    work: Callable[[Sequence[int]], Made],
    places: Sequence[int],
    jobs: int,
    stretches: Sequence[int] | None = None,
    fewest_places: int = 1,
) -> Iterator[tuple[Sequence[int], Made]]:
    """Parts of `places` in their order, each with what `work` makes of it.

    With more than one of `jobs`, processes are forked where the system can do so; what `work` makes must be picklable
    then. Each of `stretches`, so many places, is then the work of one process, part after part; without them any
    process takes any part. A part has at least `fewest_places` where each process has two parts all the same. Raises
    what `work` raises, and PepscopeError where a process ends without a result.
    """
    most_places = _MOST_PLACES if jobs < 2 and stretches is None else _MOST_SHARED_PLACES
    enough = min(fewest_places, -(-len(places) // (_FEWEST_PARTS_EACH * jobs)))
    size = max(1, min(most_places, max(enough, len(places) // (_PARTS_EACH * jobs))))
    if stretches is None and places:
        # Even parts: a last one of few places would take as long as one that is worth it.
        count = max(len(places) // size, -(-len(places) // most_places))
        size = -(-len(places) // count)
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
    if jobs < 2 or not hasattr(os, "fork"):
        return ((part, work(part)) for part in parts)
    from pepscope.processes.forked_parts import from_processes

    return zip(parts, from_processes(work, parts, tasks, jobs), strict=True)
