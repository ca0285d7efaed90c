"""What an HTTP client asks an explicit proxy for: CONNECT, or an absolute URI (RFC 9112, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from reference_proxy.errors import MalformedError, RefusedError

HTTP_PORT = 80

#: Fields about one connection only, which a proxy does not pass on (RFC 9110, section 7.6.1).
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request is meant to go; `path` in origin form, empty for CONNECT."""

    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The first request of a connection to an explicit proxy."""

    target: Target
    #: What the server must get instead of what came: the request in origin form and whatever followed it.
    for_server: bytes
    #: What came, whole.
    as_it_came: bytes

    @property
    def is_connect(self) -> bool:
        """Whether the client requests a tunnel."""
        return not self.target.path


def read_target(method: bytes, target: bytes) -> Target:
    """The destination that a request line names. Raises MalformedError."""
    try:
        text = target.decode("ascii")
        parts = urlsplit(f"//{text}" if method == b"CONNECT" else text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise MalformedError(f"the request target must be a URI, got {target[:80]!r}") from None
    if method == b"CONNECT":
        if not host or not port or parts.path or parts.query:
            raise MalformedError(f"the target of CONNECT must be HOST:PORT, got {target[:80]!r}")
        return Target(host, port, "")
    if parts.scheme != "http" or not host:
        raise MalformedError(f"the target of a request to a proxy must be http://HOST/..., got {target[:80]!r}")
    path = parts.path or ("*" if method == b"OPTIONS" and not parts.query else "/")
    return Target(host, port if port is not None else HTTP_PORT, path + (f"?{parts.query}" if parts.query else ""))


def host_field(target: Target) -> bytes:
    """The Host that goes with a target, whatever the client wrote there (RFC 9112, section 3.2.2)."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return (host if target.port == HTTP_PORT else f"{host}:{target.port}").encode("ascii")


def end_to_end(headers: Headers) -> Headers:
    """The forwarded fields: not hop-by-hop fields, and not named in Connection."""
    named = {
        name.strip().lower() for key, value in headers if key.lower() == b"connection" for name in value.split(b",")
    }
    return [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP | named]


class FirstRequestParser:
    """Takes bytes until the head of the first request is whole; h11 reads it."""

    def __init__(self, header_bytes: int) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=header_bytes)
        self._came = bytearray()

    def feed(self, data: bytes) -> FirstRequest | None:
        """The request once its head is whole. Raises MalformedError, RefusedError."""
        self._came += data
        try:
            self._connection.receive_data(data)
            event = self._connection.next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == 431:
                raise RefusedError("header-too-large", "the head of the request is too large") from None
            raise MalformedError(f"the request must be HTTP: {error}") from None
        if not isinstance(event, h11.Request):
            return None
        target = read_target(event.method, event.target)
        rest = self._connection.trailing_data[0]
        if target.path:
            rest = _origin_form(event, target) + rest
        return FirstRequest(target, rest, bytes(self._came))


def _origin_form(request: h11.Request, target: Target) -> bytes:
    """The head for the origin server. One request a connection: a second could name another server."""
    headers = [field for field in end_to_end(list(request.headers)) if field[0] != b"host"]
    framing = [(name, value) for name, value in request.headers if name == b"transfer-encoding"]
    lines = [b"%s %s HTTP/1.1" % (request.method, target.path.encode("ascii"))]
    host = (b"host", host_field(target))
    lines += [b"%s: %s" % field for field in [host, *headers, *framing, (b"connection", b"close")]]
    return b"\r\n".join(lines) + b"\r\n\r\n"
