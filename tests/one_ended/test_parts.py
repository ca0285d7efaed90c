"""The parts of the one-ended laboratory that work on packets: links, clocks, datagrams."""

from __future__ import annotations

import random
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fresh import packets
from benchmarks.fresh.packets import ACK, Option, Segment, bare_header, checksum
from benchmarks.one_ended import clocks
from benchmarks.one_ended.datagrams import dns_answer, dns_query, ntp_request, quic_answers, quic_initial, quic_names
from benchmarks.one_ended.emulator import Carrier, lateness
from benchmarks.one_ended.links import ACCESS, Direction, draw_access
from benchmarks.one_ended.plan import HTTPS, Clock, draw
from tests.captures.containers import LINK_RAW, Frame, write_pcap

CLOCKS = st.builds(
    Clock, st.sampled_from((1000, 250, 100)), st.integers(-60_000, 60_000), st.integers(0, 2**32 - 1), st.booleans()
)


def segment(source, target, *, ports=(40_000, HTTPS), stamps=(5000, 4000), payload=b"", flags=ACK):
    """An IPv4 segment with timestamps."""
    ip = bare_header(bytes(map(int, source.split("."))), bytes(map(int, target.split("."))), 64, 1)
    options = packets.write_options([(Option.TIMESTAMPS, struct.pack(">II", *stamps))])
    return Segment(ip, ports[0], ports[1], 1, 2, flags, 500, options, payload).bytes()


@given(
    st.sampled_from(ACCESS), st.integers(0, 1000),
    st.lists(st.tuples(st.integers(0, 50_000_000), st.integers(40, 1500)), max_size=60),
)  # fmt: skip
def test_a_link_keeps_order_and_is_never_faster_than_its_delay(kind, seed, gaps):
    link = draw_access(kind, random.Random(seed)).up
    carrier = Carrier("x", 0, link, random.Random(seed), {})
    now = before = 10**12
    for gap, size in gaps:
        now += gap
        packet = segment("10.1.1.1", "192.0.2.1", payload=bytes(max(0, size - 52)))
        out = carrier.take(packet, now)
        if out is None:
            continue
        assert out[0] >= before
        assert out[0] >= now + link.delay_s * 1e9 + len(packet) * 8e9 / link.rate_bit_s - 2
        assert checksum(out[1][:20]) == 0
        assert packet[8] - out[1][8] == link.hops
        before = out[0]
    assert carrier.packets + carrier.lost == len(gaps)


def given_out_ns(carrier, packet, now_ns):
    """When a packet that is not lost comes out."""
    out = carrier.take(packet, now_ns)
    assert out is not None
    return out[0]


def stack(known, *connection):
    """The clock of the sender of a segment."""
    own = known.of(*connection)
    assert own is not None
    return own[0]


def test_a_sleeping_link_wakes_at_multiples_of_its_cycle():
    asleep = Direction(0.01, 1e9, sleep_after_s=0.1, wake_cycle_s=0.08)
    carrier = Carrier("x", 0, asleep, random.Random(1), {})
    packet = segment("10.1.1.1", "192.0.2.1")
    starts = [given_out_ns(carrier, packet, 10**12 + step * 1_234_567_890) for step in range(20)]
    assert len({round(start / 1e3) % 80_000 for start in starts}) <= 2
    assert carrier.slept == 20
    soon = 10**12 + 19 * 1_234_567_890 + 90_000_000
    assert given_out_ns(carrier, packet, soon) - soon < 15_000_000


def test_only_pure_acknowledgements_are_held_back():
    carrier = Carrier("x", 0, Direction(0.01, 1e9), random.Random(1), {"192.0.2.1": 0.05})
    plain, data = (segment("192.0.2.1", "10.1.1.1", payload=payload) for payload in (b"", b"x"))
    other = segment("192.0.2.9", "10.1.1.1")
    late = {
        name: given_out_ns(carrier, one, 10**12) - 10**12
        for name, one in (("plain", plain), ("data", data), ("other", other))
    }
    assert late["plain"] == pytest.approx(60e6, rel=0.01)
    assert late["data"] == pytest.approx(10e6, rel=0.01)
    assert late["other"] == pytest.approx(10e6, rel=0.01)


def test_a_full_queue_drops():
    carrier = Carrier("x", 0, Direction(0.01, 8e3, queue_bytes=3000), random.Random(1), {})
    packet = segment("10.1.1.1", "192.0.2.1", payload=bytes(948))
    given_out = [carrier.take(packet, 10**12) for _ in range(10)]
    assert [one is not None for one in given_out] == [True] * 4 + [False] * 6 or carrier.lost >= 6


