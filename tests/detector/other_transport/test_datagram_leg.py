"""A TCP connection at one end, UDP with its bytes at the other: found where it is so, and never where it only seems."""

from __future__ import annotations

import io
import json
import random
import socket
import struct
from pathlib import Path

import jsonschema
import pytest

import pepscope
from pepscope.captures.packets import Direction
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import DetectionResult, Evidence, Verdict
from reports.detection.page import write_page
from reports.detection.prose import explain
from reports.detection.table import write_table
from tests.captures.containers import Frame
from tests.captures.conversation import START_NS, Conversation, Endpoint
from tests.captures.udp_leg import (
    GATEWAY_END,
    MOBILE_END,
    REQUEST,
    SERVER,
    SPLIT_POINT,
    Transfer,
    capture_bytes,
    datagram,
    moved,
    opened,
    response,
)


def detect(tmp_path: Path, server: bytes, mobile: bytes, memory_bytes: int | None = None) -> DetectionResult:
    (tmp_path / "server.pcap").write_bytes(server)
    (tmp_path / "mobile.pcap").write_bytes(mobile)
    paths = [str(tmp_path / name) for name in ("server.pcap", "mobile.pcap")]
    result: DetectionResult = pepscope.detect(*paths, memory_bytes=memory_bytes)
    return result


def unrelated(seed: int = 99) -> list[Frame]:
    """A TCP connection of the mobile's own, so that its capture holds TCP and clocks are not related by it."""
    talk = Conversation(Endpoint("10.20.30.40", 33_000, 5), Endpoint("192.0.2.200", 443, 6)).handshake()
    content = random.Random(seed).randbytes(3000)
    talk.send(Direction.UP, 0, 0, content[:500]).wait(30).send(Direction.DOWN, 0, 500, content[500:1900])
    talk.wait(1).close(500, 1400)
    return [Frame(segment.time_ns, segment.packet()) for segment in talk.segments]


def voice() -> list[Frame]:
    """A UDP flow that both captures hold: it relates their clocks."""
    return [
        datagram(START_NS + n * 20_000_000, ("10.20.30.40", 4000), ("198.51.100.80", 4002), bytes([n]) * 160)
        for n in range(40)
    ]


def carried(result: DetectionResult) -> Evidence | None:
    found = [e for pair in result.pairs for e in pair.evidence if e.finding.startswith("transport-changed")]
    assert len(found) <= 1
    return found[0] if found else None


def test_split_with_a_udp_leg_is_split_tcp_by_identity(tmp_path: Path) -> None:
    transfer = Transfer()
    result = detect(tmp_path, capture_bytes(transfer.tcp()), capture_bytes(transfer.udp()))
    (pair,) = result.pairs
    assert pair.verdict is Verdict.SPLIT_TCP
    assert pair.probability[Verdict.SPLIT_TCP] > 0.95
    evidence = carried(result)
    assert evidence is not None
    assert evidence.method == "identity"
    assert evidence.finding == "transport-changed-relayed"
    assert evidence.numbers["down_offset_in_datagram_bytes"] == 12
    assert evidence.numbers["down_datagrams_equal"] == evidence.numbers["down_datagrams_compared"]
    mobile, server = pair.vantages
    assert (mobile.client, mobile.server, mobile.transport) == ("10.20.30.40:45000", "10.99.0.1:5555", "udp")
    assert (server.client, server.server, server.transport) == ("203.0.113.9:51000", "198.51.100.80:80", "tcp")
    assert 0.9 < pair.pairing_confidence < 1.0
    assert "UDP" in pair.reason


def test_the_order_of_captures_does_not_matter_and_the_json_shows_the_leg(tmp_path: Path) -> None:
    transfer = Transfer()
    result = detect(tmp_path, capture_bytes(transfer.udp()), capture_bytes(transfer.tcp()))
    (document,) = json.loads(result.to_json())["pairs"]
    assert document["verdict"] == "split-tcp"
    assert [vantage["transport"] for vantage in document["vantages"]] == ["udp", "tcp"]
    assert document["pairing"]["ground"] == "same payload, carried in UDP at one end"


