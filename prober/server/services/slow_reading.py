"""Reading an upload as it was asked to: into a small buffer, and with a pause in the middle."""

from __future__ import annotations

import select
import socket
import time

from prober.protocol.plain_requests import Reading, UploadReport
from prober.server.served_log import Entry
from prober.server.sockets.kernel_state import last_tcp_info, unread_bytes

_HUNG_UP = select.POLLERR | select.POLLHUP
_MOST_BUFFER_BYTES = 1 << 30


class SlowReading:
    """One upload's reading; `read_bytes`, `queued_bytes`, `taken_bytes` and `paused_s` describe a pause once it has
    ended."""

    def __init__(self, sock: socket.socket, wanted: Reading) -> None:
        self._sock, self._wanted = sock, wanted
        if wanted.receive_buffer_bytes:
            buffer_bytes = min(wanted.receive_buffer_bytes, _MOST_BUFFER_BYTES)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self._began_s = time.monotonic()
        self._read_bytes = self._queued_bytes = self._taken_bytes = 0
        self._paused_s = 0.0

    def pause_if_due(self, received_bytes: int) -> None:
        """Read nothing for so long as was asked, or until the connection breaks; once, after so many bytes."""
        if not self._wanted.pause_s or self._paused_s or received_bytes < self._wanted.after_bytes:
            return
        began = time.monotonic()
        poller = select.poll()
        poller.register(self._sock, 0)
        while (left_s := began + self._wanted.pause_s - time.monotonic()) > 0:
            if any(events & _HUNG_UP for _, events in poller.poll(left_s * 1000)):
                break
        self._paused_s, self._read_bytes = time.monotonic() - began, received_bytes
        self._queued_bytes = unread_bytes(self._sock)
        self._taken_bytes = last_tcp_info(self._sock).get("bytes_received", 0)

    def report(self, entry: Entry) -> UploadReport:
        """The report on an upload that was read to its end."""
        return UploadReport(
            entry.received_bytes,
            entry.digest.hexdigest(),
            time.monotonic() - self._began_s,
            self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            self._read_bytes,
            self._queued_bytes,
            self._paused_s,
            self._taken_bytes,
        )
