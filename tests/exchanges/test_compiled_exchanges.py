"""The compiled exchanges against their reference in plain Python, on generated connections."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pepscope.captures.exchanges import ROUND_TRIP_COLUMNS, Exchanges, exchanges_of
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Mark, PacketColumns, PayloadSample, TcpFlag
from tests.detector.generated_packets import Shape, packets_of, shapes
from tests.exchanges import reference_exchanges as reference

NOTHING = PayloadSample([], [])


def timed(shape: Shape) -> PacketColumns:
    """A generated connection with round trips, keep-alives, pauses of seconds, and data that were not captured."""
    packets, random = packets_of(shape), np.random.default_rng(shape.seed + 1)
    count = len(packets)
    trips = np.where(random.random(count) < 0.4, random.integers(0, 40_000_000, count), -1)
    pauses = np.where(random.random(count) < 0.05, 700_000_000, 0)
    marks = packets.marks.copy()
    marks[random.random(count) < 0.03] |= np.uint16(Mark.KEEP_ALIVE)
    acknowledgement = packets.acknowledgement_offset.copy()
    acknowledgement[(acknowledgement != NO_ACKNOWLEDGEMENT) & (random.random(count) < 0.05)] += random.integers(1, 3)
    return packets.replaced(
        acknowledgement_offset=acknowledgement,
        round_trip_time_ns=trips.astype(np.int64),
        time_ns=packets.time_ns + np.cumsum(pauses),
        marks=marks,
    )


def found_in(packets: PacketColumns) -> Exchanges:
    return exchanges_of(packets, {Direction.UP: NOTHING, Direction.DOWN: NOTHING})


@settings(deadline=None)
@given(shapes)
def test_turns_are_those_of_the_reference(shape: Shape) -> None:
    packets = timed(shape)
    found, wanted = found_in(packets), reference.exchanges(packets)
    assert len(found) == len(wanted)
    for name in wanted[0] if wanted else ():
        assert getattr(found, name).tolist() == [row[name] for row in wanted], name


@settings(deadline=None)
@given(shapes)
def test_round_trips_are_those_of_the_reference(shape: Shape) -> None:
    packets = timed(shape)
    found = found_in(packets).round_trips
    for way in Direction:
        for name, value in reference.round_trips(packets, way).items():
            assert getattr(found, name)[way] == value, name


@settings(deadline=None)
@given(shapes.filter(lambda shape: shape.jitter_ns == 0))
def test_round_trips_of_the_moment_are_those_of_the_reference(shape: Shape) -> None:
    packets = timed(shape)
    found = found_in(packets)
    questions = zip(found.asked.tolist(), found.question_ns.tolist(), strict=True)
    assert found.round_trip_ns.tolist() == [reference.round_trip_around(packets, *question) for question in questions]


@settings(deadline=None, max_examples=30)
@given(shapes, st.binary(max_size=40))
def test_payload_changes_kinds_alone(shape: Shape, content: bytes) -> None:
    packets = timed(shape)
    sample = PayloadSample([0, 1448], [content, b"\x16\x03\x01" + content])
    one, other = found_in(packets), exchanges_of(packets, {Direction.UP: sample, Direction.DOWN: sample})
    for name in ("asked", "question_ns", "answered_ns", "round_trip_ns", "crossed"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_generated_connections_show_what_is_compared() -> None:
    """Or the comparisons above would compare nothing."""
    made = [found_in(timed(Shape(seed, 150, True, 0.1, TcpFlag.ACK, 0))) for seed in range(30)]
    assert min(map(len, made)) > 3
    for name in ("repeated", "crossed", "first"):
        shares = np.concatenate([getattr(found, name) for found in made])
        assert 0.02 < shares.mean() < 0.98, name
    assert all((found.round_trips.plain_count > 3).all() for found in made)
    assert set(ROUND_TRIP_COLUMNS) >= set(reference.round_trips(packets_of(Shape(1, 9, True, 0, TcpFlag.ACK, 0)), 0))
