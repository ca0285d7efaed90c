"""What was not captured is not absent: cut packets, filtered captures, and their warnings."""

from __future__ import annotations

import functools
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import pepscope
from benchmarks.metamorphic.case import Case, judge_case
from benchmarks.metamorphic.changes import BY_NAME, drawn
from benchmarks.metamorphic.pairs import sources
from benchmarks.validation.cut_captures import LENGTHS, judge_cuts
from benchmarks.validation.variants import cut_behind_ip
from detector.method import Observation
from detector.methods import progress, receive_window
from detector.methods.identity.segment_counts import segment_counts
from detector.methods.identity.segments import windows_on_wire
from detector.pair import Pair, Vantage
from detector.streams.sides import Sides
from detector.vantage.not_captured import cut_options, missing_packets, without_blanked
from pepscope.captures.capture import open_capture
from pepscope.captures.connections import FlowSummary, MissingPackets
from pepscope.captures.packets import Direction, Mark, PayloadSample
from pepscope.results.verdicts import Outcome, PairResult
from tests.captures.containers import LINK_ETHERNET, LINK_LINUX_SLL, LINK_RAW, read_capture, write_pcap
from tests.detector.corpus import CORPUS, RUNS, pairs
from tests.detector.methods.alone import alone
from tests.detector.methods.generated_segments import compared_acknowledgements, compared_data, laid_over
from tests.detector.methods.reference_segments import Segments, VantageColumns, read_segments

#: Small captures: many short connections, no timestamps or SACK, IPv6, a slow cell, and splits of each make.
CUT_RUNS = (
    "reg_dl_short10k", "reg_dl_cdma1x", "reg_dl_nots_nosack", "reg_dl_v6",
    "spl_ha_dl_short10k", "spl_ha_chat", "spl_ha_ul_slowwire", "spl_ha_dl_v6",
)  # fmt: skip


@settings(max_examples=12, deadline=None, derandomize=True)
@given(run=st.sampled_from(CUT_RUNS), length=st.sampled_from(LENGTHS))
def test_a_snap_length_never_reverses_a_verdict(run: str, length: int) -> None:
    outcomes = judge_cuts(RUNS[run], [length])
    assert outcomes
    assert not [outcome for outcome in outcomes if outcome.result == "reversed"]


@pytest.mark.parametrize("place", ["server", "mobile"])
@pytest.mark.parametrize("run", ["reg_dl_short10k", "reg_dl_v6", "reg_dl_nat"])
def test_payload_that_a_tool_overwrote_in_one_capture_is_not_other_content(run: str, place: str) -> None:
    (source,) = (one for one in sources([CORPUS]) if one.name.endswith(f"/{run}"))
    steps = drawn(BY_NAME["zero the payload"], place, random.Random(1), [])
    judgements = judge_case(Case(0, source, tuple(steps)))
    assert judgements
    assert {judgement.verdict for judgement in judgements} == {"regular"}


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ((), 0),
        ((b"",), 0),
        ((bytes(9), bytes(200)), 0),
        ((b"x" * 9, b"x" * 5), 0),
        ((b"x" * 9, b"y" * 5), 2),
        ((bytes(200), b"\0\0\1"), 2),
    ],
)
def test_payload_of_one_repeated_byte_counts_as_not_captured(pieces: tuple[bytes, ...], kept: int) -> None:
    offsets = np.arange(len(pieces), dtype=np.int64) * 1000
    left = without_blanked(PayloadSample(offsets, pieces))
    assert (len(left.pieces), len(left.offsets)) == (kept, kept)


def test_one_capture_cut_within_the_timestamps_leaves_the_other_fields_to_decide() -> None:
    outcomes = judge_cuts(RUNS["reg_dl_cdma1x"], [48, 51])
    assert {outcome.result for outcome in outcomes} == {"right"}, outcomes


def segments_of(run: str) -> tuple[Segments, Segments]:
    """Data that left the server and that arrived at the client."""
    (pair,) = pairs(run)
    client, server = pair.client_side, pair.server_side
    assert client is not None
    assert server is not None
    columns: list[VantageColumns] = [(side.packets, (0, 0), (None, None)) for side in (server, client)]
    read = [read_segments(side, dict.fromkeys(Direction, 0))[Direction.DOWN] for side in columns]
    return read[0].take(read[0].length > 0), read[1].take(read[1].length > 0)


