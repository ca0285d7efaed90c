from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import Observation
from detector.methods.identity import METHOD
from detector.methods.identity.agreement import (
    LEAST_CHANCE,
    MOST_NATS,
    ClassComparison,
    FieldAgreement,
    log_likelihood_ratio,
    sum_fields,
    total_nats,
)
from detector.methods.identity.examination import DECISIVE_NATS
from detector.methods.identity.findings import IdentityFinding
from detector.methods.identity.normaliser import weigh
from detector.methods.identity.segments import SAMPLE_PACKETS, thinning_for
from detector.pair import StreamAlignment
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Outcome
from tests.detector import rewriting as rw
from tests.detector.corpus import RUNS, end_points, pairs, truth
from tests.detector.methods.generated_segments import compared_data, together
from tests.detector.methods.reference_segments import Segments

FEW = (
    "reg_dl_reno_loss1", "reg_dl_short10k", "reg_dl_nat", "reg_dl_slowreader_rate", "reg_ul_slowreader_srv__midone",
    "reg_dl_bloat_1M__mid", "reg_dl_nots_nosack", "reg_dl_v6", "reg_bidir", "spl_ha_chat", "spl_ha_dl_short10k",
    "spl_ha_dl_fastcell", "spl_ha_ul_cellslow", "spl_ha_dl_srcip__mid", "spl_ha_mixed", "prx_ngx_2M_umts",
)  # fmt: skip


def examine(observation):
    """What identity finds on one connection."""
    return METHOD.alone(observation)


BOTH = rw.in_sequence(rw.without_timestamps, rw.without_ip_id)
VARIANTS = {
    "no timestamps": (rw.without_timestamps, rw.without_timestamps),
    "IP ID zeroed": (None, rw.without_ip_id),
    "IP ID scrambled": (None, rw.scrambled_ip_id),
    "IP ID of a NAT": (None, rw.own_ip_id),
    "no timestamps, IP ID and windows of a NAT": (
        rw.without_timestamps,
        rw.in_sequence(rw.without_timestamps, rw.own_ip_id, rw.narrowed_windows),
    ),
    "neither timestamps nor IP ID": (BOTH, BOTH),
    "timestamps modulated": (None, rw.modulated_timestamps),
    "windows narrowed": (None, rw.narrowed_windows),
    "5 % lost by both captures": (rw.losing(0.05, 1), rw.losing(0.05, 2)),
    "burst lost": (rw.losing_a_burst, None),
    "burst lost, nothing but offsets": (rw.in_sequence(BOTH, rw.losing_a_burst), BOTH),
    "ACKs thinned": (None, rw.thinned_acknowledgements),
    "send offload": (rw.offloaded(Direction.UP), rw.offloaded(Direction.DOWN)),
    "receive offload": (rw.offloaded(Direction.DOWN), rw.offloaded(Direction.UP)),
    "receive offload, nothing but offsets": (
        rw.in_sequence(rw.offloaded(Direction.DOWN), BOTH),
        rw.in_sequence(rw.offloaded(Direction.UP), BOTH),
    ),
}
#: With these something decisive is left in every packet, so every connection must be decided.
DECIDED = {
    "IP ID of a NAT",
    "no timestamps", "IP ID zeroed", "IP ID scrambled", "timestamps modulated", "windows narrowed",
    "5 % lost by both captures", "burst lost", "ACKs thinned", "send offload", "receive offload",
}  # fmt: skip


def known(run_id):
    flows = truth(run_id)
    both = [pair for pair in pairs(run_id) if len(pair.vantages) == 2]
    assert both
    regular = [flows[end_points(pair)]["class"] == "regular" for pair in both]
    return [(pair, Outcome.INTACT if one else Outcome.SPLIT) for pair, one in zip(both, regular, strict=True)]


