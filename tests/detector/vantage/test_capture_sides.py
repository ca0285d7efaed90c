"""Which capture is the client's, where they lack the handshake."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detector.streams.summaries import Summaries
from detector.vantage.capture_sides import are_both_timed, first_are_client_sides, first_is_client_side
from pepscope.captures.connections import Connection
from tests.detector.corpus import pairs

MS = 1_000_000


def timed(connection, up_ms, down_ms):
    """The connection without its handshake, with these least round trips (ms)."""
    up, down = (
        flow._replace(round_trip_time_min_ns=None if ms is None else round(ms * MS), initial_sequence_number=None)
        for flow, ms in ((connection.up, up_ms), (connection.down, down_ms))
    )
    return connection._replace(up=up, down=down, handshake_syn_ack_ns=None, handshake_ack_ns=None)


@pytest.mark.parametrize(
    ("client", "server"),
    [
        ((None, 0.0), (179.0, 52.0)),  # a request that the server acknowledged late
        ((None, 0.1), (None, 9.0)),  # a path shorter than 10 ms
        ((60.0, None), (0.1, None)),
        ((60.0, 0.1), (0.1, 60.0)),
        ((30.0, 30.0), (5.0, 50.0)),
    ],
)
def test_round_trips_of_one_direction_tell_the_captures_apart(client, server):
    (pair,) = pairs("reg_dl_cubic_lte")
    near, far = timed(pair.client_side.connection, *client), timed(pair.server_side.connection, *server)
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0


def test_one_gap_of_the_handshake_says_more_than_round_trips_of_thinned_acknowledgements():
    """A filter that left one late acknowledgement at the server, and the SYN-ACK written behind the client's data."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near, far = timed(pair.client_side.connection, 470.0, None), timed(pair.server_side.connection, 680.0, None)
    assert first_is_client_side(near, far) < 0
    near = near._replace(handshake_syn_ack_ns=151 * MS, handshake_ack_ns=0)
    far = far._replace(handshake_syn_ack_ns=0)
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0


def test_first_data_decide_where_the_handshake_and_round_trips_contradict_each_other():
    """Two copies of the SYN-ACK, a second apart, the other way round in the server's file: case 15329 of seed 1701."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near, far = timed(pair.client_side.connection, 221.4, 3000.0), timed(pair.server_side.connection, 0.01, 3227.0)
    near = near._replace(handshake_syn_ack_ns=221 * MS, handshake_ack_ns=3000 * MS)
    far = far._replace(handshake_syn_ack_ns=1006 * MS)
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0


def hops(connection, up, down, times):
    """The connection with these hop limits, and the gaps of the handshake (ms)."""
    far, near = (None if ms is None else ms * MS for ms in times)
    return connection._replace(
        up=connection.up._replace(ttl=up, round_trip_time_min_ns=None),
        down=connection.down._replace(ttl=down, round_trip_time_min_ns=None),
        handshake_syn_ack_ns=far, handshake_ack_ns=near,
    )  # fmt: skip


def test_hop_limits_of_one_handshake_outweigh_times_that_lack_a_part():
    """At the client's tap the way up has a clock of its own, 300 ms fast: the SYN-ACK came before its SYN."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = hops(pair.client_side.connection, 64, 60, (None, 300))
    far = hops(pair.server_side.connection, 60, 64, (0, 120))
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0
    other = far._replace(up=far.up._replace(initial_sequence_number=1))  # another SYN tells nothing of this one's path
    assert first_is_client_side(near, other) < 0
    raised = hops(pair.server_side.connection, 60, 55, (0, 120))
    assert first_is_client_side(near, raised) < 0


def test_hop_limits_tell_where_a_coarse_clock_makes_one_gap_of_a_handshake_long():
    """On a LAN the server's clock ticks after 10 ms: between SYN and SYN-ACK, which the server sent at once."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = hops(pair.client_side.connection, 64, 62, (0.1, 0.02))
    far = hops(pair.server_side.connection, 62, 64, (10, 0))
    vantages = [replace(side, connection=made) for side, made in zip(pair.vantages, (near, far), strict=True)]
    client, server = (Summaries([vantage]) for vantage in vantages)
    own, are_timed = first_are_client_sides(client, server, lambda _: (near, far))
    assert own[0] == first_is_client_side(near, far) > 0
    assert are_timed.all()
    assert first_is_client_side(far, near) < 0


@pytest.mark.parametrize(
    ("client", "server"), [((60, 0.1), (0.1, 60)), ((0.12, 0.01), (0.02, 0.1)), ((900, 1), (0, 70))]
)
def test_a_handshake_that_one_path_explains_outweighs_hop_limits(client, server):
    """A box gives packets of both directions a new hop limit; in the last the SYN waited for a radio."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = hops(pair.client_side.connection, 64, 255, client)
    far = hops(pair.server_side.connection, 255, 64, server)
    assert first_is_client_side(near, far) > 0


