"""The path's round trip by a handshake that crossed it, and acknowledgements that came back sooner."""

from dataclasses import replace as replace_frame

import numpy as np
import pytest
from msgspec.structs import replace

from detector.clocks.clouds import larger
from detector.clocks.handshake_path import handshake_round_trips_ns
from detector.clocks.relating import relate
from detector.method import Context, Observation
from detector.methods import ack_timing
from detector.methods.ack_timing.measured import Measured
from detector.methods.ack_timing.nearer import nearer_than_handshake
from detector.methods.ack_timing.strengths import LEAST_ACKS, NEARER_SHARE, SEVERAL_ACKS
from detector.pairing.captures import pair_captures
from detector.streams.known import UNKNOWN
from detector.streams.sides import Sides
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Outcome
from tests.captures.containers import read_capture, write_pcap
from tests.detector.corpus import pairs
from tests.detector.methods.alone import alone
from tests.detector.rewriting import changed, without_ip_id
from tests.fresh.test_fresh_captures import FRESH


def fresh(run):
    mobile, server = (open_capture(str(FRESH / f"{run}.{end}.pcap.gz")) for end in ("mobile", "server"))
    return [pair for pair in pair_captures(mobile, server) if len(pair.vantages) == 2]


def handshake_round_trip_ns(pair, direction):
    (time_ns,) = handshake_round_trips_ns(Sides.of([pair]), direction, np.array([UNKNOWN])).tolist()
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


def test_a_server_that_answers_late_is_not_a_longer_path():
    (pair,) = pairs("reg_dl_cubic_lte")
    late_ns = 3_000_000_000
    waited = [
        replace(
            side,
            connection=side.connection._replace(handshake_syn_ack_ns=side.connection.handshake_syn_ack_ns + late_ns),
        )
        for side in (pair.client_side, pair.server_side)
    ]
    slow = replace(pair, client_side=waited[0], server_side=waited[1])
    assert handshake_round_trip_ns(slow, Direction.UP) == handshake_round_trip_ns(pair, Direction.UP)


def begun_earlier(run, waits_s, tmp_path):
    """A run of Ethernet captures whose SYNs and SYN-ACKs are so much earlier, by capture and flags."""
    paths = []
    for end in ("mobile", "server"):
        capture = read_capture(FRESH / f"{run}.{end}.pcap.gz")
        frames = [
            replace_frame(frame, time_ns=frame.time_ns - round(waits_s.get((end, frame.data[47] & 0x12), 0.0) * 1e9))
            for frame in capture.frames
        ]
        path = tmp_path / f"{end}.pcap"
        path.write_bytes(write_pcap(sorted(frames, key=lambda frame: frame.time_ns), capture.link_type))
        paths.append(str(path))
    return paths


def test_a_wait_that_only_the_handshake_met_accuses_nobody(tmp_path):
    """SYN and SYN-ACK each wait on the way for an address to be resolved; what follows crosses within a millisecond."""
    syn, syn_ack = 0x02, 0x12
    waits_s = {("mobile", syn): 0.8, ("server", syn): 0.4, ("server", syn_ack): 0.4}
    mobile, server = map(open_capture, begun_earlier("reg-local", waits_s, tmp_path))
    found = [alone(ack_timing.METHOD, Observation(pair)) for pair in pair_captures(mobile, server)]
    assert max(item.numbers.get("handshake_path_s", 0.0) for item in found) > 0.3
    assert all(item.outcome is not Outcome.SPLIT for item in found)


def test_a_filter_that_leaves_the_answer_alone_makes_no_path_long(tmp_path):
    """The server's capture holds one acknowledgement of an upload, its answer, 8 ms behind the data."""
    capture = read_capture(FRESH / "reg-local.server.pcap.gz")
    pure = [frame.data[47] == 0x10 and int.from_bytes(frame.data[16:18]) == 52 for frame in capture.frames]
    kept = [frame for frame, is_pure in zip(capture.frames, pure, strict=True) if not is_pure]
    path = tmp_path / "server.pcap"
    path.write_bytes(write_pcap(kept, capture.link_type))
    mobile, server = open_capture(str(FRESH / "reg-local.mobile.pcap.gz")), open_capture(str(path))
    found = [alone(ack_timing.METHOD, Observation(pair)) for pair in pair_captures(mobile, server)]
    uploads = [
        item.numbers for item in found if item.numbers["direction"] == "up" and item.numbers["acks"] > LEAST_ACKS
    ]
    assert uploads
    assert all(numbers["handshake_path_s"] < 0.002 for numbers in uploads)
    assert all(item.outcome is not Outcome.SPLIT for item in found)


