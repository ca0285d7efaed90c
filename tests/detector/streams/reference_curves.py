"""`detector.streams.curves` in NumPy: what the compiled one is compared with."""

from __future__ import annotations

import numpy as np

from detector.streams.curves import NEVER, ByteTimes, SentData, sent_data
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
