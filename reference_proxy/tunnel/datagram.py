"""The datagrams of a UDP tunnel: a header of 36 bytes, big endian, before at most one piece of a stream.

    version 1 | kind 1 | zero 2 | stream 4 | token 8 | offset 8 | acknowledged 8 | window 4 | payload

`stream` is chosen by the client end; with the client end's address it names a connection. `token` is what the server
end has sent to the client end's address: who cannot receive there cannot open a stream. `offset` is the place of
the payload's first byte in its direction, counted from 0, the end (FINISH) counting as one byte. `acknowledged` is
the first byte that has not come yet, `window` how many from there on may be sent. Every datagram but OPEN, CHALLENGE
and RESET carries both.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from reference_proxy.errors import MalformedError

VERSION = 1
_FORM = struct.Struct("!BBHIQQQI")
HEADER_BYTES = _FORM.size

#: Offsets stay below this, so that sums of them never leave 64 bits.
OFFSET_LIMIT = 1 << 62
WINDOW_LIMIT = (1 << 32) - 1


class DatagramKind(IntEnum):
    """What a datagram is for."""

    #: The client end requests a stream to the destination in the payload (`host port`).
    OPEN = 1
    #: The server end sends the token to open with.
    CHALLENGE = 2
    #: A piece of the stream, or none: then only acknowledgement and window count.
    DATA = 3
    #: Its sender has nothing behind `offset`.
    FINISH = 4
    #: There is no such stream any more; the payload may say why.
    RESET = 5


@dataclass(frozen=True, slots=True)
class TunnelDatagram:
    """One datagram."""

    kind: DatagramKind
    stream: int
    token: int = 0
    offset: int = 0
    acknowledged: int = 0
    window: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        """As it travels."""
        head = _FORM.pack(VERSION, self.kind, 0, self.stream, self.token, self.offset, self.acknowledged, self.window)
        return head + self.payload

    @classmethod
    def decode(cls, data: bytes) -> TunnelDatagram:
        """Raises MalformedError."""
        if len(data) < HEADER_BYTES:
            raise MalformedError(f"a tunnel's datagram must have at least {HEADER_BYTES} bytes, got {len(data)}")
        version, kind, zero, stream, token, offset, acknowledged, window = _FORM.unpack_from(data)
        if version != VERSION or zero != 0 or kind not in list(DatagramKind):
            raise MalformedError("a datagram must have a version and a kind of this tunnel")
        if max(offset, acknowledged) >= OFFSET_LIMIT:
            raise MalformedError("a tunnel's datagram must point to a position within its stream")
        return cls(DatagramKind(kind), stream, token, offset, acknowledged, window, data[HEADER_BYTES:])


def encode_destination(host: str, port: int) -> bytes:
    """The payload of OPEN."""
    return f"{host} {port}".encode("ascii")


def decode_destination(payload: bytes) -> tuple[str, int]:
    """Raises MalformedError."""
    try:
        host, port = payload.decode("ascii").split(" ")
        number = int(port)
    except ValueError:
        raise MalformedError("a tunnel stream must name a destination") from None
    if not host or not 1 <= number <= 65_535:
        raise MalformedError("a tunnel stream must name a destination")
    return host, number
