"""A capture as arrays, one row a TCP packet from its IP header on: an edit of a whole capture takes milliseconds."""

from __future__ import annotations

import socket
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tests.captures import containers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.captures.containers import CaptureFile

Array = npt.NDArray[Any]
#: The two ends of a connection, the one that opens it first, as `address:port`.
Ends = tuple[str, str]

#: Bytes kept of each packet: IP and TCP headers with all options (100 bytes for IPv6), and the 16 of the payload that
#: pairing and comparison read first, several times over.
ROW_BYTES = 160

#: Where the IP header starts, by link type of the recordings.
LINK_HEADER_BYTES = {
    containers.LINK_RAW: 0,
    containers.LINK_ETHERNET: 14,
    containers.LINK_LINUX_SLL: 16,
    containers.LINK_LINUX_SLL2: 20,
}

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
TIMESTAMPS, SACK = 8, 5
_TCP = 6


@dataclass(frozen=True, slots=True)
class Records:
    """The TCP packets of one capture, in the order of the file.

    `data` is what is known of each packet, padded with zeros; of it the capture shows `held` bytes, and the packet had
    `wire` bytes. `tcp` is where the TCP header starts; `timestamps` and `sack` are where these options start (0: none),
    `connection` numbers the connections and `is_up` marks packets from the end that opened theirs.
    """

    time_ns: Array
    data: Array
    held: Array
    wire: Array
    tcp: Array
    timestamps: Array
    sack: Array
    connection: Array
    is_up: Array

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, index: Array | slice) -> Records:
        """The rows at `index` (places or a mask), in that order."""
        return Records(*(getattr(self, column.name)[index] for column in fields(self)))

    def get(self, at: Array | int, size: int) -> Array:
        """The unsigned number of `size` bytes at `at` of each row."""
        rows, value = np.arange(len(self)), np.zeros(len(self), np.int64)
        for place in range(size):
            value = value << 8 | self.data[rows, at + place]
        return value

    def put(self, at: Array | int, size: int, value: Array | int, where: Array | None = None) -> Records:
        """The records with the low `size` bytes of `value` at `at`, in the rows of the mask `where` only."""
        chosen = np.arange(len(self)) if where is None else np.flatnonzero(where)
        places = np.broadcast_to(at, len(self))[chosen]
        values = np.broadcast_to(value, len(self))[chosen].astype(np.int64)
        data = self.data.copy()
        for place in range(size):
            data[chosen, places + place] = values >> 8 * (size - 1 - place) & 0xFF
        return replace(self, data=data)

    @property
    def version(self) -> Array:
        """4 or 6."""
        return self.data[:, 0] >> 4

    @property
    def flags(self) -> Array:
        return self.get(self.tcp + 13, 1)

    @property
    def sequence(self) -> Array:
        return self.get(self.tcp + 4, 4)

    @property
    def acknowledgement(self) -> Array:
        return self.get(self.tcp + 8, 4)

    @property
    def header_bytes(self) -> Array:
        """IP and TCP headers with their options."""
        return np.asarray(self.tcp + (self.get(self.tcp + 12, 1) >> 4) * 4)

    @property
    def payload_bytes(self) -> Array:
        return np.asarray(np.maximum(self.wire - self.header_bytes, 0))

    @property
    def connections(self) -> int:
        """How many numbers `connection` may hold."""
        return int(self.connection.max(initial=-1)) + 1

    def ends(self) -> dict[int, Ends]:
        """The end points of each connection of which a packet is left."""
        numbers, first = np.unique(self.connection, return_index=True)
        return {
            int(number): end_points(self.data[row].tobytes(), int(self.tcp[row]))[:: 1 if self.is_up[row] else -1]  # type: ignore[misc]
            for number, row in zip(numbers, first, strict=True)
        }


def joined(one: Records, two: Records, shift: int) -> Records:
    """Both in the order of their times; connections of `two` are numbered `shift` higher, which `one` leaves free."""
    shifted = replace(two, connection=two.connection + shift)
    both = Records(*(np.concatenate([getattr(one, c.name), getattr(shifted, c.name)]) for c in fields(Records)))
    return both.take(np.argsort(both.time_ns, kind="stable"))


def with_length(records: Records, where: Array) -> Records:
    """The records with `wire` written into the IP length field of the rows `where`."""
    is_6 = records.version == 6
    at = np.where(is_6, 4, 2)
    return records.put(at, 2, np.where(is_6, records.wire - 40, records.wire), where)


