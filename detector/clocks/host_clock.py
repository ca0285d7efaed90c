"""The clock of a host in its own TCP timestamps: a second clock beside the capture's, which no time daemon sets.

TSval counts ticks of a monotonic clock (RFC 7323, section 5.4), while a capture's times are the wall clock's. A wall
clock that is set leaves its host's segments with a jump between the two, so a step that is to explain early
acknowledgements can be looked up wherever both captures hold the timestamps of their own side.
"""

from __future__ import annotations

from msgspec import Struct

from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns

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


class HostClock(Struct, frozen=True):
    """The capture's time less the host's, for the segments of one host that bear timestamps."""

    ticks: _core.HostTicks
    tick_ns: float

    def level_from(self, start_ns: float, end_ns: float) -> float | None:
        """Median difference (ns, any constant) of the first segments from a capture time on, before another.

        None of too few.
        """
        return self.ticks.level_ns(self.tick_ns, start_ns, end_ns, FEWEST_STAMPS)


def host_clock(packets: PacketColumns, direction: Direction) -> HostClock | None:
    """The clock of the host that sends in `direction`; None where its timestamps do not tell its rate.

    SYNs are left out: their timestamps may be a SYN cookie's, or a SYN proxy's.
    """
    ticks = _core.HostTicks(packets, direction)
    measured = ticks.rate_hz(STRETCHES, STRETCH_TICKS, FEWEST_STRETCHES)
    if measured is None:
        return None
    nearest = min(TICK_RATES_HZ, key=lambda rate: abs(measured / rate - 1.0))
    return HostClock(ticks, 1e9 / nearest) if abs(measured / nearest - 1.0) <= RATE_TOLERANCE else None