@pytest.mark.parametrize("run_id", RUNS)
def test_every_connection_of_the_corpus_is_explained(run_id):
    for pair, expected in known(run_id):
        found = examine(Observation(pair))
        assert (found.outcome, found.finding) == (
            expected,
            "same-packets" if expected is Outcome.INTACT else "other-packets",
        ), found.summary


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("run_id", FEW)
def test_rewritten_packets_never_reverse_a_verdict(run_id, variant):
    opposite = {Outcome.INTACT: Outcome.SPLIT, Outcome.SPLIT: Outcome.INTACT}
    for pair, expected in known(run_id):
        found = examine(Observation(rw.changed(pair, *VARIANTS[variant])))
        assert found.outcome is not opposite[expected], found.summary
        # Ten kilobytes through a relay leave too few timestamps and ACKs for a split once these are gone.
        short = expected is Outcome.SPLIT and found.numbers.get("down_data_segments", 0) < 20
        if variant in DECIDED and not (short and variant in {"no timestamps", "ACKs thinned"}):
            assert found.outcome is expected, found.summary


@pytest.mark.parametrize(
    ("run_id", "server", "rewriter"),
    [
        ("reg_dl_nat", None, "nat"),
        ("reg_dl_mss1200", None, "mss-clamping"),
        ("reg_dl_cubic_lte", rw.modulated_timestamps, "timestamp-modulating"),
        ("reg_dl_cubic_lte", rw.narrowed_windows, "window-regulator"),
        ("reg_dl_cubic_lte", rw.scrambled_ip_id, "ip-id-rewriting"),
        ("reg_dl_cubic_lte", rw.thinned_acknowledgements, "ack-thinning"),
        ("reg_dl_cubic_lte", rw.offloaded(Direction.DOWN), "offload"),
    ],
)
def test_names_the_harmless_rewriter(run_id, server, rewriter):
    for pair in pairs(run_id):
        found = examine(Observation(rw.changed(pair, None, server)))
        assert found.finding == "same-packets"
        assert found.numbers["rewriters"] == rewriter
        assert len(found.caveats) == 1


def test_foreign_acknowledgements_of_the_far_ends_data_are_no_split():
    (pair,) = pairs("reg_dl_cubic_lte")
    found = examine(Observation(rw.changed(pair, None, rw.own_acknowledgements)))
    assert found.finding == "acks-nobody-sent"
    assert found.outcome is not Outcome.SPLIT


def test_one_capture_is_not_enough():
    (pair,) = pairs("reg_dl_cubic_lte")
    assert examine(Observation(replace(pair, server_side=None))).finding == "needs-second-capture"


def test_offsets_that_nothing_supports_are_not_compared():
    (pair,) = pairs("spl_ha_dl_small_umts__mid")
    lost = replace(pair, alignment={d: StreamAlignment(0, 0, 0.0) for d in Direction})
    assert examine(Observation(lost)).finding == "not-aligned"


