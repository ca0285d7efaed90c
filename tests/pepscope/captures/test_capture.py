"""`open_capture` on the corpus: columns, summaries, payload, memory, filters and what is wrong with a capture."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Direction, Mark, PacketColumns, TcpFlag
from pepscope.captures.tables.connection_frame import csv_chunks, parquet_bytes
from pepscope.errors import CaptureError, FilterError
from tests.captures.containers import LINK_RAW, Frame, write_pcap
from tests.captures.conversation import START_NS
from tests.captures.segments import PROTOCOL_UDP, Segment, ipv4

CORPUS = Path(__file__).parents[2] / "corpus"
MANY = CORPUS / "reg_dl_par20.srv.pcap.gz"
ONE = CORPUS / "reg_dl_nat.srv.pcap.gz"
DAMAGED = CORPUS / "reg_dl_v6__cut.mob.pcap.gz"

ETHERNET = 1
ARP_FRAME = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46)
UDP_FRAME = (
    b"\x02" * 12
    + b"\x08\x00"
    + bytes.fromhex("4500001c0001000040110000 0a000001 0a000002")
    + bytes.fromhex("00350035 00080000")
)


def pcap(frames: list[bytes], link_type: int = ETHERNET) -> bytes:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)
    return header + b"".join(struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame for frame in frames)


def gtp_u(message: int) -> bytes:
    """A message of GTP-U's path management, without a packet."""
    datagram = struct.pack(">HHHHBBHI", 2152, 2152, 16, 0, 0x30, message, 0, 0)
    return ipv4("10.0.0.1", "10.0.0.2", PROTOCOL_UDP, datagram)


@pytest.fixture(scope="module")
def many() -> Capture:
    capture = open_capture(str(MANY))
    assert len(capture.connections) > 1
    return capture


def test_columns_add_up_to_the_summaries(many: Capture) -> None:
    for connection in many.connections:
        packets = many.packets(connection.id)
        assert len(packets) == connection.packets
        assert packets.time_ns[0] == connection.first_time_ns
        assert packets.time_ns.max() == connection.last_time_ns
        for direction, flow in ((Direction.UP, connection.up), (Direction.DOWN, connection.down)):
            of_flow = packets.direction == direction
            assert of_flow.sum() == flow.packets
            assert packets.payload_bytes[of_flow].sum() == flow.payload_bytes
            assert ((packets.marks[of_flow] & Mark.RETRANSMISSION) != 0).sum() == flow.retransmitted_packets


def test_columns_are_shared_and_read_only(many: Capture) -> None:
    first = many.packets(0)
    assert many.packets(0) is first
    assert not first.time_ns.flags.writeable
    expected = {"time_ns": np.int64, "direction": np.uint8, "window_bytes": np.uint32, "flags": np.uint16}
    assert {name: getattr(first, name).dtype.type for name in expected} == expected
    assert list(first.to_frame().columns) == list(PacketColumns.COLUMNS)


def test_summaries_as_columns_are_the_summaries_as_objects(many: Capture) -> None:
    columns = many.connection_columns()
    for connection in many.connections:
        row = connection.id
        assert columns["client_port"][row] == connection.client_port
        assert columns["packets"][row] == connection.packets
        assert columns["down_stream_bytes"][row] == connection.down.stream_bytes
        minimum = connection.down.round_trip_time_min_ns
        assert columns["down_round_trip_time_min_ns"][row] == (-1 if minimum is None else minimum)
        assert bytes(columns["client_address"][row])[12:] == bytes(map(int, connection.client_address.split(".")))


def test_some_columns_are_those_of_all(many: Capture) -> None:
    names = ("client_address", "close", "up_syn_count", "down_missing_packets")
    (some,) = many.connection_batches(names)
    assert set(some) == {*names}
    for name in names:
        np.testing.assert_array_equal(some[name], many.connection_columns()[name])


