"""The path's round trip by a handshake that crossed it, and acknowledgements that came back sooner."""

import pytest
from msgspec.structs import replace

from detector.clocks.handshake_path import handshake_round_trips_ns
from detector.method import Observation
from detector.methods import ack_timing
from detector.methods.ack_timing.strengths import NEARER_SHARE, SEVERAL_ACKS
from detector.pairing.captures import pair_captures
from detector.streams.known import UNKNOWN
from detector.streams.sides import Sides
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from tests.detector.corpus import pairs
from tests.detector.methods.alone import alone
from tests.fresh.test_fresh_captures import FRESH


def fresh(run):
    mobile, server = (open_capture(str(FRESH / f"{run}.{end}.pcap.gz")) for end in ("mobile", "server"))
    return [pair for pair in pair_captures(mobile, server) if len(pair.vantages) == 2]


def handshake_round_trip_ns(pair, direction):
    (time_ns,) = handshake_round_trips_ns(Sides.of([pair]), direction).tolist()
    return None if time_ns == UNKNOWN else time_ns


def test_both_ends_measure_one_path():
    (pair,) = pairs("reg_dl_cubic_lte")
    client, server = pair.client_side.connection, pair.server_side.connection
    assert handshake_round_trip_ns(pair, Direction.DOWN) <= server.handshake_ack_ns
    assert handshake_round_trip_ns(pair, Direction.UP) <= client.handshake_syn_ack_ns


def test_a_syn_that_waited_at_one_end_is_not_the_path():
    (pair,) = pairs("reg_dl_cubic_lte")
    waited = pair.client_side.connection._replace(handshake_syn_ack_ns=3_000_000_000)
    slow = replace(pair, client_side=replace(pair.client_side, connection=waited))
    assert handshake_round_trip_ns(slow, Direction.UP) < 1_000_000_000


@pytest.mark.parametrize("run_id", ["spl_ha_dl_small_umts", "prx_ngx_2M_umts"])
def test_a_proxys_handshakes_are_two(run_id):
    assert all(handshake_round_trip_ns(pair, direction) is None for pair in pairs(run_id) for direction in Direction)


def test_a_box_that_acknowledges_in_the_middle_is_nearer_than_the_handshake():
    found = [alone(ack_timing.METHOD, Observation(pair)) for pair in fresh("spl-localack-short")]
    nearer = [item for item in found if item.finding == "acks-nearer-than-handshake"]
    assert nearer
    for item in nearer:
        assert item.numbers["acks_nearer_than_handshake"] >= SEVERAL_ACKS
        assert item.numbers["round_trip_min_s"] < NEARER_SHARE * item.numbers["handshake_path_s"]
