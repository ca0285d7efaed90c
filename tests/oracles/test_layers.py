"""Every link layer, tunnel and oddity of IP: the same segments come out, and tshark sees them too."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pepscope.captures import connections
from pepscope.captures.capture import open_capture
from tests.captures import containers, layers, links, segments
from tests.captures.containers import Frame
from tests.captures.scenarios import SCENARIOS
from tests.captures.segments import Segment
from tests.oracles.columns import assert_same_packets
from tests.oracles.truth import frames_of, truth_rows
from tests.oracles.tshark import tshark_rows

if TYPE_CHECKING:
    from tests.captures.layers import Wrap

VERSIONS = {4: SCENARIOS["loss_before_the_capture"]().segments, 6: SCENARIOS["ipv6"]().segments}

#: Tunnel name of ours, wrapping of what the client sends and of what the server sends, identifiers up and down.
TUNNELS: dict[str, tuple[str, Wrap, Wrap, int, int]] = {
    "gtp_u": ("gtp-u", lambda p: layers.gtp_u(p, tunnel=11), lambda p: layers.gtp_u(p, tunnel=22), 11, 22),
    "gtp_u_extensions": (
        "gtp-u",
        lambda p: layers.gtp_u(p, tunnel=0xDEADBEEF, extensions=True),
        lambda p: layers.gtp_u(p, tunnel=0x1234, extensions=True, sequence=True),
        0xDEADBEEF,
        0x1234,
    ),
    "gtp_u_sequence": (
        "gtp-u",
        lambda p: layers.gtp_u(p, tunnel=1, sequence=True),
        lambda p: layers.gtp_u(p, tunnel=2),
        1,
        2,
    ),
    "gre": ("gre", layers.gre, layers.gre, 0, 0),
    "gre_all_fields": (
        "gre",
        lambda p: layers.gre(p, key=77, with_checksum=True, with_sequence=True),
        lambda p: layers.gre(p, key=78, with_sequence=True),
        77,
        78,
    ),
    "gre_ethernet": (
        "gre",
        lambda p: layers.gre_ethernet(p, key=0x1234_56),
        lambda p: layers.gre_ethernet(p, key=0x1234_56),
        0x1234_56,
        0x1234_56,
    ),
    "erspan": ("gre", layers.erspan, layers.erspan, 0, 0),
    "erspan_i": ("gre", layers.erspan_i, layers.erspan_i, 0, 0),
    "erspan_iii": ("gre", layers.erspan_iii, layers.erspan_iii, 0, 0),
    "gre_ppp": ("gre", layers.gre_ppp, layers.gre_ppp, 7, 7),
    "gre_wireless": ("gre", layers.gre_wireless, layers.gre_wireless, 0, 0),
    "authenticated": ("ip-in-ip", layers.authenticated, layers.authenticated, 0, 0),
    "l2tp_v2": (
        "l2tp",
        lambda p: layers.l2tp_v2(p, identifier=0x0005_0009, all_fields=True),
        lambda p: layers.l2tp_v2(p, identifier=0x0006_0009),
        0x0005_0009,
        0x0006_0009,
    ),
    "l2tp_v3": (
        "l2tp",
        lambda p: layers.l2tp_v3(p, session=0x1234, cookie=b"COOK"),
        lambda p: layers.l2tp_v3(p, session=0x4321, cookie=b"COOK"),
        0x1234,
        0x4321,
    ),
    "l2tp_v3_udp": (
        "l2tp",
        lambda p: layers.l2tp_v3(p, session=0x1234, cookie=b"COOK", over_udp=True),
        lambda p: layers.l2tp_v3(p, session=0x4321, cookie=b"COOK", over_udp=True),
        0x1234,
        0x4321,
    ),
    "wccp": ("gre", layers.wccp, layers.wccp, 0, 0),
    "ip_in_ip": ("ip-in-ip", layers.ip_in_ip, layers.ip_in_ip, 0, 0),
    "ip_in_ipv6": ("ip-in-ip", layers.ip_in_ipv6, layers.ip_in_ipv6, 0, 0),
    "vxlan": ("vxlan", lambda p: layers.vxlan(p, network=5), lambda p: layers.vxlan(p, network=5), 5, 5),
    "geneve": (
        "geneve",
        lambda p: layers.geneve(p, network=6, options=bytes([1, 2, 3, 24]) + bytes(96)),
        lambda p: layers.geneve(p, network=7, with_ethernet=False),
        6,
        7,
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", links.LINKS)
def test_segments_behind_each_link_header_are_found(tmp_path: Path, name: str, version: int) -> None:
    link_type, wrap = links.LINKS[name]
    path = tmp_path / "capture"
    path.write_bytes(containers.write_pcap(frames_of(VERSIONS[version], wrap), link_type))
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(VERSIONS[version]))
    assert_same_packets(capture, tshark_rows(path))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", links.LINKS_WITHOUT_TSHARK)
def test_link_without_tshark(tmp_path: Path, name: str, version: int) -> None:
    link_type, wrap = links.LINKS_WITHOUT_TSHARK[name]
    path = tmp_path / "capture"
    path.write_bytes(containers.write_pcap(frames_of(VERSIONS[version], wrap), link_type))
    assert_same_packets(open_capture(str(path)), truth_rows(VERSIONS[version]))


@pytest.mark.parametrize(("link_type", "version"), [(containers.LINK_IPV4, 4), (containers.LINK_IPV6, 6)])
def test_link_of_one_version(tmp_path: Path, link_type: int, version: int) -> None:
    path = tmp_path / "capture"
    path.write_bytes(containers.write_pcap(frames_of(VERSIONS[version], layers.raw), link_type))
    assert_same_packets(open_capture(str(path)), truth_rows(VERSIONS[version]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TUNNELS)
def test_segments_in_each_tunnel_are_found(tmp_path: Path, name: str, version: int) -> None:
    kind, wrap_up, wrap_down, up, down = TUNNELS[name]
    path = tmp_path / "capture"
    client = VERSIONS[version][0].source
    frames = [
        Frame(s.time_ns, layers.ethernet((wrap_up if s.source == client else wrap_down)(s.packet())))
        for s in VERSIONS[version]
    ]
    path.write_bytes(containers.write_pcap(frames, containers.LINK_ETHERNET))
    capture = open_capture(str(path))
    assert_same_packets(capture, truth_rows(VERSIONS[version]))
    assert_same_packets(capture, tshark_rows(path))
    (connection,) = capture.connections
    assert (connection.tunnel, connection.tunnel_up, connection.tunnel_down) == (kind, up, down)


def test_the_guide_lists_what_is_read() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "captures.md").read_text(encoding="utf-8")
    numbers = set(re.findall(r"\d+", guide[guide.index("## Link types") : guide.index("`--filter` works")]))
    made = [*links.LINKS.values(), *links.LINKS_WITHOUT_TSHARK.values()]
    assert {str(link_type) for link_type, _ in made} | {"228", "229"} <= numbers
    assert all(f"`{name}`" in guide for name in connections.TUNNELS if name != "none")
    assert all(str(form) in guide for form in containers.Compression if form is not containers.Compression.NONE)


def _capture_of(path: Path, packets: list[tuple[int, bytes]]) -> str:
    frames = [Frame(time_ns, layers.ethernet(packet)) for time_ns, packet in packets]
    path.write_bytes(containers.write_pcap(frames, containers.LINK_ETHERNET))
    return str(path)


@pytest.mark.parametrize("words", [1, 3, 10])
def test_segments_behind_ipv4_options_are_found(tmp_path: Path, words: int) -> None:
    packets = [(s.time_ns, s.packet(ip_options=bytes([1]) * 4 * words)) for s in VERSIONS[4]]
    capture = open_capture(_capture_of(tmp_path / "capture", packets))
    assert_same_packets(capture, truth_rows(VERSIONS[4]))
    assert_same_packets(capture, tshark_rows(tmp_path / "capture"))


@pytest.mark.parametrize(
    "kinds",
    [
        (segments.HOP_BY_HOP,),
        (segments.DESTINATION_OPTIONS,),
        (segments.AUTHENTICATION,),
        (segments.HOP_BY_HOP, segments.ROUTING, segments.DESTINATION_OPTIONS, segments.AUTHENTICATION),
    ],
)
def test_ipv6_extension_headers(tmp_path: Path, kinds: tuple[int, ...]) -> None:
    def extended(segment: Segment) -> bytes:
        body, following = segment.tcp(), segments.PROTOCOL_TCP
        for kind in reversed(kinds):
            body, following = segments.ipv6_extension(kind, following, words=1) + body, kind
        return segments.ipv6(segment.source, segment.destination, following, body, hop_limit=segment.ttl)

    packets = [(s.time_ns, extended(s)) for s in VERSIONS[6]]
    assert_same_packets(open_capture(_capture_of(tmp_path / "capture", packets)), truth_rows(VERSIONS[6]))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_fragments_in_either_order_make_a_segment(tmp_path: Path, version: int, backwards: bool) -> None:
    """A segment counts when its last fragment has come, whichever that is."""
    packets, times = [], []
    for number, segment in enumerate(VERSIONS[version]):
        if len(segment.payload) < 100:
            pieces = [segment.packet()]
        elif version == 4:
            pieces = segments.ipv4_fragments(segment.packet(), [48, 400])
        else:
            pieces = segments.ipv6_fragments(segment.packet(), [48, 400], identification=number)
        ordered = pieces[::-1] if backwards else pieces
        packets += [(segment.time_ns + index * 1000, piece) for index, piece in enumerate(ordered)]
        times.append(segment.time_ns + (len(pieces) - 1) * 1000)
    capture = open_capture(_capture_of(tmp_path / "capture", packets))
    assert_same_packets(capture, truth_rows(VERSIONS[version], times))
    assert_same_packets(capture, tshark_rows(tmp_path / "capture"))


@pytest.mark.parametrize("version", VERSIONS)
def test_offload_leaves_ip_length_zero(tmp_path: Path, version: int) -> None:
    """Super-packets captured before segmentation: the length of the frame counts."""
    packets = [(s.time_ns, s.packet(zero_length=len(s.payload) > 0)) for s in VERSIONS[version]]
    assert_same_packets(open_capture(_capture_of(tmp_path / "capture", packets)), truth_rows(VERSIONS[version]))


def test_super_packet_of_64_kilobytes(tmp_path: Path) -> None:
    template = next(s for s in VERSIONS[4] if s.payload)
    big = Segment(
        template.time_ns, template.source, template.source_port, template.destination, template.destination_port,
        template.sequence, template.acknowledgement, template.flags, 100, bytes(65_000), template.options,
    )  # fmt: skip
    (connection,) = open_capture(_capture_of(tmp_path / "capture", [(big.time_ns, big.packet())])).connections
    assert connection.up.payload_bytes + connection.down.payload_bytes == 65_000


@pytest.mark.parametrize("version", VERSIONS)
def test_a_super_packet_above_64_kb_is_one_segment(tmp_path: Path, version: int) -> None:
    """Super-packets above 64 kB: IPv4 with a length of zero, IPv6 as a jumbogram (RFC 2675)."""
    template = next(s for s in VERSIONS[version] if s.payload)
    big = replace(template, payload=bytes(100_000))
    if version == 4:
        packet = big.packet(zero_length=True)
    else:
        body = big.tcp()
        jumbo = bytes((segments.PROTOCOL_TCP, 0, 0xC2, 4)) + (len(body) + 8).to_bytes(4, "big") + body
        packet = segments.ipv6(big.source, big.destination, segments.HOP_BY_HOP, jumbo, hop_limit=big.ttl, zero=True)
    path = tmp_path / "capture"
    capture = open_capture(_capture_of(path, [(big.time_ns, packet)]))
    (row,) = tshark_rows(path)
    assert row.payload_bytes == 100_000
    assert_same_packets(capture, [row])


@pytest.mark.parametrize("snap_length", [54, 58, 66, 68, 70, 96])
def test_lengths_of_cut_frames_come_from_their_headers(tmp_path: Path, snap_length: int) -> None:
    """Lengths come from the headers; options that were cut are not made up."""
    path = tmp_path / "capture"
    frames = frames_of(VERSIONS[4], layers.ethernet)
    path.write_bytes(containers.write_pcap(frames, containers.LINK_ETHERNET, snap_length=snap_length))
    whole = open_capture(_capture_of(tmp_path / "whole", [(s.time_ns, s.packet()) for s in VERSIONS[4]]))
    (connection,) = open_capture(str(path)).connections
    (expected,) = whole.connections
    assert connection.packets == expected.packets
    for flow, other in ((connection.up, expected.up), (connection.down, expected.down)):
        assert flow.payload_bytes == other.payload_bytes
        assert flow.stream_bytes == other.stream_bytes
        assert flow.initial_sequence_number == other.initial_sequence_number
