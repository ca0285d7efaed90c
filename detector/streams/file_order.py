"""Packets of a connection whose file has them in another order than that of time."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.streams.curves import is_clock_set_back, without_backward_steps
from pepscope.captures.packets import Int64Array, PacketColumns, TcpFlag

#: A file that holds one direction behind the other changes the direction once.
ONE_CHANGE = 1


class InTime(Struct, frozen=True):
    """Packets in the order of time.

    Packet i is packet `file_rows[i]` of the connection in its file; None where the file has the same order.
    `clock_set_back`: the file is in order, and its times fall back.
    """

    packets: PacketColumns
    file_rows: Int64Array | None = None
    clock_set_back: bool = False


def in_time(recorded: PacketColumns) -> InTime:
    """Packets whose times fall back, in the order of time.

    A capture is written in order, so that times fall back where its clock was set. A file that holds one direction
    behind the other (a tap's two files, one appended to the other) falls back as well, and its times are right.
    """
    order = _order_of_directions_apart(recorded)
    if order is not None:
        columns = {name: getattr(recorded, name)[order] for name in PacketColumns.COLUMNS}
        return InTime(PacketColumns(**columns), order)
    packets = without_backward_steps(recorded)
    return InTime(packets, None, packets is not recorded or is_clock_set_back(recorded))


def _order_of_directions_apart(packets: PacketColumns) -> Int64Array | None:
    """The order of time of a file that holds one direction behind the other; None of any other file.

    Both directions are then there at the same time, and no packet comes before a SYN that the file holds.
    """
    if np.count_nonzero(np.diff(packets.direction)) != ONE_CHANGE:
        return None
    order = np.argsort(packets.time_ns, kind="stable")
    if np.count_nonzero(np.diff(packets.direction[order])) == ONE_CHANGE:
        return None
    is_request = (packets.flags[order] & np.uint16(TcpFlag.SYN | TcpFlag.ACK)) == TcpFlag.SYN
    return order if is_request[0] or not is_request.any() else None
