"""HTTP/1.1 on a blocking socket, by h11: requests with the bytes of their head as they came, and one deadline a head.

h11 reads what RFC 9112 allows and nothing else; a head that it refuses is also kept, since a measurement examines how a
middlebox changed an odd request.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate

import h11

from prober.server.refusal import RefusedError
from prober.server.settings import LimitsTable
from prober.server.sockets.head_pace import HeadPace

_READ_BYTES = 1 << 16
#: After a last answer: how long to take what the peer still sends, so that our close does not reset the answer away.
_LINGER_S = 1.0
_LINGER_BYTES = 1 << 20


class MalformedHeadError(RefusedError):
    """A request head that is not HTTP/1; `head` is what came of it."""

    def __init__(self, status: int, sentence: str, head: bytes) -> None:
        super().__init__(status, sentence)
        self.head = head


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its content."""

    method: str
    target: str
    headers: Sequence[tuple[bytes, bytes]]
    #: Request line and header as they came, with the empty line at the end.
    head: bytes
    #: When the head was whole.
    arrived_s: float

    def header(self, name: str) -> str:
        """The first field of that name, in any case; empty where there is none."""
        wanted = name.lower().encode("ascii")
        return next((value.decode("latin-1") for field, value in self.headers if field == wanted), "")


class HttpConnection:
    """One connection; requests are read and answered in turn."""

    def __init__(self, sock: socket.socket, limits: LimitsTable, accepted_s: float) -> None:
        self.sock = sock
        self._limits = limits
        self._head_began_s = accepted_s
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.header_bytes)
        self._fed = bytearray()
        self._request_began_s = accepted_s

    def next_request(self) -> Request | None:
        """The next request; `None` where the peer is done. Raises MalformedHeadError, OSError (TimeoutError)."""
        if self._http.our_state is not h11.IDLE:
            try:
                self._http.start_next_cycle()
            except h11.LocalProtocolError:
                return None
            # What came already of the next request.
            self._fed = bytearray(self._http.trailing_data[0])
            self._await_next()
        pace = HeadPace()
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                status = error.error_status_hint or 400
                raise MalformedHeadError(status, f"the request must be HTTP/1.1: {error}", bytes(self._fed)) from None
            if isinstance(event, h11.Request):
                return self._taken(event)
            if event is not h11.NEED_DATA:
                return None
            pace.wait()
            self._feed(self._limits.head_s - (time.monotonic() - self._head_began_s))

    def _await_next(self) -> None:
        """Between requests a connection may be idle; the time for a head counts from the first byte of it."""
        if not self._fed:
            self.sock.settimeout(self._limits.keep_s)
            data = self.sock.recv(_READ_BYTES)
            self._fed += data
            self._http.receive_data(data)
        self._head_began_s = time.monotonic()

    def _taken(self, event: h11.Request) -> Request:
        rest = len(self._http.trailing_data[0])
        head = bytes(self._fed[: len(self._fed) - rest])
        self._fed.clear()
        self._request_began_s = time.monotonic()
        method, target = event.method.decode("latin-1"), event.target.decode("latin-1")
        return Request(method, target, list(event.headers), head, self._request_began_s)

    def _feed(self, left_s: float) -> None:
        if left_s <= 0:
            raise TimeoutError
        self.sock.settimeout(left_s)
        data = self.sock.recv(_READ_BYTES)
        if self._http.their_state is h11.IDLE and len(self._fed) <= 2 * self._limits.header_bytes:
            self._fed += data
        self._http.receive_data(data)

    def content(self, deadline: float | None = None) -> Iterator[bytes]:
        """The pieces of a request's content. Raises RefusedError for what is no HTTP, OSError (TimeoutError)."""
        deadline = deadline or self._request_began_s + self._limits.transfer_s
        if self._http.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise RefusedError(400, f"the content breaks off: {error}") from None
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif event is h11.NEED_DATA:
                self._feed(min(self._limits.idle_s, deadline - time.monotonic()))
            else:
                return

    def small_content(self, most_bytes: int) -> bytes:
        """All of a request's content. Raises RefusedError where it is longer, OSError."""
        data = bytearray()
        for piece in self.content(time.monotonic() + self._limits.head_s):
            data += piece
            if len(data) > most_bytes:
                raise RefusedError(413, f"the content must have at most {most_bytes} bytes")
        return bytes(data)

    def begin(self, status: int, headers: Sequence[tuple[str, str]], size_bytes: int) -> None:
        """Send the head of an answer."""
        fields = [("Date", formatdate(usegmt=True)), *headers, ("Content-Length", str(size_bytes))]
        if self._http.their_state not in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED):
            # The request's content is not read to its end: the connection cannot go on.
            fields.append(("Connection", "close"))
        self._send(h11.Response(status_code=status, headers=fields))

    def send(self, piece: bytes) -> None:
        """Send some of the answer's content."""
        self._send(h11.Data(data=piece))

    def finish(self) -> None:
        """End the answer."""
        self._send(h11.EndOfMessage())

    def answer(self, request: Request | None, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Send a whole answer; no content where the method was HEAD."""
        self.begin(status, headers, len(body))
        if request is None or request.method != "HEAD":
            self.send(body)
        self.finish()

    def refuse(self, status: int, sentence: str) -> None:
        """Answer something that was no request, by hand since h11 is done with it; the connection is at its end."""
        body = f"{sentence}\n".encode("utf-8", "replace")
        self.refuse_with(status, "text/plain; charset=utf-8", body)

    def refuse_with(self, status: int, content_type: str, body: bytes) -> None:
        """Likewise, with other content."""
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        self.sock.settimeout(self._limits.head_s)
        self.sock.sendall(head.encode("ascii") + b"Connection: close\r\n\r\n" + body)

    def linger(self) -> None:
        """Before closing: let the peer have the answer, even if it still sends."""
        deadline = time.monotonic() + _LINGER_S
        taken = 0
        with contextlib.suppress(OSError):
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.settimeout(_LINGER_S)
                self.sock.unwrap()
            socket.socket.shutdown(self.sock, socket.SHUT_WR)
            while taken < _LINGER_BYTES and (left_s := deadline - time.monotonic()) > 0:
                self.sock.settimeout(left_s)
                data = self.sock.recv(_READ_BYTES)
                if not data:
                    return
                taken += len(data)

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        left_s = self._limits.transfer_s - (time.monotonic() - self._request_began_s)
        if left_s <= 0:
            raise TimeoutError
        if data:
            self.sock.settimeout(min(self._limits.idle_s, left_s))
            self.sock.sendall(data)
