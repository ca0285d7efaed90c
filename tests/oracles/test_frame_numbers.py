"""Frame numbers of packets are those of tshark: in files of any kind, behind filters, in tunnels, of fragments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.files.named_packets import connection_filter, frames_filter, locator
from tests.captures import layers, scenarios
from tests.captures.containers import (
    LINK_ETHERNET,
    Compression,
    Frame,
    Interface,
    compress,
    write_pcap,
    write_pcapng,
)
from tests.captures.segments import Segment, ipv4, ipv4_fragments
from tests.oracles.tshark import tshark_fields

CORPUS = Path(__file__).parents[1] / "corpus"
UDP = Frame(
    1_700_000_000_000_000_000,
    layers.ethernet(ipv4("192.0.2.1", "192.0.2.2", 17, layers.udp(5000, 53, b"no TCP at all"))),
)

SHAPES: dict[str, Callable[[Segment], list[bytes]]] = {
    "ethernet": lambda segment: [layers.ethernet(segment.packet())],
    "VLAN": lambda segment: [layers.vlan(segment.packet())],
    "GTP-U": lambda segment: [layers.ethernet(layers.gtp_u(segment.packet(), tunnel=0x1234ABCD))],
    "GRE": lambda segment: [layers.ethernet(layers.gre(segment.packet(), key=7))],
    "fragments": lambda segment: [layers.ethernet(part) for part in ipv4_fragments(segment.packet(), [16, 240])],
}


def _frames(shape: Callable[[Segment], list[bytes]]) -> list[Frame]:
    """Two connections of the same end points, and other traffic before, between and behind."""
    frames = [UDP]
    for number, segment in enumerate(scenarios.port_reuse().segments):
        frames += [Frame(segment.time_ns, data) for data in shape(segment)]
        if number % 3 == 0:
            frames.append(UDP)
    return [*frames, UDP]


def _shown(path: Path, expression: str) -> list[int]:
    line = locator(str(path), expression).tshark
    assert line is not None
    return [int(number) for (number,) in tshark_fields(line, "frame.number")]


def _assert_same(path: Path, capture: Capture) -> None:
    assert len(capture.connections)
    for connection in capture.connections:
        numbers = capture.frame_numbers(connection.id).tolist()
        assert len(numbers) == connection.packets
        span = numbers[0], numbers[-1]
        assert _shown(path, connection_filter(connection.client, connection.server, "tcp", span)) == numbers
    some = capture.frame_numbers(0)[::3].tolist()
    assert _shown(path, frames_filter(some)) == some


@pytest.mark.parametrize("shape", SHAPES)
def test_in_tunnels_and_of_fragments(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "with spaces; and 'quotes'.pcap"
    path.write_bytes(write_pcap(_frames(SHAPES[shape]), LINK_ETHERNET))
    _assert_same(path, open_capture(str(path)))


@pytest.mark.parametrize("compression", Compression)
def test_in_compressed_files_of_either_format(compression: Compression, tmp_path: Path) -> None:
    frames = _frames(SHAPES["ethernet"])
    endings = {"xz": ".xz", "gzip": ".gz", "zstd": ".zst", "bzip2": ".bz2"}
    ending = endings.get(compression.value, "")
    for name, data in (
        ("pcap", write_pcap(frames, LINK_ETHERNET, order=">", nanoseconds=False)),
        ("pcapng", write_pcapng(frames, [Interface(LINK_ETHERNET, 9)], unknown_blocks=True)),
    ):
        path = tmp_path / f"capture.{name}{ending}"
        path.write_bytes(compress(data, compression))
        _assert_same(path, open_capture(str(path)))


def test_behind_a_filter_and_in_temporary_files(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(write_pcap(_frames(SHAPES["ethernet"]), LINK_ETHERNET))
    _assert_same(path, open_capture(str(path), filter="tcp"))
    parted = CORPUS / "spl_ha_chat.srv.pcap.gz"
    whole, parts = open_capture(str(parted)), open_capture(str(parted), memory_bytes=1)
    assert parts.partition_count > 1
    for connection in whole.connections:
        assert parts.frame_numbers(connection.id).tolist() == whole.frame_numbers(connection.id).tolist()
    _assert_same(parted, parts)


def test_frame_numbers_of_datagrams_are_those_that_tshark_shows(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(write_pcap(_frames(SHAPES["ethernet"]), LINK_ETHERNET))
    capture = open_capture(str(path))
    (flow,) = capture.datagram_flows
    first, second = capture.datagram_frame_numbers(flow.id)
    expression = connection_filter(flow.end_point(0), flow.end_point(1), "udp")
    assert sorted([*first.tolist(), *second.tolist()]) == _shown(path, expression)


def test_in_a_series_of_files(tmp_path: Path) -> None:
    series, frames, now_ns = tmp_path / "series", list[Frame](), UDP.time_ns
    for each in _frames(SHAPES["ethernet"]):
        now_ns = max(now_ns, each.time_ns)
        frames.append(Frame(now_ns, each.data))
    series.mkdir()
    for number, part in enumerate((frames[:13], frames[13:30], frames[30:])):
        (series / f"part-{number}.pcap").write_bytes(write_pcap(part, LINK_ETHERNET))
    capture = open_capture(str(series))
    times = {
        capture.located(number): time_ns
        for connection in capture.connections
        for number, time_ns in zip(
            capture.frame_numbers(connection.id).tolist(), capture.packets(connection.id).time_ns.tolist(), strict=True
        )
    }
    files = {file for file, _ in times}
    assert len(files) == 3
    shown = {
        (file, int(number)): int(time.replace(".", ""))
        for file in files
        for number, time in tshark_fields(f"tshark -r {file}", "frame.number", "frame.time_epoch")
    }
    assert times.items() <= shown.items()
