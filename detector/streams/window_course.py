"""The advertised window over a connection: shut and open, its extremes, and its least share of the largest value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Pair, Vantage
from detector.streams.summaries import Summaries
from pepscope import _core
from pepscope._core import WindowCourse as WindowCourse
from pepscope.captures.connections import MISSING_PACKETS, MissingPackets
from pepscope.captures.packets import Direction, PacketColumns
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: A window is shut below this share of its largest value, and open again above the other.
SHUT_SHARE = 0.05
OPEN_SHARE = 0.5


def bulk_direction(pair: Pair) -> Direction:
    """The direction that carries more stream bytes, at whichever vantage exists."""
    vantage = pair.vantages[0]
    up, down = vantage.stream_bytes(Direction.UP), vantage.stream_bytes(Direction.DOWN)
    return Direction.UP if up > down else Direction.DOWN


def window_captured(vantage: Vantage, direction: Direction) -> bool:
    """Whether the capture holds the packets that advertise windows in `direction`: without them none was seen to shut
    because none was seen."""
    flow = vantage.flow(direction)
    return flow.packets > 0 and flow.missing_packets not in (MissingPackets.ALL, MissingPackets.PURE_ACKNOWLEDGEMENTS)


def windows_captured(summaries: Summaries, direction: Direction) -> BoolArray:
    """`window_captured` of many vantages."""
    missing = summaries.of_flow(direction, "missing_packets")
    has_packets = summaries.of_flow(direction, "packets") > 0
    return np.asarray(has_packets & (missing != _ALL) & (missing != _ACKNOWLEDGEMENTS))


_ALL, _ACKNOWLEDGEMENTS = map(MISSING_PACKETS.index, (MissingPackets.ALL, MissingPackets.PURE_ACKNOWLEDGEMENTS))


def window_course(packets: PacketColumns, direction: Direction) -> WindowCourse:
    """The course of the windows that packets in `direction` advertise, from the first that is open.

    Full is what it had been so far: kernels grow their buffers during a transfer.
    """
    return _core.window_course(direction.value, packets, SHUT_SHARE, OPEN_SHARE)


def least_window_shares(packets: Sequence[PacketColumns], directions: Sequence[Direction]) -> FloatArray:
    """`window_course(...).least_share` of many connections, each in its direction."""
    return _core.least_window_shares(directions, packets, SHUT_SHARE, OPEN_SHARE)
