"""Raw TCP: one line with the request (`plain_requests.TcpRequest`), then only bytes."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping

from prober.errors import MalformedMessageError
from prober.protocol.application import Application
from prober.protocol.objects import PIECE_BYTES, ObjectName
from prober.protocol.plain_requests import MOST_LINE_BYTES, TcpRequest
from prober.server.context import ServiceContext
from prober.server.refusal import RefusedError
from prober.server.served_log import Entry
from prober.server.services.slow_reading import SlowReading
from prober.server.sessions import Session
from prober.server.sockets.connections import Connection, reset
from prober.server.sockets.head_pace import HeadPace
from prober.server.sockets.kernel_state import await_acknowledged, last_tcp_info, saved_syn

#: How long to wait for the peer's end once everything is done.
_LINGER_S = 2.0


class _AbortError(Exception):
    """The server resets this connection, as it was asked to."""


def serve_raw_tcp(context: ServiceContext) -> Callable[[Connection], None]:
    """The service of the raw TCP ports."""
    return lambda connection: _Transfer(context, connection).run()


class _Transfer:
    def __init__(self, context: ServiceContext, connection: Connection) -> None:
        self._limits = context.limits
        self._context, self._connection, self._sock = context, connection, connection.sock
        self._syn = saved_syn(connection.sock)
        self._deadline = connection.accepted_s + context.limits.transfer_s

    def run(self) -> None:
        """Execute the request of the line."""
        try:
            line = self._line()
            request = TcpRequest.parse(line)
            session = self._context.session(request.session, self._connection)
            if request.size_bytes > self._limits.object_bytes:
                raise RefusedError(413, f"a transfer must have at most {self._limits.object_bytes} bytes")
        except (MalformedMessageError, RefusedError) as error:
            self._tell(f"error {error}\n".encode("utf-8", "replace"))
            return
        name = str(ObjectName(request.kind, request.size_bytes, request.seed)) if request.verb == "download" else ""
        entry = Entry(
            session.log,
            Application.TCP,
            self._connection.peer,
            self._connection.local_port,
            request.verb,
            name,
            size_bytes=request.size_bytes or -1,
            request_head=line + b"\n",
            syn=self._syn,
            accepted_s=self._connection.accepted_s,
        )
        self._serve(session, request, entry)

    def _serve(self, session: Session, request: TcpRequest, entry: Entry) -> None:
        ending = "stopped"
        state: Mapping[str, int] = {}
        try:
            {"download": self._download, "upload": self._upload, "echo": self._echo}[request.verb](
                session, request, entry
            )
            self._sock.shutdown(socket.SHUT_WR)
            ending, state = await_acknowledged(self._sock, self._limits.idle_s)
        except _AbortError:
            ending, state = "aborted-by-server", last_tcp_info(self._sock)
            reset(self._sock)
        except RefusedError as error:
            ending = "refused"
            self._tell(f"error {error}\n".encode("utf-8", "replace"))
        except TimeoutError:
            ending = "idle"
        except OSError:
            ending = "aborted-by-peer"
        finally:
            entry.end(ending, last_tcp_info(self._sock) or state)
        if ending == "finished":
            self._await_end()

    def _line(self) -> bytes:
        """The first line, without its end, and nothing of what follows. Raises MalformedMessageError, OSError."""
        deadline = self._connection.accepted_s + self._limits.head_s
        line = bytearray()
        pace = HeadPace()
        while True:
            self._sock.settimeout(max(0.001, deadline - time.monotonic()))
            seen = self._sock.recv(MOST_LINE_BYTES - len(line), socket.MSG_PEEK)
            if not seen:
                raise MalformedMessageError("the request breaks off")
            found = seen.find(b"\n")
            line += self._sock.recv(found + 1 if found >= 0 else len(seen))
            if found >= 0:
                return bytes(line[:-1])
            if len(line) >= MOST_LINE_BYTES:
                raise MalformedMessageError(f"the request must have at most {MOST_LINE_BYTES} bytes")
            pace.wait()

    def _download(self, session: Session, request: TcpRequest, entry: Entry) -> None:
        for made in ObjectName(request.kind, request.size_bytes, request.seed).pieces():
            piece = made
            if request.abort_after_bytes:
                piece = made[: request.abort_after_bytes - entry.sent_bytes]
            session.take(len(piece))
            self._wait_at_most(self._limits.idle_s)
            self._sock.sendall(piece)
            entry.sent(piece)
            if request.abort_after_bytes and entry.sent_bytes >= request.abort_after_bytes:
                raise _AbortError

    def _upload(self, session: Session, request: TcpRequest, entry: Entry) -> None:
        reading = SlowReading(self._sock, request.reading)
        # Without a size, all until the peer's end.
        most = request.size_bytes or self._limits.object_bytes
        stops = sorted({most, request.abort_after_bytes or most, request.after_bytes if request.pause_s else most})
        while entry.received_bytes < most:
            reading.pause_if_due(entry.received_bytes)
            until = next((stop for stop in stops if stop > entry.received_bytes), most)
            self._wait_at_most(self._limits.idle_s)
            piece = self._sock.recv(min(PIECE_BYTES, until - entry.received_bytes))
            if not piece:
                break
            session.take(len(piece))
            entry.received(piece)
            if request.abort_after_bytes and entry.received_bytes >= request.abort_after_bytes:
                raise _AbortError
        self._tell(reading.report(entry).to_line())

    def _echo(self, session: Session, request: TcpRequest, entry: Entry) -> None:  # noqa: ARG002
        while True:
            self._wait_at_most(self._limits.idle_s)
            piece = self._sock.recv(PIECE_BYTES)
            if not piece:
                return
            session.take(2 * len(piece))
            entry.received_bytes += len(piece)
            self._sock.sendall(piece)
            entry.sent(piece)

    def _wait_at_most(self, timeout_s: float) -> None:
        left_s = min(timeout_s, self._deadline - time.monotonic())
        if left_s <= 0:
            raise TimeoutError
        self._sock.settimeout(left_s)

    def _tell(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._sock.settimeout(self._limits.head_s)
            self._sock.sendall(line)

    def _await_end(self) -> None:
        """Closing over unread bytes would reset what the peer may still be reading."""
        with contextlib.suppress(OSError):
            deadline = time.monotonic() + _LINGER_S
            while (left_s := deadline - time.monotonic()) > 0:
                self._sock.settimeout(left_s)
                if not self._sock.recv(PIECE_BYTES):
                    return
