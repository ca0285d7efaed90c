"""The compiled host clocks and pauses against their NumPy references."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pepscope import _core
from pepscope.captures.packets import Direction, Mark, PacketColumns
from tests.detector.clocks import reference_host_clock
from tests.detector.streams.generated_connections import captures, counts, events, seeds

ticks_of_ns = st.sampled_from([1_000, 1_000_000, 10_000_000])


def stamped(packets: PacketColumns, seed: int, tick_ns: int) -> PacketColumns:
    """The packets with timestamps of hosts that tick like this; a tenth bears none, and some stand out of order."""
    random = np.random.default_rng(seed)
    tsval = (packets.time_ns // tick_ns + random.integers(-2, 3, len(packets))).astype(np.uint32)
    marks = packets.marks | np.where(random.random(len(packets)) < 0.9, Mark.HAS_TIMESTAMPS, 0).astype(np.uint16)
    return packets.replaced(tsval=tsval, marks=marks)


@settings(deadline=None, max_examples=200)
@given(seeds, counts, events, ticks_of_ns, st.sampled_from([(64, 20, 5), (8, 1, 1), (5, 1000, 2)]), st.integers(1, 4))
def test_host_clocks_are_those_of_the_reference(seed, count, how, tick_ns, limits, level_count):
    for packets in captures(seed, count, how):
        packets = stamped(packets, seed, tick_ns)
        start_ns, end_ns = (float(np.quantile(packets.time_ns, q)) if len(packets) else 0.0 for q in (0.2, 0.7))
        pause = (packets.time_ns, start_ns, end_ns)
        assert _core.longest_pause_ns(*pause) == reference_host_clock.longest_pause_ns(*pause)
        for direction in Direction:
            found = _core.HostTicks(packets, direction)
            wanted = reference_host_clock.host_ticks(packets, direction)
            assert found.rate_hz(*limits) == reference_host_clock.rate_hz(*wanted, *limits)
            level_ns = found.level_ns(float(tick_ns), start_ns, end_ns, level_count)
            assert level_ns == reference_host_clock.level_ns(*wanted, tick_ns, start_ns, end_ns, level_count)
            swing_ns = found.swing_ns(float(tick_ns), level_count)
            assert swing_ns == reference_host_clock.swing_ns(*wanted, tick_ns, level_count)


def test_generated_hosts_show_their_rate():
    """Or the comparison above would compare nothing."""
    client, _server = captures(5, 200, set())
    rate_hz = _core.HostTicks(stamped(client, 5, 1_000_000), Direction.DOWN).rate_hz(64, 20, 5)
    assert rate_hz is not None
    assert 900 < rate_hz < 1100
