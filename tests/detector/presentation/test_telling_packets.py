"""The packets that show a finding: every finding has some, tshark finds exactly them, and they do what is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import pepscope
from detector.methods import METHODS
from detector.presentation.requested import RequestedPackets
from detector.presentation.telling_packets.observing import Observed, OfTwoCaptures
from detector.presentation.telling_packets.registry import POINTERS, WITHOUT_PACKETS
from detector.presentation.telling_packets.while_judging import NamedWhileJudging
from pepscope.captures.capture import open_capture
from pepscope.captures.files.named_packets import EvidencePacket, locator
from pepscope.errors import UsageError
from pepscope.results.encoding.detections import json_chunks
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import DetectionResult, Evidence, GroupResult, GroupSide, PairResult
from tests.oracles.tshark import tshark_fields

CORPUS = Path(__file__).parents[2] / "corpus"

#: Captures whose findings are of every family; one stands for one capture.
PAIRS = ("prx_ngx_par6", "spl_ha_dl_abort", "reg_dl_nat", "act_ha_dl_T4", "reg_dl_abort", "spl_ha_dl_v6")


def _paths(name: str) -> list[str]:
    return [str(next(CORPUS.glob(f"{name}.{side}.pcap*"))) for side in ("srv", "mob")]


def _detected(paths: list[str], **options: object) -> DetectionResult:
    return pepscope.detect(*paths, packets=3, **options)  # type: ignore[arg-type]


def _judged(result: DetectionResult) -> list[PairResult | GroupResult]:
    return [*result.pairs, *result.groups]


def _evidence(result: DetectionResult) -> list[Evidence]:
    return [item for judged in _judged(result) for item in judged.evidence]


def test_every_finding_is_pointed_to_or_has_no_packets() -> None:
    known = {
        method: {*POINTERS.get(method, {}), *WITHOUT_PACKETS.get(method, ())}
        for method in {*POINTERS, *WITHOUT_PACKETS}
    }
    everywhere = set().union(*known.values())
    for method in METHODS:
        for kind in method.findings:
            if kind is TransferFinding:  # shared by several methods
                assert {finding.value for finding in kind} <= everywhere
            else:
                assert {finding.value for finding in kind} <= known[method.name]
    assert not any(POINTERS.get(method, {}).keys() & keys for method, keys in WITHOUT_PACKETS.items())


@pytest.mark.parametrize("name", ["prx_ngx_par6", "reg_dl_nat"])
@pytest.mark.parametrize("asked", [RequestedPackets(3), RequestedPackets(2, 2)])
def test_packets_are_the_same_whether_named_while_judging_or_behind_it(
    name: str, asked: RequestedPackets, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_judging = pepscope.detect(*_paths(name), packets=asked)
    monkeypatch.setattr(NamedWhileJudging, "add", lambda *_: None)
    behind = pepscope.detect(*_paths(name), packets=asked)
    assert b"".join(json_chunks(while_judging)) == b"".join(json_chunks(behind))
    assert any(item.packets for item in _evidence(behind))


def test_no_connection_is_loaded_again_to_name_its_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def observed(_: OfTwoCaptures, places: Sequence[int]) -> Iterator[Observed]:
        asked.extend(places)
        return iter(())

    monkeypatch.setattr(OfTwoCaptures, "observed", observed)
    result = pepscope.detect(*_paths("prx_ngx_par6"), packets=3)
    assert all(item.packets is not None for pair in result.pairs for item in pair.evidence)
    assert not asked


@pytest.mark.parametrize("name", PAIRS)
def test_tshark_finds_exactly_the_packets(name: str) -> None:
    paths = _paths(name)
    result = _detected(paths)
    document = json.loads(result.to_json())
    lines = dict[str, list[int]]()
    for judged in (*document["pairs"], *document["groups"]):
        for item in judged["evidence"]:
            for found in item["find"] or ():
                wanted = [each["frame"] for each in item["packets"] if each["capture"] == found["capture"]]
                lines[found["tshark"]] = sorted(set(wanted))
    assert len(lines) > 5
    # A line of them all is as good as each, and some hundred times as fast.
    for line, frames in list(lines.items())[:3]:
        assert [int(number) for (number,) in tshark_fields(line, "frame.number")] == frames
    for path in paths:
        capture = open_capture(path)
        pair = result.pairs[0]
        vantage = next(each for each in pair.vantages if each.capture == path)
        place = next(
            each.id for each in capture.connections if (each.client, each.server) == (vantage.client, vantage.server)
        )
        whole = locator(path, vantage.display_filter).tshark
        assert whole is not None
        shown = [int(number) for (number,) in tshark_fields(whole, "frame.number")]
        assert shown == capture.frame_numbers(place).tolist()


@pytest.mark.parametrize("name", PAIRS)
def test_decided_findings_name_packets_with_their_times(name: str) -> None:
    result = _detected(_paths(name))
    named = _evidence(result)
    assert named
    for item in named:
        assert item.packets is not None
        known = WITHOUT_PACKETS.get(item.method, frozenset())
        assert item.packets or item.finding in known or item.outcome.value == "inapplicable", item.finding
        captures = {packet.capture for packet in item.packets}
        if item.outcome.value != "inapplicable" and item.method in ("ack_timing", "identity", "handshake", "progress"):
            assert len(captures) >= 1
    times = dict[tuple[str, int], int]()
    for path in _paths(name):
        capture = open_capture(path)
        for connection in capture.connections:
            numbers = capture.frame_numbers(connection.id).tolist()
            stamps = capture.packets(connection.id).time_ns.tolist()
            times |= {(path, number): time_ns for number, time_ns in zip(numbers, stamps, strict=True)}
    packets = [packet for item in named for packet in item.packets or ()]
    assert packets
    assert all(times[packet.capture, packet.frame] == packet.time_ns for packet in packets)


def test_an_early_acknowledgement_is_told_with_the_bytes_that_come_later() -> None:
    paths = _paths("prx_ngx_par6")
    (early,) = [item for item in _detected(paths).pairs[0].evidence if item.finding == "acks-before-data"]
    assert early.packets is not None
    sender, receiver = early.packets[:2]
    assert (sender.capture, receiver.capture) == (paths[0], paths[1])
    told = re.match(r"acknowledges ([\d,]+) bytes, ([\d,]+) of which reach the receiver later, the last", sender.shows)
    assert told is not None
    acknowledged, ahead = (int(number.replace(",", "")) for number in told.groups())
    ((value,),) = tshark_fields(
        f"tshark -o tcp.relative_sequence_numbers:TRUE -r {paths[0]} -Y 'frame.number == {sender.frame}'", "tcp.ack"
    )
    assert int(value) - 1 == acknowledged > ahead > 0
    rows = tshark_fields(
        f"tshark -r {paths[1]} -Y 'frame.number <= {receiver.frame} && tcp.srcport == 80'",
        "frame.number", "tcp.dstport", "tcp.seq", "tcp.len",
    )  # fmt: skip
    number, port, sequence, length = rows[-1]
    assert int(number) == receiver.frame
    assert (
        int(sequence) - 1
        < acknowledged
        <= max(int(start) - 1 + int(size) for _, other, start, size in rows if other == port)
    )
    assert int(length) > 0


def test_one_capture_names_exchanges_of_its_groups() -> None:
    path = _paths("prx_ngx_par6")[1]
    result = _detected([path])
    (group,) = result.groups
    (answers,) = [item for item in group.evidence if item.method == "exchange_timing"]
    assert answers.packets is not None
    asked, acknowledged, answered = answers.packets[:3]
    assert asked.time_ns < acknowledged.time_ns < answered.time_ns
    assert "question" in asked.shows
    assert "answer" in answered.shows
    ((text,),) = tshark_fields(f"tshark -r {path} -Y 'frame.number == {asked.frame}'", "tcp.dstport")
    assert text == "80"


def test_a_reference_names_request_and_answer_outside_tcp() -> None:
    path = Path(__file__).parents[2] / "captures/one_ended/lte-relay.client.pcap.gz"
    group = next(group for group in _detected([str(path)]).groups if group.verdict.is_split)
    (reference,) = [item for item in group.evidence if item.method == "reference"]
    assert reference.packets is not None
    asked, answered, begun, ended = reference.packets[:4]
    assert answered.time_ns - asked.time_ns > 4 * (ended.time_ns - begun.time_ns) > 0
    fields = ("icmp.type", "icmp.resp_to", "ip.src")
    rows = tshark_fields(f"tshark -r {path} -Y 'frame.number in {{{asked.frame}, {answered.frame}}}'", *fields)
    (request, _, _), (reply, asked_frame, host) = rows
    assert (request, reply, asked_frame) == ("8", "0", str(asked.frame))
    assert host in asked.shows


@pytest.mark.parametrize("is_swapped", [False, True])
def test_groups_that_one_of_two_captures_holds_have_their_own_packets(is_swapped: bool) -> None:
    """Several connections in one capture, none of which the other one holds: numbers in a capture are no places."""
    (_, server), (mobile, _) = _paths("prx_ngx_par6"), _paths("spl_ha_dl_small_umts")
    result = _detected([server, mobile] if is_swapped else [mobile, server])
    alone = [group for group in result.groups if group.side is not GroupSide.BOTH]
    named = [(item, packet) for group in alone for item in group.evidence for packet in item.packets or ()]
    assert len(alone) > 1
    assert {packet.capture for _, packet in named} == {mobile, server}
    addresses = {
        (capture, int(number)): set(found.split(","))
        for capture in (mobile, server)
        for number, found in tshark_fields(_selecting(capture, named), "frame.number", "ip.addr")
    }
    for item, packet in named:
        group = next(group for group in alone if item in group.evidence)
        assert addresses[packet.capture, packet.frame] & set(group.hosts)


def _selecting(capture: str, named: list[tuple[Evidence, EvidencePacket]]) -> str:
    """A line for a shell: tshark on the named packets of a capture, all at once, since it takes long to start."""
    frames = sorted({packet.frame for _, packet in named if packet.capture == capture})
    return f"tshark -r {capture} -Y 'frame.number in {{{', '.join(map(str, frames))}}}'"


def test_packets_are_named_only_where_asked_and_of_so_many() -> None:
    paths = _paths("prx_ngx_par6")
    none = pepscope.detect(*paths)
    assert all(item.packets is None for item in _evidence(none))
    assert none.pairs[0].vantages[0].frames is None
    some = pepscope.detect(*paths, packets=RequestedPackets(1, connections=2))
    assert all(pair.vantages[0].frames is not None for pair in some.pairs[:2])  # groups may need more
    assert all(item.packets is None for item in _evidence(pepscope.detect(*paths, packets=RequestedPackets(1, 0))))
    for item in some.pairs[0].evidence:
        assert len(item.packets or ()) <= 4
    assert [pair.reason for pair in some.pairs] == [pair.reason for pair in none.pairs]
    with pytest.raises(UsageError, match="between 0 and 1000000000000, got -1"):
        pepscope.detect(*paths, packets=-1)
    with pytest.raises(UsageError, match="got 9999"):
        pepscope.detect(*paths, packets=int("9" * 23))


def test_the_number_of_processes_and_parts_does_not_matter() -> None:
    paths = _paths("prx_ngx_par6")
    whole = _detected(paths)
    assert _detected(paths, jobs=2).to_dict() == whole.to_dict()
    assert _detected(paths, memory_bytes=1 << 20).to_dict()["pairs"] == whole.to_dict()["pairs"]


def test_a_filter_leaves_the_numbers_as_the_file_has_them() -> None:
    paths = _paths("prx_ngx_par6")
    whole = _detected(paths)
    port = whole.pairs[2].vantages[0].client.rpartition(":")[2]
    some = _detected(paths[1:], filter=f"port {port}")
    assert [pair.vantages[0].frames for pair in some.pairs] == [whole.pairs[2].vantages[0].frames]
