"""Web exchanges as captures: very many short connections on fewer four-tuples, seen at the client or at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.speed.packet_table import (
    ACK,
    FIN,
    MILLISECOND_NS,
    PSH,
    RST,
    SEGMENT_BYTES,
    START_NS,
    SYN,
    TEXT_STRIDE,
    PacketTable,
    joined,
    write_pcap,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Array = npt.NDArray[Any]

WEB_PACKETS = 4_000_000
WEB_CONNECTIONS = 188_000
WEB_FOUR_TUPLES = 148_000

#: The pair for `detect`: as many packets a connection, a quarter of the connections, at both ends.
PAIR_PACKETS = 1_000_000
PAIR_CONNECTIONS = 47_000

_SERVER = 0xC6336450

#: One way, in round trips; the server answers in what is left.
_ONE_WAY = 0.498
_SERVER_CLOCK_OFFSET_NS = 1_234_567_891


@dataclass(frozen=True, slots=True)
class _Step:
    """One packet of a web exchange: round trips since the SYN, from whom, stream offsets, bytes, flags."""

    round_trips: float
    down: bool
    sequence: int
    acknowledgement: int
    payload: int
    flags: int


def _web_script(segments: int, *, abort: bool, loss: bool) -> list[_Step]:
    """A request of 300 bytes and an answer of `segments` segments in slow start, captured at the client."""
    steps = [
        _Step(0.0, False, -1, -1, 0, SYN),
        _Step(1.0, True, -1, 0, 0, SYN | ACK),
        _Step(1.001, False, 0, 0, 0, ACK),
        _Step(1.002, False, 0, 0, 300, ACK | PSH),
        _Step(2.01, True, 0, 300, 0, ACK),
    ]
    window, sent, turn = 10, 0, 2.05
    lost = segments // 2 if loss and segments > 4 else -1
    while sent < segments:
        for place in range(min(window, segments - sent)):
            index = sent + place
            when = turn + 0.01 * place
            if index == lost:
                steps.append(_Step(turn + 1.2, True, index * SEGMENT_BYTES, 300, SEGMENT_BYTES, ACK))
                continue
            last = index == segments - 1
            steps.append(_Step(when, True, index * SEGMENT_BYTES, 300, SEGMENT_BYTES, ACK | (PSH if last else 0)))
            hole = 0 <= lost < index
            if index % 2 or last or hole:
                upto = lost if hole and when < turn + 1.2 else index + 1
                steps.append(_Step(when + 0.002, False, 300, upto * SEGMENT_BYTES, 0, ACK))
        sent += window
        window *= 2
        turn += 1.0
    total = segments * SEGMENT_BYTES
    turn = max(step.round_trips for step in steps) + 0.1
    if lost >= 0:
        steps.append(_Step(turn, False, 300, total, 0, ACK))
    if abort:
        return [*steps, _Step(turn + 0.1, False, 300, total, 0, RST | ACK)]
    return [
        *steps,
        _Step(turn + 0.1, True, total, 300, 0, FIN | ACK),
        _Step(turn + 0.11, False, 300, total + 1, 0, FIN | ACK),
        _Step(turn + 1.11, True, total + 1, 301, 0, ACK),
    ]


def make_web(directory: Path, packets: int = WEB_PACKETS, connections: int = WEB_CONNECTIONS) -> Path:
    """Write short downloads as the clients see them, started evenly over ten minutes."""
    path = directory / "web.pcap"
    write_pcap(path, _first(_downloads(connections, at_client=True), packets))
    return path


def make_web_pair(
    directory: Path, packets: int = PAIR_PACKETS, connections: int = PAIR_CONNECTIONS
) -> tuple[Path, Path]:
    """Write short downloads as both ends see them: the clients' capture, and the server's by another clock."""
    paths = directory / "web.client.pcap", directory / "web.server.pcap"
    for path, at_client in zip(paths, (True, False), strict=True):
        write_pcap(path, _first(_downloads(connections, at_client=at_client), packets))
    return paths


def _first(table: PacketTable, packets: int) -> PacketTable:
    return table.take(np.arange(min(packets, len(table))))


def _downloads(connections: int, *, at_client: bool) -> PacketTable:
    """Short downloads, started evenly over ten minutes; a fifth of the four-tuples is used again."""
    random = np.random.default_rng(2001)
    four_tuples = max(1, connections * WEB_FOUR_TUPLES // WEB_CONNECTIONS)
    number = np.concatenate([np.arange(four_tuples), np.arange(connections - four_tuples)])
    start_ns = START_NS + np.sort(random.integers(0, 600 * 10**9, connections))
    round_trip_ns = random.integers(5, 120, connections) * MILLISECOND_NS
    segments = np.minimum(1 + random.geometric(1 / 7.75, connections), 60)
    abort, loss = random.random(connections) < 0.04, random.random(connections) < 0.03
    tables = []
    kind = segments * 4 + abort * 2 + loss
    for value in np.unique(kind):
        chosen = np.flatnonzero(kind == value)
        script = _web_script(int(value) // 4, abort=bool(value & 2), loss=bool(value & 1))
        table = _web_table(script, number[chosen], chosen, start_ns[chosen], round_trip_ns[chosen])
        tables.append(table if at_client else _at_server(table, np.repeat(round_trip_ns[chosen], len(script))))
    return joined(tables)


def _at_server(table: PacketTable, round_trip_ns: Array) -> PacketTable:
    """The same packets where they arrive at the server or leave it."""
    one_way_ns = (_ONE_WAY * round_trip_ns).astype(np.int64)
    down = table.source == _SERVER
    table.time_ns = table.time_ns + np.where(down, -one_way_ns, one_way_ns) + _SERVER_CLOCK_OFFSET_NS
    table.ttl = np.where(down, 64, 57)
    return table


def _web_table(
    script: list[_Step], four_tuple: Array, stream: Array, start_ns: Array, round_trip_ns: Array
) -> PacketTable:
    steps = sorted(script, key=lambda step: step.round_trips)
    count, width = len(four_tuple), len(steps)

    def spread(per_step: Callable[[_Step], float], kind: type = np.int64) -> Array:
        return np.tile(np.array([per_step(step) for step in steps], kind), count)

    each: Callable[[Array], Array] = lambda values: np.repeat(values, width)  # noqa: E731
    down = spread(lambda step: step.down, np.bool_)
    time_ns = each(start_ns) + (spread(lambda step: step.round_trips, np.float64) * each(round_trip_ns)).astype(
        np.int64
    )
    client = each(0x0A000001 + four_tuple // 14_000)
    client_port = each(32_768 + four_tuple % 14_000 * 2)
    server, server_port = np.full(count * width, _SERVER), np.full(count * width, 443)
    client_isn = each(stream * 2_654_435_761 + 12_345 & 0xFFFFFFFF)
    server_isn = each(stream * 2_246_822_519 + 54_321 & 0xFFFFFFFF)
    sequence = spread(lambda step: step.sequence)
    acknowledgement = spread(lambda step: step.acknowledgement)
    flags = spread(lambda step: step.flags)
    zero = np.zeros(count * width, np.int64)
    tsval = (time_ns // MILLISECOND_NS + np.where(down, 5_000, 90_000_000) & 0xFFFFFFFF).astype(np.uint32)
    # Each side echoes the clock of the other as it stood half a round trip ago.
    echo = (time_ns - each(round_trip_ns) // 2) // MILLISECOND_NS + np.where(down, 90_000_000, 5_000)
    return PacketTable(
        time_ns,
        np.where(down, server, client),
        np.where(down, client, server),
        np.where(down, server_port, client_port),
        np.where(down, client_port, server_port),
        np.where(down, server_isn, client_isn) + 1 + sequence & 0xFFFFFFFF,
        np.where(down, client_isn, server_isn) + 1 + acknowledgement & 0xFFFFFFFF,
        flags,
        np.where(flags & SYN, 64_240, 502),
        spread(lambda step: step.payload),
        tsval,
        np.where(flags == SYN, 0, echo & 0xFFFFFFFF).astype(np.uint32),
        zero,
        zero,
        np.arange(count * width) & 0xFFFF,
        np.where(down, 57, 64),
        (sequence // SEGMENT_BYTES + each(stream) * 31) * TEXT_STRIDE,
    )
