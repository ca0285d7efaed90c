"""Capture file containers, written and read in plain Python: pcap and pcapng in every shape that tools write.

Formats: pcap (draft-ietf-opsawg-pcap), pcapng (draft-ietf-opsawg-pcapng), snoop (RFC 1761; written only).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

ByteOrder = Literal["<", ">"]

LINK_NULL = 0
LINK_ETHERNET = 1
LINK_ARCNET = 7
LINK_PPP = 9
LINK_FDDI = 10
LINK_PPP_HDLC = 50
LINK_PPP_ETHER = 51
LINK_RAW = 101
LINK_IEEE802_11 = 105
LINK_LOOP = 108
LINK_ENC = 109
LINK_LINUX_SLL = 113
LINK_PFLOG = 117
LINK_PRISM = 119
LINK_RADIOTAP = 127
LINK_ARCNET_LINUX = 129
LINK_AVS = 163
LINK_PPI = 192
LINK_ERF = 197
LINK_PPP_WITH_DIR = 204
LINK_IPNET = 226
LINK_IPV4 = 228
LINK_IPV6 = 229
LINK_NFLOG = 239
LINK_IPOIB = 242
LINK_PKTAP = 258
LINK_LINUX_SLL2 = 276
LINK_BROADCOM_TAG = 281
LINK_BROADCOM_TAG_PREPENDED = 282
LINK_MARVELL_TAG = 284
LINK_MARVELL_TAG_WITH_TYPE = 285

SNOOP_ETHERNET = 4

_MICROSECOND_MAGIC = 0xA1B2C3D4
_NANOSECOND_MAGIC = 0xA1B23C4D
_SECTION_HEADER = 0x0A0D0D0A
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_OPTION_TSRESOL = 9
_OPTION_TSOFFSET = 14


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: `time_ns` since the epoch, the bytes on the wire, and which pcapng interface saw it."""

    time_ns: int
    data: bytes
    interface: int = 0
    original_length: int | None = None  # where it is not len(data)

    @property
    def wire_length(self) -> int:
        """Bytes that the frame had on the wire."""
        return len(self.data) if self.original_length is None else self.original_length


@dataclass(frozen=True, slots=True)
class Interface:
    """A pcapng interface. `resolution` is the `if_tsresol` byte: n for 10^-n s, 0x80 | n for 2^-n s."""

    link_type: int
    resolution: int = 6
    offset_s: int = 0
    snap_length: int = 262_144

    def ticks(self, time_ns: int) -> int:
        """`time_ns` in this interface's unit, rounded down."""
        since = time_ns - self.offset_s * 10**9
        if self.resolution & 0x80:
            return (since << (self.resolution & 0x7F)) // 10**9
        return since * int(10**self.resolution) // 10**9

    def nanoseconds(self, ticks: int) -> int:
        """Nanoseconds since the epoch of a tick count, rounded down."""
        if self.resolution & 0x80:
            return (ticks * 10**9 >> (self.resolution & 0x7F)) + self.offset_s * 10**9
        return ticks * 10**9 // int(10**self.resolution) + self.offset_s * 10**9


