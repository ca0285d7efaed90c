"""Super-packets, as a capture shows them where the network card or the kernel joins or cuts segments.

The rules are those of a simulation's taps, on real packets: same flow and headers, next in sequence, no flags but ACK
and PSH. A sender's super-packet is seen when its first segment leaves (segmentation offload), a receiver's when its
last one has come (receive offload).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import dpkt

from reference_sim.live_path.network import FIRST_MOBILE, SERVER, same_network
from reference_sim.live_path.taps import Record

_MOST_IP_BYTES = 65_535
_JOINABLE = dpkt.tcp.TH_ACK | dpkt.tcp.TH_PUSH
_IPV6_HEADER_BYTES = 40


@dataclass(frozen=True, slots=True)
class _Segment:
    """What of a TCP segment decides whether another may be joined to it."""

    direction: str
    #: Addresses, ports, and headers that must be equal.
    flow: tuple[bytes, bytes, int, int]
    alike: tuple[int, bytes, int, int]
    sequence: int
    flags: int
    payload_bytes: int
    header_bytes: int

    @property
    def can_grow(self) -> bool:
        return self.payload_bytes > 0 and self.flags == dpkt.tcp.TH_ACK


@dataclass(slots=True)
class _Held:
    record: Record
    segment: _Segment | None
    first_ns: int
    shown_ns: int
    payload_bytes: int
    flags: int
    data: bytes
    is_open: bool


class Coalescer:
    """Joins segments of one capture."""

    def __init__(self, within_ns: int, most_bytes: int, sending: str | None) -> None:
        self._within_ns, self._most_bytes, self._sending = within_ns, min(most_bytes, _MOST_IP_BYTES), sending
        self._held: list[_Held] = []

    def push(self, record: Record) -> Iterator[Record]:
        """Take a packet; what can be shown, in order of time."""
        segment = _segment(record)
        for held in self._held:
            held.is_open = held.is_open and record.time_ns - held.first_ns <= self._within_ns
        if segment is None or not self._join(record, segment):
            payload_bytes = 0 if segment is None else segment.payload_bytes
            self._held.append(
                _Held(
                    record, segment, record.time_ns, record.time_ns, payload_bytes,
                    0 if segment is None else segment.flags, record.data, segment is not None and segment.can_grow,
                )
            )  # fmt: skip
        yield from self._ready()

    def finish(self) -> Iterator[Record]:
        """Everything that is still held."""
        for held in self._held:
            held.is_open = False
        yield from self._ready()

    def _join(self, record: Record, segment: _Segment) -> bool:
        for held in self._held:
            first = held.segment
            if not held.is_open or first is None or first.flow != segment.flow:
                continue
            total = first.header_bytes + held.payload_bytes + segment.payload_bytes
            follows = (
                segment.alike == first.alike
                and segment.sequence == (first.sequence + held.payload_bytes) & 0xFFFFFFFF
                and 0 < segment.payload_bytes <= first.payload_bytes
                and segment.flags & ~_JOINABLE == 0
                and segment.flags & dpkt.tcp.TH_ACK
                and total <= self._most_bytes
            )
            if not follows:
                held.is_open = False
                return False
            if len(held.data) == first.header_bytes + held.payload_bytes:
                held.data += record.data[segment.header_bytes :]
            held.payload_bytes += segment.payload_bytes
            held.flags |= segment.flags
            if self._sending != segment.direction:
                held.shown_ns = record.time_ns
            held.is_open = segment.can_grow and segment.payload_bytes == first.payload_bytes
            return True
        return False

    def _ready(self) -> Iterator[Record]:
        while self._held:
            earliest = min(self._held, key=lambda held: held.shown_ns)
            if earliest.is_open:
                return
            self._held.remove(earliest)
            yield _record(earliest)


def _record(held: _Held) -> Record:
    segment = held.segment
    if segment is None or held.payload_bytes == segment.payload_bytes:
        return held.record
    total = segment.header_bytes + held.payload_bytes
    data = bytearray(held.data)
    if data[0] >> 4 == 4:
        struct.pack_into("!H", data, 2, total)
        struct.pack_into("!H", data, 10, 0)
        header_bytes = 4 * (data[0] & 15)
        struct.pack_into("!H", data, 10, dpkt.in_cksum(bytes(data[:header_bytes])))
    else:
        header_bytes = _IPV6_HEADER_BYTES
        struct.pack_into("!H", data, 4, total - _IPV6_HEADER_BYTES)
    data[header_bytes + 13] |= held.flags & dpkt.tcp.TH_PUSH
    return Record(held.shown_ns, total, bytes(data))


def _segment(record: Record) -> _Segment | None:
    """The TCP segment in a packet; none where there is none, or its headers were cut off."""
    data = record.data
    try:
        packet = dpkt.ip6.IP6(data) if data[:1] and data[0] >> 4 == 6 else dpkt.ip.IP(data)
        tcp = packet.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            return None
    except (dpkt.UnpackError, IndexError):
        return None
    is_version_6 = isinstance(packet, dpkt.ip6.IP6)
    ip_bytes = _IPV6_HEADER_BYTES if is_version_6 else 4 * packet.hl
    header_bytes = ip_bytes + 4 * tcp.off
    payload_bytes = (packet.plen + _IPV6_HEADER_BYTES if is_version_6 else packet.len) - header_bytes
    kind_of_service = packet.fc if is_version_6 else packet.tos
    hops = packet.hlim if is_version_6 else packet.ttl
    version = 6 if is_version_6 else 4
    comes_from_server = same_network(packet.src, SERVER[version])
    goes_to_mobile = same_network(packet.dst, FIRST_MOBILE[version])
    return _Segment(
        direction="down" if comes_from_server or goes_to_mobile else "up",
        flow=(bytes(packet.src), bytes(packet.dst), tcp.sport, tcp.dport),
        alike=(tcp.ack, bytes(tcp.opts), kind_of_service, hops),
        sequence=tcp.seq,
        flags=tcp.flags,
        payload_bytes=payload_bytes,
        header_bytes=header_bytes,
    )
