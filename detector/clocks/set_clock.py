"""Whether captures show that a clock was set by as much as data and acknowledgements contradict each other.

The search for steps (`detector.clocks.steps`) has limits: a step is a clean cut on one host's time axis only, so that
two clocks that were both set have none, small steps count as a queue's, and there is a most of them. Where it fails,
timing accuses only a connection whose captures do not show by themselves that their clocks were set:

- times that fall back within a capture;
- a capture's times that move against the TCP timestamps of the host beside it, which no time daemon sets (RFC 7323,
  section 5.4), as far as the contradiction goes: a queue moves neither;
- data of both directions that contradict one clock as far as that, without any acknowledgement: no middlebox forwards
  what it does not have.
"""

from __future__ import annotations

from detector.clocks.host_clock import FEWEST_STAMPS, host_clock
from detector.clocks.separation import Separation
from detector.pair import Pair, Vantage
from pepscope.captures.packets import Direction


def clock_was_set(pair: Pair, overlap_ns: float, data: Separation, drift_limit: float) -> bool:
    """Whether a clock was set by at least `overlap_ns`, or by an unknown amount.

    `data` is the best line between the data alone; `drift_limit` bounds what a capture's clock and its host's drift
    apart meanwhile.
    """
    if any(vantage.clock_set_back for vantage in pair.vantages) or -data.slack_ns >= overlap_ns:
        return True
    near_hosts = ((pair.client_side, Direction.UP), (pair.server_side, Direction.DOWN))
    moved_ns = sum(_moved_ns(vantage, side, drift_limit) for vantage, side in near_hosts if vantage is not None)
    return moved_ns >= overlap_ns


def _moved_ns(vantage: Vantage, side: Direction, drift_limit: float) -> float:
    """By how much a capture's times moved against its host's timestamps, beyond a tick and what clocks drift apart."""
    clock = vantage.derived(host_clock, side)
    swing_ns = None if clock is None else clock.ticks.swing_ns(clock.tick_ns, FEWEST_STAMPS)
    if clock is None or swing_ns is None:
        return 0.0
    duration_ns = vantage.connection.last_time_ns - vantage.connection.first_time_ns
    return max(0.0, swing_ns - clock.tick_ns - drift_limit * abs(duration_ns))
