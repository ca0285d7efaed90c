"""Staircases of one connection at one vantage: when each byte was first sent or first arrived, and acknowledged.

All functions are vectorised over packets; offsets are stream offsets as in `PacketColumns`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pepscope.packets import NO_ACKNOWLEDGEMENT, Direction, Int64Array, PacketColumns, TcpFlag

#: A time that is not known, or never came.
NEVER = np.int64(np.iinfo(np.int64).max)

#: Timestamps of one host's receive queues are out of order by less; a fall beyond it is a clock that was set back.
BACKWARD_STEP_NS = 10_000_000

#: More falls than this are a file out of order.
BACKWARD_STEPS = 3

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ByteTimes:
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

    def covered_bytes(self) -> int:
        """Bytes of the stream that the capture holds."""
        return int((self.end - self.start).sum())


@dataclass(frozen=True, slots=True)
class AckTimes:
    """Cumulative acknowledgements: ascending values and the time (ns) at which each was first reached.

    Values at or below `floor` were reached before the capture began, or may have been; `plain[i]` says that the packet
    carried neither payload nor FIN, SYN or RST.
    """

    value: Int64Array
    time_ns: Int64Array
    plain: BoolArray
    floor: int

    def reaching(self, values: Int64Array) -> Int64Array:
        """When a cumulative acknowledgement of at least each value was first seen; `NEVER` where unknown."""
        if len(self.value) == 0:
            return np.full(len(values), NEVER, np.int64)
        index = np.searchsorted(self.value, values, side="left")
        known = (index < len(self.value)) & (values > self.floor)
        return np.where(known, self.time_ns[np.minimum(index, len(self.value) - 1)], NEVER)


def first_sent(packets: PacketColumns, direction: Direction) -> ByteTimes:
    """First copies at the sender: only data beyond everything sent before.

    Bytes that appear first below the highest offset sent are copies whose original the capture missed (a sender sends
    in order), so their time is not that of the first copy and they are left out.
    """
    time_ns, start, end = _data(packets, direction)
    before = _reached_before(end, start)
    advances = end > before
    return ByteTimes(np.maximum(start, before)[advances], end[advances], time_ns[advances])


def first_arrivals(packets: PacketColumns, direction: Direction) -> ByteTimes:
    """First arrival of every byte at the receiver; what fills a hole counts when it arrives."""
    time_ns, start, end = _data(packets, direction)
    if len(start) == 0:
        return ByteTimes(start, end, time_ns)
    before = _reached_before(end, start)
    before[0] = start.min()
    advances = end > before
    new_start = np.maximum(start, before)[advances]
    new_end, new_time = end[advances], time_ns[advances]
    fills = _hole_fillers(time_ns, start, end, before, new_start, new_end)
    if len(fills.start) == 0:
        return ByteTimes(new_start, new_end, new_time)
    order = np.argsort(np.concatenate([new_start, fills.start]), kind="stable")
    return ByteTimes(
        np.concatenate([new_start, fills.start])[order],
        np.concatenate([new_end, fills.end])[order],
        np.concatenate([new_time, fills.time_ns])[order],
    )


def acknowledgements(packets: PacketColumns, direction: Direction) -> AckTimes:
    """Acknowledgements of `direction`'s data in capture order, reduced to those that advance."""
    chosen = (packets.direction != direction) & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)
    chosen &= (packets.flags & TcpFlag.RST) == 0
    index = np.flatnonzero(chosen)
    value = packets.acknowledgement_offset[index]
    if len(index) == 0:
        return AckTimes(value, packets.time_ns[index], np.zeros(0, np.bool_), 0)
    highest = np.maximum.accumulate(value)
    advances = np.ones(len(value), np.bool_)
    advances[1:] = highest[1:] > highest[:-1]
    kept = index[advances]
    special = TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST
    plain = (packets.payload_bytes[kept] == 0) & ((packets.flags[kept] & special) == 0)
    floor = min(0, int(value[0])) if _saw_syn(packets) else int(value[0])
    return AckTimes(packets.acknowledgement_offset[kept], packets.time_ns[kept], plain, floor)


