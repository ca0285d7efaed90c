"""The application at one side of a flow between real kernels: it reads, writes, pauses and aborts."""

from __future__ import annotations

import hashlib
import io
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_CHUNK_BYTES = 1 << 18
_TCP_NOTSENT_LOWAT = 25  # linux/tcp.h
_UNSENT_BYTES = 1 << 17
_SO_MAX_PACING_RATE = 47  # asm-generic/socket.h
_NO_LIMIT = struct.pack("Q", (1 << 64) - 2)  # one more would leave pacing off
_RESET = struct.pack("ii", 1, 0)
#: The longest wait without a look at whether everything is to end.
_LOOK_S = 0.1


class GivenUpError(Exception):
    """The side is to end its connection with a reset."""


class TimeIsUpError(Exception):
    """The run has ended."""


@dataclass(slots=True)
class End:
    """What one end of a flow did; times are seconds of the path's time."""

    written_bytes: int = 0
    read_bytes: int = 0
    connected_s: float | None = None
    peer_finished_s: float | None = None
    first_read_s: float | None = None
    last_read_s: float | None = None
    ended_s: float | None = None
    outcome: str = "open"
    congestion_control: str | None = None
    answers: int = 0
    answer_time_s: float = 0.0
    longest_answer_s: float = 0.0
    #: Counts of the kernel.
    tcp: dict[str, Any] | None = None
    written: Any = field(default_factory=hashlib.sha256)
    read: Any = field(default_factory=hashlib.sha256)

    def report(self) -> dict[str, Any]:
        """As truth.json has it."""
        names = (
            "written_bytes", "read_bytes", "connected_s", "peer_finished_s", "first_read_s", "last_read_s", "ended_s",
            "outcome", "congestion_control", "answers", "answer_time_s", "longest_answer_s", "tcp",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


class Side:
    """A connected socket, and what was done with it."""

    def __init__(
        self,
        connection: socket.socket,
        end: End,
        manner: Mapping[str, Any],
        now: Callable[[], float],
        until_s: float,
        stopping: threading.Event,
    ) -> None:
        """`manner` as a scenario's `[traffic.mobile]` or `[traffic.server]`; everything ends at `until_s`."""
        self._connection, self.end, self.now = connection, end, now
        self._until_s, self._stopping = until_s, stopping
        self._rate_byte_s = manner["reads_byte_s"]
        self._chunk_bytes = _CHUNK_BYTES if self._rate_byte_s is None else int(manner["read_chunk_bytes"])
        self._reads_at_s = 0.0
        self._pauses = manner["pauses"]
        self._abort_bytes = manner["aborts_after_bytes"]
        abort_s = manner["aborts_after_s"]
        end.connected_s = self._connected_s = now()
        self._abort_at_s = float("inf") if abort_s is None else self._connected_s + abort_s
        self._gives_up = threading.Event()
        control = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        end.congestion_control = control.split(b"\0")[0].decode()
        # A transfer for a time ends when the time is over, not when all that a kernel would have taken has gone.
        connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        connection.setblocking(False)

    def space_out(self) -> None:
        """Let the kernel pace what is sent at the rate that it computes, as with the queueing discipline fq."""
        self._connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, _NO_LIMIT)

    def wait(self, seconds: float) -> None:
        """Wait. Raises GivenUpError, TimeIsUpError."""
        self._wait_until(self.now() + seconds)

    def send(self, content: memoryview | bytes, until_s: float = float("inf")) -> bool:
        """Write all of it; whether there was time for it before `until_s`.

        Raises GivenUpError, TimeIsUpError, OSError.
        """
        view = memoryview(content)
        while view:
            if not self._is_ready(select.POLLOUT, until_s):
                return False
            try:
                sent = self._connection.send(view[:_CHUNK_BYTES])
            except BlockingIOError:
                continue
            self.end.written.update(view[:sent])
            self.end.written_bytes += sent
            view = view[sent:]
            self._count(self.end.written_bytes)
        return True

    def read_into(self, buffer: memoryview) -> int:
        """What has come, at least a byte; 0 at the end. Raises GivenUpError, TimeIsUpError, OSError."""
        self._keep_pace()
        while True:
            self._is_ready(select.POLLIN)
            try:
                length = self._connection.recv_into(buffer[: self._chunk_bytes])
                break
            except BlockingIOError:
                continue
        now = self.now()
        if length == 0:
            self.end.peer_finished_s = now
            return 0
        self.end.first_read_s = now if self.end.first_read_s is None else self.end.first_read_s
        self.end.last_read_s = now
        self.end.read.update(buffer[:length])
        self.end.read_bytes += length
        if self._rate_byte_s is not None:
            self._reads_at_s = max(self._reads_at_s, now) + length / self._rate_byte_s
        if not self.end.written_bytes:
            self._count(self.end.read_bytes)
        return length

    def read_all(self) -> None:
        """Everything, to the end."""
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        while self.read_into(buffer):
            pass

    def reader(self) -> io.BufferedReader:
        """What comes as a file, for parsers."""
        return io.BufferedReader(_Raw(self))

    def finish(self) -> None:
        """Close the sending direction (FIN)."""
        self._connection.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Make the coming close send a reset."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def give_up(self) -> None:
        """Make a thread that waits in this side raise GivenUpError."""
        self._gives_up.set()

    def _count(self, length: int) -> None:
        if self._abort_bytes is not None and length >= self._abort_bytes:
            raise GivenUpError

    def _keep_pace(self) -> None:
        for pause in self._pauses:
            start_s = self._connected_s + pause["start_s"]
            if start_s <= self.now() < start_s + pause["duration_s"]:
                self._wait_until(start_s + pause["duration_s"])
        self._wait_until(self._reads_at_s)

    def _wait_until(self, at_s: float) -> None:
        while (left_s := at_s - self.now()) > 0:
            self._look()
            time.sleep(min(left_s, _LOOK_S, max(0.0, self._abort_at_s - self.now())))

    def _is_ready(self, event: int, until_s: float = float("inf")) -> bool:
        """Wait for the socket; whether it was ready before `until_s`."""
        poll = select.poll()
        poll.register(self._connection, event)
        while True:
            self._look()
            now = self.now()
            if now >= until_s:
                return False
            if poll.poll(1e3 * max(0.0, min(_LOOK_S, until_s - now, self._abort_at_s - now))):
                return True

    def _look(self) -> None:
        now = self.now()
        if now >= self._abort_at_s or self._gives_up.is_set():
            raise GivenUpError
        if now >= self._until_s or self._stopping.is_set():
            raise TimeIsUpError


class _Raw(io.RawIOBase):
    def __init__(self, side: Side) -> None:
        self._side = side

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._side.read_into(memoryview(buffer))
