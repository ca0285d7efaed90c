"""The series behind a page's figures, for one data flow of a pair; computed only for the pairs that are drawn."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockRelation
from detector.clocks.clouds import FlowClouds, ack_points, data_points
from detector.clocks.sender_axis import SenderAxis, sender_axis
from detector.pair import Pair, Vantage
from detector.streams.curves import NEVER, acknowledgements
from pepscope.captures.packets import Direction, Int64Array, Mark, TcpFlag
from pepscope.results.verdicts import FloatArray, FlowSeries

#: Bins of the throughput curve; fewer where they would be shorter than MIN_BIN_S.
THROUGHPUT_BINS = 240
MIN_BIN_S = 0.01

#: Beyond every difference of two clocks.
_MOST_NS = np.iinfo(np.int64).max

_EMPTY: FloatArray = np.zeros(0)


def flow_series(pair: Pair, clock: ClockRelation, direction: Direction) -> FlowSeries:
    """Everything that is drawn of the data in `direction`.

    Times are seconds on the sender's clock from its capture's first packet of the connection (on the receiver's where
    the sender was not captured). The line is the clock relation, seen from the sender. Where no relation fits, it is
    the one that data in this direction still allow, just below them, so that an acknowledgement above it is one that
    the sender had before the receiver can have sent it. Steps of a clock are taken out, so that one line remains. An
    acknowledgement counts from the arrival of the data that it covers where the receiver's capture shows it later.
    """
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    axis = sender_axis(sender, receiver, _plainest(clock), direction)
    offset, drift = _line(axis)
    forward_at, forward, ack_at, ack = _clouds(clock.clouds.get(direction), axis, offset, drift)
    over = ack - (offset + drift * ack_at)
    related = axis.clock is not None
    # Where the two streams hold different bytes, each end counts its own.
    shift = pair.receiver_shift(direction) if direction in pair.alignment else 0
    return FlowSeries(
        direction=direction,
        forward_time_s=forward_at,
        forward_difference_s=forward,
        ack_time_s=ack_at,
        ack_difference_s=ack,
        ack_violates=np.asarray(over > TIMESTAMP_ERROR_S) & (related and not clock.separable),
        line_offset_s=offset if related else None,
        line_drift=drift,
        **_sequence(sender, "sender", direction, 0, axis),
        **_sequence(receiver, "receiver", direction, shift, axis),
        **_round_trip_times(sender, direction, axis),
        **_windows(sender, "sender", direction, axis),
        **_windows(receiver, "receiver", direction, axis),
        **_throughput(sender, direction, axis),
        **_in_flight(sender, receiver, direction, axis),
        **_sent_again(sender, receiver, direction, 0 if sender else shift, axis),
        one_way_delay_s=forward - (offset + drift * forward_at) if related else _EMPTY,
    )


def _plainest(clock: ClockRelation) -> ClockRelation:
    """The same relation without drift, if that fits as well: the drift that leaves most room is rarely the real one."""
    if not clock.separable or len(clock.pieces) != 1 or clock.pieces[0].drift == 0.0:
        return clock
    low, high = -math.inf, math.inf
    for direction, flow in clock.clouds.items():
        data, acks = data_points(flow)[1], ack_points(flow)[1]
        upper, lower = (data, acks) if direction is Direction.UP else (acks, data)
        high = min(high, float(upper.min(initial=_MOST_NS)))
        low = max(low, float(lower.max(initial=-_MOST_NS)))
    if not -_MOST_NS < low <= high < _MOST_NS:
        return clock
    piece = replace(clock.pieces[0], offset_ns=low + (high - low) / 2, drift=0.0, low_ns=low, high_ns=high)
    return replace(clock, pieces=(piece,))


def _line(axis: SenderAxis) -> tuple[float, float]:
    """Receiver's minus sender's clock of the first piece: offset (s) at the axis' origin, and drift."""
    if axis.clock is None:
        return 0.0, 0.0
    piece = axis.clock.pieces[0]
    offset_ns = piece.offset_ns + axis.raise_ns
    if axis.direction is Direction.UP:
        return (offset_ns + piece.drift * (axis.origin_ns - piece.reference_ns)) / 1e9, piece.drift
    # client - server = -theta(client), written over the server's time
    drift = -piece.drift / (1.0 + piece.drift)
    return (-offset_ns + drift * (axis.origin_ns - piece.reference_ns - offset_ns)) / 1e9, drift


