"""What was served, as the server saw it: one entry a request or transfer, numbered in the order of their beginning."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Mapping

from prober.protocol.application import Application
from prober.protocol.control_messages import MOST_HEAD_BYTES, MOST_SERVED_ENTRIES, UNDER_WAY, Served, ServedPage

#: What a page of entries may take of one control message, with room to spare for its other fields.
_PAGE_BYTES = 400_000


class Entry:
    """One request or transfer from its beginning on; `end` completes the entry, once."""

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
        accepted_s: float = 0.0,
        requests_before: int = 0,
    ) -> None:
        """Begin now, on a connection that was accepted at `accepted_s` (monotonic) and carried so many requests."""
        self.sent_bytes = self.received_bytes = 0
        self.digest = hashlib.sha256()
        self._what = (application, peer, local_port, verb, name, size_bytes)
        self.request_head, self._syn = request_head[:MOST_HEAD_BYTES], syn
        self._connection = (int(accepted_s * 1e9), requests_before)
        self._started_unix_ns = time.time_ns()
        self._ending, self._ended_unix_ns = UNDER_WAY, 0
        self._tcp_info: Mapping[str, int] = {}
        self.number = log.add(self)

    def sent(self, piece: bytes) -> None:
        """Count what was handed to TCP."""
        self.sent_bytes += len(piece)
        self.digest.update(piece)

    def received(self, piece: bytes) -> None:
        """Count what TCP handed over."""
        self.received_bytes += len(piece)
        self.digest.update(piece)

    def end(self, ending: str, tcp_info: Mapping[str, int]) -> None:
        """Write down how it ended."""
        if self._ending == UNDER_WAY:
            self._ended_unix_ns, self._tcp_info = time.time_ns(), dict(tcp_info)
            self._ending = ending

    def served(self) -> Served:
        """As it is sent to the mobile."""
        # The ending is looked at first: what it comes with was written before it.
        ending = self._ending
        return Served(
            self.number,
            *self._what,
            self.sent_bytes,
            self.received_bytes,
            self.digest.hexdigest(),
            self.request_head,
            self._started_unix_ns,
            self._ended_unix_ns,
            ending,
            dict(self._tcp_info),
            self._syn,
            *self._connection,
        )


class ServedLog:
    """The entries of one session; the oldest make room where there are too many."""

    def __init__(self, most: int) -> None:
        self._entries: deque[Entry] = deque(maxlen=most)
        self._last = 0
        self._lock = threading.Lock()

    def add(self, entry: Entry) -> int:
        """Append an entry; its number."""
        with self._lock:
            self._last += 1
            entry.number = self._last
            self._entries.append(entry)
            return self._last

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
            chosen.append(entry.served())
        return ServedPage(last, tuple(chosen))
