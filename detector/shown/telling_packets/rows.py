"""Rows of packets by what they carry; offsets are stream offsets as in `PacketColumns`."""

from __future__ import annotations

import numpy as np

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Int64Array, Mark, PacketColumns, TcpFlag


def data_rows(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets with payload in a direction."""
    return np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))


def first_copies(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets whose payload lies beyond all before, or fills a hole."""
    again = Mark.RETRANSMISSION | Mark.DUPLICATE | Mark.KEEP_ALIVE | Mark.ZERO_WINDOW_PROBE
    rows = data_rows(packets, direction)
    first: Int64Array = rows[(packets.marks[rows] & again) == 0]
    return first


def flag_rows(packets: PacketColumns, direction: Direction, flag: TcpFlag) -> Int64Array:
    """Packets of a direction that bear a flag."""
    return np.flatnonzero((packets.direction == direction) & ((packets.flags & flag) != 0))


def acknowledging_rows(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets that acknowledge more of `direction`'s data than any before."""
    rows = np.flatnonzero((packets.direction == direction.reverse) & (packets.acknowledgement_offset > 0))
    offsets = packets.acknowledgement_offset[rows]
    if len(rows) == 0:
        return rows
    before = np.concatenate(([0], np.maximum.accumulate(offsets)[:-1]))
    advancing: Int64Array = rows[offsets > before]
    return advancing


def pure_acknowledgements(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets in a direction that carry an acknowledgement and nothing else."""
    special = TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST
    return np.flatnonzero(
        (packets.direction == direction)
        & (packets.payload_bytes == 0)
        & ((packets.flags & special) == 0)
        & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)
    )


def row_of_byte(packets: PacketColumns, direction: Direction, offset: int) -> int | None:
    """The first packet that carries a byte of a stream; None where the capture holds none."""
    rows = data_rows(packets, direction)
    start = packets.sequence_offset[rows]
    holding = rows[(start <= offset) & (offset < start + packets.payload_bytes[rows])]
    return int(holding[0]) if len(holding) else None
