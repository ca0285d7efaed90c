"""Changes that capture tools, translators and routers make do what they say and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.metamorphic import clocks, losses, rewriting
from benchmarks.metamorphic.changes import received
from benchmarks.metamorphic.pairs import Source
from benchmarks.metamorphic.records import Records, joined
from benchmarks.metamorphic.writing import write
from pepscope.captures.capture import Capture, open_capture

TESTS = Path(__file__).parents[1]
SMALL = Source(str(TESTS / "fresh"), "reg-same-object")
VERSION_6 = Source(str(TESTS / "corpus"), "reg_dl_v6")


def server(source: Source = SMALL) -> Records:
    return source.read().records["server"]


def read(records: Records, directory: Path) -> Capture:
    write(directory / "records.pcap", records, "raw")
    return open_capture(str(directory / "records.pcap"))


def is_same(one: Records, two: Records) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in Records.__slots__)


@pytest.mark.parametrize(("parts", "missing"), [(3, 0), (5, 2), (40, 39)])
def test_one_file_of_a_ring_is_missing(parts, missing):
    records = server()
    left = losses.without_part(records, parts, missing)
    gone = np.setdiff1d(np.arange(len(records)), np.flatnonzero(np.isin(records.time_ns, left.time_ns)))
    assert len(left) + round(len(records) / parts) == pytest.approx(len(records), abs=1)
    assert len(gone) == len(records) - len(left)
    assert np.all(np.diff(gone) == 1)


@pytest.mark.parametrize("among", [1, 5, 100])
def test_copies_are_removed_and_nothing_else(among):
    records = server()
    copied = joined(records, records, 0)
    assert is_same(losses.without_equal(copied, among), losses.without_equal(records, among))
    assert is_same(losses.without_equal(records, among), records)  # IP identifications differ


def test_a_hosts_own_repetition_without_identification_goes_as_well():
    bare = server().put(4, 2, 0).take(np.r_[0, 1, 0, 2])
    assert is_same(losses.without_equal(bare, 1), bare)
    assert is_same(losses.without_equal(bare, 2), bare.take(np.r_[0, 1, 3]))


def test_packets_are_stamped_at_the_next_interrupt():
    records = server()
    batched = clocks.in_batches(records, 1_000_000)
    late = batched.time_ns - records.time_ns
    assert not (batched.time_ns % 1_000_000).any()
    assert late.min() >= 0
    assert late.max() < 1_000_000


def test_a_translator_makes_the_same_connections_of_ipv6(tmp_path):
    records = server()
    made = rewriting.as_version_6(records)
    assert set(made.version.tolist()) == {6}
    assert np.array_equal(made.payload_bytes, records.payload_bytes)
    for size, at in ((4, 4), (4, 8), (2, 14), (1, 13), (2, 0), (2, 2)):
        assert np.array_equal(made.get(made.tcp + at, size), records.get(records.tcp + at, size))
    before, after = (read(each, tmp_path).connections for each in (records, made))
    assert len(before) > 1
    assert [(c.packets, c.down.stream_bytes) for c in before] == [(c.packets, c.down.stream_bytes) for c in after]
    assert all(":" in c.client for c in after)
    hosts = {c.server.rpartition(":")[0] for c in after}
    assert hosts == {"[64:ff9b::c612:c4a7]"}


def test_what_is_ipv6_already_is_not_translated():
    records = server(VERSION_6)
    assert is_same(rewriting.as_version_6(records), records)


@pytest.mark.parametrize("source", [SMALL, VERSION_6])
def test_marks_are_cleared_in_what_is_received_alone(source):
    records = server(source)
    is_6 = records.version == 6
    marked = records.put(1, 1, 0x2E, ~is_6).put(0, 2, 0x62E5, is_6)
    marked = marked.put(marked.tcp + 13, 1, marked.flags | 0xC0)
    up = received(records, "server")
    cleared = rewriting.unmarked(marked, up)
    assert up.any()
    assert not up.all()
    assert is_same(cleared.take(~up), marked.take(~up))
    plain = cleared.take(up)
    assert not (plain.flags & 0xC0).any()
    assert set(plain.get(0, 2).tolist()) == ({0x6005} if is_6.all() else {0x4500})
