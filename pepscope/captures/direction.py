"""The two flows of a connection."""

from __future__ import annotations

from enum import IntEnum


class Direction(IntEnum):
    """Data flow of a connection: `UP` is client to server, `DOWN` server to client."""

    UP = 0
    DOWN = 1

    @property
    def reverse(self) -> Direction:
        """The opposite flow."""
        return Direction.DOWN if self is Direction.UP else Direction.UP


#: Both flows, for loops: a tuple is walked without the calls that an enum's iterator makes.
DIRECTIONS = (Direction.UP, Direction.DOWN)
