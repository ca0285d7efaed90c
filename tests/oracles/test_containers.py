"""Every container gives back what was put into it, and tshark reads the same out of it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from pepscope.captures.capture import open_capture
from tests.captures import containers, layers
from tests.captures.containers import Compression, Frame, Interface
from tests.captures.scenarios import SCENARIOS
from tests.oracles.columns import assert_same_packets
from tests.oracles.truth import frames_of, truth_rows
from tests.oracles.tshark import tshark_rows

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = SCENARIOS["loss_before_the_capture"]().segments
RESOLUTIONS = (0, 3, 6, 7, 9, 0x80 | 10, 0x80 | 20, 0x80 | 30)


@pytest.mark.parametrize(("order", "nanoseconds"), [*itertools.product("<>", (True, False))])
def test_pcap_of_either_byte_order_and_unit_is_read(
    tmp_path: Path, order: containers.ByteOrder, nanoseconds: bool
) -> None:
    path = tmp_path / "capture"
    frames = frames_of(SEGMENTS, layers.ethernet)
    path.write_bytes(containers.write_pcap(frames, 1, order=order, nanoseconds=nanoseconds))
    unit = 1 if nanoseconds else 1000
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(SEGMENTS, [s.time_ns // unit * unit for s in SEGMENTS]))
    assert_same_packets(capture, tshark_rows(path))
    assert capture.warnings == ()


@pytest.mark.parametrize(("order", "resolution"), [*itertools.product("<>", RESOLUTIONS)])
def test_pcapng_of_each_resolution_keeps_its_times(
    tmp_path: Path, order: containers.ByteOrder, resolution: int
) -> None:
    path = tmp_path / "capture"
    interface = Interface(1, resolution)
    frames = frames_of(SEGMENTS, layers.ethernet)
    path.write_bytes(containers.write_pcapng(frames, [interface], order=order, unknown_blocks=True))
    times = [interface.nanoseconds(interface.ticks(segment.time_ns)) for segment in SEGMENTS]
    assert_same_packets(open_capture(str(path)), truth_rows(SEGMENTS, times))


@pytest.mark.parametrize("offset_s", [-3600, 1_000_000_000])
def test_pcapng_time_offset(tmp_path: Path, offset_s: int) -> None:
    path = tmp_path / "capture"
    frames = frames_of(SEGMENTS, layers.ethernet)
    path.write_bytes(containers.write_pcapng(frames, [Interface(1, 9, offset_s)]))
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(SEGMENTS))
    assert_same_packets(capture, tshark_rows(path))


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_of_many_interfaces(tmp_path: Path, order: containers.ByteOrder) -> None:
    """Each with its own link type, unit and offset; packets of one connection come through all of them."""
    path = tmp_path / "capture"
    interfaces = [Interface(1, 9), Interface(101, 9, 7), Interface(276, 0x80 | 30), Interface(113, 9, -5)]
    wraps = [layers.ethernet, layers.raw, layers.linux_sll2, layers.linux_sll]
    frames = [
        Frame(segment.time_ns, wraps[index % 4](segment.packet()), index % 4) for index, segment in enumerate(SEGMENTS)
    ]
    path.write_bytes(containers.write_pcapng(frames, interfaces, order=order, unknown_blocks=True))
    times = [
        interfaces[index % 4].nanoseconds(interfaces[index % 4].ticks(segment.time_ns))
        for index, segment in enumerate(SEGMENTS)
    ]
    assert_same_packets(open_capture(str(path)), truth_rows(SEGMENTS, times))


def test_pcapng_simple_packets_have_no_time(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(containers.write_pcapng(frames_of(SEGMENTS, layers.ethernet), [Interface(1)], simple_blocks=True))
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(SEGMENTS, [0] * len(SEGMENTS)))
    assert any("time" in warning for warning in capture.warnings)


def test_snoop_is_read_to_the_microsecond(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(containers.write_snoop(frames_of(SEGMENTS, layers.ethernet), containers.SNOOP_ETHERNET))
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(SEGMENTS, [s.time_ns // 1000 * 1000 for s in SEGMENTS]))
    assert_same_packets(capture, tshark_rows(path))
    assert capture.warnings == ()


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_compression_is_found_from_content(tmp_path: Path, compression: Compression, kind: str) -> None:
    path = tmp_path / "capture.txt"
    frames = frames_of(SEGMENTS, layers.ethernet)
    data = containers.write_pcap(frames, 1) if kind == "pcap" else containers.write_pcapng(frames, [Interface(1, 9)])
    path.write_bytes(containers.compress(data, compression))
    assert_same_packets(open_capture(str(path)), truth_rows(SEGMENTS))