@given(CLOCKS, st.integers(0, 2**32 - 1), st.integers(0, 10**10), st.integers(0, 10**7))
def test_a_clock_never_goes_back(clock, offset, milliseconds, later):
    ahead = (clocks.shown(clock, offset, milliseconds + later) - clocks.shown(clock, offset, milliseconds)) % 2**32
    assert abs(ahead - later * clock.rate_hz / 1000) <= 2 + later * clock.rate_hz / 1000 * 1e-4


@given(st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1), st.binary(max_size=40))
def test_rewritten_timestamps_keep_the_checksum_and_answer_each_other(value, echo, payload):
    plan = draw(3, 0, middle="none")
    client, server = plan.clients[0].addresses[0], plan.servers[0].address
    there = bytearray(segment(client, server, stamps=(value, echo), payload=payload))
    back = bytearray(segment(server, client, ports=(HTTPS, 40_000), stamps=(echo, value)))
    known = clocks.Clocks(plan, "client")
    for data in (there, back):
        before = bytes(data)
        clocks._rewrite_packet(data, 0, len(data), known)
        assert packets.read(bytes(data)).bytes() == bytes(data), "the checksum is that of the new contents"
        assert len(before) == len(data)
    sent, answered = (packets.read(bytes(data)).timestamps or () for data in (there, back))
    assert sent == answered[::-1] != ()


@given(st.binary(max_size=120))
def test_arbitrary_bytes_pass_the_rewriting(data):
    known = clocks.Clocks(draw(3, 0, middle="none"), "client")
    packet = bytearray(data)
    clocks._rewrite_packet(packet, 0, len(packet), known)
    assert len(packet) == len(data)


def test_a_relay_shows_one_clock_for_all_servers():
    plan = next(
        p for i in range(99) if len((p := draw(3, i, middle="haproxy")).split_ports) == 4 and len(p.clients) == 1
    )
    client, port = plan.clients[0].addresses[0], 443
    near, far = clocks.Clocks(plan, "client"), clocks.Clocks(plan, plan.servers[0].name)
    assert {stack(near, s.address, port, client, 4000) for s in plan.servers} == {plan.middle_stack.clock}
    assert stack(near, client, 4000, plan.servers[0].address, port) == plan.clients[0].stack.clock
    assert stack(far, client, 4000, plan.servers[0].address, port) == plan.middle_stack.clock
    assert stack(far, plan.servers[0].address, port, client, 4000) == plan.servers[0].stack.clock
    assert near.of("192.0.2.250", 9, "192.0.2.251", 9) is None


def test_tshark_knows_the_datagrams(tmp_path):
    first = quic_initial(b"c" * 8, b"d" * 8)
    answers = quic_answers(first, b"s" * 8, {})
    question = dns_query(7, "a.example")
    sent = [
        (443, first),
        (53, question),
        (53, dns_answer(question)),
        (123, ntp_request()),
        *((443, a) for a in answers),
    ]
    frames = []
    for number, (port, payload) in enumerate(sent):
        udp = struct.pack(">HHHH", 5000, port, 8 + len(payload), 0) + payload
        ip = bytearray(bare_header(b"\x0a\1\1\1", b"\xc0\0\2\1", 64, number))
        struct.pack_into(">HB", ip, 2, 20 + len(udp), 64)
        ip[6], ip[9] = 0x40, 17
        ip[8] = 64
        frames.append(Frame(10**18 + number * 10**6, bytes(ip) + udp))
    path = tmp_path / "datagrams.pcap"
    path.write_bytes(write_pcap(frames, LINK_RAW))
    fields = ["-T", "fields", "-e", "frame.protocols", "-e", "quic.long.packet_type"]
    lines = subprocess.run(["tshark", "-n", "-r", path, *fields], capture_output=True, text=True, check=True).stdout
    protocols = [line.split("\t")[0] for line in lines.splitlines()]
    assert [p.split(":")[-1] for p in protocols[1:4]] == ["dns", "dns", "ntp"]
    assert all("quic" in p for p in (protocols[0], *protocols[4:]))
    assert lines.splitlines()[0].split("\t")[1].startswith("0")
    assert quic_names(first) == (b"c" * 8, b"d" * 8)
    assert len(first) == 1200


def test_lateness_is_that_of_the_latest_packets():
    assert lateness([]) == {"median": 0, "p99": 0, "max": 0}
    assert lateness([1_000_000] * 99 + [9_000_000, 9_000_000])["p99"] == 0.009
