"""Captures that show next to nothing, or are broken: a verdict or one sentence, no traceback."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic.records import ACK, RST, SYN, Records, records_of
from benchmarks.metamorphic.writing import write
from detector.detection import detect, detect_vantage
from pepscope.errors import CaptureError
from pepscope.results.verdicts import DetectionResult, GroupResult, PairResult, Verdict
from tests.captures.containers import LINK_RAW, Frame, read_capture, write_pcap
from tests.captures.conversation import START_NS
from tests.captures.segments import PROTOCOL_UDP, ipv4
from tests.detector.one_capture.real_networks import named

SPLIT = "lte-relay.server"


def records() -> Records:
    return records_of(read_capture(named(SPLIT).path), {})


def judged(path: Path, made: Records) -> DetectionResult:
    write(path, made, "raw")
    return detect(str(path))


KEPT: dict[str, Callable[[Records], Records]] = {
    "one packet": lambda r: r.take(slice(0, 1)),
    "SYNs": lambda r: r.take(r.flags & (SYN | ACK) == SYN),
    "handshakes": lambda r: r.take(r.flags & SYN > 0),
    "pure ACKs": lambda r: r.take((r.payload_bytes == 0) & (r.flags == ACK)),
    "one direction": lambda r: r.take(r.is_up),
    "the other direction": lambda r: r.take(~r.is_up),
    "resets": lambda r: r.put(r.tcp + 13, 1, RST | ACK),
    "a clock that runs backwards": lambda r: replace(r, time_ns=r.time_ns.max() - (r.time_ns - r.time_ns.min())),
    "no payload captured": lambda r: replace(r, held=np.minimum(r.held, r.header_bytes)),
    "no header captured": lambda r: replace(r, held=r.tcp + 4),
}


@pytest.mark.parametrize("kept", KEPT)
def test_what_shows_nothing_of_answers_accuses_nobody(kept: str, tmp_path: Path) -> None:
    made = KEPT[kept](records())
    assert len(made)
    try:
        result = judged(tmp_path / "kept.pcap", made)
    except CaptureError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    if kept == "no payload captured":
        return  # headers tell lengths, and lengths tell turns
    rows: list[GroupResult | PairResult] = [*result.groups, *result.pairs]
    for row in rows:
        assert row.verdict is Verdict.INCONCLUSIVE, row.reason
        assert sum(row.probability.values()) == pytest.approx(1.0)


def test_a_capture_without_times_clears_nobody(tmp_path: Path) -> None:
    made = records()
    result = judged(tmp_path / "instant.pcap", replace(made, time_ns=np.full(len(made), START_NS)))
    assert {group.verdict for group in result.groups} == {Verdict.INCONCLUSIVE}


def test_a_clock_that_is_set_back_turns_no_verdict(tmp_path: Path) -> None:
    made = records()
    middle = (made.time_ns.min() + made.time_ns.max()) // 2
    stepped = replace(made, time_ns=made.time_ns - np.where(made.time_ns > middle, 3_600_000_000_000, 0))
    assert not any(group.verdict is Verdict.REGULAR for group in judged(tmp_path / "back.pcap", stepped).groups)


@pytest.mark.parametrize("snap_length", [0, 1, 20, 24])
def test_packets_cut_to_almost_nothing_are_an_answer_or_one_sentence(snap_length: int, tmp_path: Path) -> None:
    capture = read_capture(named(SPLIT).path)
    frames = [replace(frame, original_length=frame.wire_length) for frame in capture.frames]
    (tmp_path / "cut.pcap").write_bytes(write_pcap(frames, capture.link_type, snap_length=snap_length))
    try:
        result = detect(str(tmp_path / "cut.pcap"))
    except CaptureError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert not any(group.verdict is not Verdict.INCONCLUSIVE for group in result.groups)


@pytest.mark.parametrize("frames", [[], [Frame(START_NS, ipv4("192.0.2.1", "192.0.2.2", PROTOCOL_UDP, bytes(16)))]])
def test_a_capture_without_tcp_is_one_sentence(frames: list[Frame], tmp_path: Path) -> None:
    path = tmp_path / "without.pcap"
    path.write_bytes(write_pcap(frames, LINK_RAW))
    for run in (lambda: detect(str(path)), lambda: detect_vantage([str(path)])):
        with pytest.raises(CaptureError) as raised:
            run()
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)


def test_one_empty_part_of_a_series_takes_nothing_away(tmp_path: Path) -> None:
    write(tmp_path / "full.pcap", records(), "raw")
    (tmp_path / "empty.pcap").write_bytes(write_pcap([], LINK_RAW))
    alone = detect(str(tmp_path / "full.pcap"))
    for order in (("full", "empty"), ("empty", "full")):
        found = detect_vantage([str(tmp_path / f"{name}.pcap") for name in order])
        assert [group.verdict for group in found.groups] == [group.verdict for group in alone.groups]


def test_ipv6_is_judged_by_its_prefix(tmp_path: Path) -> None:
    capture = read_capture(Path(__file__).parents[2] / "corpus" / "reg_dl_v6.srv.pcap.gz")
    (tmp_path / "six.pcap").write_bytes(write_pcap(capture.frames, capture.link_type))
    (tmp_path / "names.csv").write_text("::/0,Six\n0.0.0.0/0,Four\n")
    assert all(group.network.endswith("/48") for group in detect(str(tmp_path / "six.pcap")).groups)
    named_groups = detect(str(tmp_path / "six.pcap"), networks=str(tmp_path / "names.csv")).groups
    assert {group.network for group in named_groups} == {"Six"}
    assert not any(group.verdict.is_split for group in named_groups)


#: Hosts of a scan; each sends one SYN.
HOSTS = 40_000

#: What a host may take of memory: its summary, its place in groups, its row of results (bytes).
MOST_BYTES_A_HOST = 12_000


def test_hosts_of_a_scan_take_little_memory_each(tmp_path: Path) -> None:
    path = tmp_path / "scan.pcap"
    write(path, _scan(HOSTS), "raw")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = detect(str(path), taken_at="server")
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert len(result.pairs) == HOSTS
    assert {group.verdict for group in result.groups} == {Verdict.INCONCLUSIVE}
    assert sum(len(group.pairs) for group in result.groups) == HOSTS
    assert grown < HOSTS * MOST_BYTES_A_HOST


def _scan(hosts: int) -> Records:
    first = records()
    syn = first.take(np.flatnonzero(first.flags & (SYN | ACK) == SYN)[:1])
    many = syn.take(np.zeros(hosts, np.int64))
    numbers = np.arange(hosts)
    many = many.put(12, 4, (11 << 24) + numbers).put(many.tcp + 4, 4, numbers * 7919)
    return replace(many, time_ns=many.time_ns + numbers * 10_000, connection=numbers)
