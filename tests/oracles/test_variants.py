"""The variants that `make validate` derives change what they say, and the scorer can tell right from wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.validation.askings import AS_RECORDED
from benchmarks.validation.score import UNPAIRED, Case, Score, score_case
from benchmarks.validation.variants import VARIANTS, TwoEnds
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Mark, PacketColumns
from tests.captures.containers import read_capture, write_pcap

if TYPE_CHECKING:
    from pepscope.captures.connections import Connection

CORPUS = Path(__file__).parents[1] / "corpus"
SERVER, MOBILE = (CORPUS / f"reg_dl_quickack.{end}.pcap.gz" for end in ("srv", "mob"))


def read(path: Path) -> tuple[Connection, PacketColumns]:
    capture = open_capture(str(path))
    (connection,) = capture.connections
    return connection, capture.packets(0)


def changed(name: str, directory: Path) -> list[tuple[Connection, PacketColumns]]:
    """The variant's captures at the server and at the mobile, as we read them."""
    ends = VARIANTS[name](TwoEnds(read_capture(SERVER), read_capture(MOBILE)))
    found = []
    for index, capture in enumerate((ends.server, ends.mobile)):
        assert capture is not None
        path = directory / f"{index}.pcap"
        path.write_bytes(write_pcap(capture.frames, capture.link_type, nanoseconds=ends.nanoseconds))
        found.append(read(path))
    return found


@pytest.mark.parametrize("name", ["no timestamps", "no timestamps, IP ID, window"])
def test_timestamps_go_from_packets_and_the_syn(tmp_path: Path, name: str) -> None:
    for connection, columns in changed(name, tmp_path):
        assert not (columns.marks & Mark.HAS_TIMESTAMPS).any()
        assert not connection.up.timestamps
    assert read(SERVER)[0].up.timestamps


def test_ip_identification_goes_at_the_server(tmp_path: Path) -> None:
    (_, server), (_, mobile) = changed("IP ID zeroed", tmp_path)
    assert not server.ip_id.any()
    assert mobile.ip_id.any()


def test_window_shrinks_at_the_server(tmp_path: Path) -> None:
    (_, server), (_, mobile) = changed("window rewritten", tmp_path)
    _, before = read(SERVER)
    opened = before.window_bytes > 1000
    assert (server.window_bytes[opened] < before.window_bytes[opened]).all()
    np.testing.assert_array_equal(mobile.window_bytes, read(MOBILE)[1].window_bytes)


def test_sequence_numbers_shift_without_moving_offsets(tmp_path: Path) -> None:
    (connection, server), _ = changed("sequence numbers shifted", tmp_path)
    original, before = read(SERVER)
    assert connection.up.initial_sequence_number != original.up.initial_sequence_number
    assert connection.down.initial_sequence_number != original.down.initial_sequence_number
    np.testing.assert_array_equal(server.sequence_offset, before.sequence_offset)
    np.testing.assert_array_equal(server.acknowledgement_offset, before.acknowledgement_offset)


@pytest.mark.parametrize("parts_per_million", [200, -200, 500, -500])
def test_the_mobile_clock_drifts_by_so_much(tmp_path: Path, parts_per_million: int) -> None:
    _, (_, mobile) = changed(f"drift {parts_per_million:+d} ppm", tmp_path)
    before = read(MOBILE)[1].time_ns
    stretched = (mobile.time_ns[-1] - mobile.time_ns[0]) / (before[-1] - before[0])
    assert stretched == pytest.approx(1 + parts_per_million * 1e-6, abs=1e-8)


def test_clock_steps_once(tmp_path: Path) -> None:
    _, (_, mobile) = changed("clock step 0.6 s", tmp_path)
    assert set((mobile.time_ns - read(MOBILE)[1].time_ns).tolist()) == {0, 600_000_000}


def test_packets_get_lost_at_both_ends(tmp_path: Path) -> None:
    for (_, columns), path in zip(changed("3 % lost at both ends", tmp_path), (SERVER, MOBILE), strict=True):
        assert 0.95 < len(columns) / len(read(path)[1]) < 0.99


@pytest.mark.parametrize("length", [54, 68])
def test_frames_are_cut_at_the_snap_length(tmp_path: Path, length: int) -> None:
    changed(f"snap length {length}", tmp_path)
    held = [len(frame.data) for frame in read_capture(tmp_path / "0.pcap").frames]
    assert max(held) == length


def test_times_are_cut_to_microseconds(tmp_path: Path) -> None:
    _, (_, mobile) = changed("microseconds", tmp_path)
    assert not (mobile.time_ns % 1000).any()
    assert (read(MOBILE)[1].time_ns % 1000).any()


def scores_with_class(run_id: str, claimed: str) -> list[Score]:
    """Scores of a run whose truth is said to be `claimed`."""
    runs = json.loads((CORPUS / "manifest.json").read_text())["runs"]
    run = next(run for run in runs if run["id"] == run_id)
    flows = [{**flow, "class": claimed, "acceptable_kinds": [claimed]} for flow in run["flows"]]
    scores = score_case(Case(CORPUS, {**run, "flows": flows}, AS_RECORDED))
    assert len(scores) == len(flows)
    return scores


def test_a_false_alarm_is_counted() -> None:
    assert not any(score.false_alarm for score in scores_with_class("spl_ha_dl_small_umts", "split"))
    assert all(score.false_alarm for score in scores_with_class("spl_ha_dl_small_umts", "regular"))


def test_a_split_called_regular_is_counted() -> None:
    assert not any(score.called_regular for score in scores_with_class("reg_dl_quickack", "regular"))
    assert all(score.called_regular for score in scores_with_class("reg_dl_quickack", "split"))


def test_an_unpaired_flow_is_not_found() -> None:
    runs = json.loads((CORPUS / "manifest.json").read_text())["runs"]
    run = next(run for run in runs if run["id"] == "reg_dl_quickack")
    flows = [{**flow, "mobile_capture": "192.0.2.1:1 > 192.0.2.2:2"} for flow in run["flows"]]
    (score,) = score_case(Case(CORPUS, {**run, "flows": flows}, AS_RECORDED))
    assert score.verdict == UNPAIRED
    assert not score.found
    assert replace(score, verdict="regular").found
