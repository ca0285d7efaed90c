"""TCP segments and IP packets as bytes: RFC 9293, RFC 7323, RFC 2018, RFC 791, RFC 8200."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pepscope.captures.packets import TcpFlag

PROTOCOL_TCP = 6
PROTOCOL_UDP = 17

#: IPv6 extension headers (RFC 8200 section 4).
HOP_BY_HOP = 0
ROUTING = 43
FRAGMENT = 44
AUTHENTICATION = 51
DESTINATION_OPTIONS = 60


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP segment with its addresses; `payload` is what was on the wire."""

    time_ns: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    sequence: int
    acknowledgement: int
    flags: TcpFlag
    window: int = 65535
    payload: bytes = b""
    options: bytes = b""  # a multiple of four bytes
    ttl: int = 64
    ip_id: int = 0

    @property
    def version(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.source else 4

    def tcp(self) -> bytes:
        """TCP header, options and payload, with a correct checksum."""
        offset = (20 + len(self.options)) // 4 << 12
        head = struct.pack(
            ">HHIIHHHH",
            self.source_port,
            self.destination_port,
            self.sequence & 0xFFFFFFFF,
            self.acknowledgement & 0xFFFFFFFF,
            offset | int(self.flags),
            self.window,
            0,
            0,
        )
        body = head + self.options + self.payload
        pseudo = address_bytes(self.source) + address_bytes(self.destination)
        pseudo += struct.pack(">IHH", len(body), 0, PROTOCOL_TCP)
        checksum = internet_checksum(pseudo + body)
        return body[:16] + struct.pack(">H", checksum) + body[18:]

    def packet(self, *, ip_options: bytes = b"", zero_length: bool = False) -> bytes:
        """The segment in an IP packet. `zero_length` leaves the IP length 0, as captures of offloads show it."""
        if self.version == 6:
            return ipv6(self.source, self.destination, PROTOCOL_TCP, self.tcp(), hop_limit=self.ttl, zero=zero_length)
        return ipv4(
            self.source,
            self.destination,
            PROTOCOL_TCP,
            self.tcp(),
            ttl=self.ttl,
            identification=self.ip_id,
            options=ip_options,
            zero=zero_length,
        )


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def address_bytes(address: str) -> bytes:
    """4 or 16 bytes."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def ipv4(
    source: str,
    destination: str,
    protocol: int,
    payload: bytes,
    *,
    ttl: int = 64,
    identification: int = 0,
    options: bytes = b"",
    fragment_offset: int = 0,
    more_fragments: bool = False,
    zero: bool = False,
) -> bytes:
    """An IPv4 packet; `fragment_offset` in bytes (a multiple of eight), `options` a multiple of four bytes."""
    header_length = 20 + len(options)
    fragment = fragment_offset // 8 | (0x2000 if more_fragments else 0)
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x40 | header_length // 4,
        0,
        0 if zero else header_length + len(payload),
        identification,
        fragment,
        ttl,
        protocol,
        0,
        address_bytes(source),
        address_bytes(destination),
    )
    checksum = internet_checksum(head + options)
    return head[:10] + struct.pack(">H", checksum) + head[12:] + options + payload


def ipv4_fragments(packet: bytes, sizes: list[int]) -> list[bytes]:
    """Cut an IPv4 packet into fragments of `sizes` payload bytes (multiples of eight) and the rest."""
    source = socket.inet_ntop(socket.AF_INET, packet[12:16])
    destination = socket.inet_ntop(socket.AF_INET, packet[16:20])
    (identification,) = struct.unpack_from(">H", packet, 4)
    body = packet[(packet[0] & 15) * 4 :]
    pieces = _cut(body, sizes)
    return [
        ipv4(
            source,
            destination,
            packet[9],
            piece,
            ttl=packet[8],
            identification=identification,
            fragment_offset=offset,
            more_fragments=offset + len(piece) < len(body),
        )
        for offset, piece in pieces
    ]


def ipv6(
    source: str, destination: str, next_header: int, payload: bytes, *, hop_limit: int = 64, zero: bool = False
) -> bytes:
    """An IPv6 packet without extension headers of its own (put them into `payload`)."""
    length = 0 if zero else len(payload)
    head = struct.pack(">IHBB", 6 << 28, length, next_header, hop_limit)
    return head + address_bytes(source) + address_bytes(destination) + payload


def ipv6_extension(kind: int, next_header: int, words: int = 0) -> bytes:
    """An extension header of 8 + 8 * `words` bytes (for AUTHENTICATION 8 + 4 * `words`), filled with padding."""
    if kind == AUTHENTICATION:
        return struct.pack(">BBH", next_header, words, 0) + bytes(4 + 4 * words)
    if kind == ROUTING:
        return struct.pack(">BBBB", next_header, words, 253, 0) + bytes(4 + 8 * words)
    padding = 4 + 8 * words
    return struct.pack(">BBBB", next_header, words, 1, padding) + bytes(padding)


def ipv6_fragments(packet: bytes, sizes: list[int], identification: int = 7) -> list[bytes]:
    """Cut an IPv6 packet without extension headers into fragments."""
    source = socket.inet_ntop(socket.AF_INET6, packet[8:24])
    destination = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    body = packet[40:]
    fragments = []
    for offset, piece in _cut(body, sizes):
        more = int(offset + len(piece) < len(body))
        head = struct.pack(">BBHI", packet[6], 0, offset | more, identification)
        fragments.append(ipv6(source, destination, FRAGMENT, head + piece, hop_limit=packet[7]))
    return fragments


def _cut(body: bytes, sizes: list[int]) -> list[tuple[int, bytes]]:
    pieces: list[tuple[int, bytes]] = []
    offset = 0
    for size in sizes:
        if offset + size >= len(body):
            break
        pieces.append((offset, body[offset : offset + size]))
        offset += size
    return [*pieces, (offset, body[offset:])]


def maximum_segment_size(value: int) -> bytes:
    """TCP option 2."""
    return struct.pack(">BBH", 2, 4, value)


def window_scale(shift: int) -> bytes:
    """TCP option 3, behind one NOP."""
    return struct.pack(">BBBB", 1, 3, 3, shift)


def sack_permitted() -> bytes:
    """TCP option 4, behind two NOPs."""
    return bytes([1, 1, 4, 2])


def sack(*blocks: tuple[int, int]) -> bytes:
    """TCP option 5, behind two NOPs."""
    edges = b"".join(struct.pack(">II", left & 0xFFFFFFFF, right & 0xFFFFFFFF) for left, right in blocks)
    return bytes([1, 1, 5, 2 + len(edges)]) + edges


def timestamps(value: int, echo: int) -> bytes:
    """TCP option 8, behind two NOPs."""
    return struct.pack(">BBBBII", 1, 1, 8, 10, value & 0xFFFFFFFF, echo & 0xFFFFFFFF)