@pytest.mark.parametrize("run_id", ["spl_ha_dl_small_umts", "prx_ngx_2M_umts"])
def test_a_proxys_handshakes_are_two(run_id):
    assert all(handshake_round_trip_ns(pair, direction) is None for pair in pairs(run_id) for direction in Direction)


def test_a_box_is_nearer_than_half_the_path_to_one_of_two_senders():
    """More data go up, and the box stands nearer to the server."""
    dialogues = fresh("spl-localack-terminal")
    clocks = [relate(pair) for pair in dialogues]
    found = [alone(ack_timing.METHOD, Observation(pair)) for pair in dialogues]
    assert {flow.direction for clock in clocks if (flow := larger(clock.clouds))} == {Direction.UP}
    assert {(item.finding, item.numbers["direction"]) for item in found} == {("acks-nearer-than-handshake", "down")}
    for item, clock in zip(found, clocks, strict=True):
        limit_s = NEARER_SHARE * item.numbers["handshake_path_s"]
        assert item.numbers["round_trip_min_s"] < limit_s < clock.round_trip_min_s


def test_other_findings_state_the_larger_direction_alone():
    dialogues = fresh("spl-localack-terminal")
    measured = Measured.of(Context([Observation(pair) for pair in dialogues]))
    of_larger, firmest = nearer_than_handshake(measured, np.full(len(measured), np.inf))
    assert of_larger.is_up.all()
    assert not firmest.is_up.any()
    assert (firmest.strength > of_larger.strength).all()
    assert of_larger.handshake_path_ns.tolist() == measured.of_larger.handshake_path_ns.tolist()


def test_a_box_that_acknowledges_in_the_middle_is_nearer_than_the_handshake():
    found = [alone(ack_timing.METHOD, Observation(pair)) for pair in fresh("spl-localack-short")]
    nearer = [item for item in found if item.finding == "acks-nearer-than-handshake"]
    assert nearer
    for item in nearer:
        assert item.numbers["acks_nearer_than_handshake"] >= SEVERAL_ACKS
        assert item.numbers["round_trip_min_s"] < NEARER_SHARE * item.numbers["handshake_path_s"]


def of_all(found_pairs):
    """The acknowledgements nearer than the handshake where no data show that it waited."""
    measured = Measured.of(Context([Observation(pair) for pair in found_pairs]))
    return nearer_than_handshake(measured, np.full(len(measured), np.inf))[1].found.tolist()


def test_the_receivers_own_packets_are_from_no_nearer_host(tmp_path):
    syn, syn_ack = 0x02, 0x12
    waits_s = {("mobile", syn): 0.8, ("server", syn): 0.4, ("server", syn_ack): 0.4}
    mobile, server = map(open_capture, begun_earlier("reg-local", waits_s, tmp_path))
    waited = pair_captures(mobile, server)
    assert not any(of_all(waited))
    assert any(of_all([changed(pair, without_ip_id, without_ip_id) for pair in waited]))


def with_a_server_whose_clock_was_set_back(pair):
    return replace(pair, server_side=replace(pair.server_side, clock_set_back=True))


def test_a_clock_set_back_brings_what_is_on_its_way_nearer():
    """All within one round trip: of short transfers that is most, of dialogues one acknowledgement."""
    short, dialogues = fresh("spl-localack-short"), fresh("spl-localack-terminal")
    assert any(of_all(short))
    assert not any(of_all([with_a_server_whose_clock_was_set_back(pair) for pair in short]))
    assert all(of_all([with_a_server_whose_clock_was_set_back(pair) for pair in dialogues]))
