"""The compiled numbers of one capture's connection against their NumPy reference, on generated packets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.streams.known import UNKNOWN
from pepscope import _core
from pepscope.captures.packets import Direction, TcpFlag
from tests.detector.generated_packets import Shape, packets_of, shapes
from tests.detector.methods import reference_connection_numbers as reference
from tests.exchanges.reference_exchanges import exchanges

directions = st.sampled_from(Direction)


@settings(deadline=None)
@given(shapes, directions, st.sampled_from([0.05, 0.3]), st.sampled_from([0.5, 0.9]))
def test_windows_go_as_in_the_reference(shape, direction, shut_share, open_share):
    packets = packets_of(shape)
    found = _core.window_course(direction, packets, shut_share, open_share)
    numbers = (found.cycles, found.times_shut, found.least_bytes, found.largest_bytes, found.least_share)
    assert numbers == reference.window_course(packets, direction, shut_share, open_share)
    assert _core.least_window_shares([direction], [packets], shut_share, open_share).tolist() == [found.least_share]


@settings(deadline=None)
@given(shapes, directions)
def test_streams_end_as_in_the_reference(shape, direction):
    packets = packets_of(shape)
    found = _core.abort(direction, packets)
    assert (found and (found.time_ns, found.reached_bytes)) == reference.abort(packets, direction)
    seen = _core.abort_at_sender(direction, packets)
    numbers = (seen.acknowledged_bytes, seen.largest_payload_bytes, seen.end_ns, seen.zero_window_probes)
    assert numbers == reference.abort_at_sender(packets, direction)
    counts, firsts = (column[direction, 0] for column in _core.fins([packets]))
    assert (counts, None if firsts == UNKNOWN else firsts) == reference.fins(packets, direction)


@settings(deadline=None)
@given(shapes, directions)
def test_hop_limits_are_those_of_the_reference(shape, direction):
    packets = packets_of(shape)
    known = [None if limit == UNKNOWN else limit for limit in _core.hop_limits([packets])[:, 0].tolist()]
    assert known[direction] == reference.hop_limit(packets, direction)
    found = _core.answering_hop_limits(direction, packets)
    assert (found.opening, found.later) == reference.answering_hop_limits(packets, direction)


@settings(deadline=None)
@given(shapes, directions)
def test_answers_take_as_long_as_in_the_reference(shape, direction):
    packets = packets_of(shape)
    found, rows = _core.answer_times(direction, packets), exchanges(packets)
    timed = [row for row in rows if row["asked"] == direction and not row["repeated"]]
    times = [row["answered_ns"] - row["question_ns"] for row in timed]
    assert (found.count, found.least_ns) == (len(times), min(times, default=None))


@settings(deadline=None)
@given(shapes, directions, st.sampled_from([0.0, 0.02, 0.3]))
def test_acknowledgements_take_as_long_as_in_the_reference(shape, direction, limit_s):
    packets = packets_of(shape)
    (count,), (least_ns,) = _core.ack_delays([direction], [packets])
    delays = reference.acknowledgement_delays_s(packets, direction)
    assert (count, None if least_ns == UNKNOWN else least_ns / 1e9) == (len(delays), min(delays, default=None))
    trips = _core.plain_round_trips(direction, packets, limit_s)
    numbers = (trips.count, trips.least_s, trips.short, trips.short_at_once)
    assert numbers == reference.round_trips(packets, direction, limit_s)


def test_generated_connections_show_what_is_counted():
    """Or the comparisons above would compare nothing."""
    made = [packets_of(Shape(seed, 150, True, 0.1, TcpFlag.RST, 0)) for seed in range(40)]
    assert sum(_core.abort(Direction.UP, packets) is not None for packets in made) > 5
    assert (_core.fins(made)[1][0] != UNKNOWN).sum() > 5
    assert max(_core.window_course(Direction.UP, packets, 0.05, 0.5).cycles for packets in made) > 2
    assert sum(_core.plain_round_trips(Direction.UP, packets, 0.03).short_at_once > 1 for packets in made) > 5
    assert np.mean([_core.answer_times(Direction.UP, packets).count for packets in made]) > 2
