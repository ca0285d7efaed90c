"""TCP segments as middleboxes in mid-path read, make and change them: IPv4 or IPv6, options, checksums.

Formats: RFC 791, RFC 8200 (no extension headers), RFC 9293, RFC 7323 (timestamps), RFC 2018 (SACK).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

TCP = 6
FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_MODULUS = 1 << 32


class Option(IntEnum):
    """Kinds of TCP options (IANA)."""

    END, NOP, MSS, SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8


def after(one: int, other: int) -> bool:
    """Whether a sequence number lies after another one (RFC 9293, 3.4)."""
    return one != other and (one - other) % _MODULUS < _MODULUS // 2


def advance(sequence: int, by: int) -> int:
    """A sequence number moved on."""
    return (sequence + by) % _MODULUS


def distance(later: int, earlier: int) -> int:
    """Bytes from one sequence number to a later one; negative where it is the earlier one."""
    ahead = (later - earlier) % _MODULUS
    return ahead if ahead < _MODULUS // 2 else ahead - _MODULUS


@dataclass(slots=True)
class Segment:
    """One TCP segment with its IP header (`ip`, without options); addresses are packed, `options` are raw bytes."""

    ip: bytearray
    source_port: int
    target_port: int
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    options: bytes
    payload: bytes

    @property
    def version(self) -> int:
        """4 or 6."""
        return self.ip[0] >> 4

    @property
    def source(self) -> bytes:
        """Packed address of the sender."""
        return bytes(self.ip[12:16] if self.version == 4 else self.ip[8:24])

    @property
    def target(self) -> bytes:
        """Packed address of the receiver."""
        return bytes(self.ip[16:20] if self.version == 4 else self.ip[24:40])

    @property
    def hops(self) -> int:
        """TTL or hop limit."""
        return self.ip[8] if self.version == 4 else self.ip[7]

    @property
    def end(self) -> int:
        """The sequence number after this segment."""
        return advance(self.sequence, len(self.payload) + bool(self.flags & SYN) + bool(self.flags & FIN))

    @property
    def is_plain_acknowledgement(self) -> bool:
        """No data, nothing but ACK set."""
        return not self.payload and self.flags & (SYN | FIN | RST | ACK) == ACK

    def option(self, kind: Option) -> bytes | None:
        """The value of an option, None where it is absent."""
        return next((value for found, value in read_options(self.options) if found == kind), None)

    @property
    def timestamps(self) -> tuple[int, int] | None:
        """TSval and TSecr."""
        value = self.option(Option.TIMESTAMPS)
        return None if value is None or len(value) != 8 else struct.unpack(">II", value)

    @property
    def selective(self) -> list[tuple[int, int]]:
        """SACK blocks."""
        value = self.option(Option.SACK) or b""
        return [struct.unpack_from(">II", value, at) for at in range(0, len(value) - 7, 8)]

    def bytes(self) -> bytes:
        """As on the wire, with lengths and checksums made anew."""
        options = self.options + b"\0" * (-len(self.options) % 4)
        offset = (20 + len(options)) // 4 << 4
        head = struct.pack(
            ">HHIIBBHHH", self.source_port, self.target_port, self.sequence, self.acknowledgement, offset, self.flags,
            self.window, 0, 0,
        )  # fmt: skip
        tcp = bytearray(head + options + self.payload)
        pseudo = self.source + self.target + struct.pack(">II", len(tcp), TCP)
        struct.pack_into(">H", tcp, 16, checksum(pseudo + tcp))
        ip = bytearray(self.ip)
        if self.version == 4:
            struct.pack_into(">H", ip, 2, len(ip) + len(tcp))
            struct.pack_into(">H", ip, 10, 0)
            struct.pack_into(">H", ip, 10, checksum(bytes(ip)))
        else:
            struct.pack_into(">H", ip, 4, len(tcp))
        return bytes(ip + tcp)


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = int(sum(struct.unpack(f">{len(data) // 2}H", data)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def read(packet: bytes) -> Segment | None:
    """The TCP segment in a packet; None where it has none (or IPv6 extension headers)."""
    if packet[0] >> 4 == 4:
        start, end, protocol = (packet[0] & 15) * 4, struct.unpack_from(">H", packet, 2)[0], packet[9]
        kept = bytearray(packet[:20])
        kept[0] = 0x45
    else:
        start, end, protocol = 40, 40 + struct.unpack_from(">H", packet, 4)[0], packet[6]
        kept = bytearray(packet[:40])
    if protocol != TCP or len(packet) < start + 20:
        return None
    source_port, target_port, sequence, acknowledgement, offset, flags, window = struct.unpack_from(
        ">HHIIBBH", packet, start
    )
    data = start + (offset >> 4) * 4
    return Segment(
        kept, source_port, target_port, sequence, acknowledgement, flags, window, packet[start + 20 : data],
        packet[data:end],
    )  # fmt: skip


def read_options(raw: bytes) -> list[tuple[int, bytes]]:
    """Kinds and values in the order in which they stand, without padding."""
    found, at = [], 0
    while at < len(raw) and raw[at] != Option.END:
        if raw[at] == Option.NOP:
            at += 1
            continue
        if at + 1 >= len(raw) or raw[at + 1] < 2:
            break
        found.append((raw[at], raw[at + 2 : at + raw[at + 1]]))
        at += raw[at + 1]
    return found


def write_options(options: list[tuple[int, bytes]]) -> bytes:
    """Options one after the other, padded to whole words with NOPs in front as Linux does."""
    raw = b"".join(bytes((kind, len(value) + 2)) + value for kind, value in options)
    return bytes((Option.NOP,)) * (-len(raw) % 4) + raw


def bare_header(source: bytes, target: bytes, hops: int, identification: int) -> bytearray:
    """An IP header for a segment of one's own: DF set, no options."""
    if len(source) == 4:
        return bytearray(
            struct.pack(">BBHHHBBH4s4s", 0x45, 0, 0, identification & 0xFFFF, 0x4000, hops, TCP, 0, source, target)
        )
    return bytearray(struct.pack(">IHBB16s16s", 6 << 28, 0, TCP, hops, source, target))


def with_timestamp(packet: bytes, value: int | None) -> bytes:
    """The packet with another TSval where it has timestamps and a value is given."""
    segment = read(packet)
    if segment is None or segment.timestamps is None or value is None:
        return packet
    echoed = segment.timestamps[1]
    segment.options = write_options(
        [
            (k, struct.pack(">II", value, echoed) if k == Option.TIMESTAMPS else v)
            for k, v in read_options(segment.options)
        ]
    )
    return segment.bytes()
