"""Virtual time: what happens, in the order of its times."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Clock:
    """The events to come. Times in seconds since the simulation began; events of one time keep their order."""

    __slots__ = ("_count", "_events", "now_s")

    def __init__(self) -> None:
        self.now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def after(self, delay_s: float, act: Callable[[], object]) -> None:
        """Call `act` in `delay_s`."""
        self.at(self.now_s + delay_s, act)

    def at(self, time_s: float, act: Callable[[], object]) -> None:
        """Call `act` at `time_s`, or now if that has passed."""
        self._count += 1
        heapq.heappush(self._events, (max(time_s, self.now_s), self._count, act))

    def run(self, until_s: float) -> None:
        """Let everything happen until then."""
        events = self._events
        while events and events[0][0] <= until_s:
            self.now_s, _, act = heapq.heappop(events)
            act()