#: Handshakes and uploads through a SYN proxy: gaps of the handshake, and round trips of data up and down (ms).
ANSWERED_BEFORE_THE_SERVER = [
    (((0.046, 46), (46.5, 34.7)), ((0.035, 34.5), (0.02, 81.2))),  # taken at the proxy, and at the server
    (((2.514, 0.025), (3.78, 0.011)), ((2.547, 0.020), (1.36, 2.34))),  # at the client, and behind the proxy
]


def through_a_syn_proxy(connection, gaps, round_trips, answer):
    """The connection with these times (ms), and with this number in the SYN-ACK."""
    up, down = (
        flow._replace(round_trip_time_min_ns=round(ms * MS))
        for flow, ms in zip((connection.up, connection.down), round_trips, strict=True)
    )
    far, near = (round(ms * MS) for ms in gaps)
    down = down._replace(initial_sequence_number=answer)
    return connection._replace(up=up, down=down, handshake_syn_ack_ns=far, handshake_ack_ns=near)


def judged_in_columns(near: Connection, far: Connection) -> tuple[float, bool]:
    """`first_are_client_sides` of this one pair: the nearness, and whether both are timed."""
    (pair,) = pairs("reg_dl_cubic_lte")
    first, second = (Summaries([replace(pair.vantages[0], connection=each)]) for each in (near, far))
    own, are_timed = first_are_client_sides(first, second, lambda _: (near, far))
    return float(own[0]), bool(are_timed[0])


@pytest.mark.parametrize(("client", "server"), ANSWERED_BEFORE_THE_SERVER)
def test_round_trips_of_data_outweigh_a_handshake_that_another_host_answered(client, server):
    """Neither handshake crosses the path: how near the client seems by them depends on where the proxy stands."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = through_a_syn_proxy(pair.client_side.connection, client[0], client[1], answer=1)
    far = through_a_syn_proxy(pair.server_side.connection, server[0], server[1], answer=2)
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0
    assert judged_in_columns(near, far)[0] > 0
    assert judged_in_columns(far, near)[0] < 0
    assert judged_in_columns(near, far)[1]
    assert judged_in_columns(far, near)[1]


def test_a_handshake_stands_where_round_trips_contradict_each_other():
    """A client that delays its acknowledgements of the few data it gets in the capture at the server alone."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = through_a_syn_proxy(pair.client_side.connection, (60, 0.1), (0.1, 50), answer=1)
    far = through_a_syn_proxy(pair.server_side.connection, (0.1, 60), (60, 60.1), answer=2)
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0


def test_data_of_one_direction_tell_the_captures_apart_beside_such_a_handshake():
    """The server alone speaks; without any data the capture's other connections say it."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = through_a_syn_proxy(pair.client_side.connection, (0.024, 29.0), (1, 29.2), answer=1)
    far = through_a_syn_proxy(pair.server_side.connection, (0.042, 43.4), (1, 72.8), answer=2)
    near, far = (each._replace(up=each.up._replace(round_trip_time_min_ns=None)) for each in (near, far))
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0
    assert are_both_timed(near, far)
    near, far = (each._replace(down=each.down._replace(round_trip_time_min_ns=None)) for each in (near, far))
    assert not are_both_timed(near, far)
    assert not judged_in_columns(near, far)[1]


def test_data_of_one_direction_and_gaps_that_one_path_explains_may_dispute():
    """Behind a firewall that hides numbers the client's capture lost the first acknowledgement of the only answer."""
    (pair,) = pairs("reg_dl_cubic_lte")
    near = through_a_syn_proxy(pair.client_side.connection, (60, 0.1), (1, 200), answer=1)
    far = through_a_syn_proxy(pair.server_side.connection, (10, 50.1), (1, 50), answer=2)
    near, far = (each._replace(up=each.up._replace(round_trip_time_min_ns=None)) for each in (near, far))
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0
    assert not are_both_timed(near, far)
    near = near._replace(down=near.down._replace(round_trip_time_min_ns=MS // 10))
    assert first_is_client_side(near, far) > 0
    assert first_is_client_side(far, near) < 0
    assert are_both_timed(near, far)
