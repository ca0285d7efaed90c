"""Rate limits of the server: how many connections it admits, in all, of one address and new ones a second."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

logger = logging.getLogger("prober")

COMPLAINT_INTERVAL_S = 1.0

#: Addresses whose rates are stored; with more, the one without connections for the longest time is removed.
_REMEMBERED = 10_000


class Rate:
    """A token bucket for each name: so many a second in the long run, and so many at once."""

    def __init__(self, per_s: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._at_once, self._clock = per_s, at_once, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> bool:
        """Whether one more is allowed now; it counts if it is."""
        now = self._clock()
        with self._lock:
            left, then = self._buckets.pop(name, (self._at_once, now))
            left = min(self._at_once, left + (now - then) * self._per_s)
            allowed = left >= 1.0
            self._buckets[name] = (left - allowed, now)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        return allowed


class Admission:
    """Counts connections, and those of each address."""

    def __init__(self, connections: int, per_address: int, rate: Rate) -> None:
        self._most, self._most_per_address, self._rate = connections, per_address, rate
        self._of: Counter[str] = Counter()
        self._lock = threading.Lock()

    def admit(self, address: str) -> str:
        """Take a connection in: empty, or why not."""
        with self._lock:
            if self._of.total() >= self._most:
                return "as many connections as allowed"
            if self._of[address] >= self._most_per_address:
                return "as many connections of one address as allowed"
            if not self._rate.take(address):
                return "more new connections of one address a second than allowed"
            self._of[address] += 1
        return ""

    def release(self, address: str) -> None:
        """Remove an admitted connection."""
        with self._lock:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]

    @property
    def admitted(self) -> int:
        """How many there are."""
        with self._lock:
            return self._of.total()


class Complaints:
    """Logs one warning of each kind a second, with the number of suppressed ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[str, float] = {}
        self._untold: Counter[str] = Counter()
        self._lock = threading.Lock()

    def complain(self, kind: str, message: str, **fields: object) -> None:
        """Say that something was refused or went wrong."""
        now = self._clock()
        with self._lock:
            if now - self._told.get(kind, -COMPLAINT_INTERVAL_S) < COMPLAINT_INTERVAL_S:
                self._untold[kind] += 1
                return
            self._told[kind] = now
            others = self._untold.pop(kind, 0)
        extra = {"event": kind, **fields, **({"others_since": others} if others else {})}
        logger.warning(message, extra={"fields": extra})
