"""TCP connections with known answers: each scenario says what an analysis of its capture must report.

The capture point is the client's; `up` is what the client sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pepscope.captures.connections import Close
from pepscope.captures.packets import Direction, TcpFlag
from tests.captures.conversation import MILLISECOND_NS, Conversation, Endpoint, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.captures.segments import Segment

UP, DOWN = Direction.UP, Direction.DOWN
CLIENT = Endpoint("10.1.2.3", 40_000, 1_000_000)
SERVER = Endpoint("192.0.2.80", 80, 3_000_000_000, ttl=55)
SEGMENT_BYTES = 1000
REQUEST = stream(0, 200, 1)


@dataclass(frozen=True, slots=True)
class Expected:
    """Attributes of a connection, and of its flows, that must have these values."""

    connection: Mapping[str, object] = field(default_factory=dict)
    up: Mapping[str, object] = field(default_factory=dict)
    down: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Segments in capture order and what must be found in them, one entry a connection."""

    segments: list[Segment]
    expected: list[Expected]


def _started(client: Endpoint = CLIENT, server: Endpoint = SERVER) -> Conversation:
    """Handshake of 20 ms, a request of 200 bytes and its acknowledgement 30 ms later."""
    talk = Conversation(client, server).handshake(20)
    talk.wait(1).send(UP, 0, 0, REQUEST, TcpFlag.PSH)
    return talk.wait(30).send(DOWN, 0, len(REQUEST))


def _download(talk: Conversation, first: int, count: int, gap_ms: float = 1.0) -> Conversation:
    """`count` segments from offset `first`, each acknowledged 0.5 ms after it came."""
    for offset in range(first, first + count * SEGMENT_BYTES, SEGMENT_BYTES):
        talk.wait(gap_ms).send(DOWN, offset, 200, stream(offset, SEGMENT_BYTES))
        talk.wait(0.5).send(UP, 200, offset + SEGMENT_BYTES)
    return talk


def plain_download() -> Scenario:
    """Ten segments, no trouble."""
    talk = _download(_started(), 0, 10).close(200, 10_000)
    return Scenario(
        talk.segments,
        [
            Expected(
                {
                    "side_guessed": False,
                    "packets": len(talk.segments),
                    "close": Close.FIN,
                    "handshake_syn_ack_ns": 20 * MILLISECOND_NS,
                    "handshake_ack_ns": MILLISECOND_NS // 10,
                    "client_address": CLIENT.address,
                    "server_port": SERVER.port,
                    "tunnel": "none",
                },
                {
                    "payload_bytes": 200,
                    "data_packets": 1,
                    "retransmitted_packets": 0,
                    "missed_bytes": 0,
                    "round_trip_time_min_ns": 30 * MILLISECOND_NS,
                    "initial_sequence_number": CLIENT.initial_sequence_number,
                    "syn_count": 1,
                    "maximum_segment_size": 1460,
                    "window_scale": 7,
                    "sack_permitted": True,
                    "timestamps": True,
                    "ttl": 64,
                },
                {
                    "payload_bytes": 10_000,
                    "stream_bytes": 10_000,
                    "data_packets": 10,
                    "retransmitted_packets": 0,
                    "reordered_packets": 0,
                    "duplicate_packets": 0,
                    "missed_bytes": 0,
                    "round_trip_time_min_ns": MILLISECOND_NS // 2,
                    "round_trip_time_max_ns": MILLISECOND_NS // 2,
                    "initial_sequence_number": SERVER.initial_sequence_number,
                    "ttl": 55,
                },
            )
        ],
    )


def no_options() -> Scenario:
    """Neither side offers any option: windows stay as they are on the wire."""
    bare = Endpoint("10.1.2.3", 40_000, 5, 536, None, False, False)
    talk = _download(_started(bare, Endpoint("192.0.2.80", 80, 9, 536, None, False, False)), 0, 3).close(200, 3000)
    flow = {"window_scale": None, "sack_permitted": False, "timestamps": False, "window_max_bytes": 500}
    return Scenario(talk.segments, [Expected({}, flow, flow)])


def window_scale_of_one_side_only() -> Scenario:
    """RFC 7323 section 2.2: scaling is on only if both SYNs carry the option."""
    talk = _download(_started(CLIENT, Endpoint("192.0.2.80", 80, 9, 1460, None)), 0, 3).close(200, 3000)
    return Scenario(
        talk.segments,
        [Expected({}, {"window_scale": 7, "window_max_bytes": 500}, {"window_scale": None, "window_max_bytes": 500})],
    )


def sequence_wrap() -> Scenario:
    """Both streams cross 2^32."""
    client = Endpoint("10.1.2.3", 40_000, 0xFFFFFFFF - 50)
    server = Endpoint("192.0.2.80", 80, 0xFFFFFFFF - 4500)
    talk = _download(_started(client, server), 0, 10).close(200, 10_000)
    return Scenario(
        talk.segments,
        [
            Expected(
                {"close": Close.FIN},
                {"stream_bytes": 200, "missed_bytes": 0, "retransmitted_packets": 0},
                {"stream_bytes": 10_000, "missed_bytes": 0, "retransmitted_packets": 0, "reordered_packets": 0},
            )
        ],
    )


