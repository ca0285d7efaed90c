"""Packets of one TCP connection as columns: the shape in which every method reads a capture."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pepscope._core import PayloadSample as PayloadSample
from pepscope.captures.direction import Direction as Direction

if TYPE_CHECKING:
    import pandas as pd

Int64Array = npt.NDArray[np.int64]
UInt32Array = npt.NDArray[np.uint32]
UInt16Array = npt.NDArray[np.uint16]
UInt8Array = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]

#: Acknowledgement offset of a packet that carries no ACK flag.
NO_ACKNOWLEDGEMENT = -(1 << 62)


class TcpFlag(IntFlag):
    """TCP header flags as on the wire (RFC 9293 section 3.1)."""

    FIN = 0x001
    SYN = 0x002
    RST = 0x004
    PSH = 0x008
    ACK = 0x010
    URG = 0x020
    ECE = 0x040
    CWR = 0x080
    AE = 0x100


class Mark(IntFlag):
    """Results of the analysis of one capture for each packet.

    A TCP option is present (`HAS_TIMESTAMPS`, `HAS_SACK`), absent, or not captured: it is absent only where neither its
    own mark nor `OPTIONS_TRUNCATED` is set. `HEADER_TRUNCATED`: a part of the TCP header was not captured;
    ports, numbers, flags and window of a packet always were.
    """

    RETRANSMISSION = 0x0001
    REORDERED = 0x0002
    DUPLICATE = 0x0004
    ZERO_WINDOW = 0x0008
    ZERO_WINDOW_PROBE = 0x0010
    KEEP_ALIVE = 0x0020
    DUPLICATE_ACK = 0x0040
    WINDOW_UPDATE = 0x0080
    GAP_BEFORE = 0x0100
    HAS_TIMESTAMPS = 0x0200
    HAS_SACK = 0x0400
    HEADER_TRUNCATED = 0x0800
    OPTIONS_TRUNCATED = 0x1000


@dataclass(frozen=True, slots=True)
class PacketColumns:
    """Packets of one connection in capture order; all arrays have the same length.

    Offsets count payload bytes of a direction's stream from the byte after its SYN (offset 0), in 64 bits across
    sequence wraps; a SYN stands at -1 and a FIN takes one offset after the last byte. Where the SYN is missing,
    offset 0 is the lowest sequence number seen in the first window of packets.
    """

    time_ns: Int64Array
    direction: UInt8Array
    sequence_offset: Int64Array
    acknowledgement_offset: Int64Array  # in the reverse stream; NO_ACKNOWLEDGEMENT without ACK flag
    payload_bytes: UInt32Array
    window_bytes: UInt32Array  # scaled by the flow's window_shift; as on the wire where that is None
    flags: UInt16Array  # TcpFlag
    tsval: UInt32Array  # valid where marks & HAS_TIMESTAMPS
    tsecr: UInt32Array
    ip_id: UInt16Array
    ttl: UInt8Array
    payload_hash: UInt32Array  # of the first 16 payload bytes; 0 where fewer were captured than min(16, payload_bytes)
    marks: UInt16Array  # Mark
    round_trip_time_ns: Int64Array  # on the ACK that completes a sample (Karn), else -1

    def __len__(self) -> int:
        return len(self.time_ns)

    # NumPy takes several times as long to compare with a member of an enum as with its number.

    def going(self, direction: Direction) -> BoolArray:
        """Which packets are of this flow."""
        found: BoolArray = self.direction == direction.value
        return found

    def flagged(self, flags: TcpFlag) -> BoolArray:
        """Which packets bear any of these flags."""
        found: BoolArray = (self.flags & flags.value) != 0
        return found

    def marked(self, marks: Mark) -> BoolArray:
        """Which packets have any of these marks."""
        found: BoolArray = (self.marks & marks.value) != 0
        return found

    def to_frame(self) -> pd.DataFrame:
        """The columns as a pandas frame (arrays are not copied where pandas allows it)."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.__slots__}, copy=False)


@dataclass(frozen=True, slots=True)
class SackBlocks:
    """Selective acknowledgement blocks (RFC 2018) of one connection, in the order of their packets.

    Block i is in packet `packet[i]` (a row of the connection's `PacketColumns`) and reports the bytes [left, right) of
    the stream that the packet acknowledges, as offsets in it. A duplicate report (D-SACK, RFC 2883) lies below
    the packet's acknowledgement.
    """

    packet: Int64Array
    left: Int64Array
    right: Int64Array

    def __len__(self) -> int:
        return len(self.packet)
