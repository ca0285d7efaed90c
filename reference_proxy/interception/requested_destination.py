"""How a proxy finds the server that the client requests.

- transparent: the client needs no configuration. Its packets are diverted (TPROXY, see `rules`), the accepted socket
  has the server's address as its own, and the connection to the server is made from the client's address and port: both
  ends are spoofed, and addresses give nothing away (as CDMA-I in seed 004).
- destination-transparent: likewise, but the connection to the server has the proxy's own address (as a NAT with a split
  inside).
- explicit: the client asks the proxy: HTTP CONNECT, HTTP with an absolute URI, or SOCKS5; the first byte decides which.
- fixed: one server, written in the configuration.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reference_proxy.configuration import Interception
from reference_proxy.errors import MalformedError, RefusedError
from reference_proxy.interception.socks5 import VERSION, Handshake, Reply, encode_reply

if TYPE_CHECKING:
    import socket

    from reference_proxy.interception.request_target import FirstRequest
    from reference_proxy.sockets import Address

READ_BYTES = 16 << 10
#: A head that comes in more pieces than these is read less and less often, so that single bytes gather.
_FREE_PIECES = 16
_PAUSE_STEP_S, _LONGEST_PAUSE_S = 0.005, 0.2

_STATUS = {
    "malformed": "400 Bad Request",
    "not-allowed": "403 Forbidden",
    "handshake-timeout": "408 Request Timeout",
    "too-large": "413 Content Too Large",
    "header-too-large": "431 Request Header Fields Too Large",
    "unreachable": "502 Bad Gateway",
    "server-refused": "502 Bad Gateway",
    "loop": "508 Loop Detected",
    "connect-timeout": "504 Gateway Timeout",
}


class Answers(Protocol):
    """What an explicit client gets as an answer."""

    def acceptance(self) -> bytes:
        """That the server is connected."""

    def refusal(self, error: RefusedError) -> bytes:
        """That there will be no connection."""


@dataclass(frozen=True, slots=True)
class RequestedDestination:
    """The server that a client requests, and what came with the request."""

    host: str
    port: int
    #: What came already that is for the server.
    for_server: bytes = b""
    answers: Answers | None = None
    #: An HTTP request with an absolute URI, as it came.
    http_request: bytes = b""


class _HttpAnswers:
    def __init__(self, request: FirstRequest | None) -> None:
        self._is_tunnel = request is not None and request.is_connect

    def acceptance(self) -> bytes:
        return b"HTTP/1.1 200 Connection established\r\n\r\n" if self._is_tunnel else b""

    def refusal(self, error: RefusedError) -> bytes:
        return http_refusal(error)


class _SocksAnswers:
    def __init__(self, handshake: Handshake) -> None:
        self._handshake = handshake

    def acceptance(self) -> bytes:
        return encode_reply(Reply.SUCCEEDED)

    def refusal(self, error: RefusedError) -> bytes:
        return self._handshake.answer_to(error)


class AnsweredRefusalError(RefusedError):
    """A refusal that must be put to the client in its own protocol."""

    def __init__(self, error: RefusedError, answer: bytes) -> None:
        super().__init__(error.reason, str(error))
        self.answer = answer


def http_refusal(error: RefusedError) -> bytes:
    """A refusal as an HTTP response."""
    status = _STATUS.get(error.reason, "502 Bad Gateway")
    body = f"{error}\n".encode("utf-8", "replace")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return head.encode("ascii") + b"Connection: close\r\n\r\n" + body


async def learn_destination(
    sock: socket.socket, interception: Interception, target: Address | None, *, header_bytes: int, handshake_s: float
) -> RequestedDestination:
    """The destination that the client of an accepted socket requests.

    Raises RefusedError, AnsweredRefusalError where the client gets an answer.
    """
    if interception is Interception.FIXED and target is not None:
        return RequestedDestination(*target)
    if interception is Interception.EXPLICIT:
        return await _ask(sock, header_bytes, handshake_s)
    host, port = sock.getsockname()[:2]
    return RequestedDestination(host, port)


async def _ask(sock: socket.socket, header_bytes: int, handshake_s: float) -> RequestedDestination:
    # One deadline for everything, so that trickling bytes buys no time.
    loop = asyncio.get_running_loop()
    spoken = "nothing"
    try:
        async with asyncio.timeout(handshake_s):
            first = await _receive(loop, sock)
            spoken = "SOCKS" if first[0] == VERSION else "HTTP"
            return await (
                _ask_socks(loop, sock, first) if spoken == "SOCKS" else _ask_http(loop, sock, first, header_bytes)
            )
    except TimeoutError:
        error = RefusedError("handshake-timeout", f"the client must send a complete request within {handshake_s:g} s")
        raise AnsweredRefusalError(error, http_refusal(error) if spoken == "HTTP" else b"") from None


async def _receive(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytes:
    try:
        data = await loop.sock_recv(sock, READ_BYTES)
    except OSError:
        data = b""
    if not data:
        raise RefusedError("left", "the client closed the connection before its request was complete")
    return data


async def _ask_socks(loop: asyncio.AbstractEventLoop, sock: socket.socket, data: bytes) -> RequestedDestination:
    handshake = Handshake()
    while True:
        try:
            answer, request = handshake.feed(data)
        except RefusedError as error:
            raise AnsweredRefusalError(error, handshake.answer_to(error)) from None
        if answer:
            await loop.sock_sendall(sock, answer)
        if request is not None:
            return RequestedDestination(request.host, request.port, request.rest, _SocksAnswers(handshake))
        data = await _receive(loop, sock)


async def _ask_http(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, data: bytes, header_bytes: int
) -> RequestedDestination:
    try:
        from reference_proxy.interception.request_target import FirstRequestParser
    except ImportError:
        raise RefusedError(
            "unsupported", "explicit HTTP needs the package h11: pip install 'pepscope[proxy]'"
        ) from None
    parser = FirstRequestParser(header_bytes)
    pieces = 0
    while True:
        try:
            request = parser.feed(data)
        except (MalformedError, RefusedError) as error:
            raise AnsweredRefusalError(error, http_refusal(error)) from None
        if request is not None:
            as_it_came = b"" if request.is_connect else request.as_it_came
            target = request.target
            return RequestedDestination(target.host, target.port, request.for_server, _HttpAnswers(request), as_it_came)
        pieces += 1
        if pieces > _FREE_PIECES:
            await asyncio.sleep(min(_LONGEST_PAUSE_S, (pieces - _FREE_PIECES) * _PAUSE_STEP_S))
        data = await _receive(loop, sock)
