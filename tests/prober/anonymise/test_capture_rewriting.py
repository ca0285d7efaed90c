"""Captures with everyone hidden: nothing of the original stays, checksums are right, every layer is looked into."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.detection import detect
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Verdict
from prober.anonymise.capture_rewriting import CaptureRewriter
from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from prober.errors import ArchiveError
from tests.captures import containers, layers, links, scenarios, udp_leg
from tests.captures.containers import Frame
from tests.captures.segments import ipv4, ipv4_fragments

KEY = SecretKey(b"s" * 32)
UP, DOWN = Direction.UP, Direction.DOWN


def rewriter() -> CaptureRewriter:
    return CaptureRewriter(KEY, CryptoPan(KEY.derived("addresses")), HeadHider(KEY))


def rewritten(tmp_path: Path, data: bytes) -> tuple[Path, CaptureRewriter]:
    source, target, used = tmp_path / "source.pcap", tmp_path / "target.pcap", rewriter()
    source.write_bytes(data)
    used.rewrite(source, target)
    return target, used


WRAPPED = {
    **{
        name: links.LINKS[name]
        for name in (
            "ethernet",
            "vlan",
            "vn_tag",
            "qinq",
            "pppoe",
            "null",
            "loop",
            "raw",
            "linux_sll",
            "nflog",
            "pktap",
            "fddi",
        )
    },
    "ethernet_padded": (containers.LINK_ETHERNET, layers.ethernet_padded),
    "linux_sll2": links.LINKS["linux_sll2"],
    "gtp_u": (containers.LINK_RAW, lambda packet: layers.gtp_u(packet, tunnel=0x1234ABCD)),
    "gtp_u_extended": (
        containers.LINK_ETHERNET,
        lambda packet: layers.ethernet(layers.gtp_u(packet, tunnel=0x1234ABCD, extensions=True, sequence=True)),
    ),
    "gre": (containers.LINK_RAW, lambda packet: layers.gre(packet, key=0x1234ABCD, with_checksum=True)),
    "gre_ethernet": (containers.LINK_RAW, lambda packet: layers.gre_ethernet(packet, key=0x1234ABCD)),
    "vxlan": (containers.LINK_RAW, lambda packet: layers.vxlan(packet, network=0x12AB34)),
    "geneve": (
        containers.LINK_RAW,
        lambda packet: layers.geneve(packet, network=0x12AB34, options=b"\x01\x02\x03\x02SECRET-H"),
    ),
    "erspan": (containers.LINK_RAW, layers.erspan),
    "l2tp_v2": (
        containers.LINK_RAW,
        lambda packet: layers.l2tp_v2(packet, identifier=0x1234ABCD, all_fields=True),
    ),
    "l2tp_v3": (containers.LINK_RAW, lambda packet: layers.l2tp_v3(packet, session=0x1234ABCD, cookie=b"SECRET-H")),
    "ip_in_ip": (containers.LINK_RAW, layers.ip_in_ip),
    "ip_in_ipv6": (containers.LINK_RAW, layers.ip_in_ipv6),
    "unknown_tunnel": (
        containers.LINK_RAW,
        lambda packet: ipv4("192.0.2.10", "192.0.2.20", 17, layers.udp(7000, 7001, b"SECRET-HEADER" + packet)),
    ),
}

#: Addresses, hardware addresses and identifiers of everything above.
NAMED = [
    *(socket.inet_aton(address) for address in ("10.1.2.3", "192.0.2.80", "192.0.2.10", "192.0.2.20")),
    socket.inet_pton(socket.AF_INET6, "2001:db8::a"),
    bytes.fromhex("020000000001"),
    bytes.fromhex("020000000002"),
    bytes.fromhex("1234ABCD"),
    b"SECRET-H",
]


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_layer_is_looked_into(name: str, order: containers.ByteOrder, tmp_path: Path):
    link_type, wrap = WRAPPED[name]
    scenario = scenarios.plain_download()
    frames = [Frame(segment.time_ns, wrap(segment.packet())) for segment in scenario.segments]
    target, used = rewritten(tmp_path, containers.write_pcap(frames, link_type, order=order))
    data = target.read_bytes()
    assert used.counts.kept == len(frames)
    assert used.counts.left_out == used.counts.cut_bytes == 0
    assert not [named for named in NAMED if named in data]
    payload = b"".join(segment.payload for segment in scenario.segments)
    assert not any(payload[at : at + 8] in data for at in range(0, len(payload) - 8, 3))
    before, after = (open_capture(str(path)) for path in (tmp_path / "source.pcap", target))
    (was,), (is_now,) = before.connections, after.connections
    assert (is_now.packets, is_now.tunnel, is_now.close) == (was.packets, was.tunnel, was.close)
    assert is_now.down.stream_bytes == was.down.stream_bytes
    assert (is_now.down.syn_options, is_now.up.initial_sequence_number) == (
        was.down.syn_options,
        was.up.initial_sequence_number,
    )
    assert is_now.client_address != was.client_address
    assert is_now.tunnel_up != was.tunnel_up or was.tunnel_up == 0


@pytest.mark.parametrize("scenario", [scenarios.plain_download(), scenarios.ipv6(), scenarios.data_both_ways()])
def test_checksums_are_right(scenario, tmp_path: Path):
    frames = [Frame(segment.time_ns, layers.ethernet(segment.packet())) for segment in scenario.segments]
    target, _ = rewritten(tmp_path, containers.write_pcap(frames, containers.LINK_ETHERNET))
    seen = 0
    for frame in containers.read_capture(target).frames:
        packet = dpkt.ethernet.Ethernet(frame.data).data
        written = packet.data.sum
        if isinstance(packet, dpkt.ip.IP):
            header = packet.sum
            packet.sum = 0
            packet.data.sum = 0
            bytes(packet)
            assert packet.sum == header
            assert dpkt.ip.IP(bytes(packet)).data.sum == written
        else:
            body = bytearray(bytes(packet.data))
            body[16:18] = b"\0\0"
            pseudo = packet.src + packet.dst + len(body).to_bytes(4, "big") + bytes((0, 0, 0, 6))
            assert dpkt.in_cksum(pseudo + bytes(body)) == written
        seen += 1
    assert seen == len(frames)


def test_what_is_not_understood_is_left_out(tmp_path: Path):
    segment = scenarios.plain_download().segments[5].packet()
    icmp = ipv4("192.0.2.1", "10.1.2.3", 1, b"\x0b\0\0\0\0\0\0\0" + segment[:28])
    arp = layers.ethernet(bytes(28), kind=0x0806)
    frames = [
        Frame(1, layers.ethernet(segment)),
        Frame(2, layers.ethernet(icmp)),
        Frame(3, arp),
        *(Frame(4, layers.ethernet(part)) for part in ipv4_fragments(icmp, [16])),
        Frame(5, layers.ethernet(segment)[:49]),
        Frame(6, b""),
    ]
    _, used = rewritten(tmp_path, containers.write_pcap(frames, containers.LINK_ETHERNET))
    assert used.counts.kept == 1
    assert used.counts.left_out == len(frames) - 1


def test_other_files_are_refused_in_a_sentence(tmp_path: Path):
    for data, said in ((b"", "is empty"), (b"GIF89a" + bytes(60), "neither pcap nor pcapng")):
        with pytest.raises(ArchiveError, match=said):
            rewritten(tmp_path, data)


def test_frames_of_an_unknown_link_layer_type_are_left_out(tmp_path: Path):
    target, used = rewritten(tmp_path, containers.write_pcap([Frame(1, b"SECRET-FRAME")], 147))
    assert used.counts.left_out == 1
    assert b"SECRET" not in target.read_bytes()


def test_identifying_options_are_hidden(tmp_path: Path):
    segments = scenarios.plain_download().segments
    cookie = bytes((34, 10)) + b"COOKIE99" + bytes((30, 6)) + b"JOIN" + bytes((1, 1)) + bytes((2, 4, 5, 180)) + bytes(2)
    frames = [Frame(segment.time_ns, replace(segment, options=cookie).packet()) for segment in segments]
    target, _ = rewritten(tmp_path, containers.write_pcap(frames, containers.LINK_RAW))
    data = target.read_bytes()
    assert b"COOKIE99" not in data
    assert b"JOIN" not in data
    (connection,) = open_capture(str(target)).connections
    assert connection.up.maximum_segment_size == 1460


@pytest.mark.parametrize("trailer", [b"", b"CRC!"])
def test_a_stream_carried_in_datagrams_is_still_found_there(trailer: bytes, tmp_path: Path):
    transfer = udp_leg.Transfer(trailer=trailer)
    used, paths = rewriter(), []
    for name, frames in (("server", transfer.tcp()), ("mobile", transfer.udp())):
        source, target = tmp_path / f"{name}.pcap", tmp_path / f"{name}-hidden.pcap"
        source.write_bytes(udp_leg.capture_bytes(frames))
        used.rewrite(source, target)
        paths += [str(source), str(target)]
    before, after = detect(paths[0], paths[2]), detect(paths[1], paths[3])
    assert before.pairs[0].verdict is Verdict.SPLIT_TCP
    assert after.pairs[0].verdict is before.pairs[0].verdict
    assert [item.finding for item in after.pairs[0].evidence] == [item.finding for item in before.pairs[0].evidence]


def test_ports_that_are_used_again_begin_another_stream(tmp_path: Path):
    scenario = scenarios.port_reuse()
    frames = [Frame(segment.time_ns, segment.packet()) for segment in scenario.segments]
    target, _ = rewritten(tmp_path, containers.write_pcap(frames, containers.LINK_RAW))
    before, after = (open_capture(str(path)) for path in (tmp_path / "source.pcap", target))
    assert [c.down.stream_bytes for c in after.connections] == [c.down.stream_bytes for c in before.connections]


FRAMES = [
    wrap(segment.packet())
    for _, wrap in WRAPPED.values()
    for segment in (*scenarios.plain_download().segments[:6], scenarios.ipv6().segments[3])
]


@given(
    st.sampled_from(FRAMES),
    st.sampled_from(sorted({link_type for link_type, _ in WRAPPED.values()})),
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=6),
    st.integers(0, 2000),
)
def test_damaged_frames_are_kept_or_left_out_and_never_an_error(frame, link_type, changes, length):
    damaged = bytearray(frame)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    data = containers.write_pcap([Frame(1, bytes(damaged[:length])), Frame(2, frame)], link_type)
    used = rewriter()
    with TemporaryDirectory() as directory:
        source, target = Path(directory) / "source", Path(directory) / "target"
        source.write_bytes(data)
        used.rewrite(source, target)
        assert used.counts.kept + used.counts.left_out == 2
        assert len(containers.read_capture(target).frames) == used.counts.kept
