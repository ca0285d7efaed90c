"""Files whose packets stand in another order than that of time are read as if they stood in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.metamorphic.losses import one_direction_first
from benchmarks.metamorphic.records import Records, records_of
from benchmarks.metamorphic.writing import write
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Direction
from tests.captures.containers import read_capture

CAPTURES = Path(__file__).parents[2] / "captures" / "one_ended"
NAME = "lte-relay.server.pcap.gz"

#: Places of the packets in files of other orders.
ORDERS = {
    "openers first": lambda r: np.argsort(~r.is_up, kind="stable"),
    "openers last": lambda r: np.argsort(r.is_up, kind="stable"),
    "later part first": lambda r: np.roll(np.arange(len(r)), len(r) // 2),
    "three parts": lambda r: np.r_[tuple(np.array_split(np.arange(len(r)), 3)[part] for part in (1, 2, 0))],
}


@pytest.fixture(scope="module")
def recorded() -> Records:
    return records_of(read_capture(CAPTURES / NAME), {})


def written(records: Records, order: str, folder: Path) -> tuple[Path, np.ndarray]:
    """A file in this order, and for each packet in the order of time its frame."""
    places = ORDERS[order](records)
    write(folder / "changed.pcap", records.take(places), "raw")
    return folder / "changed.pcap", np.argsort(places) + 1


def by_end_points(capture: Capture) -> dict[tuple[object, ...], int]:
    connections = enumerate(capture.connections)
    return {(each.client_address, each.client_port, each.server_port): number for number, each in connections}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("memory_bytes", [1 << 30, 1])
def test_connections_packets_and_payload_stay(recorded, order, memory_bytes, tmp_path):
    write(tmp_path / "plain.pcap", recorded, "raw")
    path, frames = written(recorded, order, tmp_path)
    plain, changed = open_capture(tmp_path / "plain.pcap"), open_capture(path, memory_bytes=memory_bytes)
    there = by_end_points(changed)
    assert len(plain.connections) == len(there) == len(changed.connections)
    first_frames = [changed.frame_numbers(number)[0] for number in range(len(there))]
    assert first_frames == sorted(first_frames)
    for end_points, number in by_end_points(plain).items():
        one, other = plain.packets(number), changed.packets(there[end_points])
        for name in one.COLUMNS:
            assert np.array_equal(getattr(one, name), getattr(other, name)), (end_points, name)
        expected = frames[plain.frame_numbers(number) - 1].tolist()
        assert changed.frame_numbers(there[end_points]).tolist() == expected
        assert changed.frame_spans([there[end_points]]).tolist() == [[min(expected), max(expected)]]
        for direction in Direction:
            sample, same = plain.payload(number)[direction], changed.payload(there[end_points])[direction]
            assert (sample.offsets.tolist(), sample.pieces) == (same.offsets.tolist(), same.pieces)


def printed(path: Path, *command: str) -> Any:
    """What a command prints as JSON, which gets the file as standard input."""
    line = [sys.executable, "-P", "-m", "pepscope", *command]
    with path.open("rb") as file:
        return json.loads(subprocess.run(line, stdin=file, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("order", ORDERS)
def test_inspect_prints_the_round_trips_of_the_file_in_order(recorded, order, tmp_path):
    write(tmp_path / "plain.pcap", recorded, "raw")
    path, _ = written(recorded, order, tmp_path)
    rows = []
    for each in (tmp_path / "plain.pcap", path):
        connections = printed(each, "inspect", "--json", str(each))["connections"]
        rows.append(
            sorted(({**row, "id": None} for row in connections), key=lambda row: (row["client"], row["server"]))
        )
    assert any(row["down"]["round_trip_time_min_ns"] for row in rows[0])
    assert rows[0] == rows[1]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("memory_bytes", [1, 20_000, 1 << 30])
def test_connections_without_packets_stay(recorded, order, memory_bytes, tmp_path):
    write(tmp_path / "plain.pcap", recorded, "raw")
    path, _ = written(recorded, order, tmp_path)
    plain = open_capture(tmp_path / "plain.pcap", columns=False, payload=False)
    changed = open_capture(path, columns=False, payload=False, memory_bytes=memory_bytes)
    there = by_end_points(changed)
    assert len(plain.connections) == len(there) == len(changed.connections)
    for end_points, number in by_end_points(plain).items():
        one, other = plain.connections[number], changed.connections[there[end_points]]
        assert one._replace(id=0) == other._replace(id=0)


def test_standard_input_that_keeps_connections_alone_says_that_times_fall_back(recorded, tmp_path):
    write(tmp_path / "plain.pcap", recorded, "raw")
    path, _ = written(recorded, "openers last", tmp_path)
    assert printed(tmp_path / "plain.pcap", "inspect", "--json", "-")["warnings"] == []
    [sentence] = printed(path, "inspect", "--json", "-")["warnings"]
    assert "connections with times that fall back: standard input cannot be read again" in sentence


def test_standard_input_that_keeps_packets_is_read_in_time(recorded, tmp_path):
    """Segments of standard input are kept in files, so that they can be read again."""
    write(tmp_path / "apart.pcap", one_direction_first(recorded, False), "raw")
    write(tmp_path / "plain.pcap", recorded, "raw")
    plain, apart = (
        [(group["verdict"], group["exchanges"], group["probability"]) for group in document["groups"]]
        for document in (
            printed(tmp_path / name, "detect", "--json", "-", "-") for name in ("plain.pcap", "apart.pcap")
        )
    )
    assert plain
    assert plain == apart
