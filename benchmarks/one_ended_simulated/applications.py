"""Programs with turns: what each side says, after what, and how long it takes to say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.one_ended_simulated.devices import Processor
from benchmarks.one_ended_simulated.endpoints import Endpoint
from benchmarks.one_ended_simulated.events import Clock


@dataclass(slots=True)
class Gate:
    """Something that one program does when another one has come so far."""

    is_open: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)

    def open(self) -> None:
        """Let those through who wait."""
        if not self.is_open:
            self.is_open = True
            for act in self.waiting:
                act()


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing to say: once so many bytes of the peer have come and the gate is open, after a wait."""

    needs_bytes: int
    wait_s: float
    data: bytes
    gate: Gate | None = None
    opens: Gate | None = None


class Player:
    """A program that says its turns one after another, and closes after the last if it `closes`; all that it says waits
    for the `processor` of its device, if that has one which delays."""

    def __init__(
        self, clock: Clock, endpoint: Endpoint, turns: list[Turn], *, closes: bool, processor: Processor | None = None
    ) -> None:
        self.clock, self.endpoint, self.turns, self.closes = clock, endpoint, turns, closes
        self.processor = processor
        self.place = self.received_bytes = 0
        self.is_waiting = self.is_connected = False
        endpoint.application = self

    def connected(self) -> None:
        """Begin."""
        self.is_connected = True
        self._go_on()

    def received(self, data: bytes) -> None:
        """Count what the peer said."""
        self.received_bytes += len(data)
        self._go_on()

    def finished(self) -> None:
        """Finish, too."""
        self.endpoint.close()

    def _go_on(self) -> None:
        if self.is_waiting or not self.is_connected:
            return
        if self.place >= len(self.turns):
            return
        turn = self.turns[self.place]
        if self.received_bytes < turn.needs_bytes:
            return
        if turn.gate is not None and not turn.gate.is_open:
            turn.gate.waiting.append(self._go_on)
            return
        self.is_waiting = True
        wait_s = turn.wait_s
        if self.processor is not None:
            wait_s = self.processor.done_s(self.clock.now_s, wait_s) - self.clock.now_s
        if wait_s > 0:
            self.clock.after(wait_s, self._say)
        else:
            self._say()

    def _say(self) -> None:
        turn = self.turns[self.place]
        if turn.data:
            self.endpoint.write(turn.data)
        self.place += 1
        self.is_waiting = False
        if turn.opens is not None:
            turn.opens.open()
        if self.place >= len(self.turns) and self.closes:
            self.endpoint.close()
        self._go_on()


class Forwarder:
    """Half of a relay: passes what one leg received to the other, which stops the peer while its queue is full."""

    def __init__(self, clock: Clock, here: Endpoint, there: Endpoint, delay_s: float, queue_bytes: int) -> None:
        self.clock, self.here, self.there, self.delay_s = clock, here, there, delay_s
        self.queue_bytes = queue_bytes
        self.on_connected: Callable[[], None] | None = None
        here.application = self
        here.backlog = lambda: max(0, there.unsent - queue_bytes)
        there.on_progress = here.reopen

    def connected(self) -> None:
        """The leg stands."""
        if self.on_connected is not None:
            self.on_connected()

    def received(self, data: bytes) -> None:
        """Pass it on."""
        self.clock.after(self.delay_s, lambda: self.there.write(data))

    def finished(self) -> None:
        """Pass it on."""
        self.clock.after(self.delay_s, self.there.close)
