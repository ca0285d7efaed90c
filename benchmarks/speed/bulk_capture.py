"""Bulk transfers as captures: a few long connections with losses, seen at the sender and at the receiver."""

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
    SEGMENT_BYTES,
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


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a connection: address, port and initial sequence number."""

    address: int
    port: int
    isn: int


@dataclass(frozen=True, slots=True)
class _Way:
    """One direction's packets in the order in which they are sent; streams count from the byte after the SYN.

    A packet with `arrived_ns` of -1 is lost on the way; equal ends of a SACK block mean none.
    """

    sent_ns: Array
    arrived_ns: Array
    stream_byte: Array  # -1: the SYN
    flags: Array
    window: Array  # as on the wire
    payload_bytes: Array
    acked_byte: Array
    sack_left: Array
    sack_right: Array


def bulk_tables(seed: int, segments: int) -> tuple[PacketTable, PacketTable]:
    """The connection as captured at the sender and at the receiver."""
    bulk = _simulate_bulk(seed, segments)
    random = np.random.default_rng(1000 + seed)
    sender_isn, receiver_isn = (int(value) for value in random.integers(0, 2**32, 2))
    sender = _End(0x0A000100 + seed, 40_000 + seed, sender_isn)
    receiver = _End(0xC0000210, 5201, receiver_isn)
    syn_ns = int(bulk.sent_ns[0]) - 22 * MILLISECOND_NS
    fin_ns = int(bulk.ack_arrived_ns[-1]) + MILLISECOND_NS
    up = _from_sender(bulk, syn_ns, fin_ns, segments * SEGMENT_BYTES)
    down = _from_receiver(bulk, syn_ns, fin_ns, segments * SEGMENT_BYTES)

    up_clock, down_clock = _clock(up.sent_ns, 1_000_000 + seed), _clock(down.sent_ns, 777_000_000 + seed)
    arrived = np.flatnonzero(up.arrived_ns >= 0)
    arrived = arrived[np.argsort(up.arrived_ns[arrived], kind="stable")]
    up_echo = _echo(up.sent_ns, down.arrived_ns, down_clock)
    down_echo = _echo(down.sent_ns, up.arrived_ns[arrived], up_clock[arrived])

    sent = _packets(up, (sender, receiver), (up_clock, up_echo), seed)
    answered = _packets(down, (receiver, sender), (down_clock, down_echo), seed + 50)
    at_sender = joined([_seen_at(sent, up.sent_ns, 64), _seen_at(answered, down.arrived_ns, 57)])
    at_receiver = joined([_seen_at(sent, up.arrived_ns, 57), _seen_at(answered, down.sent_ns, 64)])
    at_receiver.time_ns = at_receiver.time_ns + RECEIVER_CLOCK_OFFSET_NS
    return at_sender, at_receiver


def _from_sender(bulk: _Bulk, syn_ns: int, fin_ns: int, stream_bytes: int) -> _Way:
    """SYN, ACK of the handshake, data, FIN, ACK of the receiver's FIN."""
    sent = np.concatenate(
        [[syn_ns, syn_ns + 21 * MILLISECOND_NS], bulk.sent_ns, [fin_ns, fin_ns + 21 * MILLISECOND_NS]]
    )
    data = len(bulk.segment)
    data_flags = np.where(bulk.segment % 44 == 43, ACK | PSH, ACK)
    flags = np.concatenate([[SYN, ACK], data_flags, [FIN | ACK, ACK]])
    no_block = np.zeros(len(sent), np.int64)
    return _Way(
        sent_ns=sent,
        arrived_ns=np.concatenate([sent[:2] + 10 * MILLISECOND_NS, bulk.arrived_ns, sent[-2:] + 18 * MILLISECOND_NS]),
        stream_byte=np.concatenate([[-1, 0], bulk.segment * SEGMENT_BYTES, [stream_bytes, stream_bytes + 1]]),
        flags=flags,
        window=np.where(flags & SYN, 64_240, 502),
        payload_bytes=np.concatenate([[0, 0], np.full(data, SEGMENT_BYTES), [0, 0]]),
        acked_byte=np.concatenate([[-1, 0], np.zeros(data, np.int64), [0, 1]]),
        sack_left=no_block,
        sack_right=no_block,
    )