def retransmitted_ranges(packets: PacketColumns, direction: Direction) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Start, end and time of every segment that repeats bytes already sent (at the sender), in capture order."""
    time_ns, start, end = _data(packets, direction)
    repeats = start < _reached_before(end, start)
    return start[repeats], end[repeats], time_ns[repeats]


def without_backward_steps(packets: PacketColumns) -> PacketColumns:
    """Columns whose times no longer fold back where the capture's clock was set back.

    A capture is written in order, so a time that falls far is a step of the clock. What follows is moved to continue
    where time had got to; the true gap between the two packets, which is lost, remains as a small forward step. Files
    merged out of order fall back again and again and are left as they are.
    """
    if len(packets) < 2:
        return packets
    gaps = np.diff(packets.time_ns)
    falls = np.flatnonzero(gaps < -BACKWARD_STEP_NS)
    if len(falls) == 0 or len(falls) > BACKWARD_STEPS:
        return packets
    raised = np.zeros(len(packets), np.int64)
    for place in falls.tolist():
        raised[place + 1 :] -= gaps[place]
    return replace(packets, time_ns=packets.time_ns + raised)


def missed_ranges(held: ByteTimes, acks: AckTimes, *, from_start: bool) -> tuple[Int64Array, Int64Array]:
    """Start and end of byte ranges that were acknowledged within the capture but are not in `held`.

    `from_start` says that the capture holds the SYN, so that the stream should begin at offset 0. The last offset
    acknowledged may be the FIN's, which is no byte, and is not counted.
    """
    if len(held.start) == 0 or len(acks.value) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    top = int(acks.value[-1])
    if top == int(held.end[-1]) + 1:
        top -= 1
    first = 0 if from_start else int(held.start[0])
    start = np.concatenate([[first], held.end])
    end = np.minimum(np.concatenate([held.start, [max(top, int(held.end[-1]))]]), top)
    real = end > start
    return start[real].astype(np.int64), end[real].astype(np.int64)


def missed_packets(held: ByteTimes, acks: AckTimes, *, from_start: bool) -> tuple[float, int]:
    """Data packets that the capture admits to have missed (estimated from bytes), and those that it holds."""
    count = len(held.start)
    if count == 0:
        return 0.0, 0
    start, end = missed_ranges(held, acks, from_start=from_start)
    return float(np.ceil((end - start) * (count / max(held.covered_bytes(), 1))).sum()), count


def _saw_syn(packets: PacketColumns) -> bool:
    return bool((packets.flags[:64] & TcpFlag.SYN).any())


def _data(packets: PacketColumns, direction: Direction) -> tuple[Int64Array, Int64Array, Int64Array]:
    chosen = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
    start = packets.sequence_offset[chosen]
    return packets.time_ns[chosen], start, start + packets.payload_bytes[chosen].astype(np.int64)


def _reached_before(end: Int64Array, start: Int64Array) -> Int64Array:
    """Highest offset reached before each segment; the first segment has its own start."""
    before = np.empty_like(end)
    if len(end):
        before[0] = start[0]
        before[1:] = np.maximum.accumulate(end)[:-1]
    return before


def _hole_fillers(
    time_ns: Int64Array,
    start: Int64Array,
    end: Int64Array,
    before: Int64Array,
    new_start: Int64Array,
    new_end: Int64Array,
) -> ByteTimes:
    """First arrivals below the highest offset reached: clipped to the holes between the advancing ranges."""
    empty = np.zeros(0, np.int64)
    gap = new_start[1:] > new_end[:-1]
    hole_start, hole_end = new_end[:-1][gap], new_start[1:][gap]
    if len(hole_start) == 0:
        return ByteTimes(empty, empty, empty)
    late = np.flatnonzero(start < before)
    hole = np.searchsorted(hole_end, start[late], side="right")
    inside = (hole < len(hole_start)) & (end[late] > hole_start[np.minimum(hole, len(hole_start) - 1)])
    # A segment may span several holes; a filler of another segmentation is rare, so it is cut to the first of them.
    late, hole = late[inside], hole[inside]
    low = np.maximum(start[late], hole_start[hole])
    high = np.minimum(end[late], hole_end[hole])
    # Capture order decides among equal copies.
    _, first = np.unique(np.stack([low, high], axis=1), axis=0, return_index=True)
    low, high, when = low[first], high[first], time_ns[late][first]
    if np.any(low[1:] < high[:-1]):
        return _sweep(low, high, when)
    return ByteTimes(low, high, when)


def _sweep(low: Int64Array, high: Int64Array, when: Int64Array) -> ByteTimes:
    """Earliest time of every byte where fillers overlap."""
    edges = np.unique(np.concatenate([low, high]))
    earliest = np.full(len(edges) - 1, NEVER, np.int64)
    for begin, stop, time in zip(
        np.searchsorted(edges, low).tolist(), np.searchsorted(edges, high).tolist(), when.tolist(), strict=True
    ):
        piece = earliest[begin:stop]
        np.minimum(piece, time, out=piece)
    held = earliest != NEVER
    return ByteTimes(edges[:-1][held], edges[1:][held], earliest[held])
