"""`detector.streams.curves` in NumPy: what the compiled one is compared with."""

from __future__ import annotations

import numpy as np

from detector.streams.curves import NEVER, AckTimes, ByteTimes, SentData, sent_data
from pepscope.captures.packets import Direction, Int64Array, PacketColumns


def first_arrivals(packets: PacketColumns, direction: Direction) -> ByteTimes:
    """First arrival of every byte at the receiver; what fills a hole counts when it arrives."""
    came = sent_data(packets, direction)
    fills = _hole_fillers(came)
    if len(fills.start) == 0:
        return came.first_copies
    order = np.argsort(np.concatenate([came.first_copies.start, fills.start]), kind="stable")
    return ByteTimes(
        np.concatenate([came.first_copies.start, fills.start])[order],
        np.concatenate([came.first_copies.end, fills.end])[order],
        np.concatenate([came.first_copies.time_ns, fills.time_ns])[order],
    )


def reaching(acks: AckTimes, values: Int64Array) -> Int64Array:
    """When a cumulative acknowledgement of at least each value was first seen; `NEVER` where unknown."""
    if len(acks.value) == 0:
        return np.full(len(values), NEVER, np.int64)
    index = np.searchsorted(acks.value, values, side="left")
    known = (index < len(acks.value)) & (values > acks.floor)
    return np.where(known, acks.time_ns[np.minimum(index, len(acks.value) - 1)], NEVER)


def missed_ranges(held: ByteTimes, acks: AckTimes, *, from_start: bool) -> tuple[Int64Array, Int64Array]:
    """Start and end of byte ranges that were acknowledged within the capture but are not in `held`.

    `from_start`: the capture holds the SYN, so the stream should begin at offset 0. The last offset
    acknowledged may be the FIN's, which is no byte, and is not counted.
    """
    if len(held.start) == 0 or len(acks.value) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    top = int(acks.value[-1])
    if top == int(held.end[-1]) + 1:
        top -= 1
    first = 0 if from_start else int(held.start[0])
    before = np.flatnonzero(held.start[1:] > held.end[:-1])
    start = np.concatenate([[first], held.end[before], held.end[-1:]])
    end = np.concatenate([held.start[:1], held.start[before + 1], [max(top, int(held.end[-1]))]])
    end = np.minimum(end, top)
    real = end > start
    return start[real].astype(np.int64), end[real].astype(np.int64)


def missed_packets(held: ByteTimes, acks: AckTimes, *, from_start: bool) -> tuple[float, int]:
    """Data packets that the capture admits to have missed (estimated from bytes), and those that it holds."""
    count = len(held.start)
    if count == 0:
        return 0.0, 0
    start, end = missed_ranges(held, acks, from_start=from_start)
    return float(np.ceil((end - start) * (count / max(int((held.end - held.start).sum()), 1))).sum()), count


def clock_falls(time_ns: Int64Array, least_ns: int) -> list[int]:
    """Rows before which the clock fell, unless the next packet is back where time had got to."""
    if len(time_ns) < 2:
        return []
    back = np.append(time_ns[2:] >= time_ns[:-2], False)
    return [int(place) + 1 for place in np.flatnonzero((np.diff(time_ns) < -least_ns) & ~back)]


def _hole_fillers(came: SentData) -> ByteTimes:
    """First arrivals below the highest offset reached: clipped to the holes between the advancing ranges."""
    beyond, late = came.first_copies, came.repeats
    gap = beyond.start[1:] > beyond.end[:-1]
    hole_start, hole_end = beyond.end[:-1][gap], beyond.start[1:][gap]
    if len(hole_start) == 0:
        return ByteTimes(hole_start, hole_end, hole_end)
    hole = np.searchsorted(hole_end, late.start, side="right")
    inside = (hole < len(hole_start)) & (late.end > hole_start[np.minimum(hole, len(hole_start) - 1)])
    # A segment may span several holes; a filler of another segmentation is rare, so it is cut to the first of them.
    hole = hole[inside]
    low = np.maximum(late.start[inside], hole_start[hole])
    high = np.minimum(late.end[inside], hole_end[hole])
    # Capture order decides among equal copies.
    _, first = np.unique(np.stack([low, high], axis=1), axis=0, return_index=True)
    low, high, when = low[first], high[first], late.time_ns[inside][first]
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
