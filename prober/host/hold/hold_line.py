"""Things that wait their time in a line: each leaves T after it came, never earlier, in the order of coming."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")

#: Nothing came for so long: the exchanges that end connections are over, if their round trips are shorter.
LEAST_QUIET_S = 0.3
#: A drain waits until no segments are held, with a limit: closing takes at most a FIN and an ACK, each held for T.
_DRAIN_DELAYS = 4.0
_DRAIN_BASE_S = 2.0


@dataclass(frozen=True, slots=True)
class HoldReport:
    """What a hold did."""

    #: "nfqueue" or "tun".
    means: str
    delay_s: float
    held: int
    released: int
    #: By how much the latest of all left after its time; none leaves before.
    largest_error_s: float
    #: Segments lost on the way through the hold, as TCP takes any loss.
    dropped: int


class Holding(Protocol[Item]):
    """Takes segments from the kernel and releases them."""

    def fileno(self) -> int:
        """Readable when segments came."""

    def receive(self) -> list[Item]:
        """Segments to be held that came since, in order; those that are none of ours have gone on already."""

    def release(self, items: list[Item]) -> int:
        """Let these, the first in line, go; how many could not. Raises nothing."""

    def dropped_packets(self) -> int:
        """Segments lost before they were received."""


class HoldLine(Generic[Item]):
    """A thread that holds what comes from a `Holding`; made and used by one other thread."""

    def __init__(self, holding: Holding[Item], delay_s: float, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._holding = holding
        self._delay_ns = round(delay_s * 1e9)
        self._clock_ns = clock_ns
        self._waiting: deque[tuple[int, Item]] = deque()
        self._held = self._released = self._lost = 0
        self._largest_error_ns = 0
        self._last_event_ns = clock_ns()
        #: Why it ended by itself, one sentence; empty while it did not.
        self.failure = ""
        self._ending = threading.Event()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="pepscope-hold", daemon=True)

    def start(self) -> None:
        """Begin to hold."""
        self._thread.start()

    def drain(self) -> None:
        """Return when all that came has left after its time and nothing more comes, at the latest after some T."""
        quiet_ns = max(self._delay_ns, round(LEAST_QUIET_S * 1e9))
        latest_ns = self._clock_ns() + round(_DRAIN_DELAYS * self._delay_ns + _DRAIN_BASE_S * 1e9)
        while self._thread.is_alive() and (now_ns := self._clock_ns()) < latest_ns:
            left_ns = self._last_event_ns + quiet_ns - now_ns
            if not self._waiting and left_ns <= 0:
                return
            time.sleep(max(0.005, min(left_ns / 1e9, 0.05)))

    def stop(self) -> None:
        """End the thread; what still waits is not let go."""
        self._ending.set()
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"\0")
        if self._thread.ident is not None:
            self._thread.join()
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)

    def report(self, means: str) -> HoldReport:
        """What was held so far."""
        return HoldReport(
            means=means,
            delay_s=self._delay_ns / 1e9,
            held=self._held,
            released=self._released,
            largest_error_s=self._largest_error_ns / 1e9,
            dropped=self._lost + self._holding.dropped_packets(),
        )

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._holding.fileno(), select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        try:
            while not self._ending.is_set():
                poller.poll(self._timeout_ms())
                self.take()
                self.let_go()
        except OSError as error:
            self.failure = f"the hold on ACKs broke off: {error.strerror or error}"

    def take(self) -> None:
        """Put into the line what came."""
        came = self._holding.receive()
        if came:
            # Read after they came: what is late in being taken leaves later, never earlier.
            now_ns = self._clock_ns()
            self._waiting.extend((now_ns + self._delay_ns, item) for item in came)
            self._held += len(came)
            self._last_event_ns = now_ns

    def let_go(self) -> None:
        """Let those go whose time has come."""
        now_ns = self._clock_ns()
        due: list[Item] = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            due_ns, item = self._waiting.popleft()
            self._largest_error_ns = max(self._largest_error_ns, now_ns - due_ns)
            due.append(item)
        if due:
            failed = self._holding.release(due)
            self._lost += failed
            self._released += len(due) - failed
            self._last_event_ns = now_ns

    def _timeout_ms(self) -> int | None:
        if not self._waiting:
            return None
        # Rounded up: a poll that ends before the time is one for nothing.
        return max(0, -((self._clock_ns() - self._waiting[0][0]) // 1_000_000))
