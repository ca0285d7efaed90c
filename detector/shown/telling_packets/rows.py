"""Rows of packets by what they carry; offsets are stream offsets as in `PacketColumns`."""

from __future__ import annotations

import numpy as np

from detector.pair import Vantage
from pepscope import _core
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Int64Array, Mark, PacketColumns, TcpFlag

# Members of enums are combined once: that takes longer than looking at the packets of a small connection.
_AGAIN = int(Mark.RETRANSMISSION | Mark.DUPLICATE | Mark.KEEP_ALIVE | Mark.ZERO_WINDOW_PROBE)
_SPECIAL = int(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)


def data_rows(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets with payload in a direction."""
    return (packets.going(direction) & (packets.payload_bytes > 0)).nonzero()[0]


def first_copies(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets whose payload lies beyond all before, or fills a hole."""
    rows = data_rows(packets, direction)
    first: Int64Array = rows[(packets.marks[rows] & _AGAIN) == 0]
    return first


def flag_rows(packets: PacketColumns, direction: Direction, flags: int) -> Int64Array:
    """Packets of a direction that bear any of these flags."""
    return (packets.going(direction) & packets.flagged(flags)).nonzero()[0]


def acknowledging_rows(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets that acknowledge more of `direction`'s data than any before."""
    acknowledged = packets.acknowledgement_offset
    rows = (packets.going(direction.reverse) & (acknowledged > 0)).nonzero()[0]
    offsets = acknowledged[rows]
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = offsets[1:] > np.maximum.accumulate(offsets)[:-1]
    advancing: Int64Array = rows[is_new]
    return advancing


def pure_acknowledgements(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets in a direction that carry an acknowledgement and nothing else."""
    return np.flatnonzero(
        (packets.direction == direction)
        & (packets.payload_bytes == 0)
        & ((packets.flags & _SPECIAL) == 0)
        & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)
    )


def row_of_byte(vantage: Vantage, direction: Direction, offset: int) -> int | None:
    """The first packet that carries a byte of a stream; None where the capture holds none."""
    return _core.row_of_byte(vantage.packets, direction, offset)
