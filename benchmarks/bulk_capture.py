"""Bulk transfers as captures: a few long connections with losses, seen at the sender and at the receiver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.packet_table import (
    ACK,
    FIN,
    MILLISECOND_NS,
    PSH,
    SEGMENT,
    START_NS,
    SYN,
    TEXT_STRIDE,
    PacketTable,
    joined,
    write_pcap,
)

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]

BULK_PACKETS = 8_000_000
BULK_CONNECTIONS = 16
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


def bulk_tables(seed: int, segments: int) -> tuple[PacketTable, PacketTable]:
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
    """TSecr at each time: the last received TSval (0 before any)."""
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
    tables = [bulk_tables(seed, segments) for seed in range(BULK_CONNECTIONS)]
    paths = directory / f"{name}.sender.pcap", directory / f"{name}.receiver.pcap"
    for path, side in zip(paths, zip(*tables, strict=True), strict=True):
        table = joined(list(side))
        write_pcap(path, table.take(np.arange(min(packets, len(table)))))
    return paths
