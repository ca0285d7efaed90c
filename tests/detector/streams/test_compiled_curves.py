"""The compiled staircases against their NumPy references."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.streams.curves import first_arrivals, sent_data
from pepscope import _core
from pepscope.captures.packets import Direction
from tests.detector.generated_streams import packets_of
from tests.detector.streams import reference_curves
from tests.detector.streams.generated_connections import captures, counts, events, seeds


@settings(deadline=None, max_examples=300)
@given(seeds, counts, events, st.sampled_from(list(Direction)))
def test_first_arrivals_are_those_of_the_reference(seed, count, how, direction):
    for packets in captures(seed, count, how):
        found, wanted = first_arrivals(packets, direction), reference_curves.first_arrivals(packets, direction)
        assert found.start.tolist() == wanted.start.tolist()
        assert found.end.tolist() == wanted.end.tolist()
        assert found.time_ns.tolist() == wanted.time_ns.tolist()


def at_times(time_ns):
    """Packets of which nothing but the times is of interest."""
    packets = packets_of(np.random.default_rng(0), len(time_ns))
    return packets.replaced(time_ns=time_ns)


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(0, 20))
def test_falls_of_a_clock_are_those_of_the_reference(times, least_ns):
    time_ns = np.array(times, np.int64)
    assert _core.clock_falls(at_times(time_ns), least_ns) == reference_curves.clock_falls(time_ns, least_ns)


def test_generated_connections_have_holes_that_overlapping_segments_fill():
    """Or the comparison above would compare nothing."""
    client, _server = captures(3, 200, {"lose", "cut", "repeat", "reorder", "finish"})
    arrived = first_arrivals(client, Direction.DOWN)
    assert len(arrived.start) > len(sent_data(client, Direction.DOWN).first_copies.start)
