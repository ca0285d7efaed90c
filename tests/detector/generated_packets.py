"""Packets of connections as captures show them: copies, holes, fills, resets, shut windows, times with jitter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Mark, PacketColumns, TcpFlag

START_NS = 1_700_000_000 * 10**9
SEGMENT_BYTES = 1448


@dataclass(frozen=True)
class Shape:
    """What one connection looks like in one capture."""

    seed: int
    count: int
    with_syn: bool
    odd_share: float  # of packets that are copies, leave a hole, or fill one
    ending: TcpFlag  # what its last packets carry
    jitter_ns: int  # by how much times may fall back


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 150),
    with_syn=st.booleans(),
    odd_share=st.sampled_from([0.0, 0.1, 0.4]),
    ending=st.sampled_from([TcpFlag.ACK, TcpFlag.FIN, TcpFlag.RST, TcpFlag.FIN | TcpFlag.RST]),
    jitter_ns=st.sampled_from([0, 0, 400_000]),
)


def packets_of(shape: Shape) -> PacketColumns:
    """The columns of one connection."""
    random = np.random.default_rng(shape.seed)
    count = shape.count
    direction = _directions(random, count)
    payload = np.where(random.random(count) < 0.5, 0, random.choice([SEGMENT_BYTES, SEGMENT_BYTES, 700, 1], count))
    flags = np.full(count, int(TcpFlag.ACK), np.int64)
    if shape.with_syn:
        flags[:2] |= int(TcpFlag.SYN)
        payload[:2] = 0
        direction[:2] = np.array([Direction.UP, Direction.DOWN])[: len(direction[:2])]
    flags[random.random(count) < 0.02] |= int(TcpFlag.FIN)
    last = max(0, count - 4)
    flags[last:] = np.where(random.random(count - last) < 0.7, flags[last:] | int(shape.ending), flags[last:])
    sequence, acknowledgement = _offsets(random, shape, direction, payload)
    acknowledgement[(random.random(count) < 0.03) | (np.arange(count) < shape.with_syn)] = NO_ACKNOWLEDGEMENT
    gaps = random.choice([0, 1_000, 300_000, 20_000_000], count)
    time_ns = START_NS + np.cumsum(gaps) - random.integers(0, shape.jitter_ns + 1, count)
    flag_marks = [Mark.RETRANSMISSION, Mark.DUPLICATE, Mark.ZERO_WINDOW_PROBE, Mark.HAS_TIMESTAMPS]
    marks = np.where(random.random(count) < 0.1, random.choice([int(mark) for mark in flag_marks], count), 0)
    return PacketColumns(
        time_ns=time_ns.astype(np.int64),
        direction=direction.astype(np.uint8),
        sequence_offset=sequence,
        acknowledgement_offset=acknowledgement,
        payload_bytes=payload.astype(np.uint32),
        window_bytes=_windows(random, count),
        flags=flags.astype(np.uint16),
        tsval=random.integers(0, 5, count).astype(np.uint32),
        tsecr=random.integers(0, 5, count).astype(np.uint32),
        ip_id=random.integers(0, 1 << 16, count).astype(np.uint16),
        ttl=random.choice([64, 63, 57], count).astype(np.uint8),
        payload_hash=random.integers(0, 1 << 32, count).astype(np.uint32),
        marks=marks.astype(np.uint16),
        round_trip_time_ns=np.full(count, -1, np.int64),
    )


def _directions(random: np.random.Generator, count: int) -> np.ndarray:
    """Runs of one direction, as questions, answers and their acknowledgements make them."""
    turns = random.random(count) < 0.3
    return (np.cumsum(turns) + int(random.integers(2))) % 2


def _offsets(
    random: np.random.Generator, shape: Shape, direction: np.ndarray, payload: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    sent, sequence, acknowledgement = [0, 0], np.zeros(shape.count, np.int64), np.zeros(shape.count, np.int64)
    odd = random.random(shape.count) < shape.odd_share
    for place in range(shape.count):
        way, length = int(direction[place]), int(payload[place])
        if shape.with_syn and place < 2:
            sequence[place] = -1
            continue
        begins = sent[way]
        if odd[place]:
            # A segment ahead of its turn, or one of what lies before.
            begins += int(random.choice([SEGMENT_BYTES, -SEGMENT_BYTES, -700, -3 * SEGMENT_BYTES]))
        sequence[place] = max(0, begins)
        sent[way] = max(sent[way], int(sequence[place]) + length)
        held_back = int(random.choice([0, 0, SEGMENT_BYTES, 5000]))
        acknowledgement[place] = max(0, sent[1 - way] - held_back)
    return sequence, acknowledgement


def _windows(random: np.random.Generator, count: int) -> np.ndarray:
    windows = random.choice([65_535, 65_535, 131_072, 30_000, 500, 0], count)
    # A window is advertised again and again.
    for place in range(1, count):
        if random.random() < 0.6:
            windows[place] = windows[place - 1]
    return windows.astype(np.uint32)
