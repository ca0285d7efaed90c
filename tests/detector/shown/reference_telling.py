"""What points to packets, in NumPy: the reference of `pepscope._core.strongest`, `last_arrivals` and `row_of_byte`."""

from __future__ import annotations

import numpy as np

from detector.streams.curves import NEVER
from pepscope.captures.packets import Direction, Int64Array, PacketColumns
from pepscope.results.verdicts import FloatArray


def strongest(score: FloatArray, most: int, least: float) -> list[int]:
    """Places of high scores above `least`: the highest of each part, in order."""
    counting = np.flatnonzero(np.nan_to_num(score, nan=-np.inf) > least)
    if len(counting) == 0:
        return []
    best = [int(part[score[part].argmax()]) for part in np.array_split(counting, min(most, len(counting)))]
    return sorted(best, key=lambda place: -score[place])


def last_arrivals(start: Int64Array, end: Int64Array, time_ns: Int64Array, acknowledged: Int64Array) -> Int64Array:
    """Which arrival brought the last of the bytes below each place; -1 where it is not known."""
    if len(start) == 0:
        return np.full(len(acknowledged), -1, np.int64)
    latest_ns = np.maximum.accumulate(time_ns)
    brought = np.maximum.accumulate(np.where(time_ns == latest_ns, np.arange(len(time_ns)), 0))
    place = np.searchsorted(start, acknowledged - 1, side="right") - 1
    at = np.maximum(place, 0)
    known = (place >= 0) & (acknowledged <= end[at]) & (latest_ns[at] != NEVER)
    return np.where(known, brought[at], -1)


def row_of_byte(packets: PacketColumns, direction: Direction, offset: int) -> int | None:
    """The first packet that carries a byte of a stream."""
    rows = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
    start = packets.sequence_offset[rows]
    holding = rows[(start <= offset) & (offset < start + packets.payload_bytes[rows])]
    return int(holding[0]) if len(holding) else None
