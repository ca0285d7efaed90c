"""Packets of one TCP connection as columns: the shape in which every method reads a capture."""

from __future__ import annotations

from enum import IntFlag

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope._core import PacketColumns as PacketColumns
from pepscope._core import PayloadSample as PayloadSample
from pepscope.captures.direction import Direction as Direction

Int64Array = npt.NDArray[np.int64]
UInt32Array = npt.NDArray[np.uint32]
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


class SackBlocks(Struct, frozen=True):
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