def port_reuse() -> Scenario:
    """The same four-tuple again, ten seconds later, with other numbers."""
    first = _download(_started(), 0, 2).close(200, 2000)
    client = Endpoint(CLIENT.address, CLIENT.port, 70_000_000)
    server = Endpoint(SERVER.address, SERVER.port, 90_000_000)
    second = Conversation(client, server, first.now_ns + 10_000 * MILLISECOND_NS).handshake(20)
    second.wait(1).send(UP, 0, 0, REQUEST).wait(30).send(DOWN, 0, 200)
    _download(second, 0, 5).close(200, 5000)
    return Scenario(
        first.segments + second.segments,
        [
            Expected({"close": Close.FIN}, {"initial_sequence_number": 1_000_000}, {"payload_bytes": 2000}),
            Expected({"close": Close.FIN}, {"initial_sequence_number": 70_000_000}, {"payload_bytes": 5000}),
        ],
    )


def retransmitted_syn() -> Scenario:
    """The first SYN got no answer; the connection is one."""
    talk = Conversation(CLIENT, SERVER)
    talk.send(UP, -1, None, flags=TcpFlag.SYN, window=64_240).wait(1000)
    talk.handshake(20).wait(1).send(UP, 0, 0, REQUEST).wait(30).send(DOWN, 0, 200)
    _download(talk, 0, 3).close(200, 3000)
    return Scenario(talk.segments, [Expected({"packets": len(talk.segments)}, {"syn_count": 2}, {"syn_count": 1})])


def missing_syn() -> Scenario:
    """The capture began in the middle: the sides are a guess, and marked so; windows cannot be scaled."""
    talk = Conversation(CLIENT, SERVER)
    _download(talk, 50_000, 10).close(200, 60_000)
    return Scenario(
        talk.segments,
        [
            Expected(
                {"side_guessed": True, "client_port": 40_000, "server_port": 80, "handshake_syn_ack_ns": None},
                {"initial_sequence_number": None, "syn_count": 0, "window_scale": None},
                {"initial_sequence_number": None, "data_packets": 10, "stream_bytes": 10_000, "missed_bytes": 0},
            )
        ],
    )


def missing_syn_but_syn_ack() -> Scenario:
    """Only the SYN-ACK was captured: the client is whom it addresses, and that is no guess."""
    talk = _download(_started(), 0, 3).close(200, 3000)
    return Scenario(
        talk.segments[1:],
        [Expected({"client_port": 40_000}, {"syn_count": 0, "payload_bytes": 200}, {"syn_count": 1})],
    )


def zero_window_and_probes() -> Scenario:
    """The client's window closes once; the server probes it with one byte, twice; then it opens."""
    talk = _download(_started(), 0, 3)
    talk.wait(1).send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES)).wait(0.5).send(UP, 200, 4000, window=0)
    for _ in range(2):
        talk.wait(400).send(DOWN, 4000, 200, stream(4000, 1)).wait(0.5).send(UP, 200, 4000, window=0)
    talk.wait(300).send(UP, 200, 4000)
    _download(talk, 4000, 3).close(200, 7000)
    return Scenario(
        talk.segments,
        [Expected({}, {"zero_windows": 1, "window_min_bytes": 0}, {"zero_window_probes": 2, "stream_bytes": 7000})],
    )


def retransmission() -> Scenario:
    """A segment comes again after 300 ms though it had been seen: its round trip is no sample (Karn)."""
    talk = _download(_started(), 0, 3)
    talk.wait(1).send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES)).wait(300)
    talk.send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES)).wait(0.5).send(UP, 200, 4000)
    _download(talk, 4000, 3).close(200, 7000)
    return Scenario(
        talk.segments,
        [
            Expected(
                {},
                {"retransmitted_packets": 0},
                {
                    "data_packets": 8,
                    "payload_bytes": 8000,
                    "stream_bytes": 7000,
                    "missed_bytes": 0,
                    "round_trip_time_max_ns": MILLISECOND_NS // 2,
                },
            )
        ],
    )


def loss_before_the_capture() -> Scenario:
    """A hole, three duplicate acknowledgements, and the segment a round trip later: a retransmission."""
    talk = _download(_started(), 0, 3)
    talk.send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES), captured=False)
    for offset in (4000, 5000, 6000):
        talk.wait(1).send(DOWN, offset, 200, stream(offset, SEGMENT_BYTES))
        talk.wait(0.1).send(UP, 200, 3000, sack_blocks=((4000, offset + SEGMENT_BYTES),))
    talk.wait(60).send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES)).wait(0.5).send(UP, 200, 7000)
    _download(talk, 7000, 3).close(200, 10_000)
    return Scenario(
        talk.segments,
        [Expected({}, {}, {"retransmitted_packets": 1, "reordered_packets": 0, "missed_bytes": 0})],
    )


