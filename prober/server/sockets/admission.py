"""Rate limits of the server: how many connections it admits, in all, of one network and key, and new ones a second."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError
from prober.server.sockets.networks import networks_of

logger = logging.getLogger("prober")

COMPLAINT_INTERVAL_S = 1.0

#: Addresses whose rates are stored; with more, the one without connections for the longest time is removed.
_REMEMBERED = 10_000

#: What a stranger has for its request before another one of its own network takes its place.
_TIME_FOR_A_HEAD_S = 1.0

Name = TypeVar("Name")


class Rate:
    """A token bucket for each name: so many a second in the long run, and so many at once."""

    def __init__(self, per_s: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._at_once, self._clock = per_s, at_once, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def times(self, factor: float) -> Rate:
        """Another one, so many times as fast, for other names."""
        return Rate(self._per_s * factor, self._at_once * factor, self._clock)

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


@dataclass(slots=True, eq=False)
class Admitted:
    """A connection that was let in. Until it names a session or shows a key it is a stranger's."""

    client: str
    site: str
    #: Ends it, from whichever thread; at most once.
    displace: Callable[[], object]
    since_s: float
    key: ClientKey | None = None


class Admission:
    """Counts connections: all, those of each client's network and of each site, and those of each key.

    Where there are as many as allowed, a new connection takes the place of a stranger's, the oldest of those that the
    limit is about. So whoever sends a request at once is served, however many there are that do not. Where it is its
    own network that has as many as allowed, those have some time first: each new thread costs more than a refusal.
    """

    def __init__(
        self,
        connections: int,
        per_client: int,
        rate: Rate,
        per_site: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._most, self._most_per_client, self._rate = connections, per_client, rate
        self._most_per_site = connections if per_site is None else per_site
        # A site may have as many new ones a second, in proportion.
        self._site_rate = rate.times(max(1.0, self._most_per_site / per_client))
        self._of: Counter[str] = Counter()
        self._of_key: Counter[ClientKey] = Counter()
        self._strangers: dict[str, dict[str, dict[Admitted, None]]] = {}
        self._lock = threading.Lock()
        self._admitted = self._displaced = 0

    def admit(self, address: str, displace: Callable[[], object]) -> Admitted:
        """Take a connection in. Raises RefusedError; `displace` is called if another is to take its place."""
        client, site = networks_of(address)
        with self._lock:
            victim = self._room_for(client, site)
            if victim is not None:
                self._displaced += 1
                self._take_out(victim)
            admitted = Admitted(client, site, displace, self._clock())
            self._strangers.setdefault(site, {}).setdefault(client, {})[admitted] = None
            self._of[client] += 1
            self._of[site] += 1
            self._admitted += 1
        if victim is not None:
            victim.displace()
        return admitted

    def know(self, admitted: Admitted, key: ClientKey) -> None:
        """It is no stranger's any more. Raises RefusedError where the key has as many as its quota allows."""
        with self._lock:
            if admitted.key is not None or not self._is_stranger(admitted):
                return
            most = key.quotas.connections
            if most is not None and self._of_key[key] >= most:
                raise RefusedError(429, f"the key {key.name} must have at most {most} connections")
            self._forget_stranger(admitted)
            admitted.key = key
            self._of_key[key] += 1

    def release(self, admitted: Admitted) -> None:
        """Remove an admitted connection; one that was displaced is gone already."""
        with self._lock:
            if admitted.key is not None or self._is_stranger(admitted):
                self._take_out(admitted)

    def _room_for(self, client: str, site: str) -> Admitted | None:
        """Whose place a new connection takes; `None` where there is room. Raises RefusedError."""
        if not (self._rate.take(client) and self._site_rate.take(site)):
            raise RefusedError(429, "more new connections of one network a second than allowed")
        if self._of[client] >= self._most_per_client:
            return self._oldest(
                {client: self._strangers.get(site, {}).get(client, {})}, "of one address ", _TIME_FOR_A_HEAD_S
            )
        if self._of[site] >= self._most_per_site:
            return self._oldest(self._strangers.get(site, {}), "of one network ", _TIME_FOR_A_HEAD_S)
        if self._admitted >= self._most:
            crowded = max(self._strangers.values(), key=lambda site: sum(map(len, site.values())), default={})
            return self._oldest(crowded, "", 0.0)
        return None

    def _oldest(self, strangers: dict[str, dict[Admitted, None]], which: str, least_age_s: float) -> Admitted:
        """The oldest stranger of the client that has most of them. Raises RefusedError where it is not old enough."""
        crowded = max(strangers.values(), key=len, default={})
        oldest = next(iter(crowded), None)
        if oldest is None or self._clock() - oldest.since_s < least_age_s:
            raise RefusedError(503, f"as many connections {which}as allowed")
        return oldest

    def _take_out(self, admitted: Admitted) -> None:
        self._forget_stranger(admitted)
        if admitted.key is not None:
            self._decrease(self._of_key, admitted.key)
            admitted.key = None
        self._decrease(self._of, admitted.client)
        self._decrease(self._of, admitted.site)
        self._admitted -= 1

    def _is_stranger(self, admitted: Admitted) -> bool:
        return admitted in self._strangers.get(admitted.site, {}).get(admitted.client, {})

    def _forget_stranger(self, admitted: Admitted) -> None:
        site = self._strangers.get(admitted.site, {})
        site.get(admitted.client, {}).pop(admitted, None)
        if not site.get(admitted.client, True):
            del site[admitted.client]
        if not self._strangers.get(admitted.site, True):
            del self._strangers[admitted.site]

    @staticmethod
    def _decrease(counts: Counter[Name], name: Name) -> None:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]

    @property
    def admitted(self) -> int:
        """How many there are."""
        with self._lock:
            return self._admitted

    @property
    def displaced(self) -> int:
        """How many made room for others, so far."""
        with self._lock:
            return self._displaced


class Complaints:
    """Logs one warning of each kind a second, with the number of suppressed ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[str, float] = {}
        self._untold: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def complain(self, kind: str, message: str, **fields: object) -> None:
        """Say that something was refused or went wrong."""
        now = self._clock()
        with self._lock:
            self._counts[kind] += 1
            if now - self._told.get(kind, -COMPLAINT_INTERVAL_S) < COMPLAINT_INTERVAL_S:
                self._untold[kind] += 1
                return
            self._told[kind] = now
            others = self._untold.pop(kind, 0)
        extra = {"event": kind, **fields, **({"others_since": others} if others else {})}
        logger.warning(message, extra={"fields": extra})

    def counts(self) -> dict[str, int]:
        """How many there were of each kind, logged or not."""
        with self._lock:
            return dict(self._counts)
