from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.one_ended_simulated.access import ACCESSES
from benchmarks.one_ended_simulated.channels import Activity, Channel, Direction, Link, line
from benchmarks.one_ended_simulated.events import Clock


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.lists(st.tuples(st.floats(0, 0.5), st.integers(54, 1514)), max_size=60))
def test_packets_keep_their_order_and_take_at_least_the_delay(seed, packets):
    random = Random(seed)
    for _, make, _ in ACCESSES:
        link = make(random)
        for direction in (link.up, link.down):
            clock = Clock()
            channel = Channel(clock, random, direction)
            last_s = 0.0
            for pause_s, size in packets:
                clock.now_s += pause_s
                arrival_s = channel.carry(size)
                if arrival_s is not None:
                    assert arrival_s > last_s
                    assert arrival_s >= clock.now_s + direction.delay_s + 8 * size / direction.rate_bit_s
                    last_s = arrival_s


def test_a_full_queue_drops_and_an_empty_one_serialises():
    clock = Clock()
    channel = Channel(clock, Random(1), Direction(0.01, 8000.0, queue_bytes=2000))
    arrivals = [channel.carry(1000) for _ in range(5)]
    assert arrivals[:3] == [1.01, 2.01, 3.01]
    assert arrivals[3:] == [None, None]


def test_a_sleeping_radio_wakes_once_for_both_directions():
    direction = Direction(0.01, wake_after_s=1.0, wake_s=(0.2, 0.2))
    clock = Clock()
    up, down = Link(direction, direction).channels(clock, Random(1))
    clock.now_s = 5.0
    assert up.carry(100) > 5.2
    clock.now_s = 5.5
    assert down.carry(100) < 5.52
    clock.now_s = 5.6
    assert up.carry(100) < 5.62


def test_grants_are_waited_for_only_by_the_first():
    channel = Channel(Clock(), Random(1), Direction(0.0, 1e6, grant_s=0.1), Activity())
    first, second = channel.carry(100), channel.carry(100)
    assert first > 0.0008
    assert second - first < 0.001


def test_the_round_trip_of_a_line_is_its_own():
    assert abs(line(0.03, jitter_s=0.0).round_trip_s - 0.03) < 1e-5
