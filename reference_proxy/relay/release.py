"""Release policies: when bytes that a relay holds may leave it, all in which the kinds of proxy differ on raw TCP.

`ReleaseAtOnce` makes a Split-TCP relay, `StoreAndForward` a TCP proxy; `window_adaptation` adds `GatedRelease`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket

    from reference_proxy.limits import Budget
    from reference_proxy.relay.buffers import Buffer


class ReleasePolicy(Protocol):
    """Rules of one direction; `now` is the event loop's time in seconds."""

    #: Nothing is ever held back: the relay need not ask.
    passes_all: bool

    def room(self, buffer: Buffer) -> int:
        """Bytes that may be taken from the sender now."""

    def came(self, buffer: Buffer, count: int, now: float) -> None:
        """The buffer got `count` bytes more, or its end (0)."""

    def releasable(self, buffer: Buffer, target: socket.socket, now: float) -> int:
        """Bytes that may be given to the receiver now."""

    def gone(self, count: int) -> None:
        """So many were."""

    def next_release(self, now: float) -> float | None:
        """When to ask again if nothing else happens; None for never."""

    def close(self) -> None:
        """The connection is over."""


class ReleaseAtOnce:
    """Split-TCP: what came may leave."""

    passes_all = True

    def room(self, buffer: Buffer) -> int:
        """What fits."""
        return buffer.room

    def came(self, buffer: Buffer, count: int, now: float) -> None:
        """Nothing to note."""

    def releasable(self, buffer: Buffer, target: socket.socket, now: float) -> int:  # noqa: ARG002
        """All."""
        return buffer.held

    def gone(self, count: int) -> None:
        """Nothing to note."""

    def next_release(self, now: float) -> float | None:  # noqa: ARG002
        """Never: only what comes changes anything."""
        return None

    def close(self) -> None:
        """Nothing to give back."""


class StoreAndForward:
    """TCP proxy on raw TCP: an object is what came until its sender paused or finished, and leaves when it is whole.

    An object that outgrows its limit, or the memory of all objects, passes on from there as in Split-TCP.
    """

    passes_all = False

    def __init__(self, pause_s: float, object_bytes: int, relay_bytes: int, budget: Budget) -> None:
        self._pause_s = pause_s
        self._object_bytes = object_bytes
        self._relay_bytes = relay_bytes
        self._budget = budget
        self._budgeted = 0
        self._came_at: float | None = None
        self._whole_bytes = 0
        self._outgrown = False

    def room(self, buffer: Buffer) -> int:
        """Up to the limit of an object; once that is outgrown, what Split-TCP would hold."""
        return max(0, (self._relay_bytes if self._outgrown else self._object_bytes) - buffer.held)

    def came(self, buffer: Buffer, count: int, now: float) -> None:
        """Start the wait for the sender's pause again."""
        if count and not self._outgrown:
            if self._budget.take(count):
                self._budgeted += count
            else:
                self._outgrown = True
        self._outgrown = self._outgrown or buffer.held >= self._object_bytes
        self._came_at = now
        if buffer.ended or self._outgrown:
            self._whole_bytes = buffer.held

    def releasable(self, buffer: Buffer, target: socket.socket, now: float) -> int:  # noqa: ARG002
        """What is whole."""
        if self._came_at is not None and now >= self._came_at + self._pause_s:
            self._whole_bytes = buffer.held
            self._came_at = None
        return self._whole_bytes

    def gone(self, count: int) -> None:
        """Give their memory back; with the last byte the next object may be whole again."""
        self._whole_bytes -= count
        returned = min(count, self._budgeted)
        self._budget.give_back(returned)
        self._budgeted -= returned
        if self._outgrown and self._whole_bytes == 0:
            self._outgrown = False

    def next_release(self, now: float) -> float | None:  # noqa: ARG002
        """When the sender will have paused."""
        return None if self._came_at is None else self._came_at + self._pause_s

    def close(self) -> None:
        """Give all memory back."""
        self._budget.give_back(self._budgeted)
        self._budgeted = 0
