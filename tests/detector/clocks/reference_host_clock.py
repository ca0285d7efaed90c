"""Host clocks and pauses in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

import numpy as np

from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns, TcpFlag


def host_ticks(packets: PacketColumns, direction: Direction) -> tuple[Int64Array, Int64Array]:
    """Capture times of the segments that bear timestamps, and the ticks counted since the first."""
    stamped = packets.going(direction) & packets.marked(Mark.HAS_TIMESTAMPS) & ~packets.flagged(TcpFlag.SYN)
    counted = np.cumsum(np.diff(packets.tsval[stamped]).astype(np.int32).astype(np.int64))
    return packets.time_ns[stamped], np.concatenate([[0], counted])[: np.count_nonzero(stamped)]


def rate_hz(time_ns: Int64Array, ticks: Int64Array, most: int, stretch_ticks: int, fewest: int) -> float | None:
    if len(ticks) == 0:
        return None
    total = int(ticks[-1])
    stretches = min(most, total // stretch_ticks)
    if stretches < fewest:
        return None
    places = np.unique(np.searchsorted(np.maximum.accumulate(ticks), np.linspace(0, total, stretches + 1)))
    spent, counted = np.diff(time_ns[places]), np.diff(ticks[places])
    known = (counted > 0) & (spent > 0)
    if np.count_nonzero(known) < fewest:
        return None
    return float(np.median(counted[known] * 1e9 / spent[known]))


def level_ns(
    time_ns: Int64Array, ticks: Int64Array, tick_ns: float, start_ns: float, end_ns: float, count: int
) -> float | None:
    if len(time_ns) == 0:
        return None
    ahead_ns = (time_ns - time_ns[0]) - ticks * tick_ns
    inside = ahead_ns[(time_ns >= start_ns) & (time_ns < end_ns)][:count]
    return float(np.median(inside)) if len(inside) == count else None


def swing_ns(time_ns: Int64Array, ticks: Int64Array, tick_ns: float, count: int) -> float | None:
    if len(time_ns) < count:
        return None
    ahead_ns = (time_ns - time_ns[0]) - ticks * tick_ns
    levels = np.median(np.lib.stride_tricks.sliding_window_view(ahead_ns, count), axis=1)
    return float(levels.max() - levels.min())


def longest_pause_ns(time_ns: Int64Array, start_ns: float, end_ns: float) -> int | None:
    gaps = np.abs(np.diff(time_ns))
    inside = (time_ns >= start_ns) & (time_ns <= end_ns)
    touching = inside[1:] | inside[:-1]
    return int(gaps[touching].max()) if touching.any() else None
