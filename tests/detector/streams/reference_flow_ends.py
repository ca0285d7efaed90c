"""Ends of a flow in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns, TcpFlag

_ECN = np.uint16(TcpFlag.ECE | TcpFlag.CWR | TcpFlag.AE)


class Opening(NamedTuple):
    """Copies, windows, IP IDs, TSvals and ECN bits of a flow's SYN, and the hop limit of the first copy."""

    copies: int
    windows: frozenset[int]
    ip_ids: frozenset[int]
    tsvals: frozenset[int]
    ecn: frozenset[int]
    ttl: int


def opening(packets: PacketColumns, direction: Direction) -> Opening | None:
    """Those of a flow's SYN; None without any."""
    rows = np.flatnonzero(packets.going(direction) & packets.flagged(TcpFlag.SYN))
    if len(rows) == 0:
        return None
    stamped = rows[packets.marked(Mark.HAS_TIMESTAMPS)[rows]]
    return Opening(
        len(rows),
        _values(packets.window_bytes[rows].astype(np.int64)),
        _values(packets.ip_id[rows].astype(np.int64)),
        _values(packets.tsval[stamped].astype(np.int64)),
        _values((packets.flags[rows] & _ECN).astype(np.int64)),
        int(packets.ttl[rows[0]]),
    )


def fin_offset(packets: PacketColumns, direction: Direction) -> int | None:
    """Greatest stream offset of a flow's FIN; None without any."""
    fins = packets.going(direction) & packets.flagged(TcpFlag.FIN)
    if not fins.any():
        return None
    end = packets.sequence_offset[fins] + packets.payload_bytes[fins].astype(np.int64)
    return int(end.max())


def _values(column: Int64Array) -> frozenset[int]:
    return frozenset(column.tolist())
