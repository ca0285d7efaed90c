"""Slices to evidence: wherever a capture is cut, its connections are judged once and whole."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.corpora.watch import reading
from detector.corpora.watch.evidence_pool import EvidencePool
from detector.corpora.watch.reading import ReadOptions, SliceReading, SliceWork, read_slice
from detector.one_capture.columns import VantageColumns, vantage_columns
from detector.one_capture.detection import vantage_groups
from detector.one_capture.networks import NetworkTable
from pepscope.captures.capture import open_capture
from tests.captures.containers import Frame, read_capture
from tests.detector.corpora.watch.cut_captures import SPLIT, frames_of, write_slices

FRAMES, LINK_TYPE = frames_of(SPLIT)
OPTIONS = ReadOptions(most_connections=1000)


def read_all(paths: Sequence[Path], scratch: Path) -> list[SliceReading]:
    """Slices one after the other, as the watch has them read."""
    readings, carried = [], None
    for number, path in enumerate(paths):
        target = None if path == paths[-1] else scratch / f"carried-{number}"
        found = read_slice(SliceWork(path, carried, target, OPTIONS, number))
        carried = target if found.carried else None
        readings.append(found)
    return readings


def pooled(readings: Sequence[SliceReading]) -> VantageColumns:
    pool = EvidencePool(3600, 1000, NetworkTable())
    for each in readings:
        pool.add(each.evidence, each.last_ns or 0)
    assert pool.evidence is not None
    return pool.evidence.vantage


def in_order(vantage: VantageColumns, name: str) -> np.ndarray:
    columns = vantage.columns
    return columns[name][np.lexsort((columns["client_port"], columns["first_time_ns"]))]


@pytest.fixture(scope="module")
def whole() -> VantageColumns:
    return vantage_columns([open_capture(str(SPLIT))])


@given(cuts=st.lists(st.integers(1, len(FRAMES) - 1), min_size=1, max_size=5, unique=True), pcapng=st.booleans())
@settings(max_examples=15, deadline=None)
def test_cuts_change_neither_connections_nor_exchanges(whole: VantageColumns, cuts: list[int], pcapng: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        paths = write_slices(FRAMES, LINK_TYPE, sorted(cuts), Path(directory), pcapng=pcapng)
        readings = read_all(paths, Path(directory))
    assert sum(each.connections for each in readings) == len(whole.capture) == 20
    found = pooled(readings)
    for name in whole.columns:
        assert np.array_equal(in_order(found, name), in_order(whole, name)), name
    assert sorted(found.exchanges.question_ns.tolist()) == sorted(whole.exchanges.question_ns.tolist())
    assert sorted(found.senders.syn_ns.tolist()) == sorted(whole.senders.syn_ns.tolist())
    ours, theirs = (vantage_groups(each, least_probability=0.95) for each in (found, whole))
    assert [(each.port, each.verdict, each.exchanges) for each in ours] == [
        (each.port, each.verdict, each.exchanges) for each in theirs
    ]
    assert len(ours) == 2


def test_a_connection_with_many_packets_is_judged_by_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PACKETS", 10)
    paths = write_slices(FRAMES, LINK_TYPE, [400, 500, 600], tmp_path)
    readings = read_all(paths, tmp_path)
    assert sum(each.connections for each in readings) > 20
    assert sum(each.packets for each in readings) < len(FRAMES) + 3 * 20 * 10


@pytest.mark.parametrize("limit", ["LONGEST_NS", "SILENT_NS", "MOST_PACKETS_IN_ALL"])
def test_what_lasts_or_is_silent_or_too_much_is_not_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    path = write_slices(FRAMES, LINK_TYPE, [500], tmp_path)[0]
    work = SliceWork(path, None, tmp_path / "carried", OPTIONS, 0)
    assert read_slice(work).carried > 0
    monkeypatch.setattr(reading, limit, 0)
    if limit == "SILENT_NS":
        monkeypatch.setattr(reading, "LINGERING_NS", 0)
    assert read_slice(work).carried == 0


def test_on_a_silent_link_nothing_is_handed_on_for_ever(tmp_path: Path) -> None:
    path = write_slices(FRAMES, LINK_TYPE, [500], tmp_path)[0]
    first = read_slice(SliceWork(path, None, tmp_path / "carried", OPTIONS, 0))
    assert first.last_ns is not None
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(path.read_bytes()[:24])
    for pause_ns, handed_on in ((1, first.carried), (reading.SILENT_NS + 1, 0)):
        work = SliceWork(empty, tmp_path / "carried", tmp_path / "again", OPTIONS, 1, first.last_ns + pause_ns)
        found = read_slice(work)
        assert found.carried == handed_on
        assert found.connections == first.carried - handed_on


def test_of_a_file_that_grew_what_was_handed_on_is_read_whole(tmp_path: Path) -> None:
    part = write_slices(FRAMES, LINK_TYPE, [150], tmp_path)[0]
    first = read_slice(SliceWork(part, None, tmp_path / "carried", OPTIONS, 0))
    assert first.carried > 0
    work = SliceWork(SPLIT, tmp_path / "carried", None, OPTIONS, 1, None, first.last_ns)
    second = read_slice(work)
    assert first.connections + second.connections == 20
    found = pooled([first, second])
    everything = vantage_columns([open_capture(str(SPLIT))])
    assert sorted(found.columns["packets"]) == sorted(everything.columns["packets"])


def test_what_is_handed_on_are_the_open_connections_frames(tmp_path: Path) -> None:
    path = write_slices(FRAMES, LINK_TYPE, [300], tmp_path)[0]
    found = read_slice(SliceWork(path, None, tmp_path / "carried", OPTIONS, 0))
    carried = open_capture(str(tmp_path / "carried"))
    assert found.carried == len(carried.connections) > 0
    before = {(each.time_ns, each.data) for each in FRAMES[:300]}
    kept: list[Frame] = list(read_capture(tmp_path / "carried").frames)
    assert kept
    assert {(each.time_ns, each.data) for each in kept} <= before
    # Nothing of theirs is missing: their packets are as many as before.
    ports = {each.client_port: each.packets for each in open_capture(str(path)).connections}
    assert all(ports[each.client_port] == each.packets for each in carried.connections)


def test_parts_of_another_link_type_begin_anew(tmp_path: Path) -> None:
    first, second = write_slices(FRAMES, LINK_TYPE, [700], tmp_path)
    second.write_bytes(second.read_bytes()[:20] + (228).to_bytes(4, "little") + second.read_bytes()[24:])
    readings = read_all([first, second], tmp_path)
    assert readings[0].carried > 0
    apart = sum(len(open_capture(str(path)).connections) for path in (first, second))
    assert sum(each.connections for each in readings) == apart > 20


def test_ranks_of_slices_differ(tmp_path: Path) -> None:
    one, other = (
        read_slice(SliceWork(SPLIT, None, None, OPTIONS, seed)).evidence for seed in (1, 2)
    )  # fmt: skip
    assert one is not None
    assert other is not None
    assert not np.array_equal(one.rank, other.rank)
    assert all(0 <= low < 2 and later != low for low, later in pairwise(np.sort(one.rank)))