def end_points(packet: bytes, tcp: int) -> Ends:
    """Source and destination of an IP packet as `address:port`."""
    version_6 = packet[0] >> 4 == 6
    family, at, size = (socket.AF_INET6, 8, 16) if version_6 else (socket.AF_INET, 12, 4)
    ends = []
    for number in range(2):
        address = socket.inet_ntop(family, packet[at + size * number : at + size * (number + 1)])
        port = int.from_bytes(packet[tcp + 2 * number : tcp + 2 * number + 2], "big")
        ends.append(f"[{address}]:{port}" if version_6 else f"{address}:{port}")
    return ends[0], ends[1]


def records_of(capture: CaptureFile, openers: Mapping[frozenset[str], str]) -> Records:
    """The TCP packets of a capture that show their ports; `openers`: which end opened a connection, where known.

    Elsewhere the end with the higher port did, as ephemeral ports lie above those of services.
    """
    start = LINK_HEADER_BYTES[capture.link_type]
    rows, tcp, times, held, wire, connection, is_up = [], [], [], [], [], [], []
    numbers: dict[frozenset[str], int] = {}
    known: dict[bytes, tuple[int, bool]] = {}
    for frame in capture.frames:
        packet = frame.data[start : start + ROW_BYTES]
        at = _tcp_start(packet)
        if at is None:
            continue
        length = _length(packet) or frame.wire_length - start
        first, past = (8, 40) if packet[0] >> 4 == 6 else (12, 20)
        key = packet[first:past] + packet[at : at + 4]
        if key not in known:
            source, destination = end_points(packet, at)
            pair = frozenset((source, destination))
            opener = openers.get(pair) or max(source, destination, key=lambda end: (int(end.rpartition(":")[2]), end))
            known[key] = numbers.setdefault(pair, len(numbers)), source == opener
        number, up = known[key]
        rows.append(packet.ljust(ROW_BYTES, b"\0"))
        tcp.append(at)
        times.append(frame.time_ns)
        held.append(min(len(packet), length))
        wire.append(length)
        connection.append(number)
        is_up.append(up)
    data = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, ROW_BYTES)
    columns = (np.array(column, np.int64) for column in (times, held, wire, tcp, connection))
    times_ns, held_bytes, wire_bytes, tcp_at, numbered = columns
    stamps, sack = _options(data, tcp_at)
    return Records(times_ns, data, held_bytes, wire_bytes, tcp_at, stamps, sack, numbered, np.array(is_up, bool))


def _tcp_start(packet: bytes) -> int | None:
    """Where the TCP header starts, if it does and shows the ports; later fragments have none."""
    if len(packet) < 24:
        return None
    if packet[0] >> 4 == 6:
        start, is_tcp = 40, packet[6] == _TCP
    else:
        later_fragment = (packet[6] & 0x1F) << 8 | packet[7]
        start, is_tcp = (packet[0] & 15) * 4, packet[9] == _TCP and not later_fragment
    return start if is_tcp and len(packet) >= start + 4 else None


def _length(packet: bytes) -> int:
    """The value in the IP header, 0 where there is none."""
    if packet[0] >> 4 == 6:
        length = int.from_bytes(packet[4:6], "big")
        return 40 + length if length else 0
    return int.from_bytes(packet[2:4], "big")


def _options(data: Array, tcp: Array) -> tuple[Array, Array]:
    """Where the timestamp and the SACK option of each row start; 0 where there is none."""
    rows = np.arange(len(data))
    found = {TIMESTAMPS: np.zeros(len(data), np.int64), SACK: np.zeros(len(data), np.int64)}
    end = np.minimum(tcp + (data[rows, tcp + 12] >> 4).astype(np.int64) * 4, ROW_BYTES - 2)
    at = tcp + 20
    active = at < end
    while active.any():
        at = np.minimum(at, ROW_BYTES - 2)
        kind, length = data[rows, at], data[rows, at + 1].astype(np.int64)
        for wanted, places in found.items():
            places[active & (kind == wanted) & (places == 0)] = at[active & (kind == wanted) & (places == 0)]
        active &= (kind != 0) & ((kind == 1) | (length >= 2))
        at = at + np.where(kind == 1, 1, length)
        active &= at < end
    return found[TIMESTAMPS], found[SACK]
