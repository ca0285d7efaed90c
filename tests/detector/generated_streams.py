"""Packets and payload samples of any connection, for comparisons with references."""

from __future__ import annotations

import itertools

import numpy as np

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Mark, PacketColumns, PayloadSample, TcpFlag

_KINDS = (
    TcpFlag.ACK, TcpFlag.ACK, TcpFlag.ACK | TcpFlag.PSH, TcpFlag.SYN, TcpFlag.SYN | TcpFlag.ECE | TcpFlag.CWR,
    TcpFlag.SYN | TcpFlag.ACK, TcpFlag.FIN | TcpFlag.ACK, TcpFlag.SYN | TcpFlag.FIN, TcpFlag.RST,
)  # fmt: skip


def packets_of(random: np.random.Generator, count: int) -> PacketColumns:
    """Packets in both directions with few different numbers, so that many are equal, and a clock that jumps."""
    gap_ns = random.choice([0, 1_000, 9_000_000, 20_000_000, -9_000_000, -10_000_000, -10_000_001, -40_000_000], count)
    return PacketColumns(
        time_ns=1_700_000_000_000_000_000 + np.cumsum(gap_ns if random.random() < 0.5 else abs(gap_ns)),
        direction=random.integers(0, 2, count, np.uint8),
        sequence_offset=random.choice([-1, 0, 1448, 2896, 1 << 40], count) + random.integers(0, 2, count),
        acknowledgement_offset=np.full(count, NO_ACKNOWLEDGEMENT, np.int64),
        payload_bytes=random.choice([0, 1, 1448, 1 << 24], count).astype(np.uint32),
        window_bytes=random.choice([0, 65_535, 1 << 30], count).astype(np.uint32),
        flags=np.array([int(random.choice(_KINDS)) for _ in range(count)], np.uint16),
        tsval=random.choice([0, 1, 2, 3, 4, (1 << 32) - 1], count).astype(np.uint32),
        tsecr=np.zeros(count, np.uint32),
        ip_id=random.choice([0, 7, 8, 9, 65_535], count).astype(np.uint16),
        ttl=random.integers(1, 256, count).astype(np.uint8),
        payload_hash=np.zeros(count, np.uint32),
        marks=random.choice([0, int(Mark.HAS_TIMESTAMPS)], count).astype(np.uint16),
        round_trip_time_ns=np.full(count, -1, np.int64),
    )


def moved(random: np.random.Generator, packets: PacketColumns, shift: int) -> PacketColumns:
    """Most of the packets, as another capture whose offsets begin elsewhere holds them."""
    kept = random.random(len(packets)) < 0.8
    columns = {name: getattr(packets, name)[kept] for name in PacketColumns.COLUMNS}
    return PacketColumns(**{**columns, "sequence_offset": columns["sequence_offset"] + shift})


def sample_of(random: np.random.Generator, stream: bytes, start: int) -> PayloadSample:
    """What a capture keeps of a stream in segments of its own: some twice, some not, some out of order."""
    cuts = [0, *sorted(random.integers(0, len(stream) + 1, random.integers(0, 90)).tolist()), len(stream)]
    kept = int(random.choice([16, 64, 256]))
    pieces = [(begin, stream[begin : min(end, begin + kept)]) for begin, end in itertools.pairwise(cuts)]
    pieces = [piece for piece in pieces for _ in range(random.choice([0, 1, 1, 1, 2]))]
    if random.random() < 0.5:
        random.shuffle(pieces)
    return PayloadSample([start + begin for begin, _ in pieces], [piece for _, piece in pieces])


def stream_of(random: np.random.Generator) -> bytes:
    """Content that is random, of few letters, of squares over and over, or of one byte."""
    length = int(random.choice([0, 7, 100, 3000, 30_000]))
    letters = int(random.choice([1, 2, 256, 256, 256]))
    tile = random.integers(0, letters, int(random.choice([40, 90, 30_000])), np.uint8).tobytes()
    return (tile * (length // len(tile) + 1))[:length]