def reordering() -> Scenario:
    """Two neighbours swap places, 50 microseconds apart: no retransmission can be that fast."""
    talk = _download(_started(), 0, 3)
    ip_ids_swapped = Conversation(CLIENT, SERVER, talk.now_ns)
    ip_ids_swapped.wait(1).send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES))
    ip_ids_swapped.send(DOWN, 4000, 200, stream(4000, SEGMENT_BYTES))
    early, late = ip_ids_swapped.segments
    talk.wait(1)
    talk.segments += [_at(late, talk.now_ns), _at(early, talk.now_ns + 50_000)]
    talk.wait(0.6).send(UP, 200, 5000)
    _download(talk, 5000, 3).close(200, 8000)
    return Scenario(
        talk.segments,
        [Expected({}, {}, {"retransmitted_packets": 0, "reordered_packets": 1, "missed_bytes": 0})],
    )


def duplicate() -> Scenario:
    """The same packet twice, to the IP identification, as a mirror port shows it."""
    talk = _download(_started(), 0, 3)
    talk.wait(1).send(DOWN, 3000, 200, stream(3000, SEGMENT_BYTES))
    talk.segments.append(_at(talk.segments[-1], talk.now_ns + 10_000))
    talk.wait(0.5).send(UP, 200, 4000)
    _download(talk, 4000, 3).close(200, 7000)
    return Scenario(
        talk.segments,
        [Expected({}, {}, {"duplicate_packets": 1, "retransmitted_packets": 0, "reordered_packets": 0})],
    )


def reset() -> Scenario:
    """The client aborts."""
    talk = _download(_started(), 0, 3)
    talk.wait(5).send(UP, 200, 3000, flags=TcpFlag.RST)
    return Scenario(
        talk.segments,
        [Expected({"close": Close.RESET}, {"reset_time_ns": talk.now_ns}, {"reset_time_ns": None})],
    )


def refused() -> Scenario:
    """A SYN answered by a reset."""
    talk = Conversation(CLIENT, SERVER).send(UP, -1, None, flags=TcpFlag.SYN).wait(20)
    talk.send(DOWN, -1, 0, flags=TcpFlag.RST, window=0)
    return Scenario(
        talk.segments,
        [Expected({"close": Close.RESET, "packets": 2}, {"payload_bytes": 0}, {"zero_windows": 0})],
    )


def never_closed() -> Scenario:
    """The capture ends before the connection does."""
    talk = _download(_started(), 0, 3)
    return Scenario(talk.segments, [Expected({"close": Close.OPEN}, {"fin_time_ns": None}, {"fin_time_ns": None})])


def capture_drops() -> Scenario:
    """The capture missed two data packets that the client acknowledges at once."""
    talk = _download(_started(), 0, 3)
    for offset in (3000, 4000):
        talk.wait(1).send(DOWN, offset, 200, stream(offset, SEGMENT_BYTES), captured=False)
    talk.wait(0.5).send(UP, 200, 5000)
    _download(talk, 5000, 3).close(200, 8000)
    return Scenario(
        talk.segments,
        [Expected({}, {"missed_bytes": 0}, {"missed_bytes": 2000, "stream_bytes": 8000, "data_packets": 6})],
    )


def data_both_ways() -> Scenario:
    """Question and answer, acknowledgements riding on data."""
    talk = Conversation(CLIENT, SERVER).handshake(20)
    for turn in range(5):
        offset = turn * 100
        talk.wait(1).send(UP, offset, offset, stream(offset, 100, 3), TcpFlag.PSH)
        talk.wait(25).send(DOWN, offset, offset + 100, stream(offset, 100, 4), TcpFlag.PSH)
    talk.wait(0.2).send(UP, 500, 500).close(500, 500)
    return Scenario(
        talk.segments,
        [
            Expected(
                {},
                {"round_trip_time_samples": 5, "round_trip_time_min_ns": 25 * MILLISECOND_NS},
                {"round_trip_time_samples": 5, "stream_bytes": 500},
            )
        ],
    )


def ipv6() -> Scenario:
    """The same over IPv6."""
    client = Endpoint("2001:db8::1", 40_000, 77)
    talk = _download(_started(client, Endpoint("2001:db8::80", 80, 99, ttl=55)), 0, 3).close(200, 3000)
    return Scenario(
        talk.segments,
        [Expected({"ip_version": 6, "client_address": "2001:db8::1"}, {"ttl": 64}, {"ttl": 55, "stream_bytes": 3000})],
    )


def _at(segment: Segment, time_ns: int) -> Segment:
    """The same segment at another time."""
    return replace(segment, time_ns=time_ns)


SCENARIOS: Mapping[str, Callable[[], Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        plain_download,
        no_options,
        window_scale_of_one_side_only,
        sequence_wrap,
        port_reuse,
        retransmitted_syn,
        missing_syn,
        missing_syn_but_syn_ack,
        zero_window_and_probes,
        retransmission,
        loss_before_the_capture,
        reordering,
        duplicate,
        reset,
        refused,
        never_closed,
        capture_drops,
        data_both_ways,
        ipv6,
    )
}
