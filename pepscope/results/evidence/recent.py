"""What was made of the blocks of a table that were asked for last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")

#: Connections of which what was made stays: those of two blocks of the most that are judged together.
MOST_CONNECTIONS = 2048

#: So many blocks stay however large they are: connections that were judged one by one, or apart from others, stand
#: behind those judged as columns, so that reading by place goes through two blocks at a time.
FEWEST_BLOCKS = 2


class RecentBlocks(Generic[Made]):
    """Blocks of connections that were asked for last, each with what was made of it."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[int, Made]] = {}  # with the connections of each; asked for last, last

    def of(self, block: int, connections: int, make: Callable[[int], Made]) -> Made:
        """What `make` makes of a block of so many connections, unless that is known."""
        known = self._made.pop(block, None)
        if known is None:
            held = connections + sum(count for count, _ in self._made.values())
            while len(self._made) >= FEWEST_BLOCKS and held > MOST_CONNECTIONS:
                held -= self._made.pop(next(iter(self._made)))[0]
            known = connections, make(block)
        self._made[block] = known
        return known[1]