def _from_receiver(bulk: _Bulk, syn_ns: int, fin_ns: int, stream_bytes: int) -> _Way:
    """SYN-ACK, acknowledgements, FIN."""
    sent = np.concatenate(
        [[syn_ns + 10 * MILLISECOND_NS + 50_000], bulk.ack_sent_ns, [fin_ns + 18 * MILLISECOND_NS + 40_000]]
    )
    acks = len(bulk.acked)
    return _Way(
        sent_ns=sent,
        arrived_ns=np.concatenate(
            [[syn_ns + 20 * MILLISECOND_NS + 90_000], bulk.ack_arrived_ns, [sent[-1] + 2 * MILLISECOND_NS]]
        ),
        stream_byte=np.concatenate([[-1], np.zeros(acks + 1, np.int64)]),
        flags=np.concatenate([[SYN | ACK], np.full(acks, ACK), [FIN | ACK]]),
        window=np.concatenate([[65_160], 9_000 + bulk.acked % 3_000, [9_000]]),
        payload_bytes=np.zeros(acks + 2, np.int64),
        acked_byte=np.concatenate([[0], bulk.acked * SEGMENT_BYTES, [stream_bytes + 1]]),
        sack_left=np.concatenate([[0], bulk.sack_left * SEGMENT_BYTES, [0]]),
        sack_right=np.concatenate([[0], bulk.sack_right * SEGMENT_BYTES, [0]]),
    )


def _clock(time_ns: Array, base: int) -> Array:
    """A millisecond TSval clock."""
    return (time_ns // MILLISECOND_NS + base & 0xFFFFFFFF).astype(np.uint32)


def _echo(at_ns: Array, heard_ns: Array, heard_tsval: Array) -> Array:
    """TSecr at each time: the last received TSval (0 before any)."""
    last = np.searchsorted(heard_ns, at_ns, side="right") - 1
    return np.where(last >= 0, heard_tsval[np.maximum(last, 0)], 0).astype(np.uint32)


def _packets(way: _Way, ends: tuple[_End, _End], timestamps: tuple[Array, Array], stream: int) -> PacketTable:
    """The packets from the first end to the second with TSval and TSecr, of no time and hop limit yet."""
    count, (source, destination), (tsval, tsecr) = len(way.sent_ns), ends, timestamps
    sacks = way.sack_left != way.sack_right
    after_syn = source.isn + 1, destination.isn + 1
    return PacketTable(
        time_ns=np.zeros(count, np.int64),
        source=np.full(count, source.address, np.uint32),
        destination=np.full(count, destination.address, np.uint32),
        source_port=np.full(count, source.port, np.uint16),
        destination_port=np.full(count, destination.port, np.uint16),
        sequence=(after_syn[0] + way.stream_byte & 0xFFFFFFFF).astype(np.uint32),
        acknowledgement=(after_syn[1] + way.acked_byte & 0xFFFFFFFF).astype(np.uint32),
        flags=way.flags.astype(np.uint8),
        window=way.window.astype(np.uint16),
        payload_bytes=way.payload_bytes.astype(np.int64),
        tsval=tsval,
        tsecr=tsecr,
        sack_left=np.where(sacks, after_syn[1] + way.sack_left & 0xFFFFFFFF, 0),
        sack_right=np.where(sacks, after_syn[1] + way.sack_right & 0xFFFFFFFF, 0),
        ip_id=(np.arange(count) + 977 * stream & 0xFFFF).astype(np.uint16),
        ttl=np.zeros(count, np.uint8),
        text=(way.stream_byte // SEGMENT_BYTES + 104_729 * stream) * TEXT_STRIDE,
    )


def _seen_at(packets: PacketTable, time_ns: Array, ttl: int) -> PacketTable:
    """The packets that come by at `time_ns` (-1: not at all)."""
    seen = np.flatnonzero(time_ns >= 0)
    table = packets.take(seen)
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
