from __future__ import annotations

import numpy as np
import pytest

from detector.clocks.clock_relation import ClockRelation
from detector.clocks.relating import relate
from detector.options import ClockMode, DetectOptions
from detector.pair import Pair, StreamAlignment, Vantage
from detector.presentation.series import flow_series
from pepscope.captures.connections import Close, Connection, FlowSummary, MissingPackets
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, PacketColumns, TcpFlag
from pepscope.results.verdicts import FlowSeries

SEGMENT_BYTES = 1000
DELAY_NS = 40_000_000
START_NS = 1_700_000_000_000_000_000

Event = tuple[int, Direction, int, int, int, int]  # time, direction, sequence, acknowledgement, payload, window


def columns(events: list[Event]) -> PacketColumns:
    """Packets without options, in order of time, behind a SYN."""
    events = [(min(e[0] for e in events) - 1_000_000, Direction.UP, -1, NO_ACKNOWLEDGEMENT, 0, 65535), *sorted(events)]
    time, way, sequence, acknowledgement, payload, window = (np.array(column) for column in zip(*events, strict=True))
    count = len(events)
    flags = np.where(acknowledgement == NO_ACKNOWLEDGEMENT, int(TcpFlag.SYN), int(TcpFlag.ACK))
    return PacketColumns(
        time_ns=time.astype(np.int64),
        direction=way.astype(np.uint8),
        sequence_offset=sequence.astype(np.int64),
        acknowledgement_offset=acknowledgement.astype(np.int64),
        payload_bytes=payload.astype(np.uint32),
        window_bytes=window.astype(np.uint32),
        flags=flags.astype(np.uint16),
        tsval=np.zeros(count, np.uint32),
        tsecr=np.zeros(count, np.uint32),
        ip_id=np.zeros(count, np.uint16),
        ttl=np.full(count, 64, np.uint8),
        payload_hash=np.zeros(count, np.uint32),
        marks=np.zeros(count, np.uint16),
        round_trip_time_ns=np.where(np.arange(count) % 2 == 0, 2 * DELAY_NS, -1).astype(np.int64),
    )


def flow_summary(packets: PacketColumns, direction: Direction) -> FlowSummary:
    data = (packets.direction == direction) & (packets.payload_bytes > 0)
    payload = int(packets.payload_bytes[data].sum())
    return FlowSummary(
        packets=int((packets.direction == direction).sum()), payload_bytes=payload, stream_bytes=payload,
        data_packets=int(data.sum()), retransmitted_packets=0, retransmitted_bytes=0, reordered_packets=0,
        duplicate_packets=0, missed_bytes=0, zero_windows=0, zero_window_probes=0, window_min_bytes=0,
        window_max_bytes=65535, round_trip_time_samples=0, round_trip_time_min_ns=None, round_trip_time_mean_ns=None,
        round_trip_time_max_ns=None, first_time_ns=None, first_data_time_ns=None, last_data_time_ns=None,
        initial_sequence_number=1, syn_count=1, syn_options=b"", maximum_segment_size=1460, window_scale=0,
        window_shift=0, sack_permitted=False, timestamps=False, options_captured=True, options_truncated_packets=0,
        missing_packets=MissingPackets.NONE, ttl=64, fin_time_ns=None, reset_time_ns=None, pure_acknowledgements=0,
    )  # fmt: skip


def vantage(name: str, packets: PacketColumns) -> Vantage:
    up, down = flow_summary(packets, Direction.UP), flow_summary(packets, Direction.DOWN)
    connection = Connection(
        id=0, ip_version=4, client_address="192.0.2.1", client_port=1024, server_address="192.0.2.2", server_port=80,
        side_guessed=False, first_time_ns=int(packets.time_ns[0]), last_time_ns=int(packets.time_ns[-1]),
        packets=len(packets), close=Close.OPEN, handshake_syn_ack_ns=None, handshake_ack_ns=None, tunnel="none",
        tunnel_up=0, tunnel_down=0, up=up, down=down,
    )  # fmt: skip
    return Vantage(name, connection, packets, {})


def transfer(
    direction: Direction,
    *,
    segments: int = 200,
    offset_ns: int = 3_000_000_000,
    early: bool = False,
    step_ns: int = 0,
    clocks: ClockMode = ClockMode.GENERAL,
) -> Pair:
    """A transfer over 40 ms each way whose receiver waits behind a queue, seen at both ends.

    The receiver's clock is ahead by `offset_ns`, and by `step_ns` more from the middle on. `early`: a middlebox
    acknowledges 10 ms after sending, before the data have arrived.
    """
    sender: list[Event] = []
    receiver: list[Event] = []
    for number in range(segments):
        sent = START_NS + number * 5_000_000
        arrived = sent + DELAY_NS + (number % 50) * 2_000_000
        position, reached = number * SEGMENT_BYTES, (number + 1) * SEGMENT_BYTES
        seen = sent + 10_000_000 if early else arrived + DELAY_NS
        sender.append((sent, direction, position, 0, SEGMENT_BYTES, 65535))
        sender.append((seen, direction.reverse, 0, reached, 0, 30_000))
        ahead = offset_ns + (step_ns if arrived > START_NS + segments * 2_500_000 else 0)
        receiver.append((arrived + ahead, direction, position, 0, SEGMENT_BYTES, 65535))
        receiver.append((arrived + ahead + 1, direction.reverse, 0, reached, 0, 40_000))
    ends = (vantage("sender", columns(sender)), vantage("receiver", columns(receiver)))
    client, server = ends if direction is Direction.UP else ends[::-1]
    alignment = {way: StreamAlignment(0, 1, 1.0) for way in Direction}
    return Pair(client, server, alignment, 1.0, DetectOptions(clocks=clocks))