def test_frames_of_rows_are_those_of_all_packets(many: Capture) -> None:
    connections = [3, 0, 1]
    every = [many.frame_numbers(number).tolist() for number in connections]
    rows = [[2, 0, 2, len(every[0]) - 1], [], [0]]
    assert many.frames_of_rows(connections, rows) == [
        ((min(frames), max(frames)), [frames[row] for row in chosen])
        for frames, chosen in zip(every, rows, strict=True)
    ]
    with pytest.raises(IndexError, match="no such packet"):
        many.frames_of_rows([3], [[len(every[0])]])


def test_frame_reads_as_the_objects_do(many: Capture) -> None:
    frame = many.to_frame()
    assert list(frame["client_address"]) == [one.client_address for one in many.connections]
    assert list(frame["close"]) == [one.close.value for one in many.connections]
    minima = [one.up.round_trip_time_min_ns for one in many.connections]
    assert [
        None if value is np.nan or value != value else value
        for value in frame["up_round_trip_time_min_ns"].astype("float64")
    ] == minima


def test_connections_are_a_sequence(many: Capture) -> None:
    connections = many.connections
    assert [one.id for one in connections] == list(range(len(connections)))
    assert connections[-1] == connections[len(connections) - 1]
    assert [one.id for one in connections[1:3]] == [1, 2]
    with pytest.raises(IndexError):
        connections[len(connections)]


@pytest.mark.parametrize("path", [MANY, ONE, DAMAGED], ids=lambda path: path.name.split(".")[0])
def test_partitions_change_nothing(path: Path) -> None:
    whole, parts = open_capture(str(path)), open_capture(str(path), memory_bytes=1)
    assert whole.partition_count == 1
    assert parts.partition_count > 1
    assert list(whole.connections) == list(parts.connections)
    assert whole.warnings == parts.warnings[:-1]
    assert "a connection is analysed whole" in parts.warnings[-1]
    for connection in whole.connections:
        expected, loaded = whole.packets(connection.id), parts.packets(connection.id)
        for name in PacketColumns.COLUMNS:
            np.testing.assert_array_equal(getattr(expected, name), getattr(loaded, name), err_msg=name)
        for direction, sample in whole.payload(connection.id).items():
            other = parts.payload(connection.id)[direction]
            np.testing.assert_array_equal(sample.offsets, other.offsets)
            assert sample.pieces == other.pieces


@pytest.mark.parametrize("path", [MANY, ONE, DAMAGED], ids=lambda path: path.name.split(".")[0])
def test_connections_without_packets_are_bounded_too_and_the_same(path: Path) -> None:
    whole, parts = (open_capture(str(path), columns=False, payload=False, memory_bytes=size) for size in (1 << 30, 1))
    assert list(whole.connections) == list(parts.connections)
    assert whole.warnings == parts.warnings
    assert b"".join(whole.json_chunks()) == b"".join(parts.json_chunks())
    assert b"".join(csv_chunks(whole)) == b"".join(csv_chunks(parts)) == whole.to_frame().to_csv(index=False).encode()
    assert pd.read_parquet(BytesIO(parquet_bytes(parts))).equals(pd.read_parquet(BytesIO(parquet_bytes(whole))))
    assert whole.partition_count == parts.partition_count == 1
    with pytest.raises(ValueError, match="packets must be stored"):
        parts.packets(0)
    with pytest.raises(IndexError):
        parts.connections[len(whole.connections)]