def without_stamps(segments: Segments, *, captured: bool, share: float = 1.0) -> Segments:
    """The segments whose timestamps were absent, or not captured, in this share of them."""
    gone = np.arange(len(segments)) < share * len(segments)
    nothing = np.where(gone, 0, segments.tsval), np.where(gone, 0, segments.tsecr)
    return segments.replaced(
        has_timestamps=segments.has_timestamps & ~gone, stamps_captured=~gone | captured,
        tsval=nothing[0], tsecr=nothing[1],
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_timestamps_that_were_not_captured_are_compared_with_nothing(share: float) -> None:
    emitted, arrived = segments_of("reg_dl_cdma1x")
    cut = compared_data(emitted, without_stamps(arrived, captured=False, share=share))
    stripped = compared_data(emitted, without_stamps(arrived, captured=True, share=share))
    assert "timestamps-present" not in cut.fields
    assert stripped.fields["timestamps-present"].agreeing == pytest.approx(1 - share, abs=0.01)
    assert cut.fields["ip-id"].agreeing > 0.99
    assert ("timestamps" in cut.fields) == (share < 1.0)


def test_streams_are_laid_over_each_other_by_ip_ids_where_timestamps_were_cut() -> None:
    emitted, arrived = segments_of("reg_dl_cdma1x")
    moved = arrived.replaced(start=arrived.start + 5000, acknowledgement=arrived.acknowledgement + 70)
    assert partners(emitted, without_stamps(moved, captured=False)) > 0.99
    # One packet without the option is no partner of all those whose option was cut.
    odd = without_stamps(emitted, captured=True, share=1 / len(emitted))
    assert partners(odd, without_stamps(moved, captured=False, share=0.9)) > 0.99


def partners(emitted: Segments, arrived: Segments) -> float:
    """Share of the arrived segments that agree with an emitted one in extent and IP ID, as their fields lay them."""
    counts = segment_counts([laid_over(emitted, arrived, by_fields=True)], 0).data
    return float(counts.ip_ids_equal[Direction.UP, 0] / len(arrived))


@pytest.mark.parametrize(("run", "sender"), [("reg_dl_cdma1x", "server"), ("reg_ul_bloat_256", "mobile")])
def test_a_sender_capture_of_every_second_segment_reverses_no_verdict(run: str, sender: str, tmp_path: Path) -> None:
    """As a filter on PSH leaves it: the segment before each one looks alike but for its place."""
    paths = {end: CORPUS / RUNS[run]["files"][end]["name"] for end in ("mobile", "server")}
    source = read_capture(paths[sender])
    pushed = [frame for frame in source.frames if frame.data[source_tcp(source.link_type, frame.data) + 13] & 8]
    paths[sender] = tmp_path / "pushed.pcap"
    paths[sender].write_bytes(write_pcap(pushed, source.link_type))
    (pair,) = pepscope.detect(*map(str, paths.values())).pairs
    # The data are the same packets; the acknowledgements, which a middlebox could make, were not captured.
    assert str(pair.verdict) == "inconclusive"
    assert "same-data" in {item.finding for item in pair.evidence}


def source_tcp(link_type: int, frame: bytes) -> int:
    """Where TCP begins behind IPv4 without options."""
    return {LINK_RAW: 0, LINK_ETHERNET: 14, LINK_LINUX_SLL: 16}[link_type] + 20


def test_duplicate_acknowledgements_are_distinguished_by_fields_of_both_captures() -> None:
    count = 40
    same, rising = np.zeros(count, np.int64), np.arange(count, dtype=np.int64)
    yes, no = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    sent = Segments.of(
        start=same, length=same, acknowledgement=same + 1000, window=same + 500, push=no, first_copy=yes,
        has_timestamps=yes, stamps_captured=yes, tsval=rising + 7, tsecr=rising + 3, ip_id=rising + 1, ttl=same,
    )  # fmt: skip
    came = without_stamps(sent, captured=False)
    part = compared_acknowledgements(sent, came)
    assert part.fields["ip-id"].agreeing == 1.0


@functools.cache
def with_missing(run: str, kind: MissingPackets, *, scaled: bool = True) -> Pair:
    """A pair whose captures lack packets of the flow that acknowledges, or the options that scale its windows."""
    (pair,) = pairs(run)

    def changed(vantage: Vantage | None) -> Vantage:
        assert vantage is not None
        flow: FlowSummary = vantage.connection.up._replace(missing_packets=kind)
        flow = flow if scaled else flow._replace(window_shift=None)
        return Vantage(vantage.capture, vantage.connection._replace(up=flow), vantage.packets, vantage.payload)

    return replace(pair, client_side=changed(pair.client_side), server_side=changed(pair.server_side))


def test_uncaptured_windows_are_not_shut_and_limit_no_sender() -> None:
    whole = with_missing("spl_ha_dl_small_umts", MissingPackets.NONE)
    assert alone(receive_window.METHOD, Observation(whole)).outcome is Outcome.SPLIT
    lacking = with_missing("spl_ha_dl_small_umts", MissingPackets.PURE_ACKNOWLEDGEMENTS)
    assert alone(receive_window.METHOD, Observation(lacking)).finding == "window-not-captured"
    assert alone(progress.METHOD, Observation(lacking)).numbers["sender_held_back"] is None
    assert alone(progress.METHOD, Observation(whole)).numbers["sender_held_back"] is True


def test_windows_without_a_known_scale_are_no_bytes() -> None:
    unscaled = with_missing("spl_ha_dl_small_umts", MissingPackets.NONE, scaled=False)
    found = alone(receive_window.METHOD, Observation(unscaled))
    assert found.finding == "window-alternates"  # shares need no scale
    assert "% of what it had before" in found.summary
    assert windows_on_wire(Sides.of([unscaled])).tolist() == [[True], [False]]
    assert alone(progress.METHOD, Observation(unscaled)).numbers["relay_buffers_bytes"] == 0


def judged(run: str, expression: str) -> tuple[PairResult, tuple[str, ...]]:
    files = [str(CORPUS / RUNS[run]["files"][end]["name"]) for end in ("mobile", "server")]
    result = pepscope.detect(*files, filter=expression)
    return result.pairs[0], result.captures[0].warnings


@pytest.mark.parametrize(
    ("expression", "warning", "reason"),
    [
        ("tcp[tcpflags] & tcp-push != 0", "pure acknowledgement", "no pure acknowledgements from the client"),
        ("len > 200", "one direction only", "no packets from the client"),
        ("dst port 5001", "one direction only", "no packets from the server"),
        ("len < 120", "packets with data", "no packets with data from the server"),
    ],
)
def test_a_filter_that_removes_a_kind_of_packets_is_reported(expression: str, warning: str, reason: str) -> None:
    pair, warnings = judged("spl_ha_dl_srcip", expression)
    assert [said for said in warnings if warning in said], warnings
    assert reason in pair.reason
    assert str(pair.verdict) in {"split-tcp", "inconclusive"}


@pytest.mark.parametrize("run", ["reg_dl_nat", "reg_ul_bloat_256", "reg_bidir"])
@pytest.mark.parametrize("expression", ["tcp[tcpflags] & tcp-push != 0", "len > 200", "dst port 5001", "len < 120"])
def test_a_filter_makes_no_split(run: str, expression: str) -> None:
    pair, _ = judged(run, expression)
    assert str(pair.verdict) in {"regular", "inconclusive"}


def test_whole_captures_lack_nothing() -> None:
    for run in ("reg_dl_nat", "spl_ha_chat", "reg_dl_short10k", "spl_ha_dl_small_umts"):
        for pair in pairs(run):
            assert missing_packets(pair) == ""
            assert cut_options(pair) == ""


def test_cut_options_are_reported_for_the_capture_that_lacks_them() -> None:
    (pair,) = pairs("reg_dl_quickack__snap68")
    assert cut_options(pair) == ""  # only acknowledgements with three SACK blocks are cut
    client = pair.client_side
    assert client is not None
    flow = client.connection.up._replace(options_truncated_packets=client.connection.up.packets)
    down = client.connection.down._replace(options_truncated_packets=client.connection.down.packets)
    cut = Vantage("cut.pcap", client.connection._replace(up=flow, down=down), client.packets, client.payload)
    assert cut_options(replace(pair, client_side=cut)).startswith("cut.pcap cuts packets within the TCP options")


def test_marks_of_a_cut_capture_show_unknown_options(tmp_path: Path) -> None:
    source = CORPUS / RUNS["reg_dl_cdma1x"]["files"]["mobile"]["name"]
    whole = open_capture(str(source))
    assert not (whole.packets(0).marks & Mark.OPTIONS_TRUNCATED).any()
    for length, stamped in ((48, False), (52, True)):
        made = cut_behind_ip(read_capture(source), length)
        path = tmp_path / f"{length}.pcap"
        path.write_bytes(write_pcap(made.frames, made.link_type))
        cut = open_capture(str(path))
        data = cut.packets(0).payload_bytes > 0
        marks = cut.packets(0).marks[data]
        assert ((marks & Mark.HAS_TIMESTAMPS) != 0).all() == stamped
        assert ((marks & Mark.OPTIONS_TRUNCATED) != 0).all() != stamped
        flow, known = cut.connections[0].up, whole.connections[0].up
        assert known.options_captured
        assert not flow.options_captured
        # MSS and SACK-permitted stand first, timestamps and the scale behind them.
        assert (flow.maximum_segment_size, flow.window_scale) == (known.maximum_segment_size, None)
        assert flow.window_shift is None
        assert known.window_shift == known.window_scale
        assert np.array_equal(cut.packets(0).flags, whole.packets(0).flags)
        assert [said for said in cut.warnings if "within the TCP options" in said]
        assert not whole.warnings