def _clouds(
    clouds: FlowClouds | None, axis: SenderAxis, offset_s: float, drift: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sender's times and receiver's minus sender's times (s) of data, then of acknowledgements."""
    if clouds is None:
        return _EMPTY, _EMPTY, _EMPTY, _EMPTY
    times = clouds.times
    made = times.earliest_ack_ns
    known = made != NEVER
    points: list[FloatArray] = []
    for sent_ns, received_ns in (
        (times.data_sent_ns, times.data_arrived_ns),
        (times.ack_seen_ns[known], made[known]),
    ):
        at = axis.sender_s(sent_ns)
        difference = np.asarray((received_ns - sent_ns) / 1e9, np.float64)
        if axis.clock is not None and len(axis.clock.pieces) > 1:
            placed = _placed(axis.clock, sent_ns if axis.direction is Direction.UP else received_ns)
            difference = (axis.receiver_s(received_ns) - at + offset_s + drift * at)[placed]
            at = at[placed]
        points += [at, difference]
    return points[0], points[1], points[2], points[3]


def _placed(clock: ClockRelation, client_ns: Int64Array) -> npt.NDArray[np.bool_]:
    """Client times that lie within a piece; between two pieces it is not known on which side of the step they are."""
    placed = np.ones(len(client_ns), np.bool_)
    for before, after in zip(clock.pieces, clock.pieces[1:], strict=False):
        placed &= (client_ns < before.end_ns) | (client_ns >= after.start_ns)
    return placed


def _sequence(
    vantage: Vantage | None, end: str, direction: Direction, shift: int, axis: SenderAxis
) -> dict[str, FloatArray]:
    if vantage is None:
        data_at = data = ack_at = ack = _EMPTY
    else:
        packets = vantage.packets
        clocked = axis.sender_s if end == "sender" else axis.receiver_s
        chosen = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
        data_at = clocked(packets.time_ns[chosen])
        data = (packets.sequence_offset[chosen] + packets.payload_bytes[chosen] + shift).astype(np.float64)
        times = vantage.derived(acknowledgements, direction)
        ack_at = clocked(times.time_ns)
        ack = (times.value + shift).astype(np.float64)
    return {
        f"{end}_data_time_s": data_at,
        f"{end}_data_offset": data,
        f"{end}_ack_time_s": ack_at,
        f"{end}_ack_offset": ack,
    }


def _round_trip_times(sender: Vantage | None, direction: Direction, axis: SenderAxis) -> dict[str, FloatArray]:
    if sender is None:
        return {"round_trip_time_s": _EMPTY, "round_trip_time_at_s": _EMPTY}
    packets = sender.packets
    chosen = np.flatnonzero((packets.direction != direction) & (packets.round_trip_time_ns >= 0))
    return {
        "round_trip_time_s": np.asarray(packets.round_trip_time_ns[chosen] / 1e9, np.float64),
        "round_trip_time_at_s": axis.sender_s(packets.time_ns[chosen]),
    }


def _windows(vantage: Vantage | None, end: str, direction: Direction, axis: SenderAxis) -> dict[str, FloatArray]:
    """Receive window for `direction`'s data, without SYN (unscaled) and RST (meaningless)."""
    if vantage is None:
        return {f"{end}_window_at_s": _EMPTY, f"{end}_window_bytes": _EMPTY}
    packets = vantage.packets
    clocked = axis.sender_s if end == "sender" else axis.receiver_s
    special = TcpFlag.SYN | TcpFlag.RST
    chosen = np.flatnonzero((packets.direction != direction) & ((packets.flags & special) == 0))
    return {
        f"{end}_window_at_s": clocked(packets.time_ns[chosen]),
        f"{end}_window_bytes": packets.window_bytes[chosen].astype(np.float64),
    }


def _in_flight(
    sender: Vantage | None, receiver: Vantage | None, direction: Direction, axis: SenderAxis
) -> dict[str, FloatArray]:
    """What had been sent and not acknowledged after each packet that sent or acknowledged data."""
    vantage = sender or receiver
    if vantage is None:
        return {"in_flight_at_s": _EMPTY, "in_flight_bytes": _EMPTY}
    packets = vantage.packets
    is_data = (packets.direction == direction) & (packets.payload_bytes > 0)
    acknowledges = (packets.direction != direction) & (packets.acknowledgement_offset >= 0)
    chosen = np.flatnonzero(is_data | acknowledges)
    if not len(chosen) or not is_data.any():
        return {"in_flight_at_s": _EMPTY, "in_flight_bytes": _EMPTY}
    begun = int(packets.sequence_offset[is_data].min())
    sent = np.where(is_data, packets.sequence_offset + packets.payload_bytes, begun)[chosen]
    acknowledged = np.where(acknowledges, packets.acknowledgement_offset, begun)[chosen]
    under_way = np.maximum.accumulate(sent) - np.maximum(np.maximum.accumulate(acknowledged), begun)
    clocked = axis.sender_s if sender else axis.receiver_s
    return {
        "in_flight_at_s": clocked(packets.time_ns[chosen]),
        "in_flight_bytes": np.maximum(under_way, 0).astype(np.float64),
    }


def _sent_again(
    sender: Vantage | None, receiver: Vantage | None, direction: Direction, shift: int, axis: SenderAxis
) -> dict[str, FloatArray]:
    """Data that were sent again, by the end of each segment."""
    vantage = sender or receiver
    if vantage is None:
        return {"sent_again_at_s": _EMPTY, "sent_again_offset": _EMPTY}
    packets = vantage.packets
    again = np.flatnonzero((packets.direction == direction) & ((packets.marks & Mark.RETRANSMISSION) != 0))
    clocked = axis.sender_s if sender else axis.receiver_s
    return {
        "sent_again_at_s": clocked(packets.time_ns[again]),
        "sent_again_offset": (packets.sequence_offset[again] + packets.payload_bytes[again] + shift).astype(np.float64),
    }


def _throughput(sender: Vantage | None, direction: Direction, axis: SenderAxis) -> dict[str, FloatArray]:
    """Payload that left the sender, copies included, in equal bins over the time in which it sent."""
    if sender is None:
        return {"throughput_at_s": _EMPTY, "throughput_bit_s": _EMPTY}
    packets = sender.packets
    chosen = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
    if not len(chosen):
        return {"throughput_at_s": _EMPTY, "throughput_bit_s": _EMPTY}
    at = axis.sender_s(packets.time_ns[chosen])
    first, span = float(at.min()), float(at.max() - at.min())
    width = max(span / THROUGHPUT_BINS, MIN_BIN_S)
    bins = int(span / width) + 1
    index = np.minimum(((at - first) / width).astype(np.int64), bins - 1)
    volume = np.bincount(index, weights=packets.payload_bytes[chosen].astype(np.float64), minlength=bins)
    centres: FloatArray = first + (np.arange(bins, dtype=np.float64) + 0.5) * width
    return {
        "throughput_at_s": centres,
        "throughput_bit_s": np.asarray(volume * (8 / width), np.float64),
    }
