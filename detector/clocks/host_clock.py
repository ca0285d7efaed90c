"""The clock of a host in its own TCP timestamps: a second clock beside the capture's, which no time daemon sets.

TSval counts ticks of a monotonic clock (RFC 7323, section 5.4), while a capture's times are the wall clock's. A wall
clock that is set leaves its host's segments with a jump between the two, so a step that is to explain early
acknowledgements can be looked up wherever both captures hold the timestamps of their own side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns, TcpFlag
from pepscope.results.verdicts import FloatArray

#: Ticks a second of common TCP stacks, within what RFC 7323 (section 5.4) asks for: 1 ms to 1 s, and microseconds,
#: which Linux may use.
TICK_RATES_HZ = (1.0, 2.0, 10.0, 100.0, 200.0, 250.0, 500.0, 1000.0, 1e6)

#: A measured rate is one of those within this share: half the distance of the two that are nearest to each other.
RATE_TOLERANCE = 0.1

#: The rate is the median over as many stretches of at least so many ticks (a tick's error is then within half of
#: `RATE_TOLERANCE`); with at least five stretches one that holds a step does not move it.
STRETCHES = 64
STRETCH_TICKS = 20
FEWEST_STRETCHES = 5

#: Segments of which a median is taken on either side of a step.
FEWEST_STAMPS = 3


@dataclass(frozen=True, slots=True)
class HostClock:
    """The capture's time less the host's, for the segments of one host that bear timestamps (ns; any constant)."""

    time_ns: Int64Array
    ahead_ns: FloatArray
    tick_ns: float

    def level_from(self, start_ns: float, end_ns: float) -> float | None:
        """Median of the first values of `ahead_ns` from a capture time on, before another; None of too few."""
        inside = self.ahead_ns[(self.time_ns >= start_ns) & (self.time_ns < end_ns)][:FEWEST_STAMPS]
        return float(np.median(inside)) if len(inside) == FEWEST_STAMPS else None


def host_clock(packets: PacketColumns, direction: Direction) -> HostClock | None:
    """The clock of the host that sends in `direction`; None where its timestamps do not tell its rate.

    SYNs are left out: their timestamps may be a SYN cookie's, or a SYN proxy's.
    """
    stamped = (packets.direction == direction) & ((packets.marks & np.uint16(Mark.HAS_TIMESTAMPS)) != 0)
    stamped &= (packets.flags & np.uint16(TcpFlag.SYN)) == 0
    if np.count_nonzero(stamped) <= FEWEST_STRETCHES:
        return None
    time_ns = packets.time_ns[stamped]
    stamps = packets.tsval[stamped]
    ticks = np.concatenate([[0], np.cumsum(np.diff(stamps).astype(np.int32).astype(np.int64))])
    rate = _rate_hz(time_ns, ticks)
    if rate is None:
        return None
    tick_ns = 1e9 / rate
    return HostClock(time_ns, (time_ns - time_ns[0]) - ticks * tick_ns, tick_ns)


def _rate_hz(time_ns: Int64Array, ticks: Int64Array) -> float | None:
    total = int(ticks[-1])
    stretches = min(STRETCHES, total // STRETCH_TICKS)
    if stretches < FEWEST_STRETCHES:
        return None
    places = np.unique(np.searchsorted(np.maximum.accumulate(ticks), np.linspace(0, total, stretches + 1)))
    spent, counted = np.diff(time_ns[places]), np.diff(ticks[places])
    known = (counted > 0) & (spent > 0)
    if np.count_nonzero(known) < FEWEST_STRETCHES:
        return None
    measured = float(np.median(counted[known] * 1e9 / spent[known]))
    nearest = min(TICK_RATES_HZ, key=lambda rate: abs(measured / rate - 1.0))
    return nearest if abs(measured / nearest - 1.0) <= RATE_TOLERANCE else None
