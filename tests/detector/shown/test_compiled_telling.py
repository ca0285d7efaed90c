"""What the core points to against its NumPy reference, on generated scores, streams and packets."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.streams.curves import NEVER
from pepscope import _core
from pepscope.captures.packets import Direction
from tests.detector.methods.generated_segments import emitted_data, packets_of, seeds
from tests.detector.shown import reference_telling

scores = st.lists(
    st.one_of(st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf]), st.floats(-9, 9)), max_size=40
)


@given(scores, st.integers(1, 12), st.sampled_from([-math.inf, 0.0, 1.0]))
def test_the_strongest_are_those_of_the_reference(score, most, least):
    given_scores = np.array(score, np.float64)
    assert _core.strongest(given_scores, most, least) == reference_telling.strongest(given_scores, most, least)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.sampled_from([1, 2, 3, 4, NEVER])), max_size=30),
    st.lists(st.integers(-3, 200), max_size=30),
)
def test_the_last_arrivals_are_those_of_the_reference(ranges, acknowledged):
    start, end, reached = [], [], 0
    for gap, length, _ in ranges:
        start.append(reached + gap)
        reached += gap + length
        end.append(reached)
    columns = (np.array(values, np.int64) for values in (start, end, [time for *_, time in ranges], acknowledged))
    asked = tuple(columns)
    assert _core.last_arrivals(*asked).tolist() == reference_telling.last_arrivals(*asked).tolist()


@given(seeds, st.integers(0, 40), st.lists(st.integers(-2, 60_000), min_size=1, max_size=20))
def test_the_packet_of_a_byte_is_that_of_the_reference(seed, count, offsets):
    random = np.random.default_rng(seed)
    packets = packets_of({way: emitted_data(random, count) for way in (Direction.UP, Direction.DOWN)})
    for offset in offsets:
        found = _core.row_of_byte(packets, Direction.DOWN, offset)
        assert found == reference_telling.row_of_byte(packets, Direction.DOWN, offset)