def series_of(pair: Pair, direction: Direction) -> tuple[FlowSeries, ClockRelation]:
    clock = relate(pair)
    return flow_series(pair, clock, direction), clock


@pytest.mark.parametrize("direction", list(Direction))
def test_end_to_end_lies_on_its_sides_of_the_line(direction: Direction) -> None:
    series, _ = series_of(transfer(direction), direction)
    assert series.line_offset_s == pytest.approx(3.0, abs=0.001)
    assert series.line_drift == 0.0
    assert not series.ack_violates.any()
    assert len(series.forward_time_s) == 200
    assert series.one_way_delay_s.min() == pytest.approx(0.04, abs=0.001)
    assert series.one_way_delay_s.max() == pytest.approx(0.04 + 49 * 0.002, abs=0.001)
    assert (series.ack_difference_s - 3.0).max() < -0.03


@pytest.mark.parametrize("direction", list(Direction))
def test_early_acknowledgements_violate_a_line_just_below_the_data(direction: Direction) -> None:
    series, clock = series_of(transfer(direction, early=True), direction)
    assert not clock.separable
    assert series.line_offset_s is not None
    line = series.line_offset_s + series.line_drift * series.forward_time_s
    assert (series.forward_difference_s - line).min() == pytest.approx(0.0, abs=0.002)
    assert series.ack_violates.sum() > 100
    over = series.ack_difference_s - (series.line_offset_s + series.line_drift * series.ack_time_s)
    assert np.array_equal(series.ack_violates, over > 1e-3)


@pytest.mark.parametrize("direction", list(Direction))
def test_receiver_is_brought_onto_the_senders_clock(direction: Direction) -> None:
    series, _ = series_of(transfer(direction), direction)
    assert series.receiver_data_time_s[0] - series.sender_data_time_s[0] == pytest.approx(0.04, abs=0.001)
    assert series.sender_ack_time_s[-1] - series.receiver_ack_time_s[-1] == pytest.approx(0.04, abs=0.001)
    assert series.receiver_data_offset[-1] == series.sender_data_offset[-1] == 200 * SEGMENT_BYTES
    assert series.sender_window_bytes.max() == 30_000
    assert series.receiver_window_bytes.max() == 40_000


@pytest.mark.parametrize("direction", list(Direction))
def test_a_clock_step_is_taken_out(direction: Direction) -> None:
    series, clock = series_of(transfer(direction, segments=800, step_ns=600_000_000), direction)
    assert len(clock.pieces) == 2
    # The packets within a round trip of the step cannot all be assigned to one side of it.
    assert np.quantile(series.one_way_delay_s, 0.99) == pytest.approx(0.04 + 49 * 0.002, abs=0.02)
    assert np.quantile(series.forward_difference_s, 0.99) - series.forward_difference_s.min() < 0.15


def test_synchronised_clocks_draw_the_line_at_zero() -> None:
    pair = transfer(Direction.DOWN, offset_ns=0, clocks=ClockMode.SYNCHRONISED)
    series, _ = series_of(pair, Direction.DOWN)
    assert series.line_offset_s == 0.0
    assert series.one_way_delay_s.min() == pytest.approx(0.04)


def test_one_vantage_draws_what_it_saw() -> None:
    both = transfer(Direction.DOWN)
    alone = Pair(None, both.server_side, both.alignment, 1.0)
    series, _ = series_of(alone, Direction.DOWN)
    assert series.line_offset_s is None
    assert len(series.forward_time_s) == len(series.one_way_delay_s) == len(series.receiver_data_time_s) == 0
    assert len(series.sender_data_time_s) == 200
    assert set(series.round_trip_time_s.tolist()) == {0.08}


def test_streams_that_cannot_be_aligned_are_drawn_but_not_compared() -> None:
    both = transfer(Direction.DOWN)
    series, _ = series_of(Pair(both.client_side, both.server_side, {}, 0.5), Direction.DOWN)
    assert len(series.forward_time_s) == len(series.ack_time_s) == 0
    assert len(series.sender_data_time_s) == len(series.receiver_data_time_s) == 200
    assert series.receiver_data_time_s[0] == pytest.approx(series.sender_data_time_s[0], abs=0.001)


def test_throughput_adds_up_to_the_payload() -> None:
    series, _ = series_of(transfer(Direction.UP), Direction.UP)
    width = series.throughput_at_s[1] - series.throughput_at_s[0]
    assert series.throughput_bit_s.sum() * width / 8 == pytest.approx(200 * SEGMENT_BYTES)
