"""How much a proxy takes upon itself: connections, of one client too, and warnings that do not flood the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger("reference_proxy")

WARNING_INTERVAL_S = 1.0


class Admission:
    """Counts the connections that are served."""

    def __init__(self, connections: int, connections_per_client: int) -> None:
        self._limit = connections
        self._limit_per_client = connections_per_client
        self._of_client: Counter[str] = Counter()
        self.admitted = 0

    @property
    def is_full(self) -> bool:
        """Whether no further connection is accepted."""
        return self.admitted >= self._limit

    def admit(self, client: str) -> bool:
        """Take a connection from this address in, if there is room for it."""
        if self.is_full or self._of_client[client] >= self._limit_per_client:
            return False
        self.admitted += 1
        self._of_client[client] += 1
        return True

    def release(self, client: str) -> None:
        """Remove an admitted connection."""
        self.admitted -= 1
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]


class Asking:
    """Connections whose clients have not completed a request: where the proxy is full, they make room for others."""

    def __init__(self) -> None:
        self._of_client: dict[str, dict[asyncio.Task[None], Callable[[], None]]] = {}

    @contextlib.contextmanager
    def tracked(self, client: str, displaced: Callable[[], None]) -> Iterator[None]:
        """The task that runs this asks for a client; `displaced` is called before it is cancelled."""
        task = asyncio.current_task()
        assert task is not None
        tasks = self._of_client.setdefault(client, {})
        tasks[task] = displaced
        try:
            yield
        finally:
            tasks.pop(task, None)
            if not tasks and self._of_client.get(client) is tasks:
                del self._of_client[client]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self._of_client.values())

    def displace(self) -> asyncio.Task[None] | None:
        """Cancel the oldest of the client that has most of them, if there is any."""
        tasks = max(self._of_client.values(), key=len, default={})
        task = next(iter(tasks), None)
        if task is not None:
            tasks.pop(task)()
            task.cancel()
        return task


class Budget:
    """Bytes that several may take, up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0

    def take(self, count: int) -> bool:
        """Take so many bytes, or none."""
        if self.taken_bytes + count > self.limit_bytes:
            return False
        self.taken_bytes += count
        return True

    def give_back(self, count: int) -> None:
        """Return what was taken."""
        self.taken_bytes -= count


class LimitedWarnings:
    """Logs the first warning of each kind, then how many there were, at most one line a kind and second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._warned_at: dict[str, float] = {}
        self._suppressed: Counter[str] = Counter()

    def warn(self, kind: str, message: str, **fields: object) -> None:
        """Log that something was refused or went wrong."""
        now = self._clock()
        if now - self._warned_at.get(kind, -WARNING_INTERVAL_S) < WARNING_INTERVAL_S:
            self._suppressed[kind] += 1
            return
        self._warned_at[kind] = now
        others = self._suppressed.pop(kind, 0)
        extra = {"event": kind, **fields, **({"others_since": others} if others else {})}
        logger.warning(message, extra={"fields": extra})

    def flush(self) -> None:
        """Log how many warnings were suppressed, once their second is over."""
        now = self._clock()
        for kind in [kind for kind in self._suppressed if now - self._warned_at[kind] >= WARNING_INTERVAL_S]:
            others = self._suppressed.pop(kind)
            self._warned_at[kind] = now
            logger.warning("%d more of %s", others, kind, extra={"fields": {"event": kind, "others_since": others}})
