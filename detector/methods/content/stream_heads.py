"""The first bytes of streams: heads of HTTP messages, and requests that a declared proxy consumes."""

from __future__ import annotations

from detector.pair import Vantage
from pepscope.captures.packets import Direction, PayloadSample

#: Header fields that an HTTP proxy adds or changes.
PROXY_FIELDS = frozenset({b"via", b"x-forwarded-for", b"forwarded", b"x-real-ip", b"x-cache", b"age"})
_METHODS = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"HTTP/1.")


def opening(vantage: Vantage | None, direction: Direction) -> bytes | None:
    """The captured first bytes of a stream that starts like an HTTP message; None where that was not captured."""
    if vantage is None or vantage.flow(direction).initial_sequence_number is None:
        return None
    piece = first_piece(vantage.payload.get(direction))
    return piece if piece is not None and piece.startswith(_METHODS) else None


def first_piece(sample: PayloadSample | None) -> bytes | None:
    """The longest sampled piece at a stream's first byte; None where none was captured."""
    return None if sample is None else sample.opening


def headers_differ(left: bytes, arrived: bytes) -> bool:
    """Whether the headers differ where both were captured."""
    common = min(len(left), len(arrived))
    return left[:common].split(b"\r\n\r\n")[0] != arrived[:common].split(b"\r\n\r\n")[0]


def consumed_request(client: Vantage, server: Vantage) -> str | None:
    """The protocol in which the client asks a proxy for a connection, where the server did not get that request."""
    asked, got = first_piece(client.payload.get(Direction.UP)), first_piece(server.payload.get(Direction.UP))
    if asked is None or got is None or client.connection.up.initial_sequence_number is None:
        return None
    for name, begins in (("HTTP CONNECT", _is_connect), ("SOCKS", _is_socks)):
        if begins(asked) and not begins(got):
            return name
    return None


def _is_connect(opening: bytes) -> bool:
    """Whether a stream begins with a CONNECT request (RFC 9110, section 9.3.6)."""
    return opening.startswith(b"CONNECT ")


def _is_socks(opening: bytes) -> bool:
    """Whether a stream begins with a SOCKS greeting: version 5 (RFC 1928, section 3) alone in its segment, or 4."""
    if opening[:1] == b"\x05" and len(opening) > 2:
        return 1 <= opening[1] == len(opening) - 2
    return opening[:2] == b"\x04\x01" and len(opening) >= 9 and opening.endswith(b"\0")


def header_field(message: bytes, name: bytes) -> bytes | None:
    """The value of a header field that was captured to the end of its line."""
    for line in message.split(b"\r\n\r\n")[0].split(b"\r\n")[1:-1]:
        key, colon, value = line.partition(b":")
        if colon and key.strip().lower() == name:
            return value.strip()
    return None


def shown(value: bytes | None) -> str:
    """A header field's value as text."""
    return (value or b"").decode("ascii", "replace")


def _fields(message: bytes) -> set[bytes]:
    """Names of the complete header lines captured, in lower case."""
    lines = message.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    return {line.split(b":")[0].strip().lower() for line in lines if b":" in line and line.isascii()}


def added_fields(left: bytes, arrived: bytes) -> set[bytes]:
    """Header fields that arrived and did not leave; only a proxy's own ones where the left header is cut short."""
    added = _fields(arrived) - _fields(left)
    return added if b"\r\n\r\n" in left else added & PROXY_FIELDS
