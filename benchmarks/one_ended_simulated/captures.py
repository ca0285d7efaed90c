"""Taps on routes, and their captures as pcap files with proper headers (RFC 791, 8200, 9293; libpcap's format)."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import merge
from ipaddress import IPv4Address, IPv6Address
from operator import itemgetter
from pathlib import Path
from random import Random

from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.packets import ACK, PSH, SYN, Offer, Packet

Address = IPv4Address | IPv6Address

_EPOCH_S = 1_780_000_000
_ETHERNET = b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
_LINK_TYPE = 1
_MODULUS = 1 << 32
_MERGE_WITHIN_S = 2e-4
_MERGED_BYTES = 60_000


@dataclass(frozen=True, slots=True)
class Face:
    """How the packets of one direction of a connection look at one place: addresses, number bases, hops left."""

    source: Address
    source_port: int
    target: Address
    target_port: int
    sequence_base: int
    acknowledgement_base: int
    timestamp_base: int
    echo_base: int
    hops: int

    def frame(self, packet: Packet) -> bytes:
        """The whole Ethernet frame."""
        options = _options(packet, self)
        window = packet.window_bytes >> (0 if packet.flags & SYN else packet.scale)
        tcp = bytearray(
            struct.pack(
                ">HHIIBBHHH",
                self.source_port,
                self.target_port,
                (self.sequence_base + packet.sequence) % _MODULUS,
                (self.acknowledgement_base + packet.acknowledgement) % _MODULUS if packet.flags & ACK else 0,
                (20 + len(options)) // 4 << 4,
                packet.flags,
                min(window, 0xFFFF),
                0,
                0,
            )
            + options
            + packet.payload
        )
        pseudo = self.source.packed + self.target.packed + struct.pack(">II", len(tcp), 6)
        struct.pack_into(">H", tcp, 16, checksum(pseudo + tcp))
        head = network_header(self.source, self.target, 6, self.hops, packet.identification, len(tcp))
        return head + bytes(tcp)


def network_header(
    source: Address, target: Address, protocol: int, hops: int, identification: int, payload_bytes: int
) -> bytes:
    """Ethernet and IP headers of a packet that is not to be fragmented."""
    if source.version == 6:
        header = bytearray(struct.pack(">IHBB", 6 << 28, payload_bytes, protocol, hops))
        return _ETHERNET + b"\x86\xdd" + bytes(header) + source.packed + target.packed
    header = bytearray(
        struct.pack(">BBHHHBBH", 0x45, 0, 20 + payload_bytes, identification, 0x4000, hops, protocol, 0)
        + source.packed
        + target.packed
    )
    struct.pack_into(">H", header, 10, checksum(header))
    return _ETHERNET + b"\x08\x00" + bytes(header)


def checksum(data: bytes | bytearray) -> int:
    """The Internet checksum (RFC 1071): one's complement addition is addition modulo 65,535."""
    total = int.from_bytes(data + b"\0" if len(data) % 2 else data, "big")
    return ~(total % 0xFFFF or (0xFFFF if total else 0)) & 0xFFFF


def _options(packet: Packet, face: Face) -> bytes:
    stamps = struct.pack(
        ">II",
        (face.timestamp_base + packet.timestamp) % _MODULUS,
        (face.echo_base + packet.echo) % _MODULUS if packet.flags & ACK else 0,
    )
    if packet.offer is not None:
        return _opening_options(packet.offer, stamps)
    raw = b"\x01\x01\x08\x0a" + stamps if packet.has_timestamps else b""
    if packet.sack:
        edges = b"".join(
            struct.pack(">II", *((face.acknowledgement_base + edge) % _MODULUS for edge in block))
            for block in packet.sack
        )
        raw += b"\x01\x01\x05" + bytes([2 + len(edges)]) + edges
    return raw


def _opening_options(offer: Offer, stamps: bytes) -> bytes:
    """By the letters of a layout: M segment size, S SACK, T timestamps, N no operation, W window scale, E end."""
    raw = b""
    for letter in offer.layout:
        if letter == "M":
            raw += b"\x02\x04" + struct.pack(">H", offer.segment_size)
        elif letter == "S" and offer.sack:
            raw += b"\x04\x02"
        elif letter == "T" and offer.timestamps:
            raw += b"\x08\x0a" + stamps
        elif letter == "W" and offer.scale is not None:
            raw += bytes([3, 3, offer.scale])
        elif letter == "N":
            raw += b"\x01"
        elif letter == "E":
            raw += b"\0"
    return raw + b"\0" * (-len(raw) % 4)


#: When a packet passed, and how it looked there.
Record = tuple[float, Packet, Face]


@dataclass(slots=True)
class Tap:
    """One capture point: keeps what passes."""

    clock: Clock
    records: list[Record] = field(default_factory=list)
    frames: list[tuple[float, bytes]] = field(default_factory=list)  # of what is not TCP

    def record(self, packet: Packet, face: Face) -> None:
        """Keep a packet with the time of now."""
        self.records.append((self.clock.now_s, packet, face))


@dataclass(frozen=True, slots=True)
class Recording:
    """How a tap's packets become a file."""

    snap_length: int = 262_144
    begins_at_s: float = 0.0
    missing_share: float = 0.0  # of packets that the capture did not keep
    clock_offset_s: float = 0.0
    merges: bool = False  # neighbours of one flow are captured as one large segment (GRO, TSO)


def write_capture(path: Path, tap: Tap, recording: Recording, random: Random) -> int:
    """Write a gzipped pcap file with times in nanoseconds. Gives the number of packets."""
    count = 0
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, recording.snap_length, _LINK_TYPE)]
    for time_s, frame in _frames(tap, recording, random):
        time_ns = round((time_s + recording.clock_offset_s) * 1e9)
        seconds, rest_ns = divmod(time_ns, 1_000_000_000)
        kept = frame[: recording.snap_length]
        parts.append(struct.pack("<IIII", _EPOCH_S + seconds, rest_ns, len(kept), len(frame)))
        parts.append(kept)
        count += 1
    path.write_bytes(gzip.compress(b"".join(parts), compresslevel=1, mtime=0))
    return count


def _frames(tap: Tap, recording: Recording, random: Random) -> Iterator[tuple[float, bytes]]:
    records: Iterable[Record] = tap.records
    if recording.merges:
        records = _merged(tap.records)
    segments = ((time_s, face.frame(packet)) for time_s, packet, face in records if time_s >= recording.begins_at_s)
    for time_s, frame in merge(segments, tap.frames, key=itemgetter(0)):
        if time_s < recording.begins_at_s:
            continue
        if recording.missing_share and random.random() < recording.missing_share:
            continue
        yield time_s, frame


def _merged(records: Iterable[Record]) -> Iterator[Record]:
    """Segments with the next ones of their flow, where nothing came between and only the PSH flag differs."""
    held: Record | None = None
    for record in records:
        if held is not None:
            (time_s, packet, face), (next_s, following, next_face) = held, record
            if (
                next_face is face
                and next_s - time_s < _MERGE_WITHIN_S
                and packet.payload
                and following.payload
                and following.sequence == packet.end
                and following.acknowledgement == packet.acknowledgement
                and (packet.flags, following.flags | PSH) == (ACK, ACK | PSH)
                and following.echo == packet.echo
                and len(packet.payload) + len(following.payload) < _MERGED_BYTES
            ):
                whole = replace(packet, payload=packet.payload + following.payload, flags=following.flags)
                held = (next_s, whole, face)
                continue
            yield held
        held = record
    if held is not None:
        yield held