def test_no_overlap_in_time_is_too_few_segments():
    (pair,) = pairs("reg_dl_cubic_lte")
    half = len(pair.client_side.packets) // 2
    first = rw.changed(
        pair,
        lambda p: rw.keep(p, slice(0, half // 4)),
        lambda p: rw.keep(p, slice(len(p) - half // 4, len(p))),
    )
    assert examine(Observation(first)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_likelihood_ratio_is_bounded_and_zero_without_contrast(share):
    assert abs(log_likelihood_ratio(1e9, share, 0.97, LEAST_CHANCE)) <= MOST_NATS
    assert log_likelihood_ratio(100, share, 0.5, 0.6) == 0.0
    assert log_likelihood_ratio(0, share, 0.97, LEAST_CHANCE) == 0.0


def test_places_of_acknowledgements_that_agree_decide_nothing_alone():
    """A relay that forwards each segment at once acknowledges where the receiver does."""
    places = FieldAgreement(600, 1.0, MOST_NATS)
    same = ClassComparison(600, 600, {"acknowledgement": places})
    other = ClassComparison(600, 600, {"acknowledgement": places._replace(agreeing=0.5, nats=-MOST_NATS)})

    def weighed(part, numbers_kept=0):
        return weigh(
            sum_fields([part]),
            numbers_kept=numbers_kept,
            renumbered=False,
            other_ip_ids=False,
            one_receiver=lambda _: -MOST_NATS,
        )

    assert 0 < weighed(same) < DECISIVE_NATS
    assert weighed(same, numbers_kept=1) == MOST_NATS
    assert weighed(other) == weighed(other, numbers_kept=1) == -MOST_NATS


def relayed(agreeing, segments=60):
    """Segments of which this share leaves a relay within the tick in which they came, its clock being the sender's."""
    time = np.arange(segments, dtype=np.int64)
    late = time >= round(agreeing * segments)
    blank = np.zeros(segments, dtype=np.int64)
    bare = np.ones(segments, dtype=np.bool_)

    def stamped(tsval):
        return Segments.of(
            start=time * 1000, length=blank + 1000, acknowledgement=blank, window=blank + 65_000, push=~bare,
            first_copy=bare, has_timestamps=bare, stamps_captured=bare,
            tsval=tsval, tsecr=blank, ip_id=blank, ttl=blank,
        )  # fmt: skip

    return compared_data(stamped(time), stamped(time + late))


@pytest.mark.parametrize(("agreeing", "speaks"), [(0.6, False), (0.75, False), (0.85, False), (1.0, True)])
def test_stamps_that_agree_now_and_then_are_a_relays_with_the_same_clock(agreeing, speaks):
    part = relayed(agreeing)
    assert part.fields["timestamps"].agreeing == pytest.approx(agreeing)
    assert (total_nats(sum_fields([part]), frozenset({"timestamps"})) > DECISIVE_NATS) == speaks


def test_timestamps_that_agree_sometimes_are_no_split():
    for agreeing in np.linspace(0.6, 1.0, 9):
        assert total_nats(sum_fields([relayed(agreeing)]), frozenset({"timestamps"})) >= 0.0


def test_large_connections_are_sampled():
    assert thinning_for(SAMPLE_PACKETS) == 1
    assert thinning_for(500_000) > 10


def test_copies_sent_after_the_end_of_the_emitters_capture_are_nobody_elses():
    """All that left in its last round trip was lost, and arrives as copies that it does not hold."""

    def until_data_are_acknowledged(packets):
        acknowledged = (packets.direction == Direction.UP) & (packets.acknowledgement_offset > 0)
        return rw.keep(packets, slice(0, int(np.flatnonzero(acknowledged)[0])))

    def sent_again(packets):
        data = (packets.direction == Direction.DOWN) & (packets.payload_bytes > 0)
        later = np.random.default_rng(3).integers(500, 5000, len(packets))
        return packets.replaced(
            tsval=np.where(data, packets.tsval + later.astype(np.uint32), packets.tsval),
            ip_id=np.where(data, packets.ip_id + later.astype(np.uint16), packets.ip_id),
        )

    (pair,) = pairs("reg_dl_cubic_lte")
    ended = rw.changed(pair, sent_again, until_data_are_acknowledged)
    assert len(ended.server_side.packets) > 10
    assert examine(Observation(ended)).outcome is not Outcome.SPLIT
    assert examine(Observation(rw.changed(pair, sent_again))).finding is IdentityFinding.PARTLY_SAME


def sent(numbers, *, push, first_copy=True):
    """Segments of 1000 bytes, nothing in them but their place and PSH, as without timestamps and IP IDs."""
    count = len(numbers)
    zeros, yes, no = np.zeros(count, np.int64), np.ones(count, np.bool_), np.zeros(count, np.bool_)
    return Segments.of(
        start=np.asarray(numbers, np.int64) * 1000, length=zeros + 1000, acknowledgement=zeros, window=zeros + 500,
        push=yes if push else no, first_copy=yes if first_copy else no, has_timestamps=no, stamps_captured=yes,
        tsval=zeros, tsecr=zeros, ip_id=zeros, ttl=zeros + 64,
    )  # fmt: skip


def test_a_retransmission_with_another_push_than_its_first_copy_is_the_far_ends_all_the_same():
    emitted = together(sent(range(60), push=False), sent(range(0, 60, 2), push=True, first_copy=False))
    arrived = together(sent(range(0, 60, 2), push=True), sent(range(1, 60, 2), push=False))
    push = compared_data(emitted, arrived).fields["push"]
    assert (push.compared, push.agreeing) == (30, 1.0)
    assert push.nats >= 0


def test_a_push_that_no_copy_had_is_evidence_of_another_sender():
    emitted = together(sent(range(60), push=False), sent(range(0, 60, 2), push=True, first_copy=False))
    assert compared_data(emitted, sent(range(60), push=True)).fields["push"].nats < -10


def with_one_stream(pair, stream):
    """The pair as if the beginning of the other stream had been lost at both ends, and all of its payload."""
    other = "down" if stream is Direction.UP else "up"

    def begun_late(vantage):
        flow = getattr(vantage.connection, other)._replace(initial_sequence_number=None)
        return replace(vantage, connection=vantage.connection._replace(**{other: flow}))

    alignment = {**pair.alignment, stream.reverse: StreamAlignment(0, 0, 0.0)}
    client, server = begun_late(pair.client_side), begun_late(pair.server_side)
    return replace(pair, client_side=client, server_side=server, alignment=alignment)


@pytest.mark.parametrize(
    "run_id", ["act_ha_dl_T4", "spl_ha_dl_large_umts", "spl_ha_ul_slowwire", "spl_ngx_stream_dl_spoof"]
)
def test_a_stream_that_is_aligned_alone_is_compared(run_id):
    (pair,) = pairs(run_id)
    stream = max(Direction, key=lambda direction: pair.client_side.flow(direction).stream_bytes)
    evidence = examine(Observation(with_one_stream(pair, stream)))
    assert evidence.finding == "other-packets"
    assert f"{stream.name.lower()}_data_segments" in evidence.numbers
    assert f"{stream.reverse.name.lower()}_data_segments" not in evidence.numbers


def test_one_stream_of_a_regular_connection_without_marks_is_not_called_another():
    plain = BOTH
    for run_id in ("reg_dl_cubic_lte", "reg_dl_reno_loss1", "reg_ul_bloat_256"):
        (pair,) = pairs(run_id)
        stream = max(Direction, key=lambda direction: pair.client_side.flow(direction).stream_bytes)
        evidence = examine(Observation(rw.changed(with_one_stream(pair, stream), plain, plain)))
        assert evidence.finding in {"same-packets", "too-alike"}, run_id


def cut_in_two(packets):
    """Data down as a router sends them on that cuts segments: two halves, each with the header of the whole."""
    large = np.flatnonzero((packets.direction == Direction.DOWN) & (packets.payload_bytes > 600))
    half = packets.payload_bytes[large] // 2
    rows = np.sort(np.concatenate([np.arange(len(packets)), large]), kind="stable")
    halves = rw.keep(packets, rows)
    second = np.flatnonzero(np.diff(rows, prepend=-1) == 0)
    bytes_, offsets = halves.payload_bytes.copy(), halves.sequence_offset.copy()
    bytes_[second - 1], offsets[second] = half, offsets[second] + half
    bytes_[second] -= half
    return halves.replaced(payload_bytes=bytes_, sequence_offset=offsets)


def with_data(packets):
    return rw.keep(packets, packets.payload_bytes > 0)


@pytest.mark.parametrize("run_id", ["reg_dl_cubic_lte", "reg_dl_reno_loss1"])
def test_segments_that_are_cut_on_the_way_are_no_split(run_id):
    """The server's capture holds data alone, so that no acknowledgement speaks for it."""
    for pair in pairs(run_id):
        assert examine(Observation(rw.changed(pair, cut_in_two, with_data))).outcome is not Outcome.SPLIT
