"""Staircases of one connection at one vantage: when each byte was first sent or first arrived, and acknowledged.

All functions are vectorised over packets; offsets are stream offsets as in `PacketColumns`.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from pepscope import _core
from pepscope.captures.packets import BoolArray, Direction, Int64Array, PacketColumns, TcpFlag

#: A time that is not known, or never came.
NEVER = np.int64(np.iinfo(np.int64).max)

#: Timestamps of one host's receive queues are out of order by less; a fall beyond it is a clock that was set back.
BACKWARD_STEP_NS = 10_000_000

#: Interrupts that a network card collects, and the queues that they fill, put packets out of order by less; a smaller
#: step back than `BACKWARD_STEP_NS` shows that the clock was set, but not by how much: a pause may hide most of it.
DOUBTED_STEP_NS = 1_000_000

#: More falls than this are a file out of order.
BACKWARD_STEPS = 3


class ByteTimes(Struct, frozen=True):
    """Disjoint ascending byte ranges [start, end) of a stream, each with the time (ns) it was first captured."""

    start: Int64Array
    end: Int64Array
    time_ns: Int64Array

    def at(self, offsets: Int64Array) -> Int64Array:
        """Time of each byte offset; `NEVER` where the capture does not hold the byte."""
        if len(self.start) == 0:
            return np.full(len(offsets), NEVER, np.int64)
        index = np.searchsorted(self.start, offsets, side="right") - 1
        held = (index >= 0) & (offsets < self.end[np.maximum(index, 0)])
        return np.where(held, self.time_ns[np.maximum(index, 0)], NEVER)


class AckTimes(Struct, frozen=True):
    """Cumulative acknowledgements: ascending values and the time (ns) at which each was first reached.

    Values at or below `floor` were reached before the capture began, or may have been; `plain[i]`: the packet carried
    no payload, FIN, SYN or RST.
    """

    value: Int64Array
    time_ns: Int64Array
    plain: BoolArray
    floor: int


class SentData(Struct, frozen=True):
    """One direction's data in capture order: what lay beyond everything before, and the segments that began below.

    At the sender the former are first copies. Bytes that appear first below the highest offset sent are copies whose
    original the capture missed (a sender sends in order), so their time is not that of the first copy. `repeats` are
    whole segments and may overlap.
    """

    first_copies: ByteTimes
    repeats: ByteTimes


def sent_data(packets: PacketColumns, direction: Direction) -> SentData:
    """Separate the first copies of `direction`'s data from segments that begin below the highest offset sent before."""
    beyond, below = _core.data_ranges(direction, packets)
    return SentData(ByteTimes(*beyond), ByteTimes(*below))


def first_arrivals(packets: PacketColumns, direction: Direction) -> ByteTimes:
    """First arrival of every byte at the receiver; what fills a hole counts when it arrives."""
    return ByteTimes(*_core.first_arrivals(direction, packets))


def acknowledgements(packets: PacketColumns, direction: Direction) -> AckTimes:
    """Acknowledgements of `direction`'s data in capture order, reduced to those that advance."""
    value, time_ns, plain = _core.acknowledgement_steps(direction, packets)
    if len(value) == 0:
        return AckTimes(value, time_ns, plain, 0)
    return AckTimes(value, time_ns, plain, min(0, int(value[0])) if _saw_syn(packets) else int(value[0]))


def without_backward_steps(packets: PacketColumns) -> PacketColumns:
    """Columns whose times no longer fold back where the capture's clock was set back.

    A capture is written in order, so a time that falls far is a step of the clock. What follows is moved to continue
    where time had got to; the true gap between the two packets, which is lost, remains as a small forward step. Files
    merged out of order fall back again and again and are left as they are, and so is a single packet that stands too
    late in its file: the next one is back where time had got to.
    """
    falls = _core.clock_falls(packets, BACKWARD_STEP_NS)
    if not falls or len(falls) > BACKWARD_STEPS:
        return packets
    raised = np.zeros(len(packets), np.int64)
    for row in falls:
        raised[row:] += packets.time_ns[row - 1] - packets.time_ns[row]
    return packets.replaced(time_ns=packets.time_ns + raised)


def is_clock_set_back(packets: PacketColumns) -> bool:
    """Whether times fall back, a few times only, by more than a host's queues make them."""
    return 0 < len(_core.clock_falls(packets, DOUBTED_STEP_NS)) <= BACKWARD_STEPS


def _saw_syn(packets: PacketColumns) -> bool:
    return bool(packets.flagged(TcpFlag.SYN)[:64].any())
