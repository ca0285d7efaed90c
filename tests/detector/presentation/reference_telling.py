"""What points to packets, in NumPy: the reference of `pepscope._core`."""

from __future__ import annotations

import numpy as np

from detector.clocks.clock_relation import Lines
from detector.streams.curves import NEVER, first_arrivals
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, TcpFlag
from pepscope.results.verdicts import FloatArray


def strongest(score: FloatArray, most: int, least: float) -> list[int]:
    """Places of high scores above `least`: the highest of each part, in order."""
    counting = np.flatnonzero(np.nan_to_num(score, nan=-np.inf) > least)
    if len(counting) == 0:
        return []
    best = [int(part[score[part].argmax()]) for part in np.array_split(counting, min(most, len(counting)))]
    return sorted(best, key=lambda place: -score[place])


def least_windows(packets: PacketColumns, direction: Direction, most: int) -> list[tuple[int, int]]:
    """Rows and windows of the packets of a direction that advertise least."""
    special = np.uint16(TcpFlag.SYN | TcpFlag.RST)
    rows = np.flatnonzero((packets.direction == direction) & ((packets.flags & special) == 0))
    windows = packets.window_bytes[rows]
    places = strongest(-windows.astype(np.float64), most, -np.inf)
    return [(int(rows[place]), int(windows[place])) for place in places]


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


def held_acknowledgements(
    sender: PacketColumns,
    receiver: PacketColumns,
    direction: Direction,
    shift: int,
    origin_ns: int,
    start_ns: int,
    lines: Lines | None,
    raise_ns: float,
) -> tuple[FloatArray, Int64Array, Int64Array]:
    """Acknowledgements at a sender against what had reached the receiver."""

    def receiver_s(times_ns: Int64Array) -> FloatArray:
        is_up = direction is Direction.UP
        return _core.receiver_times_s(times_ns, is_up, origin_ns, start_ns, lines, raise_ns)

    rows = _core.acknowledging_rows(sender, direction)
    acknowledged, seen_s = sender.acknowledgement_offset[rows], (sender.time_ns[rows] - origin_ns) / 1e9
    arrivals = first_arrivals(receiver, direction)
    start, end, time_ns = arrivals.start + shift, arrivals.end + shift, arrivals.time_ns
    last = last_arrivals(start, end, time_ns, acknowledged)
    if len(start) == 0:
        return np.full(len(rows), np.nan), np.maximum(0, acknowledged), last
    arrived_s = receiver_s(time_ns)
    order = np.argsort(arrived_s, kind="stable")
    delivered = np.concatenate(([0], np.cumsum((end - start)[order])))
    by_then = np.searchsorted(arrived_s[order], seen_s, side="right")
    early_s = np.where(last >= 0, receiver_s(time_ns[last]) - seen_s, np.nan)
    ahead = np.maximum(0, acknowledged - min(0, int(start.min())) - delivered[by_then])
    return early_s, ahead.astype(np.int64), np.where(last >= 0, arrivals.start[last], -1)


def row_of_byte(packets: PacketColumns, direction: Direction, offset: int) -> int | None:
    """The first packet that carries a byte of a stream."""
    rows = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
    start = packets.sequence_offset[rows]
    holding = rows[(start <= offset) & (offset < start + packets.payload_bytes[rows])]
    return int(holding[0]) if len(holding) else None
