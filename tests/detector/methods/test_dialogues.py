"""Quiet dialogues without timestamps: a relay between equal stacks; a normaliser, with what captures lose besides."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.method import Observation
from detector.methods import identity
from detector.methods.identity.dropped_acks import PlaceCounts, one_receiver_nats, possible_losses, probable_loss
from detector.options import DetectOptions
from detector.pair import Pair
from detector.pairing.captures import pair_captures
from detector.verdict.judging import judge_pair
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, TcpFlag
from pepscope.results.verdicts import Outcome, Verdict
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from tests.detector import rewriting as rw
from tests.detector.methods.generated_segments import compared_data
from tests.detector.methods.reference_places import count_places, within_known_span
from tests.detector.methods.test_identity import sent

UP, DOWN = Direction.UP, Direction.DOWN
RELAY = {"kind": "split-proxy"}
#: Whatever it does to packets, it passes each of them on.
NORMALISER = {
    "kind": "rewriter", "name": "firewall", "shifts_sequence_numbers": True, "maximum_segment_size_bytes": 1300,
    "window_limit_bytes": 30_000, "routers": 3,
}  # fmt: skip


def dialogue(box: dict[str, Any], seed: int, pages: int, page_bytes: int, think_s: float, delay_s: float) -> Pair:
    """Requests and answers over a path with `box` in the middle, all stacks alike and without timestamps."""
    ends = {"timestamps": False}
    legs = {"server_leg": ends, "mobile_leg": ends} if box["kind"] == "split-proxy" else {}
    wire = {"rate_bit_s": 2e8, "delay_s": delay_s, "queue_packets": 1000}
    scenario = Scenario.from_mapping(
        {
            "name": "dialogue", "duration_s": 300.0, "stop_after_finish_s": 3.0, "seed": seed,
            "mobile": ends, "server": ends,
            "path": [
                {"kind": "wired", "name": "core", "down": wire, "up": wire}, {**box, **legs},
                {"kind": "wired", "name": "cell", "down": wire, "up": wire},
            ],
            "traffic": [
                {"kind": "http", "pages": pages, "page_bytes": page_bytes, "request_bytes": 300,
                 "think_time_mean_s": think_s}
            ],
            "record": {"taps": [{"name": "server"}, {"name": "mobile"}]},
        }
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        run = simulate(scenario, directory)
        captures = [open_capture(str(run.captures[name])) for name in ("mobile", "server")]
        (pair,) = [pair for pair in pair_captures(captures[0], captures[1], DetectOptions()) if len(pair.vantages) == 2]
    return pair


def one_ack_in(count: int) -> rw.Change:
    """A capture that keeps one pure acknowledgement in so many, of either direction."""

    def keep(packets: PacketColumns) -> PacketColumns:
        pure = packets.payload_bytes == 0
        pure &= (packets.flags & np.uint16(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST)) == 0
        return rw.keep(packets, ~pure | (np.cumsum(pure) % count == 0))

    return keep


LOSSES = st.lists(
    st.one_of(
        st.builds(rw.losing, st.floats(0.01, 0.3), st.integers(0, 2**30)),
        st.builds(one_ack_in, st.integers(2, 8)),
        st.sampled_from((rw.losing_a_burst, rw.offloaded(UP), rw.offloaded(DOWN))),
    ),
    max_size=2,
).map(lambda changes: rw.in_sequence(*changes))
TALKS = st.tuples(
    st.integers(0, 2**30), st.integers(1, 25), st.integers(10, 4000), st.floats(0.01, 1.0), st.floats(0.001, 0.1)
)


@settings(max_examples=40, deadline=None)
@given(TALKS, LOSSES, LOSSES, st.sampled_from((rw.own_ip_id, rw.scrambled_ip_id, rw.without_ip_id)))
def test_a_dialogue_through_a_normaliser_is_never_called_split(talk, near, far, ids):
    pair = rw.changed(dialogue(NORMALISER, *talk), near, rw.in_sequence(far, ids))
    result = judge_pair(pair)
    assert result.verdict not in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY), result.reason


@settings(max_examples=20, deadline=None)
@given(TALKS)
def test_a_dialogue_through_a_relay_is_never_called_regular(talk):
    result = judge_pair(dialogue(RELAY, *talk))
    assert result.verdict is not Verdict.REGULAR, result.reason


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ids", [None, rw.own_ip_id])
def test_acknowledgements_that_the_server_never_sent_give_a_relay_away(seed, ids):
    pair = rw.changed(dialogue(RELAY, seed, 10, 200, 0.3, 0.02), None, ids)
    assert identity.METHOD.alone(Observation(pair)).outcome is Outcome.SPLIT


def test_places_are_counted_where_both_captures_look():
    nothing = np.zeros(0, np.int64)
    counts = count_places(places(100, 300), places(200, 300, 400), places(100, 200, 300, 400, 500), (nothing, nothing))
    assert counts == PlaceCounts(both=1, emitted_only=1, arrived_only=2, neither=0)
    unseen = (places(150), places(250))  # bytes 150 to 250 were missed, and so was whatever acknowledged 200
    assert count_places(places(100, 300), places(200, 300), places(100, 200, 300), unseen) == PlaceCounts(1, 1, 0, 0)


def places(*numbers: int) -> Int64Array:
    return np.array(numbers, np.int64)


SOUND = PlaceCounts(both=20, emitted_only=0, arrived_only=0, neither=0)
FOREIGN = PlaceCounts(both=1, emitted_only=0, arrived_only=20, neither=0)


def test_a_capture_without_acknowledgements_explains_their_absence_in_both_directions_only():
    # The server's capture holds all of the client's acknowledgements, so it was not filtered: its own host sent none.
    relay = one_receiver_nats({UP: SOUND, DOWN: FOREIGN}, [0.01], [0.01])
    filtered = one_receiver_nats({UP: PlaceCounts(1, 19, 0, 0), DOWN: FOREIGN}, [0.01], [0.01])
    assert relay < -5 < -2.5 < filtered


def test_places_that_agree_are_evidence_of_one_receiver_and_none_are_none():
    assert one_receiver_nats({UP: PlaceCounts(15, 0, 0, 15), DOWN: PlaceCounts(12, 1, 0, 12)}, [0.01], [0.01]) > 10
    assert abs(one_receiver_nats({}, [0.01], [0.01])) < 0.1


def test_a_capture_that_began_late_need_not_have_lost_what_is_compared() -> None:
    """Every third acknowledgement is left in the emitter's capture; the other one lacks a third of the stream."""
    thinned = {UP: PlaceCounts(20, 0, 39, 1)}
    assert one_receiver_nats(thinned, [0.01], [0.33]) < -6
    assert one_receiver_nats(thinned, [0.01], possible_losses(0.33, 120)) > -3


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.floats(0.001, 0.02))
def test_the_sum_of_places_is_bounded_by_the_rarest_captures(both, emitted, arrived, neither, loss):
    nats = one_receiver_nats({UP: PlaceCounts(both, emitted, arrived, neither)}, [loss], [loss])
    # Both captures may have dropped acknowledgements, at some share.
    assert nats > -25


