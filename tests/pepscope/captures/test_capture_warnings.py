"""Each peculiarity of a capture is one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pepscope.captures.capture import open_capture
from tests.captures import containers, layers, scenarios
from tests.captures.containers import Frame
from tests.captures.segments import ipv4, ipv4_fragments

if TYPE_CHECKING:
    from pathlib import Path

SEGMENTS = scenarios.plain_download().segments
ICMP = ipv4("192.0.2.1", "10.1.2.3", 1, bytes(16))


def warnings_of(path: Path, frames: list[Frame], link_type: int) -> tuple[str, ...]:
    path.write_bytes(containers.write_pcap(frames, link_type))
    return open_capture(str(path), tcp_needed=False).warnings


@pytest.mark.parametrize(
    ("frames", "link_type", "expected"),
    [
        ([], 101, ["the capture holds no packets"]),
        ([Frame(1, ICMP)], 101, ["the capture holds 1 packet but no TCP: 1 of IP protocol 1 (ICMP)"]),
        (
            [Frame(1, bytes(30))],
            189,
            [
                "the capture holds 1 packet but no TCP: 1 of link type 189 (USB_LINUX), which cannot be read",
            ],
        ),
    ],
)
def test_captures_without_tcp_are_reported(
    frames: list[Frame], link_type: int, expected: list[str], tmp_path: Path
) -> None:
    assert list(warnings_of(tmp_path / "capture", frames, link_type)) == expected


def test_protocols_are_named(tmp_path: Path) -> None:
    frames = [Frame(1, ipv4("192.0.2.1", "10.1.2.3", 47, b"\0\0\x12\x34" + bytes(40)))] * 7
    frames += [Frame(1, ipv4("192.0.2.1", "10.1.2.3", number, bytes(16))) for number in (1, 1, 2, 50, 88, 89, 103, 132)]
    (sentence,) = warnings_of(tmp_path / "capture", frames, containers.LINK_RAW)
    assert sentence == (
        "the capture holds 15 packets but no TCP: 7 of GRE protocol 0x1234, 2 of IP protocol 1 (ICMP), "
        "1 of IP protocol 2 (IGMP), 1 of IP protocol 50 (ESP: encrypted), 1 of IP protocol 88 (EIGRP), "
        "1 of IP protocol 89 (OSPF), 2 of other protocols"
    )


def test_packets_that_may_hide_tcp_are_named_beside_tcp(tmp_path: Path) -> None:
    frames = [Frame(segment.time_ns, segment.packet()) for segment in SEGMENTS]
    frames += [Frame(9, ipv4("192.0.2.1", "10.1.2.3", 108, b"\x06\0\0\x02" + bytes(16))), Frame(9, ICMP)]
    frames += [Frame(9, ipv4("192.0.2.1", "10.1.2.3", 47, b"\0\0\x12\x34" + bytes(40)))] * 2
    assert warnings_of(tmp_path / "capture", frames, containers.LINK_RAW) == (
        "1 packet of IP protocol 108 (IPComp: compressed), in which TCP cannot be seen",
        "2 packets of GRE protocol 0x1234, in which TCP cannot be seen",
    )


def test_packets_are_counted_by_what_is_wrong_with_them(tmp_path: Path) -> None:
    packet = SEGMENTS[5].packet()
    broken = bytearray(packet)
    broken[0] = 0x41
    frames = [
        *(Frame(segment.time_ns, segment.packet()) for segment in SEGMENTS),
        Frame(2, packet[:30], original_length=len(packet)),
        Frame(3, bytes(broken)),
        Frame(4, ipv4_fragments(packet, [48])[0]),
    ]
    assert warnings_of(tmp_path / "capture", frames, containers.LINK_RAW) == (
        "1 packet cut by the snap length before the end of the TCP header",
        "1 packet with lengths that contradict each other",
        "1 fragmented datagram of which some fragment is missing",
    )


def test_missing_directions_and_options_are_named(tmp_path: Path) -> None:
    server = next(segment for segment in SEGMENTS if segment.source_port == 80).source
    frames = [Frame(s.time_ns, layers.ethernet(s.packet())) for s in SEGMENTS if s.source == server and s.payload]
    frames.append(Frame(frames[-1].time_ns, frames[-1].data[:60], original_length=len(frames[-1].data)))
    path = tmp_path / "capture"
    found = warnings_of(path, frames * 3, containers.LINK_ETHERNET)
    assert any(s.startswith("3 packets cut by the snap length within the TCP options") for s in found), found


def test_damage_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    data = containers.write_pcap([Frame(s.time_ns, s.packet()) for s in SEGMENTS], containers.LINK_RAW)
    path.write_bytes(data[:-1])
    (sentence,) = open_capture(str(path)).warnings
    last = 16 + len(SEGMENTS[-1].packet())
    assert sentence == (
        f"{path} is damaged at byte {len(data) - last}: it ends within a record ({last - 1} of {last} bytes are "
        f"there); the {len(SEGMENTS) - 1} packets before that were read"
    )
