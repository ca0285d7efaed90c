"""Packets of a connection whose file has them in another order than that of time."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.streams.curves import DOUBTED_STEP_NS, is_clock_set_back, without_backward_steps
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Int64Array, PacketColumns, TcpFlag

#: A file that holds one direction behind the other changes the direction once.
_ONE_CHANGE = 1


class InTime(Struct, frozen=True):
    """Packets in the order of time.

    Packet i is packet `file_rows[i]` of the connection in its file; None where the file has the same order.
    `clock_set_back`: the file is in order, and its times fall back.
    """

    packets: PacketColumns
    file_rows: Int64Array | None = None
    clock_set_back: bool = False


def in_time(recorded: PacketColumns) -> InTime:
    """Packets in the order of time, where their times fall back.

    A capture is written in order, so that times fall back where its clock was set. A file that holds one direction
    behind the other (a tap's two files, one appended to the other), or what was captured first behind what followed,
    falls back as well, and its times are right.
    """
    if not _core.clock_falls(recorded, DOUBTED_STEP_NS):
        return InTime(recorded)
    order = np.argsort(recorded.time_ns, kind="stable")
    if _stand_apart(recorded, order) or _runs_back(recorded) > _runs_back(recorded, order):
        return InTime(PacketColumns(**{name: getattr(recorded, name)[order] for name in PacketColumns.COLUMNS}), order)
    packets = without_backward_steps(recorded)
    return InTime(packets, None, packets is not recorded or is_clock_set_back(recorded))


def _stand_apart(packets: PacketColumns, in_time: Int64Array) -> bool:
    """Whether a file holds one direction behind the other.

    Both directions are then there at the same time, and no packet comes before a SYN that the file holds.
    """
    if np.count_nonzero(np.diff(packets.direction)) != _ONE_CHANGE:
        return False
    if np.count_nonzero(np.diff(packets.direction[in_time])) == _ONE_CHANGE:
        return False
    is_request = (packets.flags[in_time] & np.uint16(TcpFlag.SYN | TcpFlag.ACK)) == TcpFlag.SYN
    return bool(is_request[0]) or not is_request.any()


def _runs_back(packets: PacketColumns, order: Int64Array | slice = slice(None)) -> int:
    """How many packets, in an order, acknowledge less than one of their direction before them: networks put few so,
    and a clock that was set back puts many so where packets are sorted by its times."""
    acknowledged, directions = packets.acknowledgement_offset[order], packets.direction[order]
    is_counted = (acknowledged != NO_ACKNOWLEDGEMENT) & ((packets.flags[order] & np.uint16(TcpFlag.RST)) == 0)
    behind = 0
    for direction in DIRECTIONS:
        values = acknowledged[is_counted & (directions == direction)]
        behind += int(np.count_nonzero(values < np.maximum.accumulate(values)))
    return behind