def test_table_prose_page_and_frame_show_the_leg(tmp_path: Path) -> None:
    transfer = Transfer()
    result = detect(tmp_path, capture_bytes(transfer.tcp()), capture_bytes(transfer.udp()))
    table = io.StringIO()
    write_table(result, table, False)
    assert all(len(line) <= 80 or "/" in line for line in table.getvalue().splitlines())
    lines = " ".join(table.getvalue().split())
    assert "UDP 10.20.30.40:45000 > 10.99.0.1:5555 in" in lines
    assert "TCP 203.0.113.9:51000 > 198.51.100.80:80 in" in lines
    prose = " ".join(explain(json.loads(result.to_json())).split())
    assert "UDP here and TCP there" in prose
    assert "Paired by the same payload, carried in UDP at one end" in prose
    assert "The transport protocol changed on the way" in prose
    write_page(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<td>UDP</td>" in page
    frame = result.to_frame()
    assert list(frame[["transport_a", "transport_b"]].iloc[0]) == ["udp", "tcp"]
    jsonschema.validate(result.to_dict(), load_schema("detect-2"))


@pytest.mark.parametrize(
    "transfer",
    [
        Transfer(answer=response(4000)),
        Transfer(answer=response(3_000_000), per_segment_ms=0.2),
        Transfer(header=lambda *_: b""),
        Transfer(header=lambda number, *_: struct.pack(">Q", number) * 5, trailer=b"0123456789abcdef"),
        Transfer(header=lambda number, offset, _: struct.pack(">HI", number & 0xFFFF, offset)),
        Transfer(datagram_bytes=500),
        Transfer(segment_bytes=536, datagram_bytes=1350),
        Transfer(request=b""),
    ],
    ids=["short", "long", "no-header", "long-header", "offsets", "small", "mss-536", "download-only"],
)
def test_any_framing_is_derived_from_the_match(tmp_path: Path, transfer: Transfer) -> None:
    result = detect(tmp_path, capture_bytes(transfer.tcp()), capture_bytes(unrelated(), transfer.udp()))
    evidence = carried(result)
    assert evidence is not None
    expected = len(transfer.header(1, 0, Direction.DOWN))
    assert evidence.numbers["down_offset_in_datagram_bytes"] == expected
    assert evidence.numbers["down_datagrams_located"] >= 3
    assert {pair.verdict for pair in result.pairs if len(pair.vantages) == 2} == {Verdict.SPLIT_TCP}


def test_losses_repeats_and_short_snap_lengths_hide_nothing(tmp_path: Path) -> None:
    transfer = Transfer(answer=response(600_000))
    for udp in (transfer.udp(lossy=7), transfer.udp(twice=5)):
        assert carried(detect(tmp_path, capture_bytes(transfer.tcp()), capture_bytes(udp))) is not None
    snapped = [capture_bytes(frames, snap_length=160) for frames in (transfer.tcp(), transfer.udp())]
    server, mobile = snapped
    assert carried(detect(tmp_path, server, mobile)) is not None


def test_an_upload_over_udp_is_found_from_the_server(tmp_path: Path) -> None:
    data = response(90_000, seed=5)
    talk = opened()
    udp = []
    for number, offset in enumerate(range(0, len(data), 1400)):
        piece = data[offset : offset + 1400]
        udp.append(datagram(talk.now_ns - 30_000_000, MOBILE_END, GATEWAY_END, struct.pack(">I", number) + piece))
        talk.send(Direction.UP, offset, 0, piece).wait(2)
    talk.send(Direction.DOWN, 0, len(data)).close(len(data), 0)
    tcp = [Frame(segment.time_ns, segment.packet()) for segment in talk.segments]
    result = detect(tmp_path, capture_bytes(tcp), capture_bytes(udp))
    assert carried(result) is not None
    assert result.pairs[0].vantages[0].client == "10.20.30.40:45000"


def test_one_leg_after_the_other_is_a_proxy(tmp_path: Path) -> None:
    transfer = Transfer()
    late = transfer.udp(start_ms=2500.0)
    unknown = carried(detect(tmp_path, capture_bytes(transfer.tcp()), capture_bytes(late)))
    assert unknown is not None
    assert unknown.finding == "transport-changed"
    result = detect(tmp_path, capture_bytes(transfer.tcp(), voice()), capture_bytes(late, voice()))
    stored = carried(result)
    assert stored is not None
    assert stored.finding == "transport-changed-stored"
    assert result.pairs[0].verdict is Verdict.TCP_PROXY


def test_clocks_are_related_by_udp_that_crosses_whole(tmp_path: Path) -> None:
    transfer = Transfer()
    mobile = capture_bytes(moved(transfer.udp() + voice(), 5000.0))
    assert carried(detect(tmp_path, capture_bytes(transfer.tcp(), voice()), mobile)) is not None
    late = capture_bytes(moved(transfer.udp(), 5000.0), voice())
    assert_not_carried(detect(tmp_path, capture_bytes(transfer.tcp(), voice()), late))


def quic_like(seed: int = 3) -> list[Frame]:
    """An encrypted flow of its own beside the connection."""
    noise = random.Random(seed)
    mobile, server = ("10.20.30.40", 50_000), ("192.0.2.53", 443)
    return [
        datagram(
            START_NS + n * 1_000_000,
            mobile if n % 4 == 0 else server,
            server if n % 4 == 0 else mobile,
            noise.randbytes(1200),
        )
        for n in range(300)
    ]


def dns_like() -> list[Frame]:
    """Queries and answers that name the connection's server, one flow each and all in one."""
    frames = []
    for n in range(200):
        query = struct.pack(">HHHHHH", n, 0x100, 1, 0, 0, 0) + b"\x06server\x07example\0\0\1\0\1"
        host, resolver = ("10.20.30.40", 40_000 + n % 3), ("192.0.2.53", 53)
        frames.append(datagram(START_NS + n * 1_000_000, host, resolver, query))
        frames.append(
            datagram(START_NS + n * 1_000_000 + 500_000, resolver, host, query + b"\xc0\x0c\0\1\0\1" + bytes(10))
        )
    return frames


def vpn_like() -> list[Frame]:
    """The connection's own segments, encrypted."""
    key = random.Random(8)
    return [
        datagram(frame.time_ns + 40_000_000, GATEWAY_END, MOBILE_END, bytes(b ^ key.randrange(256) for b in frame.data))
        for frame in Transfer(answer=response(40_000)).tcp()
    ]


def certificate_like() -> list[Frame]:
    """DTLS beside TLS: the same certificate of 3 kB, and nothing else in common."""
    noise, shared = random.Random(21), response(120_000)[200:3400]
    pieces = [shared[at : at + 900] for at in range(0, len(shared), 900)] + [noise.randbytes(1100) for _ in range(80)]
    up = [datagram(START_NS + 21_000_000, MOBILE_END, GATEWAY_END, noise.randbytes(200))]
    return up + [
        datagram(START_NS + 60_000_000 + n * 1_000_000, GATEWAY_END, MOBILE_END, b"\x16\xfe\xfd" + piece)
        for n, piece in enumerate(pieces)
    ]


@pytest.mark.parametrize("beside", [quic_like, dns_like, vpn_like, certificate_like])
def test_other_udp_never_pairs(tmp_path: Path, beside: object) -> None:
    assert callable(beside)
    server = capture_bytes(Transfer().tcp())
    result = detect(tmp_path, server, capture_bytes(unrelated(), beside()))
    assert carried(result) is None
    assert all(len(pair.vantages) == 1 for pair in result.pairs)
    assert_not_carried(detect(tmp_path, server, capture_bytes(beside())))


def assert_not_carried(result: DetectionResult) -> None:
    """The connection beside UDP that does not carry it is inconclusive, and the reason says what is there instead."""
    (pair,) = result.pairs
    assert (pair.verdict, len(pair.vantages)) == (Verdict.INCONCLUSIVE, 1)
    assert "The other capture holds no TCP but" in pair.reason
    assert "UDP datagrams in" in pair.reason


def test_the_same_object_over_udp_at_another_time_is_another_transfer(tmp_path: Path) -> None:
    transfer = Transfer()
    for seconds in (30.0, -30.0):
        mobile = capture_bytes(unrelated(), moved(transfer.udp(), seconds))
        assert carried(detect(tmp_path, capture_bytes(transfer.tcp()), mobile)) is None


def test_the_same_object_asked_for_otherwise_is_another_transfer(tmp_path: Path) -> None:
    over_udp = Transfer(request=b"\x00\x01object-4711\x00octet\x00blksize\x001200\x00")
    mobile = capture_bytes(unrelated(), over_udp.udp())
    assert carried(detect(tmp_path, capture_bytes(Transfer().tcp()), mobile)) is None


def test_a_host_that_sends_the_same_by_both_is_not_split(tmp_path: Path) -> None:
    transfer = Transfer()
    server = capture_bytes(transfer.tcp(), transfer.udp())
    mobile = capture_bytes(unrelated(), moved(transfer.udp(), 0.04))
    assert carried(detect(tmp_path, server, mobile)) is None
    other_ends = [datagram(f.time_ns, ("198.51.100.80", 514), ("192.0.2.1", 514), f.data[28:]) for f in transfer.udp()]
    assert carried(detect(tmp_path, capture_bytes(transfer.tcp(), other_ends), mobile)) is None


def test_monotonous_content_pairs_with_nothing(tmp_path: Path) -> None:
    transfer = Transfer(request=b"", answer=b"\0" * 60_000 + b"ab" * 20_000)
    mobile = capture_bytes(unrelated(), transfer.udp())
    assert carried(detect(tmp_path, capture_bytes(transfer.tcp()), mobile)) is None


def test_segments_inside_udp_are_a_tunnel_and_no_split(tmp_path: Path) -> None:
    def segment(number: int, offset: int, direction: Direction) -> bytes:
        sender = SPLIT_POINT if direction is Direction.UP else SERVER
        sequence = (sender.initial_sequence_number + 1 + offset) & 0xFFFFFFFF
        return struct.pack(">HBBIHH", 7, direction, 0, sequence, 500, number & 0xFFFF)

    transfer = Transfer(header=segment)
    result = detect(tmp_path, capture_bytes(transfer.tcp()), capture_bytes(transfer.udp()))
    (pair,) = result.pairs
    assert pair.verdict is Verdict.INCONCLUSIVE
    assert [e.finding for e in pair.evidence if e.method == "identity"] == ["segments-in-udp"]
    assert "tunnel" in pair.reason


def test_whole_packets_inside_udp_are_compared_as_packets(tmp_path: Path) -> None:
    frames = Transfer().tcp()
    # The tunnel takes 30 ms each way: what the server sends arrives later, what it gets left earlier.
    way = {True: 30_000_000, False: -30_000_000}
    server = socket.inet_aton(SERVER.address)
    tunnel = sorted(
        (
            datagram(
                frame.time_ns + way[frame.data[12:16] == server], GATEWAY_END, MOBILE_END, b"\xbe\xef\0\0" + frame.data
            )
            for frame in frames
        ),
        key=lambda frame: frame.time_ns,
    )
    result = detect(tmp_path, capture_bytes(frames), capture_bytes(tunnel))
    (pair,) = result.pairs
    assert [vantage.transport for vantage in pair.vantages] == ["tcp", "tcp"]
    # All acknowledgements that left arrived, and nothing else did.
    assert "same-packets" in {item.finding for item in pair.evidence}
    assert pair.verdict is Verdict.REGULAR
    connection = next(iter(pepscope.inspect(str(tmp_path / "mobile.pcap")).connections))
    assert connection.tunnel == "udp"


def test_bounded_memory_gives_the_same(tmp_path: Path) -> None:
    transfer = Transfer(answer=response(400_000))
    server, mobile = capture_bytes(transfer.tcp()), capture_bytes(unrelated(), transfer.udp())
    whole, parts = (detect(tmp_path, server, mobile, memory_bytes=size).to_dict() for size in (1 << 30, 1 << 20))
    assert whole == parts
    assert carried(detect(tmp_path, server, mobile)) is not None
    assert REQUEST in server
