"""Judging captures in temporary files: every connection once, partitions as seldom as can be, by several processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.detection import detect
from detector.pairing.match import Ground, Match
from detector.verdict import loading_order as module
from detector.verdict.loading_order import MOST_PACKETS_TOGETHER, WORK_BYTES_PER_PACKET, loading_order
from detector.verdict.together import PACKETS_TOGETHER
from pepscope.captures.capture import Capture
from tests.detector.corpus import CORPUS

ENDS = [str(CORPUS / f"reg_dl_par20.{end}.pcap.gz") for end in ("srv", "mob")]


class Partitioned(Capture):
    """A capture whose partitions are given instead of read, which counts how often each is loaded."""

    def __init__(self, partitions: list[int], count: int, kept: int) -> None:
        self.partitions, self.count, self.kept = partitions, count, kept
        self.in_memory: list[int] = []
        self.loads = 0

    @property
    def partition_count(self) -> int:
        return self.count

    @property
    def packet_count(self) -> int:
        return 1000 * len(self.partitions)

    @property
    def processes_at_most(self) -> int | None:
        return None if self.count == 1 else self.kept

    def divide_memory(self, processes: int) -> int:
        return max(1, self.kept // processes)

    def partition_of(self, connection_id: int) -> int:
        return self.partitions[connection_id]

    def look_at(self, connection_id: int) -> None:
        partition = self.partitions[connection_id]
        if partition in self.in_memory:
            self.in_memory.remove(partition)
        else:
            self.loads += 1
        self.in_memory = [*self.in_memory, partition][-self.kept :]


COUNTS = st.sampled_from([1, 8, 16, 64])


@st.composite
def captures_and_matches(draw: st.DrawFn) -> tuple[list[Partitioned], list[Match]]:
    """Two captures with connections anywhere, and matches, some of which one capture alone has."""
    sizes = draw(st.tuples(st.integers(0, 40), st.integers(0, 40)))
    captures = [
        Partitioned(draw(st.lists(st.integers(0, count - 1), min_size=size, max_size=size)), count, kept)
        for size, count, kept in zip(sizes, draw(st.tuples(COUNTS, COUNTS)), (3, 5), strict=True)
    ]
    both = draw(st.integers(0, min(sizes)))
    matches = [Match(number, number, Ground.END_POINTS) for number in range(both)]
    matches += [Match(number, None, Ground.ALONE) for number in range(both, sizes[0])]
    matches += [Match(None, number, Ground.ALONE) for number in range(both, sizes[1])]
    return captures, draw(st.permutations(matches))


@given(captures_and_matches(), st.integers(1, 4))
def test_every_match_has_its_place_in_one_stretch(drawn: tuple[list[Partitioned], list[Match]], jobs: int) -> None:
    captures, matches = drawn
    order = loading_order(captures, matches, jobs, None)
    assert sorted(order.places) == list(range(len(matches)))
    assert 1 <= order.jobs <= jobs
    if order.stretches is None:
        assert all(capture.partition_count == 1 for capture in captures)
        return
    assert sum(order.stretches) == len(matches)
    seen: set[int] = set()
    begin = 0
    for length in order.stretches:
        stretch = [matches[place] for place in order.places[begin : begin + length]]
        begin += length
        if captures[0].partition_count > 1:
            partitions = {captures[0].partitions[match.first] for match in stretch if match.first is not None}
            assert not partitions & seen
            seen |= partitions


def judged_in_order(captures: list[Partitioned], matches: list[Match]) -> None:
    for place in loading_order(captures, matches, 1, None).places:
        for capture, connection in zip(captures, (matches[place].first, matches[place].second), strict=True):
            if connection is not None:
                capture.look_at(connection)


@pytest.mark.parametrize("counts", [(64, 64), (64, 16), (8, 64)])
@pytest.mark.parametrize("kept", [1, 4])
def test_captures_of_the_same_addresses_are_loaded_once(counts: tuple[int, int], kept: int) -> None:
    matches = [Match(number, number, Ground.END_POINTS) for number in range(500)]
    hashes = [number * 7919 % 1009 for number in range(500)]
    captures = [Partitioned([each % count for each in hashes], count, kept) for count in counts]
    judged_in_order(captures, matches)
    assert [capture.loads for capture in captures] == list(counts)


def test_behind_a_nat_the_second_capture_passes_by_once_for_each_block_of_the_first() -> None:
    matches = [Match(number, number, Ground.PACKETS) for number in range(2000)]
    captures = [Partitioned([number * factor % 1009 % 64 for number in range(2000)], 64, 8) for factor in (7919, 6007)]
    judged_in_order(captures, matches)
    assert captures[0].loads == 64
    assert captures[1].loads <= 64 * 64 // 8


def test_processes_that_do_not_fit_are_not_started() -> None:
    capture = Partitioned([0, 1, 2, 3], 8, 3)
    matches = [Match(number, None, Ground.ALONE) for number in range(4)]
    assert loading_order([capture], matches, 8, None).jobs == 3
    assert loading_order([Partitioned([0] * 4, 1, 1)], matches, 8, None).jobs == 8


def test_several_processes_load_partitions_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORK_BYTES_PER_PACKET", 0.1)
    whole = detect(*ENDS)
    results = [detect(*ENDS, memory_bytes=900_000, jobs=jobs) for jobs in (1, 2)]
    one, two = (result.to_dict() for result in results)
    assert one == two
    assert one["pairs"] == whole.to_dict()["pairs"]
    assert all(result.temporary_bytes.read > result.temporary_bytes.written > 0 for result in results)


def test_the_memory_for_the_work_bounds_what_is_judged_together() -> None:
    def together(packets: int | None, jobs: int = 1) -> int:
        captures = [Partitioned([0], 1, 1), Partitioned([0], 1, 1)]
        work_bytes = None if packets is None else packets * WORK_BYTES_PER_PACKET
        return loading_order(captures, [Match(0, 0, Ground.END_POINTS)], jobs, work_bytes).packets_together

    assert together(None) == MOST_PACKETS_TOGETHER == together(10 * MOST_PACKETS_TOGETHER)
    assert together(2 * PACKETS_TOGETHER) == 2 * PACKETS_TOGETHER
    assert together(3 * PACKETS_TOGETHER, jobs=2) == 3 * PACKETS_TOGETHER // 2
    assert together(10) == PACKETS_TOGETHER


def test_parts_hold_half_the_packets_that_are_judged_together() -> None:
    matches = [Match(number, number, Ground.END_POINTS) for number in range(600)]
    captures = [Partitioned([0] * 600, 1, 1)] * 2
    assert loading_order(captures, matches, 1, None).fewest_places == MOST_PACKETS_TOGETHER // 2 // 2000
    short = loading_order(captures, matches, 1, 10)
    assert short.fewest_places == short.packets_together // 2 // 2000 == PACKETS_TOGETHER // 2 // 2000


def test_matches_with_rivals_come_first_where_any_can_be_loaded() -> None:
    rival = Match(0, 1, Ground.PAYLOAD_AND_TIME)
    matches = [Match(number, number, Ground.END_POINTS) for number in range(6)]
    for place in (2, 5):
        matches[place] = Match(place, place, Ground.PAYLOAD_AND_TIME, margin=1.0, rivals=(rival,))
    captures = [Partitioned([0] * 6, 1, 1)] * 2
    assert list(loading_order(captures, matches, 2, None).places) == [2, 5, 0, 1, 3, 4]
