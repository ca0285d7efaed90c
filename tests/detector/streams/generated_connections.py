"""Packets of a connection in two captures: loss, copies, other segment bounds, disorder, what a capture missed."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Mark, PacketColumns, TcpFlag

seeds = st.integers(0, 2**32 - 1)
#: What happens: packets are lost on the path, or not recorded by a capture; segments are sent again, cut elsewhere, or
#: recorded twice; the path reorders; the captures begin late; a middlebox acknowledges; a clock is set.
EVENTS = ("lose", "miss", "repeat", "cut", "twice", "reorder", "late", "upload", "relay", "step", "ticks", "finish")
events = st.sets(st.sampled_from(EVENTS))
counts = st.sampled_from([0, 1, 3, 12, 60, 200])

MILLISECOND_NS = 1_000_000
BEGIN_NS = 1_700_000_000_000_000_000
#: time, direction, sequence, payload, acknowledgement, flags, marks
Row = tuple[int, int, int, int, int, int, int]


def captures(seed: int, count: int, how: set[str], shift: int = 0) -> tuple[PacketColumns, PacketColumns]:
    """The connection at the client and at the server, with about `count` segments each way at the most.

    Client offsets are `shift` less than server offsets.
    """
    random = np.random.default_rng(seed)
    client: list[Row] = []
    server: list[Row] = []
    if "late" not in how:
        client += [(0, 0, -1, 0, NO_ACKNOWLEDGEMENT, TcpFlag.SYN, 0), (40, 1, -1, 0, 0, TcpFlag.SYN | TcpFlag.ACK, 0)]
        server += [(20, 0, -1, 0, NO_ACKNOWLEDGEMENT, TcpFlag.SYN, 0), (21, 1, -1, 0, 0, TcpFlag.SYN | TcpFlag.ACK, 0)]
    _flow(random, count, how, Direction.DOWN, server, client)
    if "upload" in how:
        _flow(random, max(count // 3, 1), how, Direction.UP, client, server)
    shown = [_shown(random, client, how, 0), _shown(random, server, how, shift)]
    return shown[0], shown[1]


def _flow(
    random: np.random.Generator, count: int, how: set[str], direction: Direction, sender: list[Row], receiver: list[Row]
) -> None:
    """Data from one end to the other and acknowledgements back."""
    way, back = direction.value, direction.reverse.value
    now, sequence, reached, acknowledged = 50, 0, 0, 0
    missing: list[tuple[int, int]] = []
    for number in range(count):
        now += int(random.integers(0, 30))
        start, size = sequence, int(random.choice([1000, 1000, 1448, 1]))
        mark = 0
        if missing and random.random() < 0.5:
            start, size = missing.pop(0)
            mark = Mark.RETRANSMISSION
        elif "repeat" in how and sequence and random.random() < 0.2:
            start = int(random.integers(0, sequence))
            mark = int(random.choice([Mark.RETRANSMISSION, Mark.DUPLICATE, 0]))
        else:
            sequence += size
        if "cut" in how and mark and random.random() < 0.5:
            start, size = start + size // 3, max(size // 2, 1)
        sender.append((now, way, start, size, 0, TcpFlag.ACK, mark))
        if "twice" in how and random.random() < 0.1:
            sender.append((now, way, start, size, 0, TcpFlag.ACK, Mark.DUPLICATE))
        if "lose" in how and random.random() < 0.1:
            missing.append((start, size))
            continue
        arrival = now + 20 + int(random.integers(0, 10)) * ("reorder" in how)
        marks = int(mark) | (Mark.REORDERED if "reorder" in how and random.random() < 0.2 else 0)
        receiver.append((arrival, way, start, size, 0, TcpFlag.ACK, marks))
        reached = max(reached, start + size)
        if random.random() < 0.6:
            acknowledged = max(acknowledged, reached if not missing else min(reached, missing[0][0]))
            flags = TcpFlag.ACK | (TcpFlag.RST if random.random() < 0.02 else 0)
            payload = 7 if random.random() < 0.05 else 0
            # A relay that acknowledges itself does so before the data reach the other end.
            early = 60 if "relay" in how and number % 7 else 0
            receiver.append((arrival + 1, back, 0, payload, acknowledged, flags, 0))
            sender.append((arrival + 21 - early, back, 0, payload, acknowledged, flags, 0))
    if "finish" in how:
        for rows, later in ((sender, 1), (receiver, 21)):
            rows.append((now + later, way, sequence, 0, 0, TcpFlag.FIN | TcpFlag.ACK, 0))
            rows.append((now + 45 - later, back, 0, 0, sequence + 1, TcpFlag.ACK, 0))


def _shown(random: np.random.Generator, rows: list[Row], how: set[str], shift: int) -> PacketColumns:
    """The rows as one capture has them, in its clock and its offsets."""
    rows = sorted(rows, key=lambda row: row[0])
    if "miss" in how:
        rows = [row for row in rows if random.random() > 0.1]
    if "late" in how:
        rows = rows[len(rows) // 5 :]
    table = np.array(rows, np.int64).reshape(-1, 7)
    sign = np.where(table[:, 1] == Direction.DOWN, 1, 0)
    known = table[:, 4] != NO_ACKNOWLEDGEMENT
    time_ns = BEGIN_NS + table[:, 0] * MILLISECOND_NS
    if "ticks" not in how:
        time_ns = time_ns + random.integers(0, MILLISECOND_NS, len(table))
    time_ns = time_ns + int(random.integers(-(10**12), 10**12))
    if "step" in how and len(table):
        time_ns[len(table) // 2 :] += int(random.choice([600, -600, 5000])) * MILLISECOND_NS
    empty = {name: np.zeros(len(table), np.uint32) for name in ("window_bytes", "tsval", "tsecr", "payload_hash")}
    return PacketColumns(
        time_ns=time_ns,
        direction=table[:, 1].astype(np.uint8),
        sequence_offset=table[:, 2] + shift * sign,
        acknowledgement_offset=table[:, 4] + np.where(known, shift * (1 - sign), 0),
        payload_bytes=table[:, 3].astype(np.uint32),
        flags=table[:, 5].astype(np.uint16),
        ip_id=np.zeros(len(table), np.uint16),
        ttl=np.zeros(len(table), np.uint8),
        marks=table[:, 6].astype(np.uint16),
        round_trip_time_ns=np.full(len(table), -1, np.int64),
        **empty,
    )
