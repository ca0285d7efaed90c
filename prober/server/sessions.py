"""Sessions: short-lived names that the plain protocols carry, with what each may move and what it was served."""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections.abc import Callable

from prober.server.refusal import RefusedError
from prober.server.served_log import ServedLog
from prober.server.settings import LimitsTable

DAY_S = 86_400.0


class DayBudget:
    """What all sessions may move in a day, counted from the first byte of it."""

    def __init__(self, limit_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_bytes, self._clock = limit_bytes, clock
        self._began, self._taken_bytes = clock(), 0
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        """Take so many bytes, or none."""
        with self._lock:
            if self._clock() - self._began >= DAY_S:
                self._began, self._taken_bytes = self._clock(), 0
            if self._taken_bytes + count > self._limit_bytes:
                return False
            self._taken_bytes += count
            return True


class Session:
    """One session; used by many threads."""

    def __init__(self, name: str, limits: LimitsTable, day: DayBudget, now: float) -> None:
        self.name = name
        self.log = ServedLog(limits.served_entries)
        self.deadline = now + limits.session_s
        self._left_bytes = limits.session_bytes
        self._day = day
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Account for payload that is about to move. Raises RefusedError."""
        with self._lock:
            if count > self._left_bytes:
                raise RefusedError(507, "the session has reached its limit of bytes; begin a new one")
            if not self._day.take(count):
                raise RefusedError(507, "the server has reached its limit of bytes for this day")
            self._left_bytes -= count


class Sessions:
    """All sessions that live."""

    def __init__(self, limits: LimitsTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._day = DayBudget(limits.day_bytes, clock)
        self._living: dict[str, Session] = {}
        self._lock = threading.Lock()

    def open(self) -> Session:
        """A new session. Raises RefusedError where there are as many as allowed."""
        name = base64.b32encode(secrets.token_bytes(17)).decode("ascii")[:26].lower()
        with self._lock:
            if len(self._living) >= self._limits.sessions:
                raise RefusedError(503, f"the server has {len(self._living)} sessions, the maximum; try again later")
            session = self._living[name] = Session(name, self._limits, self._day, self._clock())
        return session

    def find(self, name: str) -> Session | None:
        """The session of that name, if it lives."""
        session = self._living.get(name)
        return session if session is not None and session.deadline > self._clock() else None

    def renew(self, session: Session) -> None:
        """Count its time from now."""
        session.deadline = self._clock() + self._limits.session_s

    def end(self, session: Session) -> None:
        """Remove a session."""
        with self._lock:
            self._living.pop(session.name, None)

    def expired(self) -> list[Session]:
        """Take those out whose time is over."""
        now = self._clock()
        with self._lock:
            over = [session for session in self._living.values() if session.deadline <= now]
            for session in over:
                del self._living[session.name]
        return over

    @property
    def living(self) -> list[Session]:
        """All of them."""
        with self._lock:
            return list(self._living.values())
