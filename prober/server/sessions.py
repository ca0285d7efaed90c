"""Sessions: short-lived names that the plain protocols carry, with what each may move and what it was served.

A session belongs to the key and the address that opened it on the control channel. The plain protocols may carry its
name from any other address: a proxy, whose address is its own, is what a measurement looks for.
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from prober.server.keys.client_key import DEFAULT_NAME, ClientKey
from prober.server.refusal import RefusedError
from prober.server.served_log import ServedLog
from prober.server.settings import LimitsTable

DAY_S = 86_400.0

_NOBODYS = ClientKey(DEFAULT_NAME)


class DayBudget:
    """What all sessions, or those of one key, may move in a day, counted from the first byte of it."""

    def __init__(self, limit_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_bytes, self._clock = limit_bytes, clock
        self._began, self._taken_bytes = clock(), 0
        #: In all days.
        self.total_bytes = 0
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        """Take so many bytes, or none."""
        with self._lock:
            if self._clock() - self._began >= DAY_S:
                self._began, self._taken_bytes = self._clock(), 0
            if self._taken_bytes + count > self._limit_bytes:
                return False
            self._taken_bytes += count
            self.total_bytes += count
            return True


class Session:
    """One session; used by many threads."""

    def __init__(
        self,
        name: str,
        limits: LimitsTable,
        day: DayBudget,
        now: float,
        key: ClientKey,
        address: str = "",
        day_of_key: DayBudget | None = None,
    ) -> None:
        self.name = name
        self.key, self.address = key, address
        self.log = ServedLog(limits.served_entries)
        self.deadline = now + limits.session_s
        self._left_bytes = limits.session_bytes
        self._day, self._day_of_key = day, day_of_key
        self._lock = threading.Lock()
        self._ended = ""

    def take(self, count: int) -> None:
        """Account for payload that is about to move. Raises RefusedError."""
        with self._lock:
            if self._ended:
                raise RefusedError(403, self._ended)
            if count > self._left_bytes:
                raise RefusedError(507, "the session has reached its limit of bytes; begin a new one")
            if self._day_of_key is not None and not self._day_of_key.take(count):
                raise RefusedError(507, f"the key {self.key.name} has reached its limit of bytes for this day")
            if not self._day.take(count):
                raise RefusedError(507, "the server has reached its limit of bytes for this day")
            self._left_bytes -= count

    def end(self, sentence: str) -> None:
        """Move nothing more, for this reason."""
        with self._lock:
            self._ended = sentence


class Sessions:
    """All sessions that live."""

    def __init__(self, limits: LimitsTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._day = DayBudget(limits.day_bytes, clock)
        self._days: WeakKeyDictionary[ClientKey, DayBudget] = WeakKeyDictionary()
        self._living: dict[str, Session] = {}
        self._lock = threading.Lock()

    def open(self, key: ClientKey | None = None, address: str = "") -> Session:
        """A new session. Raises RefusedError where there are as many as allowed."""
        key = key or _NOBODYS
        name = base64.b32encode(secrets.token_bytes(17)).decode("ascii")[:26].lower()
        with self._lock:
            if len(self._living) >= self._limits.sessions:
                raise RefusedError(503, f"the server has {len(self._living)} sessions, the maximum; try again later")
            of_key = sum(session.key is key for session in self._living.values())
            if key.quotas.sessions is not None and of_key >= key.quotas.sessions:
                raise RefusedError(503, f"the key {key.name} has {of_key} sessions, its maximum; try again later")
            session = self._living[name] = Session(
                name, self._limits, self._day, self._clock(), key, address, self._day_of(key)
            )
        return session

    def _day_of(self, key: ClientKey) -> DayBudget | None:
        """The budget that all sessions of a key share, as long as the key is accepted."""
        if key.quotas.day_bytes is None:
            return None
        if key not in self._days:
            self._days[key] = DayBudget(key.quotas.day_bytes, self._clock)
        return self._days[key]

    def find(self, name: str) -> Session | None:
        """The session of that name, if it lives."""
        session = self._living.get(name)
        return session if session is not None and session.deadline > self._clock() else None

    def find_own(self, name: str, key: ClientKey, address: str) -> Session:
        """The session of that name, for the key and the address that opened it. Raises RefusedError."""
        session = self.find(name)
        if session is None:
            raise RefusedError(410, "there is no such session; it may have ended")
        if session.key is not key:
            raise RefusedError(403, "the session belongs to another key")
        if session.address != address:
            raise RefusedError(410, "the session was started from another address; begin a new one")
        return session

    def renew(self, session: Session) -> None:
        """Count its time from now."""
        session.deadline = self._clock() + self._limits.session_s

    def end(self, session: Session) -> None:
        """Remove a session."""
        with self._lock:
            self._living.pop(session.name, None)

    def end_of(self, key: ClientKey, sentence: str) -> list[Session]:
        """Remove all sessions of a key, for this reason."""
        with self._lock:
            over = [session for session in self._living.values() if session.key is key]
            for session in over:
                session.end(sentence)
                del self._living[session.name]
        return over

    def expired(self) -> list[Session]:
        """Take those out whose time is over."""
        now = self._clock()
        with self._lock:
            over = [session for session in self._living.values() if session.deadline <= now]
            for session in over:
                del self._living[session.name]
        return over

    @property
    def moved_bytes(self) -> int:
        """Payload of all sessions since the start."""
        return self._day.total_bytes

    @property
    def living(self) -> list[Session]:
        """All of them."""
        with self._lock:
            return list(self._living.values())
