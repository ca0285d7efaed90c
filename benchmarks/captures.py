"""The captures that the benchmarks read: realistic TCP, generated in seconds, the same on every machine.

- bulk: 8 M packets in 16 connections, seen at the sender and, in a second file, at the receiver;
- web: 4 M packets in 188,000 connections on fewer four-tuples.

Delayed acknowledgements, timestamps, SACK, losses with fast retransmission, queueing delay, slow start, resets, port
reuse. The two bulk files come from one transfer, so that `detect` has a true pair to judge.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.packet_table import ACK, FIN, PSH, RST, SYN, PacketTable, joined, write_pcap

if TYPE_CHECKING:
    from collections.abc import Callable

Array = npt.NDArray[Any]

WORK = Path(__file__).parent / "work"
START_NS = 1_700_000_000 * 10**9
SEGMENT = 1448
MILLISECOND_NS = 10**6
TEXT_STRIDE = 7919  # so that neighbouring segments and streams show other text

BULK_PACKETS = 8_000_000
BULK_CONNECTIONS = 16
WEB_PACKETS = 4_000_000
WEB_CONNECTIONS = 188_000
WEB_FOUR_TUPLES = 148_000
RECEIVER_CLOCK_OFFSET_NS = 1_234_567_891


@dataclass(frozen=True, slots=True)
class _Bulk:
    """One bulk connection: segment index, sending and arrival time of each copy, and of each acknowledgement."""

    segment: Array
    sent_ns: Array
    arrived_ns: Array  # -1 where lost on the way
    acked: Array  # next expected segment
    sack_left: Array
    sack_right: Array
    ack_sent_ns: Array
    ack_arrived_ns: Array


def _simulate_bulk(seed: int, segments: int) -> _Bulk:
    """A paced sender at about 60 Mbit/s, 20 ms round trip, a queue that comes and goes, one loss in 4,000 segments."""
    random = np.random.default_rng(seed)
    gap_ns = 180_000 + 2_000 * seed
    sent = (
        START_NS
        + 25 * MILLISECOND_NS
        + seed * 3_333_333
        + np.cumsum(random.exponential(gap_ns, segments)).astype(np.int64)
    )
    queue_ns = (4 + 4 * np.sin((sent - START_NS) / 0.7e9 + seed)) * MILLISECOND_NS
    arrived = np.maximum.accumulate(sent + 10 * MILLISECOND_NS + queue_ns.astype(np.int64)) + np.arange(segments) % 7
    lost = np.arange(500 + seed, segments - 2_500, 4_000) + random.integers(
        0, 2_000, len(range(500 + seed, segments - 2_500, 4_000))
    )
    detected = arrived[lost + 3] + 11 * MILLISECOND_NS
    again_arrived = detected + 10 * MILLISECOND_NS + queue_ns[lost].astype(np.int64)
    first_arrived = arrived.copy()
    first_arrived[lost] = -1

    segment = np.concatenate([np.arange(segments), lost])
    all_sent = np.concatenate([sent, detected])
    all_arrived = np.concatenate([first_arrived, again_arrived])
    order = np.argsort(all_sent, kind="stable")
    copies = (segment[order], all_sent[order], all_arrived[order])
    return _Bulk(*copies, *_acknowledge(copies[0], copies[2], segments))


def _acknowledge(segment: Array, arrived_ns: Array, segments: int) -> tuple[Array, Array, Array, Array, Array]:
    """A receiver that acknowledges every second segment, and at once while there is a hole."""
    seen = arrived_ns >= 0
    order = np.argsort(arrived_ns[seen], kind="stable")
    index, time_ns = segment[seen][order], arrived_ns[seen][order]
    available = np.empty(segments, np.int64)
    available[index] = time_ns
    complete = np.maximum.accumulate(available)
    acked = np.searchsorted(complete, time_ns, side="right")
    highest = np.maximum.accumulate(index)
    hole = acked <= highest
    filled = np.concatenate([[False], hole[:-1] & ~hole[1:]])
    emit = hole | filled | (np.arange(len(index)) % 2 == 1)
    emit[-1] = True
    acked, highest, hole, time_ns = acked[emit], highest[emit], hole[emit], time_ns[emit] + 15_000
    left = np.where(hole, acked + 1, 0)
    right = np.where(hole, highest + 1, 0)
    return acked, left, right, time_ns, time_ns + 10 * MILLISECOND_NS + (time_ns % 40_000)


def _bulk_tables(seed: int, segments: int) -> tuple[PacketTable, PacketTable]:
    """The connection as captured at the sender and at the receiver."""
    bulk = _simulate_bulk(seed, segments)
    random = np.random.default_rng(1000 + seed)
    client_isn, server_isn = (int(value) for value in random.integers(0, 2**32, 2))
    total = segments * SEGMENT
    syn_ns = int(bulk.sent_ns[0]) - 22 * MILLISECOND_NS
    fin_ns = int(bulk.ack_arrived_ns[-1]) + MILLISECOND_NS
    data, acks = len(bulk.segment), len(bulk.acked)

    # Rows: SYN, ACK of the handshake, data, FIN (sender to receiver); SYN-ACK, acknowledgements, FIN-ACK (back).
    up_sent = np.concatenate(
        [[syn_ns, syn_ns + 21 * MILLISECOND_NS], bulk.sent_ns, [fin_ns, fin_ns + 21 * MILLISECOND_NS]]
    )
    up_arrived = np.concatenate(
        [up_sent[:2] + 10 * MILLISECOND_NS, bulk.arrived_ns, up_sent[-2:] + 18 * MILLISECOND_NS]
    )
    down_sent = np.concatenate(
        [[syn_ns + 10 * MILLISECOND_NS + 50_000], bulk.ack_sent_ns, [fin_ns + 18 * MILLISECOND_NS + 40_000]]
    )
    down_arrived = np.concatenate(
        [[syn_ns + 20 * MILLISECOND_NS + 90_000], bulk.ack_arrived_ns, [down_sent[-1] + 2 * MILLISECOND_NS]]
    )

    up_offset = np.concatenate([[-1, 0], bulk.segment * SEGMENT, [total, total + 1]])
    up_flags = np.concatenate([[SYN, ACK], np.where(bulk.segment % 44 == 43, ACK | PSH, ACK), [FIN | ACK, ACK]])
    up_bytes = np.concatenate([[0, 0], np.full(data, SEGMENT), [0, 0]])
    up_ack = np.concatenate([[-1, 0], np.zeros(data, np.int64), [0, 1]])
    down_offset = np.concatenate([[-1], np.zeros(acks + 1, np.int64)])
    down_flags = np.concatenate([[SYN | ACK], np.full(acks, ACK), [FIN | ACK]])
    down_ack = np.concatenate([[0], bulk.acked * SEGMENT, [total + 1]])
    down_left = np.concatenate([[0], bulk.sack_left * SEGMENT, [0]])
    down_right = np.concatenate([[0], bulk.sack_right * SEGMENT, [0]])

    up_tsval = _clock(up_sent, 1_000_000 + seed)
    down_tsval = _clock(down_sent, 777_000_000 + seed)
    up_tsecr = _echo(up_sent, down_arrived, down_tsval)
    seen = np.flatnonzero(up_arrived >= 0)
    seen = seen[np.argsort(up_arrived[seen], kind="stable")]
    down_tsecr = _echo(down_sent, up_arrived[seen], up_tsval[seen])
    sackless_up = np.zeros(len(up_sent), np.int64)
    window = np.concatenate([[65_160], 9_000 + bulk.acked % 3_000, [9_000]])

    up = _flow(
        0x0A000100 + seed,
        0xC0000210,
        40_000 + seed,
        5201,
        client_isn,
        server_isn,
        up_offset,
        up_ack,
        up_flags,
        np.where(up_flags & SYN, 64_240, 502),
        up_bytes,
        up_tsval,
        up_tsecr,
        sackless_up,
        sackless_up,
        seed,
    )
    down = _flow(
        0xC0000210,
        0x0A000100 + seed,
        5201,
        40_000 + seed,
        server_isn,
        client_isn,
        down_offset,
        down_ack,
        down_flags,
        window,
        np.zeros(acks + 2, np.int64),
        down_tsval,
        down_tsecr,
        down_left,
        down_right,
        seed + 50,
    )
    captured = [(up_sent, down_arrived, 64, 57), (up_arrived, down_sent, 57, 64)]
    at_sender, at_receiver = (
        joined([_seen_at(up, up_times, up_ttl), _seen_at(down, down_times, down_ttl)])
        for up_times, down_times, up_ttl, down_ttl in captured
    )
    at_receiver.time_ns = at_receiver.time_ns + RECEIVER_CLOCK_OFFSET_NS
    return at_sender, at_receiver


def _clock(time_ns: Array, base: int) -> Array:
    """A millisecond TSval clock."""
    return (time_ns // MILLISECOND_NS + base & 0xFFFFFFFF).astype(np.uint32)


def _echo(at_ns: Array, heard_ns: Array, heard_tsval: Array) -> Array:
    """What TSecr says at each time: the last TSval heard (0 before any)."""
    last = np.searchsorted(heard_ns, at_ns, side="right") - 1
    return np.where(last >= 0, heard_tsval[np.maximum(last, 0)], 0).astype(np.uint32)


def _flow(
    source: int,
    destination: int,
    source_port: int,
    destination_port: int,
    isn: int,
    peer_isn: int,
    offset: Array,
    ack: Array,
    flags: Array,
    window: Array,
    payload: Array,
    tsval: Array,
    tsecr: Array,
    left: Array,
    right: Array,
    stream: int,
) -> PacketTable:
    count = len(offset)
    full = np.full
    return PacketTable(
        np.zeros(count, np.int64),
        full(count, source, np.uint32),
        full(count, destination, np.uint32),
        full(count, source_port, np.uint16),
        full(count, destination_port, np.uint16),
        (isn + 1 + offset & 0xFFFFFFFF).astype(np.uint32),
        (peer_isn + 1 + ack & 0xFFFFFFFF).astype(np.uint32),
        flags.astype(np.uint8),
        window.astype(np.uint16),
        payload.astype(np.int64),
        tsval,
        tsecr,
        np.where(left != right, peer_isn + 1 + left & 0xFFFFFFFF, 0),
        np.where(left != right, peer_isn + 1 + right & 0xFFFFFFFF, 0),
        (np.arange(count) + 977 * stream & 0xFFFF).astype(np.uint16),
        np.zeros(count, np.uint8),
        (offset // SEGMENT + 104_729 * stream) * TEXT_STRIDE,
    )


def _seen_at(flow: PacketTable, time_ns: Array, ttl: int) -> PacketTable:
    seen = np.flatnonzero(time_ns >= 0)
    table = flow.take(seen)
    table.time_ns = time_ns[seen]
    table.ttl = np.full(len(seen), ttl, np.uint8)
    return table


def make_bulk(directory: Path, packets: int = BULK_PACKETS, name: str = "bulk") -> tuple[Path, Path]:
    """Write the sender's and the receiver's capture of one set of transfers."""
    segments = packets // BULK_CONNECTIONS * 2 // 3
    tables = [_bulk_tables(seed, segments) for seed in range(BULK_CONNECTIONS)]
    paths = directory / f"{name}.sender.pcap", directory / f"{name}.receiver.pcap"
    for path, side in zip(paths, zip(*tables, strict=True), strict=True):
        table = joined(list(side))
        write_pcap(path, table.take(np.arange(min(packets, len(table)))))
    return paths


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
                steps.append(_Step(turn + 1.2, True, index * SEGMENT, 300, SEGMENT, ACK))
                continue
            last = index == segments - 1
            steps.append(_Step(when, True, index * SEGMENT, 300, SEGMENT, ACK | (PSH if last else 0)))
            hole = 0 <= lost < index
            if index % 2 or last or hole:
                upto = lost if hole and when < turn + 1.2 else index + 1
                steps.append(_Step(when + 0.002, False, 300, upto * SEGMENT, 0, ACK))
        sent += window
        window *= 2
        turn += 1.0
    total = segments * SEGMENT
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
    """Write short downloads, started evenly over ten minutes; a fifth of the four-tuples is used again."""
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
        tables.append(_web_table(script, number[chosen], chosen, start_ns[chosen], round_trip_ns[chosen]))
    table = joined(tables)
    path = directory / "web.pcap"
    write_pcap(path, table.take(np.arange(min(packets, len(table)))))
    return path


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
    server, server_port = np.full(count * width, 0xC6336450), np.full(count * width, 443)
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
        (sequence // SEGMENT + each(stream) * 31) * TEXT_STRIDE,
    )


def make_small(directory: Path) -> Path:
    """Ten packets of one connection, for start-up."""
    path = directory / "small.pcap"
    write_pcap(path, _bulk_tables(0, 4)[0].take(np.arange(10)))
    return path


def make_missing(directory: Path) -> None:
    """Write those captures that `directory` does not hold yet."""
    if not (directory / "bulk.receiver.pcap").exists():
        make_bulk(directory)
    if not (directory / "web.pcap").exists():
        make_web(directory)
    make_small(directory)


def main() -> None:
    """Make the captures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=WORK)
    directory: Path = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    make_missing(directory)


if __name__ == "__main__":
    main()
