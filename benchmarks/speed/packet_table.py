"""Packets as NumPy columns, and a writer that turns millions of them into a pcap in seconds."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]

SYN, FIN, RST, PSH, ACK = 2, 1, 4, 8, 16
SNAP_LENGTH = 128
START_NS = 1_700_000_000 * 10**9
SEGMENT_BYTES = 1448
MILLISECOND_NS = 10**6
TEXT_STRIDE = 7919  # so that neighbouring segments and streams show other text

_RECORD = 16
_ETHERNET = 14
_IP = _RECORD + _ETHERNET
_TCP = _IP + 20
_OPTIONS = _TCP + 20
_CHUNK = 400_000
_TEXT_BYTES = 1 << 20


@dataclass(slots=True)
class PacketTable:
    """IPv4 TCP packets as columns of one length; `sack_left == sack_right` means no SACK block."""

    time_ns: Array
    source: Array  # uint32
    destination: Array
    source_port: Array
    destination_port: Array
    sequence: Array  # uint32
    acknowledgement: Array
    flags: Array
    window: Array  # as on the wire
    payload_bytes: Array
    tsval: Array
    tsecr: Array
    sack_left: Array
    sack_right: Array
    ip_id: Array
    ttl: Array
    text: Array  # where the payload starts in the text; a function of stream and offset

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, index: Array) -> PacketTable:
        """The packets at `index`, in that order."""
        return PacketTable(*(getattr(self, column.name)[index] for column in fields(self)))


def joined(tables: list[PacketTable]) -> PacketTable:
    """All packets in order of time; packets of one time keep their order."""
    columns = [np.concatenate([getattr(table, column.name) for table in tables]) for column in fields(PacketTable)]
    order = np.argsort(columns[0], kind="stable")
    return PacketTable(*(column[order] for column in columns))


def write_pcap(path: Path, table: PacketTable) -> None:
    """A nanosecond Ethernet pcap with snap length 128 and correct IP checksums; whole segments get a TCP one."""
    text = _text()
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_LENGTH, 1))
        for start in range(0, len(table), _CHUNK):
            file.write(_records(table.take(slice(start, start + _CHUNK)), text))  # type: ignore[arg-type]


def _text() -> Array:
    """Printable text without repetition within any 16 bytes that matter."""
    return np.random.default_rng(2006).integers(97, 123, _TEXT_BYTES + SNAP_LENGTH, dtype=np.uint8)


def _records(table: PacketTable, text: Array) -> bytes:
    count = len(table)
    record = np.zeros((count, _RECORD + SNAP_LENGTH), np.uint8)
    syn = (table.flags & SYN) > 0
    sacked = table.sack_left != table.sack_right
    option_bytes = np.where(syn, 20, np.where(sacked, 24, 12))
    header_bytes = 40 + option_bytes
    wire = _ETHERNET + header_bytes + table.payload_bytes
    held = np.minimum(wire, SNAP_LENGTH)

    _little(record, 0, table.time_ns // 10**9, 4)
    _little(record, 4, table.time_ns % 10**9, 4)
    _little(record, 8, held, 4)
    _little(record, 12, wire, 4)
    record[:, _RECORD : _RECORD + 12] = np.frombuffer(bytes.fromhex("020000000002020000000001"), np.uint8)
    record[:, _RECORD + 12] = 0x08

    record[:, _IP] = 0x45
    _big(record, _IP + 2, header_bytes + table.payload_bytes, 2)
    _big(record, _IP + 4, table.ip_id, 2)
    record[:, _IP + 6] = 0x40
    record[:, _IP + 8] = table.ttl
    record[:, _IP + 9] = 6
    _big(record, _IP + 12, table.source, 4)
    _big(record, _IP + 16, table.destination, 4)
    _big(record, _IP + 10, _checksum(record[:, _IP : _IP + 20]), 2)

    _big(record, _TCP, table.source_port, 2)
    _big(record, _TCP + 2, table.destination_port, 2)
    _big(record, _TCP + 4, table.sequence, 4)
    _big(record, _TCP + 8, np.where(table.flags & ACK, table.acknowledgement, 0), 4)
    record[:, _TCP + 12] = (20 + option_bytes) // 4 << 4
    record[:, _TCP + 13] = table.flags
    _big(record, _TCP + 14, table.window, 2)
    _options(record, table, syn, sacked)
    _payload(record, table, header_bytes, text)

    whole = np.flatnonzero(table.payload_bytes == 0)
    _big_at(record, whole, _TCP + 16, _tcp_checksum(record[whole], header_bytes[whole] - 20))
    keep = np.arange(_RECORD + SNAP_LENGTH) < (_RECORD + held)[:, None]
    return bytes(record[keep].tobytes())


def _options(record: Array, table: PacketTable, syn: Array, sacked: Array) -> None:
    """SYN: MSS, SACK permitted, timestamps, NOP, window scale 7, as Linux writes them; else timestamps and SACK."""
    at = np.flatnonzero(syn)
    record[at, _OPTIONS : _OPTIONS + 8] = [2, 4, 5, 180, 4, 2, 8, 10]
    _big_at(record, at, _OPTIONS + 8, table.tsval[at], 4)
    _big_at(record, at, _OPTIONS + 12, table.tsecr[at], 4)
    record[at, _OPTIONS + 16 : _OPTIONS + 20] = [1, 3, 3, 7]
    at = np.flatnonzero(~syn)
    record[at, _OPTIONS : _OPTIONS + 4] = [1, 1, 8, 10]
    _big_at(record, at, _OPTIONS + 4, table.tsval[at], 4)
    _big_at(record, at, _OPTIONS + 8, table.tsecr[at], 4)
    at = np.flatnonzero(sacked)
    record[at, _OPTIONS + 12 : _OPTIONS + 16] = [1, 1, 5, 10]
    _big_at(record, at, _OPTIONS + 16, table.sack_left[at], 4)
    _big_at(record, at, _OPTIONS + 20, table.sack_right[at], 4)


def _payload(record: Array, table: PacketTable, header_bytes: Array, text: Array) -> None:
    for header in np.unique(header_bytes[table.payload_bytes > 0]):
        at = np.flatnonzero((table.payload_bytes > 0) & (header_bytes == header))
        start = _IP + int(header)
        room = record.shape[1] - start
        record[at, start:] = text[(table.text[at] % _TEXT_BYTES)[:, None] + np.arange(room)]


def _checksum(header: Array) -> Array:
    words = header[:, 0::2].astype(np.uint32) << 8 | header[:, 1::2]
    total = words.sum(axis=1, dtype=np.uint64)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    folded: Array = ~total & 0xFFFF
    return folded


def _tcp_checksum(record: Array, tcp_bytes: Array) -> Array:
    segment = record[:, _TCP : _TCP + 44]
    pseudo = np.zeros((len(record), 12), np.uint8)
    pseudo[:, :8] = record[:, _IP + 12 : _IP + 20]
    pseudo[:, 9] = 6
    _big(pseudo, 10, tcp_bytes, 2)
    return _checksum(np.concatenate([pseudo, segment], axis=1))


def _little(record: Array, at: int, value: Array, size: int) -> None:
    for byte in range(size):
        record[:, at + byte] = value >> 8 * byte & 0xFF


def _big(record: Array, at: int, value: Array, size: int) -> None:
    for byte in range(size):
        record[:, at + byte] = value >> 8 * (size - 1 - byte) & 0xFF


def _big_at(record: Array, rows: Array, at: int, value: Array, size: int = 2) -> None:
    for byte in range(size):
        record[rows, at + byte] = value >> 8 * (size - 1 - byte) & 0xFF
