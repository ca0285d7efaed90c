"""Leases of a session: each ends on request, when its time is over, or with the session."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from pepscope.errors import PepscopeError
from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError
from prober.server.sessions import Session

logger = logging.getLogger("prober")

Thing = TypeVar("Thing")


class Leases(Generic[Thing]):
    """Leases of one kind."""

    def __init__(
        self, what: str, most: int, end: Callable[[Thing], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`end` is called once for each thing, by whichever thread finds that it is over."""
        self._what, self._most, self._end, self._clock = what, most, end, clock
        self._held: dict[str, tuple[Session, Thing, float]] = {}
        self._lock = threading.Lock()
        self._making = 0

    def begin(self, session: Session, lease_s: float, make: Callable[[], Thing]) -> str:
        """Make a thing and lease it; its name. Raises RefusedError where there are too many, and what `make` raises."""
        with self._lock:
            if len(self._held) + self._making >= self._most:
                raise RefusedError(409, f"the server has the maximum number of {self._what}s")
            self._making += 1
        try:
            thing = make()
            name = secrets.token_hex(8)
            with self._lock:
                self._held[name] = (session, thing, self._clock() + lease_s)
        finally:
            with self._lock:
                self._making -= 1
        return name

    def find(self, session: Session, name: str) -> Thing:
        """A thing of this session. Raises RefusedError."""
        held = self._held.get(name)
        if held is None or held[0] is not session:
            raise RefusedError(404, f"the session has no {self._what} of this name; it may have ended")
        return held[1]

    def end(self, session: Session, name: str) -> Thing:
        """Take a thing of this session away without ending it. Raises RefusedError."""
        with self._lock:
            held = self._held.get(name)
            if held is None or held[0] is not session:
                raise RefusedError(404, f"the session has no {self._what} of this name; it may have ended")
            del self._held[name]
        return held[1]

    def count(self, session: Session) -> int:
        """How many this session has."""
        with self._lock:
            return sum(held[0] is session for held in self._held.values())

    def things(self, is_meant: Callable[[Session], bool] = lambda _: True) -> list[Thing]:
        """All of them, or those of the sessions that are meant."""
        with self._lock:
            return [held[1] for held in self._held.values() if is_meant(held[0])]

    def owners(self) -> set[ClientKey]:
        """Whose sessions have any."""
        with self._lock:
            return {held[0].key for held in self._held.values()}

    def end_overdue(self, is_alive: Callable[[Session], bool]) -> None:
        """End all whose time is over, and those of sessions that ended while they were made."""
        now = self._clock()
        self._end_all(lambda session, until: until <= now or not is_alive(session))

    def end_of(self, session: Session) -> None:
        """End all of a session."""
        self._end_all(lambda owner, _: owner is session)

    def close(self) -> None:
        """End all."""
        self._end_all(lambda *_: True)

    def _end_all(self, is_over: Callable[[Session, float], bool]) -> None:
        with self._lock:
            over = {name: held for name, held in self._held.items() if is_over(held[0], held[2])}
            for name in over:
                del self._held[name]
        for _, thing, _ in over.values():
            try:
                self._end(thing)
            except (PepscopeError, OSError) as error:
                logger.error("%s", error, extra={"fields": {"event": f"{self._what}-not-ended"}})
