"""Round trips of all that a connection sends, seen by the sender's own kernel: no capture, no right needed.

The kernel counts the payload that was sent first and the payload that was acknowledged (`tcpi_bytes_sent` less
`tcpi_bytes_retrans`, `tcpi_bytes_acked`). Looked at every millisecond, these give for each acknowledged byte the time
since its first copy left. Kernels before Linux 4.19 do not count what was sent: then only the first payload is timed.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from types import TracebackType

from prober.host.tcp_info import tcp_info

#: Between two looks. A time seen late by so much is all that this adds to what a capture would say.
LOOK_S = 0.001
#: For so long everything that was sent is acknowledged and nothing more is sent before a connection is let go: senders
#: of an upload pause for less, and its end must not wait for the observer.
_QUIET_S = 0.25


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """From the first copy of a byte to its acknowledgement; `acked_bytes` is how much was acknowledged by it."""

    acked_bytes: int
    seconds: float


@dataclass(slots=True)
class _Watched:
    link: socket.socket
    mobile_port: int = 0
    #: Payload sent for the first time by then, rising, and when each was seen.
    sent_bytes: list[int] = field(default_factory=list)
    sent_s: list[float] = field(default_factory=list)
    round_trips: list[RoundTrip] = field(default_factory=list)
    changed_s: float = 0.0


class UploadWatch:
    """Watches connections from before they are made; a context manager that ends with them.

    It keeps a descriptor of its own for each, so that it can go on looking if the connection is handed to TLS.
    """

    def __init__(self, patience_s: float) -> None:
        """Each connection is let go when nothing was acknowledged for `patience_s` after payload was sent."""
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []
        self._done: list[_Watched] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pepscope-upload-watch", daemon=True)

    def __enter__(self) -> UploadWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        for item in self._watched:
            item.link.close()

    def watch(self, link: socket.socket) -> None:
        """Watch a socket that is about to connect."""
        twin = socket.socket(fileno=os.dup(link.fileno()))
        with self._lock:
            self._watched.append(_Watched(twin))

    def round_trips(self, mobile_port: int) -> tuple[RoundTrip, ...]:
        """Round trips of a connection in the order in which they ended, that of its first payload first."""
        with self._lock:
            for item in (*self._done, *self._watched):
                if item.mobile_port == mobile_port and item.round_trips:
                    return tuple(item.round_trips)
        return ()

    def _run(self) -> None:
        while not self._ending.wait(LOOK_S):
            with self._lock:
                over = [item for item in self._watched if self._look(item)]
                self._watched = [item for item in self._watched if item not in over]
                self._done += over
            for item in over:
                item.link.close()

    def _look(self, item: _Watched) -> bool:
        """Note what is new; whether there is nothing more to wait for."""
        now_s = time.monotonic()
        try:
            state = tcp_info(item.link)
            if not item.mobile_port:
                item.mobile_port = int(item.link.getsockname()[1])
        except OSError:
            return True
        counts_sent = "bytes_sent" in state
        # Where the kernel does not count bytes, the first segment stands for the first byte.
        sent_bytes = (
            state["bytes_sent"] - state["bytes_retrans"] if counts_sent else min(1, state.get("data_segs_out", 0))
        )
        # The SYN counts as one byte.
        acked_bytes = max(0, state.get("bytes_acked", 0) - 1)
        if sent_bytes > (item.sent_bytes[-1] if item.sent_bytes else 0):
            item.sent_bytes.append(sent_bytes)
            item.sent_s.append(now_s)
            item.changed_s = now_s
        if acked_bytes > (item.round_trips[-1].acked_bytes if item.round_trips else 0) and item.sent_s:
            place = min(bisect_left(item.sent_bytes, acked_bytes), len(item.sent_s) - 1)
            item.round_trips.append(RoundTrip(acked_bytes, now_s - item.sent_s[place]))
            item.changed_s = now_s
        if not item.sent_s:
            return False
        if not counts_sent and item.round_trips:
            return True
        is_quiet = acked_bytes >= sent_bytes and state.get("notsent_bytes", 0) == 0
        return now_s - item.changed_s > (_QUIET_S if is_quiet else self._patience_s)
