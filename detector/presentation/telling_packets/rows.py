"""Rows of packets by what they carry; offsets are stream offsets as in `PacketColumns`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from detector.pair import Vantage
from pepscope import _core
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Int64Array, PacketColumns, TcpFlag

_SPECIAL = int(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)


def data_rows(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets with payload in a direction."""
    return _core.data_rows(packets, direction)


def first_copies(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets whose payload lies beyond all before, or fills a hole."""
    return _core.first_copies(packets, direction)


def flag_rows(packets: PacketColumns, direction: Direction, flags: int) -> Int64Array:
    """Packets of a direction that bear any of these flags."""
    return (packets.going(direction) & packets.flagged(flags)).nonzero()[0]


def first_flagged(packets: PacketColumns, direction: Direction, flags: int) -> int | None:
    """The first packet of a direction that bears any of these flags."""
    return _core.first_flagged(packets, direction, flags)


def acknowledging_rows(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets that acknowledge more of `direction`'s data than any before."""
    return _core.acknowledging_rows(packets, direction)


def pure_acknowledgements(packets: PacketColumns, direction: Direction) -> Int64Array:
    """Packets in a direction that carry an acknowledgement and nothing else."""
    return np.flatnonzero(
        (packets.direction == direction)
        & (packets.payload_bytes == 0)
        & ((packets.flags & _SPECIAL) == 0)
        & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)
    )


def rows_of_flows(
    find: Callable[[Sequence[PacketColumns], Sequence[int]], Sequence[tuple[int, int] | None]],
    vantages: Sequence[Vantage | None],
    directions: Sequence[Direction],
) -> Iterator[tuple[int, Vantage, tuple[int, int]]]:
    """What `find` finds in the packets of flows, of those vantages that there are and have it, with their places."""
    there = [(place, vantage) for place, vantage in enumerate(vantages) if vantage is not None]
    found = find([vantage.packets for _, vantage in there], [directions[place] for place, _ in there])
    return ((*there[at], rows) for at, rows in enumerate(found) if rows is not None)


def row_of_byte(vantage: Vantage, direction: Direction, offset: int) -> int | None:
    """The first packet that carries a byte of a stream; None where the capture holds none."""
    return _core.row_of_byte(vantage.packets, direction, offset)