class Compression(StrEnum):
    """What a capture is wrapped in."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"
    XZ = "xz"
    BZIP2 = "bzip2"
    LZ4 = "lz4"


def write_pcap(
    frames: Iterable[Frame],
    link_type: int,
    *,
    order: ByteOrder = "<",
    nanoseconds: bool = True,
    snap_length: int = 262_144,
) -> bytes:
    """A pcap file. Frames longer than `snap_length` bytes are cut."""
    magic, unit_ns = (_NANOSECOND_MAGIC, 1) if nanoseconds else (_MICROSECOND_MAGIC, 1000)
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_length, link_type)]
    for frame in frames:
        held = frame.data[:snap_length]
        seconds, rest = divmod(frame.time_ns, 10**9)
        parts.append(struct.pack(order + "IIII", seconds, rest // unit_ns, len(held), frame.wire_length))
        parts.append(held)
    return b"".join(parts)


def write_pcapng(
    frames: Iterable[Frame],
    interfaces: Sequence[Interface],
    *,
    order: ByteOrder = "<",
    simple_blocks: bool = False,
    unknown_blocks: bool = False,
) -> bytes:
    """A pcapng section. Simple packet blocks have no time and belong to interface 0; unknown ones are to be skipped."""
    parts = [_block(order, _SECTION_HEADER, struct.pack(order + "IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1))]
    for interface in interfaces:
        options = _option(order, _OPTION_TSRESOL, bytes([interface.resolution]))
        if interface.offset_s:
            options += _option(order, _OPTION_TSOFFSET, struct.pack(order + "q", interface.offset_s))
        body = struct.pack(order + "HHI", interface.link_type, 0, interface.snap_length)
        parts.append(_block(order, 1, body + options + _option(order, 0, b"")))
    for number, frame in enumerate(frames):
        if unknown_blocks and number % 3 == 0:
            parts.append(_block(order, 0x0BAD0000 + number, b"nothing to see here"[: 4 + number % 9]))
        interface = interfaces[frame.interface]
        held = frame.data[: interface.snap_length]
        if simple_blocks:
            parts.append(_block(order, 3, struct.pack(order + "I", frame.wire_length) + held))
            continue
        ticks = interface.ticks(frame.time_ns)
        head = (frame.interface, ticks >> 32, ticks & 0xFFFFFFFF, len(held), frame.wire_length)
        comment = _option(order, 1, b"a comment") + _option(order, 0, b"") if number % 2 else b""
        parts.append(_block(order, 6, struct.pack(order + "IIIII", *head) + _padded(held) + comment))
    return b"".join(parts)


def write_snoop(frames: Iterable[Frame], media: int) -> bytes:
    """A capture of Solaris' snoop; times are cut to microseconds."""
    parts = [struct.pack(">8sII", b"snoop", 2, media)]
    for frame in frames:
        seconds, rest = divmod(frame.time_ns, 10**9)
        padded = _padded(frame.data)
        parts.append(struct.pack(">IIII", frame.wire_length, len(frame.data), 24 + len(padded), 0))
        parts.append(struct.pack(">II", seconds, rest // 1000) + padded)
    return b"".join(parts)


def compress(data: bytes, compression: Compression) -> bytes:
    """`data` in the given wrapping."""
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return gzip.compress(data, mtime=0)
        case Compression.XZ:
            return lzma.compress(data)
        case Compression.ZSTD:
            return bytes(pa.Codec("zstd").compress(data, asbytes=True))
        case Compression.BZIP2:
            return bz2.compress(data)
        case Compression.LZ4:
            return bytes(pa.Codec("lz4").compress(data, asbytes=True))


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """The frames of a whole file and their link type (one only: what the corpus and the generators hold)."""

    link_type: int
    frames: list[Frame]


def read_capture(path: Path) -> CaptureFile:
    """Read a pcap or a pcapng of enhanced packet blocks, plain or gzip; stops at a damaged tail."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == struct.pack(">I", _SECTION_HEADER):
        return _read_pcapng(data)
    return _read_pcap(data)


def _read_pcap(data: bytes) -> CaptureFile:
    order = "<" if data[0] in (0xD4, 0x4D) else ">"
    magic, *_, link_type = struct.unpack_from(order + "IHHiIII", data)
    unit_ns = 1 if magic == _NANOSECOND_MAGIC else 1000
    frames: list[Frame] = []
    position = 24
    while position + 16 <= len(data):
        seconds, rest, held, wire = struct.unpack_from(order + "IIII", data, position)
        position += 16
        if position + held > len(data):
            break
        frames.append(Frame(seconds * 10**9 + rest * unit_ns, data[position : position + held], 0, wire))
        position += held
    return CaptureFile(link_type, frames)


def _read_pcapng(data: bytes) -> CaptureFile:
    order = "<" if data[8:12] == struct.pack("<I", _BYTE_ORDER_MAGIC) else ">"
    interfaces: list[Interface] = []
    frames: list[Frame] = []
    position = 0
    while position + 12 <= len(data):
        kind, length = struct.unpack_from(order + "II", data, position)
        if length < 12 or position + length > len(data):
            break
        body = data[position + 8 : position + length - 4]
        if kind == 1:
            interfaces.append(_read_interface(order, body))
        elif kind == 6:
            number, high, low, held, wire = struct.unpack_from(order + "IIIII", body)
            time_ns = interfaces[number].nanoseconds(high << 32 | low)
            frames.append(Frame(time_ns, body[20 : 20 + held], number, wire))
        position += length
    link_types = {interface.link_type for interface in interfaces}
    if len(link_types) != 1:
        raise ValueError(f"one link type wanted, found {sorted(link_types)}")
    return CaptureFile(link_types.pop(), frames)


def _read_interface(order: str, body: bytes) -> Interface:
    link_type, _, snap_length = struct.unpack_from(order + "HHI", body)
    resolution, offset_s, position = 6, 0, 8
    while position + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, position)
        value = body[position + 4 : position + 4 + length]
        if code == 0:
            break
        if code == _OPTION_TSRESOL:
            resolution = value[0]
        elif code == _OPTION_TSOFFSET:
            (offset_s,) = struct.unpack(order + "q", value)
        position += 4 + (length + 3) // 4 * 4
    return Interface(link_type, resolution, offset_s, snap_length)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _block(order: str, kind: int, body: bytes) -> bytes:
    body = _padded(body)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def _option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + _padded(value)