def test_memory_of_connections_without_packets_stays_bounded(tmp_path: Path) -> None:
    start = START_NS
    frames = [
        Frame(
            start + n,
            Segment(
                start + n, f"10.{n >> 14}.{n >> 7 & 127}.{n & 127}", 9, "192.0.2.1", 80, n, 0, TcpFlag.SYN
            ).packet(),
        )
        for n in range(60_000)
    ]
    path = tmp_path / "flood.pcap"
    path.write_bytes(write_pcap(frames, LINK_RAW))
    script = (
        "import re, sys; from pepscope.captures.capture import open_capture\n"
        "capture = open_capture(sys.argv[1], columns=False, payload=False, memory_bytes=int(sys.argv[2]))\n"
        "count = sum(chunk.count(b'side_guessed') for chunk in capture.json_chunks())\n"
        "print(count, int(re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1]) // 1024)"
    )
    found = {}
    for size in (1 << 20, 1 << 30):
        command = [sys.executable, "-c", script, str(path), str(size)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        found[size] = [int(number) for number in answer]
    (count, little), (all_of_them, much) = found.values()
    assert count == all_of_them == 60_000
    # 60,000 connections of about a kilobyte each are what the bound saves.
    assert little < much - 30


def test_payload_pieces_lie_in_the_stream(many: Capture) -> None:
    connection = many.connections[0]
    sample = many.payload(0)[Direction.DOWN]
    assert len(sample.pieces) == len(sample.offsets) > 0
    ends = sample.offsets + np.array([len(piece) for piece in sample.pieces])
    assert sample.offsets.min() >= 0
    assert ends.max() <= connection.down.stream_bytes


def test_filter_keeps_what_matches(many: Capture) -> None:
    wanted = many.connections[3]
    filtered = open_capture(str(MANY), filter=f"tcp port {wanted.client_port}")
    assert [one.client for one in filtered.connections] == [wanted.client]
    assert filtered.packet_count == wanted.packets == filtered.tcp_packet_count
    assert filtered.counts["filtered_out"] == many.packet_count - wanted.packets


def test_filter_that_removes_every_packet_is_reported() -> None:
    with pytest.raises(CaptureError, match="removed by the filter"):
        open_capture(str(ONE), filter="udp")


def test_filter_without_meaning_on_the_link_type(tmp_path: Path) -> None:
    raw = tmp_path / "raw.pcap"
    raw.write_bytes(pcap([UDP_FRAME[14:]], link_type=101))
    with pytest.raises(FilterError, match="no meaning on link type RAW"):
        open_capture(str(raw), filter="ether host 02:00:00:00:00:01")


def test_damage_is_reported_and_earlier_data_are_kept() -> None:
    capture = open_capture(str(DAMAGED))
    assert capture.packet_count > 1000
    assert len(capture.connections) == 1
    assert any("is damaged at byte" in warning for warning in capture.warnings)


def test_broken_compression_is_damage(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap.gz"
    broken.write_bytes(ONE.read_bytes()[:50_000])
    capture = open_capture(str(broken))
    assert capture.packet_count > 100
    assert "damaged" in capture.warnings[0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty"),
        (b"one two three four five six\n", "neither pcap nor pcapng"),
        (gzip.compress(b"GET / HTTP/1.1\r\n"), "neither pcap nor pcapng"),
        (pcap([])[:10], "within its file header"),
        (pcap([]), "no packets"),
        (
            pcap([ARP_FRAME, ARP_FRAME, UDP_FRAME]),
            r"3 packets but no TCP: 2 of EtherType 0x0806 \(ARP\), 1 of IP protocol 17 \(UDP\)",
        ),
        (
            pcap([bytes(60)], link_type=195),
            r"x\.pcap: it holds 1 packet but no TCP: 1 of link type 195 \(IEEE802_15_4_WITHFCS\), which can.* read$",
        ),
        (
            pcap([gtp_u(1), gtp_u(2), b"\x50" + bytes(19)], link_type=101),
            "3 packets but no TCP: 2 of GTP-U without a packet, 1 of IP version 5$",
        ),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        (b"<!DOCTYPE html>\n<html>", "an HTML page: download the capture itself"),
        (b"GMBU" + bytes(60), "Microsoft Network Monitor; `editcap"),
    ],
    ids=[
        "empty",
        "text",
        "compressed-text",
        "short",
        "no-packets",
        "no-tcp",
        "unknown-link-type",
        "two-kinds-of-one-name",
        "lfs",
        "html",
        "network-monitor",
    ],
)
def test_nothing_to_analyse_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=sentence) as caught:
        open_capture(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        open_capture(str(tmp_path / "missing.pcap"))
    with pytest.raises(CaptureError, match="directory"):
        open_capture(str(tmp_path))


def test_without_columns_packets_are_refused() -> None:
    capture = open_capture(str(ONE), columns=False, payload=False)
    assert capture.connections[0].packets > 0
    with pytest.raises(ValueError, match="columns=True"):
        capture.packets(0)
    with pytest.raises(ValueError, match="payload=True"):
        capture.payload(0)
