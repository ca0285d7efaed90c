"""Round trips besides TCP, beside what tshark pairs: ICMP echo, DNS, and QUIC's connection IDs."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.references import ReferenceKind
from tests.captures.containers import LINK_ETHERNET, LINK_RAW, Frame, write_pcap
from tests.captures.conversation import START_NS
from tests.captures.layers import ethernet, udp, vlan
from tests.captures.segments import PROTOCOL_UDP, internet_checksum, ipv4, ipv6

ONE_ENDED = Path(__file__).parents[1] / "one_ended"
CLIENT, SERVER = "192.0.2.33", "198.51.100.80"
CLIENT_6, SERVER_6 = "2001:db8::33", "2001:db8:1::80"
ICMP, ICMP_6 = 1, 58


def echo(is_reply: bool, identifier: int, sequence: int, data: bytes, *, version: int = 4) -> bytes:
    """An IP packet with an echo message."""
    kind = {(4, False): 8, (4, True): 0, (6, False): 128, (6, True): 129}[version, is_reply]
    head = struct.pack(">BBHHH", kind, 0, 0, identifier, sequence)
    ends = (CLIENT, SERVER) if version == 4 else (CLIENT_6, SERVER_6)
    source, destination = ends[::-1] if is_reply else ends
    if version == 6:
        return ipv6(source, destination, ICMP_6, head + data)
    checksum = internet_checksum(head + data)
    return ipv4(source, destination, ICMP, head[:2] + struct.pack(">H", checksum) + head[4:] + data)


def dns(is_answer: bool, identifier: int, port: int) -> bytes:
    """A query for www.example, or an answer without addresses."""
    flags = 0x8180 if is_answer else 0x0100
    message = struct.pack(">HHHHHH", identifier, flags, 1, 0, 0, 0) + b"\3www\7example\0\0\1\0\1"
    if is_answer:
        return ipv4(SERVER, CLIENT, PROTOCOL_UDP, udp(53, port, message))
    return ipv4(CLIENT, SERVER, PROTOCOL_UDP, udp(port, 53, message))


def tshark_times_ns(path: Path, response_time: str, shown: str, per_second: float) -> list[int]:
    """Response times that tshark gives, as integers."""
    command = ["tshark", "-n", "-r", str(path), "-Y", shown, "-T", "fields", "-e", response_time]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [round(float(line) * 1e9 / per_second) for line in output.split()]


def tshark_frames(path: Path, asked: str, shown: str) -> set[tuple[int, int]]:
    """Frames of request and answer that tshark takes for a pair."""
    command = ["tshark", "-n", "-r", str(path), "-Y", shown, "-T", "fields", "-e", asked, "-e", "frame.number"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = (line.split("\t") for line in output.splitlines())
    return {(int(request), int(answer)) for request, answer in lines if request}


@pytest.fixture
def pinged(tmp_path: Path) -> Path:
    """Pings and queries of random round trips, some lost, interleaved."""
    generator = random.Random(5)
    frames = []
    for number in range(250):  # of a host, 256 of each kind are kept
        start_ns = START_NS + number * 7_000_000
        back_ns = start_ns + generator.randrange(1_000, 400_000_000)
        is_lost = generator.random() < 0.1
        version = generator.choice((4, 6))
        data = generator.randbytes(generator.choice((0, 16, 56)))
        wrap = generator.choice((ethernet, vlan))
        ping = [echo(back, 1 + number % 3, number, data, version=version) for back in (False, True)]
        identifier = generator.randrange(65536)
        query = [dns(back, identifier, 20_000 + number) for back in (False, True)]
        for packets in (ping, query):
            frames.append(Frame(start_ns, wrap(packets[0])))
            if not is_lost:
                frames.append(Frame(back_ns, wrap(packets[1])))
    path = tmp_path / "pinged.pcap"
    path.write_bytes(write_pcap(sorted(frames, key=lambda frame: frame.time_ns), LINK_ETHERNET, snap_length=80))
    return path


@pytest.mark.parametrize(
    ("kind", "field", "asked", "shown", "per_second"),
    [
        (ReferenceKind.ICMP_ECHO, "icmp.resptime", "icmp.resp_to", "icmp.type == 0", 1e3),
        (ReferenceKind.DNS, "dns.time", "dns.response_to", "dns.time && dns.flags.response == 1", 1.0),
    ],
)
def test_round_trips_are_those_of_tshark(
    pinged: Path, kind: ReferenceKind, field: str, asked: str, shown: str, per_second: float
) -> None:
    references = open_capture(str(pinged), tcp_needed=False).references()
    ours = references.of(references.kind == kind)
    expected = tshark_times_ns(pinged, field, shown, per_second)
    if kind is ReferenceKind.ICMP_ECHO:  # tshark times no ICMPv6
        ours = ours.of(ours.host_address[:, 0] == 0)
    assert len(expected) > 100
    # tshark gives a double of milliseconds with three decimals.
    assert np.allclose(sorted(ours.round_trip_ns), sorted(expected), atol=1000)
    assert not ours.repeated_ns.any()
    pairs = zip(ours.asked_frame.tolist(), ours.answered_frame.tolist(), strict=True)
    assert set(pairs) == tshark_frames(pinged, asked, shown)


def udp_rows(path: Path) -> list[list[str]]:
    """Stream, time, source address and connection IDs of the QUIC datagrams that tshark finds."""
    fields = ("udp.stream", "frame.time_epoch", "ip.src", "quic.dcid", "quic.scid")
    command = ["tshark", "-n", "-r", str(path), "-Y", "quic", "-T", "fields", "-E", "separator=;"]
    for field in fields:
        command += ["-e", field]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split(";") for line in output.splitlines()]


@pytest.mark.parametrize("network", ["none", "split", "synproxy"])
def test_quic_handshakes_are_those_of_tshark(network: str) -> None:
    path = ONE_ENDED / f"lte-{network}.mobile.pcap.gz"
    references = open_capture(str(path)).references()
    initial = references.of(references.kind == ReferenceKind.QUIC_INITIAL)
    back = references.of(references.kind == ReferenceKind.QUIC_RETURN)
    expected_initial, expected_back = [], []
    rows = udp_rows(path)
    for stream in {row[0] for row in rows}:
        talk = [row for row in rows if row[0] == stream]
        client = talk[0][2]
        answer = next(row for row in talk if row[2] != client)
        told = answer[4].split(",")[0]
        used = next(row for row in talk if row[2] == client and told in row[3].split(","))
        expected_initial.append(to_ns(answer[1]) - to_ns(talk[0][1]))
        expected_back.append(to_ns(used[1]) - to_ns(answer[1]))
    assert len(expected_initial) >= 8
    assert sorted(initial.round_trip_ns) == sorted(expected_initial)
    assert sorted(back.round_trip_ns) == sorted(expected_back)
    assert set(back.to_frame().host_address) == set(initial.to_frame().asking_address)


def to_ns(seconds: str) -> int:
    """Nanoseconds of a time of nine decimals."""
    whole, part = seconds.split(".")
    return int(whole) * 10**9 + int(part)


def test_version_6_is_paired_like_version_4(pinged: Path) -> None:
    references = open_capture(str(pinged), tcp_needed=False).references()
    pings = references.of(references.kind == ReferenceKind.ICMP_ECHO).to_frame()
    assert set(pings.host_address) == {SERVER, SERVER_6}
    assert set(pings.asking_address) == {CLIENT, CLIENT_6}
    command = ["tshark", "-n", "-r", str(pinged), "-Y", "icmpv6.type == 129", "-T", "fields", "-e", "frame.number"]
    replies = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert (pings.host_address == SERVER_6).sum() == len(replies)


def test_a_capture_of_pings_alone_has_references_and_a_filter_removes_them(tmp_path: Path) -> None:
    path = tmp_path / "ping.pcap"
    packets = [echo(False, 1, 1, b"x" * 8), echo(True, 1, 1, b"x" * 8)]
    frames = [Frame(START_NS + rank * 1_000, packet) for rank, packet in enumerate(packets)]
    path.write_bytes(write_pcap(frames, LINK_RAW))
    assert open_capture(str(path), tcp_needed=False).references().round_trip_ns.tolist() == [1_000]
    assert len(open_capture(str(path), tcp_needed=False, payload=False, columns=False).references()) == 1
    assert len(open_capture(str(path), tcp_needed=False, filter="tcp").references()) == 0


def test_what_was_repeated_or_is_a_turn_is_not_tied(tmp_path: Path) -> None:
    path = tmp_path / "mixed.pcap"
    packets = [
        (0, echo(False, 1, 1, b"")),
        (1, echo(False, 1, 2, b"")),
        (2, echo(False, 1, 1, b"")),
        (9, echo(True, 1, 1, b"")),
        (10, echo(True, 1, 2, b"")),
        (20, ipv4(CLIENT, SERVER, PROTOCOL_UDP, udp(4000, 5000, b"question"))),
        (30, ipv4(SERVER, CLIENT, PROTOCOL_UDP, udp(5000, 4000, b"answer"))),
    ]
    path.write_bytes(write_pcap([Frame(START_NS + time_ns, packet) for time_ns, packet in packets], LINK_RAW))
    references = open_capture(str(path), tcp_needed=False).references()
    assert references.repeated_ns.tolist() == [2, 0, 0]
    assert references.to_frame().kind.tolist() == ["icmp-echo", "icmp-echo", "udp-turn"]
    tied = references.tied()
    assert (tied.asked_ns - START_NS).tolist() == [1]
    assert tied.round_trip_ns.tolist() == [9]


def test_names_are_those_of_the_extension() -> None:
    from pepscope import _core

    assert [kind.title for kind in ReferenceKind] == _core.reference_kinds()
