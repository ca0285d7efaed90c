"""What a relay holds of one direction: bytes in order, never more than its capacity."""

from __future__ import annotations

from collections import deque


class Buffer:
    """A bounded queue of bytes; pieces are stored as they arrived, so that no byte is copied twice."""

    __slots__ = ("_first_gone", "_pieces", "capacity", "ended", "held", "most_held")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held = 0
        self.most_held = 0
        #: The sender has finished: what is held is the last.
        self.ended = False
        self._pieces: deque[bytes] = deque()
        self._first_gone = 0

    @property
    def room(self) -> int:
        """Bytes that may still be put."""
        return max(0, self.capacity - self.held)

    def put(self, piece: bytes) -> None:
        """Append."""
        if piece:
            self._pieces.append(piece)
            self.held += len(piece)
            self.most_held = max(self.most_held, self.held)

    def head(self, limit: int, *, joined: bool = False) -> memoryview:
        """The first contiguous bytes, at most `limit` of them; with `joined`, exactly `limit` if there are as many."""
        if joined and len(self._pieces[0]) - self._first_gone < min(limit, self.held):
            self._join(limit)
        return memoryview(self._pieces[0])[self._first_gone : self._first_gone + limit]

    def _join(self, count: int) -> None:
        pieces = [self._pieces.popleft()[self._first_gone :]]
        self._first_gone = 0
        length = len(pieces[0])
        while self._pieces and length < count:
            pieces.append(self._pieces.popleft())
            length += len(pieces[-1])
        self._pieces.appendleft(b"".join(pieces))

    def drop(self, count: int) -> None:
        """Drop `count` bytes of the head."""
        self.held -= count
        self._first_gone += count
        if self._pieces and self._first_gone == len(self._pieces[0]):
            self._pieces.popleft()
            self._first_gone = 0

    def clear(self) -> None:
        """Drop all bytes."""
        self._pieces.clear()
        self.held = self._first_gone = 0
