"""What the core points to against its NumPy reference, on generated scores, streams and packets."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pepscope import _core
from pepscope.captures.packets import Direction
from tests.detector.generated_streams import packets_of as any_packets_of
from tests.detector.methods.generated_segments import emitted_data, packets_of, seeds
from tests.detector.presentation import reference_telling

scores = st.lists(
    st.one_of(st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf]), st.floats(-9, 9)), max_size=40
)


@given(scores, st.integers(1, 12), st.sampled_from([-math.inf, 0.0, 1.0]))
def test_the_strongest_are_those_of_the_reference(score, most, least):
    given_scores = np.array(score, np.float64)
    assert _core.strongest(given_scores, most, least) == reference_telling.strongest(given_scores, most, least)


@given(seeds, st.integers(0, 40), st.integers(1, 12))
def test_the_least_windows_are_those_of_the_reference(seed, count, most):
    packets = any_packets_of(np.random.default_rng(seed), count)
    for way in Direction:
        assert _core.least_windows(packets, way.value, most) == reference_telling.least_windows(packets, way, most)


#: Start, reference, offset and drift of pieces of a clock relation; those of the second one step back.
lines = st.sampled_from(
    [
        None,
        [(0, 0, 5e5, 1e-4)],
        [(0, 0, 3e6, 0.0), (10**7, 10**7, -2e6, 1e-5)],
        [(0, 0, -2e6, 0.0), (10**7, 0, 4e6, 0.0)],
    ]
)


@given(
    seeds, st.integers(0, 60), st.integers(0, 60), st.sampled_from([0, -7, 1000]), lines, st.sampled_from([0.0, -9e5])
)
def test_held_acknowledgements_are_those_of_the_reference(seed, sent, arrived, shift, clock_lines, raise_ns):
    random = np.random.default_rng(seed)
    sender, receiver = (
        packets_of({way: emitted_data(random, count) for way in (Direction.UP, Direction.DOWN)})
        for count in (sent, arrived)
    )
    sender, receiver = (
        each.replaced(time_ns=np.cumsum(random.integers(0, 10**6, len(each)))) for each in (sender, receiver)
    )
    origin_ns, start_ns = (int(each.time_ns[0]) if len(each) else 0 for each in (sender, receiver))
    acknowledged = np.maximum(-1, np.cumsum(random.integers(-400, 1500, len(sender))))
    sender = sender.replaced(acknowledgement_offset=acknowledged.astype(np.int64))
    for direction in (Direction.UP, Direction.DOWN):
        asked = sender, receiver, direction, shift, origin_ns, start_ns, clock_lines, raise_ns
        found, expected = _core.held_acknowledgements(*asked), reference_telling.held_acknowledgements(*asked)
        for column, reference in zip(found, expected, strict=True):
            np.testing.assert_array_equal(column, reference)


@given(seeds, st.integers(0, 40), st.lists(st.integers(-2, 60_000), min_size=1, max_size=20))
def test_the_packet_of_a_byte_is_that_of_the_reference(seed, count, offsets):
    random = np.random.default_rng(seed)
    packets = packets_of({way: emitted_data(random, count) for way in (Direction.UP, Direction.DOWN)})
    for offset in offsets:
        found = _core.row_of_byte(packets, Direction.DOWN, offset)
        assert found == reference_telling.row_of_byte(packets, Direction.DOWN, offset)
