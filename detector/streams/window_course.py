"""The advertised window over a connection: shut and open, its extremes, and its least share of the largest value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.pair import Pair, Vantage
from pepscope.captures.connections import MissingPackets
from pepscope.captures.packets import Direction, PacketColumns, TcpFlag

#: A window is shut below this share of its largest value, and open again above the other.
SHUT_SHARE = 0.05
OPEN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class WindowCourse:
    """How a window went: full-shut-full cycles, extremes in bytes, and its least share of what it had been before."""

    cycles: int
    times_shut: int
    least_bytes: int
    largest_bytes: int
    least_share: float


def bulk_direction(pair: Pair) -> Direction:
    """The direction that carries more stream bytes, at whichever vantage exists."""
    vantage = pair.vantages[0]
    up, down = vantage.connection.up.stream_bytes, vantage.connection.down.stream_bytes
    return Direction.UP if up > down else Direction.DOWN


def window_captured(vantage: Vantage, direction: Direction) -> bool:
    """Whether the capture holds the packets that advertise windows in `direction`: without them none was seen to shut
    because none was seen."""
    flow = vantage.flow(direction)
    return flow.packets > 0 and flow.missing_packets not in (MissingPackets.ALL, MissingPackets.PURE_ACKNOWLEDGEMENTS)


def window_course(packets: PacketColumns, direction: Direction) -> WindowCourse:
    """The course of the windows advertised by packets in `direction`."""
    looked_at = np.uint16(TcpFlag.SYN | TcpFlag.RST | TcpFlag.FIN | TcpFlag.ACK)
    advertised = (packets.direction == direction) & ((packets.flags & looked_at) == TcpFlag.ACK)
    windows = packets.window_bytes[advertised]
    if len(windows) == 0:
        return WindowCourse(0, 0, 0, 0, 1.0)
    # A window that is advertised again is no news, and most are.
    windows = windows[np.append(True, windows[1:] != windows[:-1])].astype(np.int64)
    largest = int(windows.max())
    opened = int(np.argmax(windows > OPEN_SHARE * windows[0]))
    windows = windows[opened:]
    # Full is what it had been so far: kernels grow their buffers during a transfer.
    share = windows / np.maximum(np.maximum.accumulate(windows), 1)
    least_bytes, least_share = int(windows.min()), float(share.min())
    if least_share > SHUT_SHARE:
        return WindowCourse(0, 0, least_bytes, largest, least_share)
    state = np.where(share <= SHUT_SHARE, -1, np.where(share >= OPEN_SHARE, 1, 0))
    state = state[state != 0]
    changes = state[np.flatnonzero(np.diff(state, prepend=0) != 0)]
    shut = int(np.count_nonzero(changes == -1))
    reopened = int(np.count_nonzero((changes[:-1] == -1) & (changes[1:] == 1))) if len(changes) > 1 else 0
    return WindowCourse(reopened, shut, least_bytes, largest, least_share)