def test_numbers_at_the_ends_of_what_data_carried_are_not_looked_for():
    asked = places(0, 100, 200, 300)
    assert within_known_span(asked, places(), places(0, 300)).tolist() == [False, True, True, False]
    assert within_known_span(asked, places(0, 100), places(0, 300)).tolist() == [True, True, True, False]
    assert not within_known_span(asked, places(), places()).any()


def test_data_that_carry_another_acknowledgement_than_any_copy_disagree():
    left = sent(range(4), push=True)
    for other, share in ((0, 1.0), (500, 0.0)):
        came = left.replaced(acknowledgement=left.acknowledgement + other)
        carried = compared_data(left, came).fields["carried-acknowledgement"]
        assert (carried.compared, carried.agreeing) == (1, share)


def test_few_segments_do_not_prove_that_a_capture_loses_nothing():
    assert probable_loss(0.0, 0) == pytest.approx(0.05)
    assert probable_loss(0.0, 10_000) < 1e-3
    assert possible_losses(0.0, 50) == (probable_loss(0.0, 50),)
    assert possible_losses(0.3, 50) == (probable_loss(0.0, 50), probable_loss(0.3, 50))
    assert probable_loss(0.2, 10_000) == pytest.approx(0.2, rel=0.01)


def test_many_places_of_a_thinned_capture_are_one_receivers() -> None:
    """Every fourth acknowledgement is left, a share between two of those that are looked for; the path lost none."""
    thinned = {UP: PlaceCounts(346, 0, 1036, 1), DOWN: PlaceCounts(2, 0, 0, 0)}
    assert one_receiver_nats(thinned, [0.001], [0.001]) > 0
    apart = {UP: PlaceCounts(172, 519, 519, 172), DOWN: PlaceCounts(2, 0, 0, 0)}  # two stacks, every other place each
    assert one_receiver_nats(apart, [0.001], [0.001]) < -8
