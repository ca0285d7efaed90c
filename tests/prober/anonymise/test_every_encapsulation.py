"""What the capture reader reads, anonymising keeps: every link layer, tunnel and container, and their nestings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.captures.files.frames import Frame as CapturedFrame
from pepscope.captures.files.frames import Header, HeaderKind, read_frames
from prober.anonymise.capture_rewriting import CaptureRewriter, RewritingCounts
from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from tests.captures import containers, layers, links, scenarios, segments
from tests.captures.containers import Compression, Frame, Interface
from tests.captures.layers import Wrap
from tests.captures.segments import Segment
from tests.oracles.columns import assert_same_packets
from tests.oracles.test_layers import TUNNELS
from tests.oracles.tshark import tshark_rows

VERSIONS = {4: scenarios.plain_download().segments, 6: scenarios.ipv6().segments}
KEY = SecretKey(b"s" * 32)

#: Every hardware address that `layers` puts into frames.
HARDWARE = re.compile(rb"\x02\0\0\0\0[\1-\4]")
#: Columns of connections that anonymising changes.
CHANGED = {"client_address", "server_address", "tunnel_up", "tunnel_down"}


def rewritten(source: Path, target: Path) -> RewritingCounts:
    rewriter = CaptureRewriter(KEY, CryptoPan(KEY.derived("addresses")), HeadHider(KEY))
    rewriter.rewrite(source, target)
    return rewriter.counts


def assert_same_connections(source: Path, target: Path) -> None:
    """All that verdicts rest on is as before: summaries, counts, and every column of packets but payload hashes."""
    before, after = open_capture(str(source)), open_capture(str(target))
    assert after.warnings == before.warnings
    assert {k: v for k, v in after.counts.items() if k != "bytes_read"} == {
        k: v for k, v in before.counts.items() if k != "bytes_read"
    }
    was, is_now = before.connection_columns(), after.connection_columns()
    for name in was.keys() - CHANGED:
        assert was[name].tolist() == is_now[name].tolist(), name
    for index in range(len(before.connections)):
        one, other = before.packets(index), after.packets(index)
        assert one.time_ns.tolist() == other.time_ns.tolist()
        assert one.sequence_offset.tolist() == other.sequence_offset.tolist()
        assert one.payload_bytes.tolist() == other.payload_bytes.tolist()


def assert_anonymised(data: bytes, directory: Path, frames: int) -> Path:
    source, target = directory / "source", directory / "target"
    source.write_bytes(data)
    counts = rewritten(source, target)
    assert (counts.kept, counts.left_out, counts.cut_bytes) == (frames, 0, 0)
    assert_same_connections(source, target)
    return target


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", links.LINKS)
def test_every_link_layer(name: str, version: int, tmp_path: Path):
    link_type, wrap = links.LINKS[name]
    frames = [Frame(s.time_ns, wrap(s.packet())) for s in VERSIONS[version]]
    target = assert_anonymised(containers.write_pcap(frames, link_type), tmp_path, len(frames))
    assert_same_packets(open_capture(str(target)), tshark_rows(target))
    assert HARDWARE.search(b"".join(frame.data for frame in containers.read_capture(target).frames)) is None


@pytest.mark.parametrize("name", links.LINKS_WITHOUT_TSHARK)
def test_every_link_layer_that_tshark_does_not_know(name: str, tmp_path: Path):
    link_type, wrap = links.LINKS_WITHOUT_TSHARK[name]
    frames = [Frame(s.time_ns, wrap(s.packet())) for s in VERSIONS[4]]
    target = assert_anonymised(containers.write_pcap(frames, link_type), tmp_path, len(frames))
    assert HARDWARE.search(b"".join(frame.data for frame in containers.read_capture(target).frames)) is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TUNNELS)
def test_packets_in_every_tunnel_are_anonymised(name: str, version: int, tmp_path: Path):
    _, wrap_up, wrap_down, _, _ = TUNNELS[name]
    client = VERSIONS[version][0].source
    frames = [
        Frame(s.time_ns, layers.ethernet((wrap_up if s.source == client else wrap_down)(s.packet())))
        for s in VERSIONS[version]
    ]
    target = assert_anonymised(containers.write_pcap(frames, containers.LINK_ETHERNET), tmp_path, len(frames))
    assert_same_packets(open_capture(str(target)), tshark_rows(target))


@pytest.mark.parametrize(
    "kinds",
    [
        (segments.HOP_BY_HOP, segments.ROUTING, segments.DESTINATION_OPTIONS, segments.AUTHENTICATION),
        (segments.AUTHENTICATION,),
    ],
)
def test_ipv6_extension_headers(kinds: tuple[int, ...], tmp_path: Path):
    def extended(segment: Segment) -> bytes:
        body, following = segment.tcp(), segments.PROTOCOL_TCP
        for kind in reversed(kinds):
            body, following = segments.ipv6_extension(kind, following, words=1) + body, kind
        return segments.ipv6(segment.source, segment.destination, following, body, hop_limit=segment.ttl)

    frames = [Frame(s.time_ns, extended(s)) for s in VERSIONS[6]]
    target = assert_anonymised(containers.write_pcap(frames, containers.LINK_RAW), tmp_path, len(frames))
    assert_same_packets(open_capture(str(target)), tshark_rows(target))


@pytest.mark.parametrize(("order", "resolution"), [*itertools.product("<>", (6, 9, 0x80 | 20))])
@pytest.mark.parametrize("simple_blocks", [False, True])
def test_pcapng_is_anonymised_and_loses_comments_and_unknown_blocks(
    order: containers.ByteOrder, resolution: int, simple_blocks: bool, tmp_path: Path
):
    interfaces = [Interface(1, resolution), Interface(101, 9, 7), Interface(276, 0x80 | 30)]
    wraps = [layers.ethernet_padded, layers.raw, layers.linux_sll2]
    used = 1 if simple_blocks else 3
    frames = [Frame(s.time_ns, wraps[at % used](s.packet()), at % used) for at, s in enumerate(VERSIONS[4])]
    data = containers.write_pcapng(frames, interfaces, order=order, simple_blocks=simple_blocks, unknown_blocks=True)
    target = assert_anonymised(data, tmp_path, len(frames))
    assert b"nothing to see here"[:4] not in target.read_bytes()
    assert b"a comment" not in target.read_bytes()


def test_snoop_is_anonymised_and_stays_snoop(tmp_path: Path):
    frames = [Frame(s.time_ns, layers.ethernet(s.packet())) for s in VERSIONS[4]]
    target = assert_anonymised(containers.write_snoop(frames, containers.SNOOP_ETHERNET), tmp_path, len(frames))
    assert target.read_bytes().startswith(b"snoop")
    assert_same_packets(open_capture(str(target)), tshark_rows(target))


@pytest.mark.parametrize("compression", Compression)
def test_captures_of_every_compression_are_anonymised(compression: Compression, tmp_path: Path):
    frames = [Frame(s.time_ns, layers.ethernet(s.packet())) for s in VERSIONS[4]]
    data = containers.compress(containers.write_pcap(frames, containers.LINK_ETHERNET), compression)
    assert_anonymised(data, tmp_path, len(frames))


#: Tunnels that go into one another: each makes an IP packet of an IP packet.
ENVELOPES: dict[str, Wrap] = {
    **{name: wrap for name, (_, wrap, _, _, _) in TUNNELS.items()},
    "unknown_udp": lambda packet: segments.ipv4(
        "192.0.2.10", "192.0.2.20", 17, layers.udp(7000, 7001, b"HEADER" + packet)
    ),
}
KINDS: list[Callable[[list[Frame], int], bytes]] = [
    lambda frames, link: containers.write_pcap(frames, link, order=">", nanoseconds=False),
    lambda frames, link: containers.write_pcap(frames, link),
    lambda frames, link: containers.write_pcapng(frames, [Interface(link, 9)], unknown_blocks=True),
]


def top_level(frame: CapturedFrame) -> list[Header]:
    parts = {
        HeaderKind.GRE_KEY,
        HeaderKind.GTP_U_EXTENSION,
        HeaderKind.L2TP_FIELDS,
        HeaderKind.CAPTURE_FIELDS,
        HeaderKind.TCP_OPTION,
        HeaderKind.TCP_OPTIONS_END,
    }
    return [header for header in frame.headers if header.kind not in parts]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    version=st.sampled_from((4, 6)),
    envelopes=st.lists(st.sampled_from(sorted(ENVELOPES)), max_size=4),
    link=st.sampled_from(sorted(links.LINKS)),
    kind=st.sampled_from(KINDS),
    compression=st.sampled_from(Compression),
)
def test_tunnels_in_tunnels_are_anonymised(version, envelopes, link, kind, compression):
    link_type, wrap = links.LINKS[link]
    frames = []
    for segment in VERSIONS[version][:8]:
        packet = segment.packet()
        for name in envelopes:
            # Unknown tunnels are looked for TCP over IP only.
            if name != "unknown_udp" or packet == segment.packet():
                packet = ENVELOPES[name](packet)
        frames.append(Frame(segment.time_ns, wrap(packet)))
    with TemporaryDirectory() as directory:
        target = assert_anonymised(
            containers.compress(kind(frames, link_type), compression), Path(directory), len(frames)
        )
        for frame in read_frames(str(target)):
            stacked = top_level(frame)
            assert [header.offset for header in stacked] == [
                0,
                *itertools.accumulate(header.length for header in stacked[:-1]),
            ]
            assert stacked[-1].kind is HeaderKind.TCP


def test_kinds_of_headers_are_those_of_the_decoder():
    assert [kind.name for kind in HeaderKind] == _core.header_kinds()


def test_a_capture_takes_one_frame_for_each_of_its_own(tmp_path: Path):
    path = tmp_path / "capture"
    path.write_bytes(containers.write_pcap([Frame(1, VERSIONS[4][0].packet())], containers.LINK_RAW))
    frames = read_frames(str(path))
    with pytest.raises(ValueError, match="must have 1 entries, one for each frame, got 0"):
        frames.with_frames([])
    assert frames.with_frames([frames[0].data]) == path.read_bytes()
