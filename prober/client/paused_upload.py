"""An upload that the server stops reading on purpose, and what is acknowledged of it meanwhile: no right needed."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from prober.client.transfer import SUFFIXES
from prober.errors import ImpossibleError, MalformedMessageError, MeasurementError
from prober.host.tcp_info import tcp_info
from prober.protocol.application import Application
from prober.protocol.objects import ObjectKind
from prober.protocol.plain_requests import Reading, TcpRequest, UploadReport, upload_target

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd

#: Several times the receiver's buffer, so that the sender's own never holds it back; what waits in it must go after
#: the pause, for nothing.
SEND_BUFFER_BYTES = 65_536
#: Nothing was acknowledged for so long: well beyond a round trip, and beyond the first probe of a closed window (RFC
#: 6298: 0.2 s at least in common stacks).
STALL_S = 1.0

_LOOK_S = 0.05
_PIECE_BYTES = 16_384
_MOST_ANSWER_BYTES = 1 << 16
#: Those that can be asked to pause.
APPLICATIONS = (Application.HTTP_DATA, Application.HTTP_IMAGE, Application.HTTPS, Application.TCP)


@dataclass(frozen=True, slots=True)
class PausedUpload:
    """Of all bytes of the connection, heads and TLS included."""

    #: Acknowledged to the mobile before the server's pause can have been over.
    acked_bytes: int
    #: What the server's kernel had taken in when it was; `None` where the server did not say.
    taken_bytes: int | None
    #: Whether nothing more was acknowledged for a while, with more on offer.
    stalled: bool
    mobile_port: int
    port: int


def paused_upload(
    end: MobileEnd, application: Application, size_bytes: int, pause_s: float, receive_buffer_bytes: int
) -> PausedUpload:
    """Offer `size_bytes` while the server pauses. Raises ImpossibleError, MeasurementError, OSError."""
    reading = Reading(pause_s, 0, receive_buffer_bytes)
    talk = _Talk(application, end, reading)
    port = end.port(application)
    began_s = time.monotonic()
    with end.connect(port, prepare=_little_to_send) as link:
        mobile_port = int(link.getsockname()[1])
        layer: _Layer = _Tls(link) if application is Application.HTTPS else _Plain()
        sending = _Sending(link, layer, talk, size_bytes)
        # The server begins to pause after our SYN left, so that its pause is not over before this.
        sending.go_on_until(began_s + pause_s - _LOOK_S)
        link.settimeout(end.remaining_s)
        sending.finish()
        taken = talk.taken_bytes(_answer(link, layer))
    return PausedUpload(sending.acked_bytes, taken, sending.stalled, mobile_port, port)


class _Layer(Protocol):
    """The layer between the application and TCP."""

    def wrap(self, data: bytes) -> bytes: ...

    def unwrap(self, data: bytes) -> bytes: ...


class _Plain:
    """Nothing."""

    def wrap(self, data: bytes) -> bytes:
        return data

    def unwrap(self, data: bytes) -> bytes:
        return data


class _Tls:
    """TLS beside the socket, whose own buffers stay in sight. Whose certificate it is does not matter here."""

    def __init__(self, link: socket.socket) -> None:
        """Shake hands. Raises OSError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                link.sendall(self._outgoing.read())
                data = link.recv(_PIECE_BYTES)
                if not data:
                    raise MeasurementError("the TLS handshake broke off") from None
                self._incoming.write(data)
        link.sendall(self._outgoing.read())

    def wrap(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def unwrap(self, data: bytes) -> bytes:
        self._incoming.write(data)
        plain = b""
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            while piece := self._tls.read(_PIECE_BYTES):
                plain += piece
        return plain


class _Talk:
    """An upload in the application's words, which can end at any time: chunks over HTTP, the stream's end over TCP."""

    def __init__(self, application: Application, end: MobileEnd, reading: Reading) -> None:
        self._is_raw = application is Application.TCP
        if self._is_raw:
            asked = TcpRequest(
                end.control.session,
                "upload",
                pause_s=reading.pause_s,
                receive_buffer_bytes=reading.receive_buffer_bytes,
            )
            self.head, self.last = asked.to_line(), b""
            return
        host = f"[{end.host}]" if ":" in end.host else end.host
        target = upload_target(end.control.session, "slow-reader", reading=reading)
        self.head = (
            f"PUT {target} HTTP/1.1\r\nHost: {host}\r\n"
            f"Content-Type: {ObjectKind(SUFFIXES[application]).content_type}\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        ).encode("ascii")
        self.last = b"0\r\n\r\n"

    def piece(self, size_bytes: int) -> bytes:
        """So many bytes of content."""
        return bytes(size_bytes) if self._is_raw else b"%x\r\n%s\r\n" % (size_bytes, bytes(size_bytes))

    @property
    def ends_by_closing(self) -> bool:
        """Whether the end of the upload is that of the stream."""
        return self._is_raw

    def taken_bytes(self, answer: bytes) -> int | None:
        """The server's answer; `None` without one, or where a middlebox answered."""
        if not self._is_raw:
            try:
                response = http.client.HTTPResponse(_Stored(answer))  # type: ignore[arg-type]
                response.begin()
                answer = response.read(_MOST_ANSWER_BYTES)
            except (http.client.HTTPException, ValueError, OSError):
                return None
        try:
            report = UploadReport.parse(answer)
        except MalformedMessageError:
            return None
        return report.taken_bytes_at_pause or None


class _Stored:
    """Bytes in the place of a socket, as http.client takes it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


class _Sending:
    """The sent bytes, and the mobile kernel's counts of them."""

    def __init__(self, link: socket.socket, layer: _Layer, talk: _Talk, size_bytes: int) -> None:
        self._link, self._layer, self._talk = link, layer, talk
        self._left_bytes = size_bytes
        self._waiting = layer.wrap(talk.head)
        self.acked_bytes = 0
        self.stalled = False

    def go_on_until(self, until_s: float) -> None:
        """Send as much as goes until a time."""
        self._link.setblocking(False)
        acked, still_since_s = -1, time.monotonic()
        while (now_s := time.monotonic()) < until_s:
            with contextlib.suppress(BlockingIOError):
                while self._waiting or self._left_bytes:
                    self._fill()
                    self._waiting = self._waiting[self._link.send(self._waiting) :]
            counted = tcp_info(self._link).get("bytes_acked")
            if counted is None:
                raise ImpossibleError("the mobile's kernel does not count acknowledged bytes (tcpi_bytes_acked)")
            if counted != acked:
                acked, still_since_s = counted, now_s
            time.sleep(_LOOK_S)
        # The SYN counts as one byte.
        self.acked_bytes = max(0, acked - 1)
        self.stalled = until_s - still_since_s >= STALL_S and bool(self._waiting or self._left_bytes)

    def _fill(self) -> None:
        if not self._waiting:
            piece_bytes = min(_PIECE_BYTES, self._left_bytes)
            self._left_bytes -= piece_bytes
            self._waiting = self._layer.wrap(self._talk.piece(piece_bytes))

    def finish(self) -> None:
        """Send what has begun, and the end."""
        self._link.sendall(self._waiting + (self._layer.wrap(self._talk.last) if self._talk.last else b""))
        if self._talk.ends_by_closing:
            self._link.shutdown(socket.SHUT_WR)


def _little_to_send(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


def _answer(link: socket.socket, layer: _Layer) -> bytes:
    """All that comes back until the other end closes."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while len(answer) < _MOST_ANSWER_BYTES and (data := link.recv(_PIECE_BYTES)):
            answer += layer.unwrap(data)
    return answer
