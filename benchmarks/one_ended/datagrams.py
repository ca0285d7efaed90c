"""Datagrams that nothing splits: QUIC-like packets with the long and short headers of RFC 9000, DNS, NTP, ICMP echo.

QUIC payloads are random bytes: only headers, sizes and turns are those of a handshake and a request.
"""

from __future__ import annotations

import os
import struct

from benchmarks.fresh.packets import checksum

QUIC_VERSION = 1
DATAGRAM_BYTES = 1200  # RFC 9000, 14.1: the least of a datagram with an Initial packet
_INITIAL, _HANDSHAKE = 0, 2


def quic_long(kind: int, destination: bytes, source: bytes, payload_bytes: int) -> bytes:
    """An Initial (0) or Handshake (2) packet (RFC 9000, 17.2) with random protected contents."""
    head = bytes((0xC0 | kind << 4 | 1,)) + struct.pack(">I", QUIC_VERSION)
    head += bytes((len(destination),)) + destination + bytes((len(source),)) + source
    token = b"\0" if kind == _INITIAL else b""
    return head + token + struct.pack(">H", 0x4000 | payload_bytes) + os.urandom(payload_bytes)


def quic_initial(destination: bytes, source: bytes) -> bytes:
    """A datagram with one Initial packet, padded as RFC 9000, 14.1 wants it."""
    beside = len(quic_long(_INITIAL, destination, source, 0))
    return quic_long(_INITIAL, destination, source, DATAGRAM_BYTES - beside)


def quic_handshake(destination: bytes, source: bytes, payload_bytes: int) -> bytes:
    """A datagram with one Handshake packet."""
    return quic_long(_HANDSHAKE, destination, source, payload_bytes)


def quic_short(destination: bytes, payload_bytes: int) -> bytes:
    """A 1-RTT packet (RFC 9000, 17.3)."""
    return bytes((0x41,)) + destination + os.urandom(payload_bytes)


def quic_names(packet: bytes) -> tuple[bytes, bytes]:
    """Destination and source connection ID of a packet with a long header."""
    size = packet[5]
    destination, rest = packet[6 : 6 + size], packet[6 + size :]
    return destination, rest[1 : 1 + rest[0]]


def quic_answers(packet: bytes, own: bytes, peers: dict[bytes, bytes]) -> list[bytes]:
    """What a server named `own` answers; `peers` maps its names to the clients', and learns."""
    if packet[0] & 0x80:
        _, source = quic_names(packet)
        peers[own] = source
        if packet[0] >> 4 & 3 != _INITIAL:
            return []
        first = quic_long(_INITIAL, source, own, 120)
        fill = quic_handshake(source, own, DATAGRAM_BYTES - len(first) - 40)
        return [first + fill, quic_handshake(source, own, DATAGRAM_BYTES - 60), quic_handshake(source, own, 300)]
    client = peers.get(packet[1 : 1 + len(own)])
    return [] if client is None else [quic_short(client, size) for size in (DATAGRAM_BYTES, DATAGRAM_BYTES, 400)]


def dns_query(identifier: int, name: str) -> bytes:
    """A question for an A record (RFC 1035, 4.1)."""
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    return struct.pack(">HHHHHH", identifier, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)


def dns_answer(query: bytes) -> bytes:
    """The answer with one address."""
    head = struct.pack(">HHHHHH", struct.unpack_from(">H", query)[0], 0x8180, 1, 1, 0, 0)
    return head + query[12:] + struct.pack(">HHHIH4B", 0xC00C, 1, 1, 300, 4, 192, 0, 2, 1)


def ntp_request() -> bytes:
    """A client's packet (RFC 5905, 7.3)."""
    return bytes((0x23,)) + bytes(39) + os.urandom(8)


def ntp_answer(request: bytes) -> bytes:
    """A server's packet that returns the client's transmit timestamp as origin."""
    return bytes((0x24, 2, 6, 0xEC)) + bytes(20) + request[40:48] + os.urandom(16)


def icmp_echo(identifier: int, sequence: int, payload_bytes: int = 56) -> bytes:
    """An ICMP echo request (RFC 792)."""
    body = struct.pack(">HH", identifier, sequence) + os.urandom(payload_bytes)
    return struct.pack(">BBH", 8, 0, checksum(b"\x08\0\0\0" + body)) + body
