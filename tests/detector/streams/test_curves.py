import sys

import numpy as np

from detector.streams.curves import NEVER, acknowledgements, first_arrivals, sent_data
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, PacketColumns, TcpFlag


def columns(rows):
    """Rows of (time, direction, sequence, payload, acknowledgement or None, flags)."""
    n = len(rows)
    empty = {name: np.zeros(n, np.uint32) for name in ("window_bytes", "tsval", "tsecr", "payload_hash")}
    return PacketColumns(
        time_ns=np.array([r[0] for r in rows], np.int64),
        direction=np.array([r[1] for r in rows], np.uint8),
        sequence_offset=np.array([r[2] for r in rows], np.int64),
        acknowledgement_offset=np.array([NO_ACKNOWLEDGEMENT if r[4] is None else r[4] for r in rows], np.int64),
        payload_bytes=np.array([r[3] for r in rows], np.uint32),
        flags=np.array([r[5] for r in rows], np.uint16),
        ip_id=np.zeros(n, np.uint16),
        ttl=np.zeros(n, np.uint8),
        marks=np.zeros(n, np.uint16),
        round_trip_time_ns=np.full(n, -1, np.int64),
        **empty,
    )


SYN = (0, 0, -1, 0, None, TcpFlag.SYN)
ACK = TcpFlag.ACK


def down(time, start, size):
    return (time, 1, start, size, 0, ACK)


def up_ack(time, value, size=0):
    return (time, 0, 0, size, value, ACK)


def test_first_copies_are_those_beyond_everything_sent():
    sent = sent_data(
        columns([SYN, down(1, 0, 100), down(2, 200, 100), down(5, 100, 100), down(6, 250, 100)]), Direction.DOWN
    )
    # Bytes 100..199 first show below the highest: the capture missed their first copy.
    assert sent.first_copies.at(np.array([0, 99, 100, 200, 299, 300, 350])).tolist() == [1, 1, NEVER, 2, 2, 6, NEVER]


def test_hole_fillers_arrive_when_they_arrive_and_earliest_counts():
    rows = [SYN, down(1, 0, 100), down(2, 300, 100), down(3, 150, 100), down(4, 100, 120), down(5, 100, 200)]
    arrived = first_arrivals(columns(rows), Direction.DOWN)
    assert arrived.at(np.array([0, 100, 149, 150, 219, 249, 250, 299, 300])).tolist() == [1, 4, 4, 3, 3, 3, 5, 5, 2]


def test_acknowledgements_are_running_maxima():
    acks = acknowledgements(
        columns([SYN, up_ack(1, 0), up_ack(2, 200), up_ack(3, 100), up_ack(4, 300, 10)]), Direction.DOWN
    )
    assert (acks.value.tolist(), acks.time_ns.tolist(), acks.floor) == ([0, 200, 300], [1, 2, 4], 0)
    assert acks.plain.tolist() == [True, True, False]


def test_without_a_syn_the_first_value_is_a_floor():
    acks = acknowledgements(columns([up_ack(1, 500), up_ack(2, 600)]), Direction.DOWN)
    assert (acks.value.tolist(), acks.floor) == ([500, 600], 500)


def test_a_long_connection_takes_no_call_for_each_packet():
    n = 2_000_000
    start = np.arange(n, dtype=np.int64) * 1448
    start[1000::1000] -= 1448 * 5  # a repeat every thousand packets
    base = columns([down(0, 0, 1)])
    big = {name: np.repeat(getattr(base, name), n) for name in PacketColumns.COLUMNS}
    big |= {
        "time_ns": np.arange(n, dtype=np.int64),
        "sequence_offset": start,
        "payload_bytes": np.full(n, 1448, np.uint32),
    }
    packets = PacketColumns(**big)
    calls = [0]

    def count(_frame: object, _event: str, _argument: object) -> None:
        calls[0] += 1

    sys.setprofile(count)
    try:
        sent_data(packets, Direction.DOWN)
        first_arrivals(packets, Direction.DOWN)
    finally:
        sys.setprofile(None)
    assert 0 < calls[0] < 10_000
