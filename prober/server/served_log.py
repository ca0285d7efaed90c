"""What was served, as the server saw it: one entry a request or transfer, numbered in the order in which they ended."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from prober.experiment import Application
from prober.protocol import MOST_HEAD_BYTES, MOST_SERVED_ENTRIES, Served, ServedPage

#: What a page of entries may take of one control message, with room to spare for its other fields.
_PAGE_BYTES = 400_000


class Entry:
    """An entry in the making; `end` writes it down, once."""

    def __init__(
        self,
        log: ServedLog,
        application: Application,
        peer: str,
        local_port: int,
        verb: str,
        name: str,
        *,
        size_bytes: int = -1,
        request_head: bytes = b"",
        syn: bytes = b"",
    ) -> None:
        """Begin now."""
        self.sent_bytes = self.received_bytes = 0
        self.digest = hashlib.sha256()
        self._log = log
        self._what = (application, peer, local_port, verb, name, size_bytes, request_head[:MOST_HEAD_BYTES], syn)
        self._started_unix_ns = time.time_ns()
        self._has_ended = False

    def sent(self, piece: bytes) -> None:
        """Count what was handed to TCP."""
        self.sent_bytes += len(piece)
        self.digest.update(piece)

    def received(self, piece: bytes) -> None:
        """Count what TCP handed over."""
        self.received_bytes += len(piece)
        self.digest.update(piece)

    def end(self, ending: str, tcp_info: Mapping[str, int]) -> None:
        """Write it down."""
        if self._has_ended:
            return
        self._has_ended = True
        application, peer, local_port, verb, name, size_bytes, request_head, syn = self._what
        self._log.add(
            lambda number: Served(
                number,
                application,
                peer,
                local_port,
                verb,
                name,
                size_bytes,
                self.sent_bytes,
                self.received_bytes,
                self.digest.hexdigest(),
                request_head,
                self._started_unix_ns,
                time.time_ns(),
                ending,
                dict(tcp_info),
                syn,
            )
        )


class ServedLog:
    """The entries of one session; the oldest make room where there are too many."""

    def __init__(self, most: int) -> None:
        self._entries: deque[Served] = deque(maxlen=most)
        self._last = 0
        self._lock = threading.Lock()

    def add(self, make: Callable[[int], Served]) -> None:
        """Append what `make` makes of its number."""
        with self._lock:
            self._last += 1
            self._entries.append(make(self._last))

    def page(self, after: int) -> ServedPage:
        """Entries with higher numbers, as many as fit one message."""
        with self._lock:
            last, newer = self._last, [entry for entry in self._entries if entry.number > after]
        chosen: list[Served] = []
        room = _PAGE_BYTES
        for entry in newer[:MOST_SERVED_ENTRIES]:
            room -= 3000 + 2 * len(entry.request_head)
            if chosen and room < 0:
                break
            chosen.append(entry)
        return ServedPage(last, tuple(chosen))
