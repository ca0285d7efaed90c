"""What networks, clocks and capture tools do to one capture without altering the truth: no verdict turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic import clocks, losses, rewriting
from benchmarks.metamorphic.records import Records, joined, records_of
from benchmarks.metamorphic.writing import write
from benchmarks.metamorphic_single.firewall import collecting_first_flights
from detector.detection import detect, detect_vantage
from pepscope.results.verdicts import DetectionResult, Verdict
from tests.captures.containers import Compression, Interface, compress, read_capture, write_pcap, write_pcapng
from tests.cases import each_value
from tests.detector.one_capture.real_networks import CAPTURES, Captured, contradicted, named

#: Changed captures hold TCP alone, and this verdict rests on references outside it.
RESTS_ON_REFERENCES = ("wlan-thinking.server",)

EVERY = pytest.mark.parametrize("captured", CAPTURES, ids=lambda captured: captured.name)
JUDGED_BY_TCP = [captured for captured in CAPTURES if captured.name not in RESTS_ON_REFERENCES]
BY_TCP = pytest.mark.parametrize("captured", JUDGED_BY_TCP, ids=lambda captured: captured.name)

CHANGES: dict[str, Callable[[Records], Records]] = {
    "cut to 96 bytes": lambda r: losses.cut(r, 96),
    "cut to 68 bytes": lambda r: losses.cut(r, 68),
    "begin late": lambda r: losses.between(r, 0.3, 1.0),
    "end early": lambda r: losses.between(r, 0.0, 0.6),
    "half of the connections": lambda r: r.take(r.connection % 2 == 0),
    "other addresses": lambda r: rewriting.anonymised(r, 0x0A1B2C),
    "a drifting clock": lambda r: clocks.drifting(r, 400.0),
    "a clock of microseconds": lambda r: clocks.coarse(r, 1_000),
    "duplicate frames": lambda r: losses.duplicated(r, 1.0, 5_000, chance()),
    "neighbours change places": lambda r: losses.swapped_in_file(r, 0.2, chance()),
    "lost records": lambda r: losses.lost(r, 0.05, chance()),
    "other sequence numbers": lambda r: rewriting.with_shifted_sequence_numbers(r, chance()),
    "no timestamps": lambda r: rewriting.without_timestamps(r, np.ones(len(r), np.bool_)),
    "one direction": lambda r: losses.one_direction(r, True),
    "one acknowledgement in 20": lambda r: losses.thinned_acks(r, 20),
    "times that count frames": lambda r: replace(r, time_ns=r.time_ns.min() + np.arange(len(r)) * 1_000),
    "times kept from falling": lambda r: clocks.kept_from_falling(clocks.stepping(r, [(0.3, -9.0)]), 1_000),
    "a firewall reads first flights": lambda r: collecting_first_flights(r, 1_500_000),
    "two interfaces": lambda r: rewriting.on_both_interfaces(r, 70_000),
}

#: Orders of the file that leave every time as it was.
ORDERS: dict[str, Callable[[Records], Records]] = {
    "openers first": lambda r: losses.one_direction_first(r, True),
    "openers last": lambda r: losses.one_direction_first(r, False),
    "later part first": lambda r: losses.later_part_first(r, 0.4),
}


def chance() -> np.random.Generator:
    return np.random.default_rng(7)


@cache
def records(captured: Captured) -> Records:
    return records_of(read_capture(captured.path), {})


@cache
def unchanged(captured: Captured) -> DetectionResult:
    return detect(str(captured.path))


def rows(result: DetectionResult) -> list[tuple[object, ...]]:
    """Everything of groups but their words."""
    found: list[tuple[object, ...]] = []
    for group in result.groups:
        share = pytest.approx(sum(p for verdict, p in group.probability.items() if verdict.is_split), abs=1e-6)
        found.append((group.side, group.network, group.port, group.hosts, group.exchanges, len(group.pairs), share))
    return found


def shown(captured: Captured, change: str) -> set[Hashable]:
    """The change, each capture, and what is true of the captures that it was made of."""
    true = {(truth.kind, truth.where, truth.thinks) for truth in captured.truths}
    return {captured, *((change, captured.at_client, *each) for each in true)}


@pytest.mark.parametrize(
    ("captured", "change"),
    each_value(itertools.product(JUDGED_BY_TCP, CHANGES), lambda case: shown(*case)),
    ids=lambda value: value.name if isinstance(value, Captured) else value,
)
def test_no_change_turns_a_verdict(captured: Captured, change: str, tmp_path: Path) -> None:
    path = tmp_path / "changed.pcap"
    write(path, CHANGES[change](records(captured)), "raw")
    assert contradicted(captured, detect(str(path))) == []


@pytest.mark.parametrize("order", ORDERS)
@BY_TCP
def test_the_order_of_the_file_changes_nothing(captured: Captured, order: str, tmp_path: Path) -> None:
    write(tmp_path / "plain.pcap", records(captured), "raw")
    write(tmp_path / "changed.pcap", ORDERS[order](records(captured)), "raw")
    plain, changed = (detect(str(tmp_path / f"{name}.pcap")) for name in ("plain", "changed"))
    assert rows(changed) == rows(plain)
    assert [group.reason for group in changed.groups] == [group.reason for group in plain.groups]


def test_times_that_count_frames_decide_nothing(tmp_path: Path) -> None:
    captured = named("lte-relay.server")
    write(tmp_path / "counted.pcap", CHANGES["times that count frames"](records(captured)), "raw")
    result = detect(str(tmp_path / "counted.pcap"))
    assert {group.verdict for group in result.groups} == {Verdict.INCONCLUSIVE}


def test_clients_of_another_server_do_not_show_where_a_split_stands(tmp_path: Path) -> None:
    """All connections of one server come from one address, as from a balancer of its own site."""
    behind, others = records(named("fibre-balancer.backend")), records(named("lte-regular.server"))
    write(tmp_path / "alone.pcap", behind, "raw")
    moved = replace(others, time_ns=others.time_ns - others.time_ns.min() + behind.time_ns.min())
    write(tmp_path / "both.pcap", joined(behind, moved, behind.connections), "raw")
    alone, both = (detect(str(tmp_path / f"{name}.pcap")) for name in ("alone", "both"))
    where = {(group.network, group.port): (group.verdict, group.where) for group in both.groups}
    for group in alone.groups:
        assert where[group.network, group.port] == (group.verdict, group.where)


@EVERY
def test_formats_and_clocks_change_nothing(captured: Captured, tmp_path: Path) -> None:
    capture = read_capture(captured.path)
    later = [replace(frame, time_ns=frame.time_ns + 123_456_789_000) for frame in capture.frames]
    ours = [Interface(capture.link_type, resolution=9)]
    written = {
        "ng.pcapng": write_pcapng(capture.frames, ours),
        "big.pcapng": write_pcapng(capture.frames, ours, order=">", unknown_blocks=True),
        "zipped.pcap.zst": compress(write_pcap(capture.frames, capture.link_type, order=">"), Compression.ZSTD),
        "later.pcap.xz": compress(write_pcap(later, capture.link_type), Compression.XZ),
    }
    for name, content in written.items():
        (tmp_path / name).write_bytes(content)
        assert rows(detect(str(tmp_path / name))) == rows(unchanged(captured)), name


@pytest.mark.parametrize("link", ["ethernet", "linux_sll2", "vlan", "gre", "gtp-u"])
def test_what_is_around_packets_changes_nothing(link: str, tmp_path: Path) -> None:
    captured = named("lte-relay.server")
    write(tmp_path / "raw.pcap", records(captured), "raw")
    write(tmp_path / "other.pcap", records(captured), link)
    assert rows(detect(str(tmp_path / "other.pcap"))) == rows(detect(str(tmp_path / "raw.pcap")))


@pytest.mark.parametrize(
    ("one", "other"), [("lte-relay.server", "lte-regular.server"), ("lte-relay.client", "sleepy-regular.client")]
)
def test_networks_of_one_capture_are_judged_each_by_itself(one: str, other: str, tmp_path: Path) -> None:
    mine, its = named(one), named(other)
    here, there = records(mine), records(its)
    moved = replace(there, time_ns=there.time_ns - there.time_ns.min() + here.time_ns.min())
    write(tmp_path / "both.pcap", joined(here, moved, here.connections), "raw")
    result = detect(str(tmp_path / "both.pcap"))
    assert {group.side.value for group in result.groups} == {mine.truths[0].side}
    known = {(truth.network, truth.port): truth for truth in (*mine.truths, *its.truths)}
    found = {(group.network, group.port): group for group in result.groups}
    assert [key for key, group in found.items() if known[key].contradicts(group.verdict)] == []
    assert any(group.verdict.is_split for group in found.values())


@pytest.mark.parametrize("name", ["lte-relay.server", "sleepy-regular.client"])
def test_several_captures_are_judged_as_their_concatenation(name: str, tmp_path: Path) -> None:
    """In any order; cut where connections are whole, as one that crosses from file to file is two."""
    captured = named(name)
    every = records(captured)
    halves = [every.take(every.connection % 2 == part) for part in (0, 1)]
    paths = []
    for part, half in enumerate(halves):
        write(tmp_path / f"{part}.pcap", half, "raw")
        paths.append(str(tmp_path / f"{part}.pcap"))
    write(tmp_path / "whole.pcap", every, "raw")
    whole = detect(str(tmp_path / "whole.pcap"))
    assert rows(detect_vantage(paths)) == rows(detect_vantage(paths[::-1])) == rows(whole)
    assert len(detect_vantage(paths).captures) == 2


def test_a_series_cut_in_time_keeps_the_verdicts(tmp_path: Path) -> None:
    captured = named("lte-relay.server")
    paths = []
    for part, (begin, end) in enumerate([(0.0, 0.33), (0.33, 0.67), (0.67, 1.0)]):
        write(tmp_path / f"{part}.pcap", losses.between(records(captured), begin, end), "raw")
        paths.append(str(tmp_path / f"{part}.pcap"))
    result = detect_vantage(paths)
    assert contradicted(captured, result) == []
    assert any(group.verdict.is_split for group in result.groups)


@BY_TCP
def test_clients_behind_one_address_keep_the_verdict(captured: Captured, tmp_path: Path) -> None:
    if len({truth.network for truth in captured.truths}) == 1:
        write(tmp_path / "nat.pcap", rewriting.translated(records(captured), True, chance()), "raw")
        assert contradicted(captured, detect(str(tmp_path / "nat.pcap"))) == []


@pytest.mark.parametrize("name", RESTS_ON_REFERENCES)
def test_without_its_reference_a_verdict_is_withdrawn_and_not_turned(name: str) -> None:
    captured = named(name)
    assert contradicted(captured, detect(str(captured.path), filter="tcp")) == []
