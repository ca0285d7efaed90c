"""The series behind a page's figures, for one data flow of a pair; computed only for the pairs that are drawn."""

from __future__ import annotations

import numpy as np

from detector.curves import NEVER, AckTimes, ByteTimes, acknowledgements, first_arrivals, first_sent
from detector.pair import ClockMode, Pair, Vantage
from detector.separation import Cloud, separate
from pepscope.packets import Direction, Int64Array, Mark, PacketColumns, TcpFlag
from pepscope.results import FloatArray, FlowSeries

#: Bins of the throughput curve; fewer where they would be shorter than MIN_BIN_S.
THROUGHPUT_BINS = 240
MIN_BIN_S = 0.01

_EMPTY: FloatArray = np.zeros(0)


def flow_series(pair: Pair, direction: Direction) -> FlowSeries:
    """Everything that is drawn of the data in `direction`.

    Times are seconds on the sender's clock from its capture's first packet of the connection (on the receiver's where
    the sender was not captured). The separating line is the best one for this flow's own clouds: in the middle of the
    gap where there is one, and just below the data where there is none, so that every acknowledgement above it is one
    that the sender had before the receiver sent it. With synchronised clocks the line is zero.
    """
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    shift = pair.receiver_shift(direction)
    origin_ns = _origin(sender, receiver)
    forward_at, forward = _forward(sender, receiver, direction, shift, origin_ns)
    ack_at, ack = _backward(sender, receiver, direction, shift, origin_ns)
    offset, drift = _line(pair, forward_at, forward, ack_at, ack)
    violates = np.zeros(len(ack), np.bool_) if offset is None else ack > offset + drift * ack_at
    delay = _EMPTY if offset is None else forward - (offset + drift * forward_at)
    return FlowSeries(
        direction=direction,
        forward_time_s=forward_at,
        forward_difference_s=forward,
        ack_time_s=ack_at,
        ack_difference_s=ack,
        ack_violates=violates,
        line_offset_s=offset,
        line_drift=drift,
        **_sequence(sender, "sender", direction, 0, origin_ns, 0.0, 0.0),
        **_sequence(receiver, "receiver", direction, shift, origin_ns, offset or 0.0, drift),
        **_round_trip_times(sender, direction, origin_ns),
        **_windows(sender, "sender", direction, origin_ns, 0.0, 0.0),
        **_windows(receiver, "receiver", direction, origin_ns, offset or 0.0, drift),
        **_throughput(sender, direction, origin_ns),
        one_way_delay_s=delay,
    )


def _origin(sender: Vantage | None, receiver: Vantage | None) -> int:
    vantage = sender or receiver
    return int(vantage.packets.time_ns[0]) if vantage is not None and len(vantage.packets) else 0


def _seconds(time_ns: Int64Array, origin_ns: int) -> FloatArray:
    return (time_ns - origin_ns) / 1e9


def _forward(
    sender: Vantage | None, receiver: Vantage | None, direction: Direction, shift: int, origin_ns: int
) -> tuple[FloatArray, FloatArray]:
    """Time at the sender, and receiver's minus sender's time, of the first byte of every first copy; both in s."""
    if sender is None or receiver is None:
        return _EMPTY, _EMPTY
    sent: ByteTimes = first_sent(sender.packets, direction)
    arrived = first_arrivals(receiver.packets, direction).at(sent.start - shift)
    known = arrived != NEVER
    return _seconds(sent.time_ns[known], origin_ns), (arrived[known] - sent.time_ns[known]) / 1e9


def _backward(
    sender: Vantage | None, receiver: Vantage | None, direction: Direction, shift: int, origin_ns: int
) -> tuple[FloatArray, FloatArray]:
    """Time at the sender, and receiver's minus sender's time, of every advancing acknowledgement of data; both in s."""
    if sender is None or receiver is None:
        return _EMPTY, _EMPTY
    seen: AckTimes = acknowledgements(sender.packets, direction)
    made = acknowledgements(receiver.packets, direction).reaching(seen.value - shift)
    known = (made != NEVER) & (seen.value > max(0, seen.floor))
    return _seconds(seen.time_ns[known], origin_ns), (made[known] - seen.time_ns[known]) / 1e9


def _line(
    pair: Pair, forward_at: FloatArray, forward: FloatArray, ack_at: FloatArray, ack: FloatArray
) -> tuple[float | None, float]:
    """Offset (s) and drift of the line to draw; no line without both clouds."""
    if pair.options.clocks is ClockMode.SYNCHRONISED:
        return 0.0, 0.0
    if not len(forward) or not len(ack):
        return None, 0.0
    limit = pair.options.drift_limit_ppm * 1e-6 if pair.options.clocks is ClockMode.GENERAL else 0.0
    # About a reference, so that float64 keeps nanoseconds whatever the clocks' difference is.
    reference = float(forward.min())
    upper = Cloud(forward_at * 1e9, (forward - reference) * 1e9)
    lower = Cloud(ack_at * 1e9, (ack - reference) * 1e9)
    best = separate(lower, upper, limit)
    offset_ns = best.offset_ns if best.slack_ns >= 0 else best.high_ns
    return reference + offset_ns * 1e-9, best.drift


def _on_sender_clock(time_s: FloatArray, offset_s: float, drift: float) -> FloatArray:
    """Invert receiver = sender + offset + drift * sender."""
    return (time_s - offset_s) / (1.0 + drift)


def _sequence(
    vantage: Vantage | None, end: str, direction: Direction, shift: int, origin_ns: int, offset_s: float, drift: float
) -> dict[str, FloatArray]:
    if vantage is None:
        data_at = data = ack_at = ack = _EMPTY
    else:
        packets = vantage.packets
        chosen = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
        data_at = _on_sender_clock(_seconds(packets.time_ns[chosen], origin_ns), offset_s, drift)
        data = (packets.sequence_offset[chosen] + packets.payload_bytes[chosen] + shift).astype(np.float64)
        times = acknowledgements(packets, direction)
        ack_at = _on_sender_clock(_seconds(times.time_ns, origin_ns), offset_s, drift)
        ack = (times.value + shift).astype(np.float64)
    return {
        f"{end}_data_time_s": data_at,
        f"{end}_data_offset": data,
        f"{end}_ack_time_s": ack_at,
        f"{end}_ack_offset": ack,
    }


def _round_trip_times(sender: Vantage | None, direction: Direction, origin_ns: int) -> dict[str, FloatArray]:
    if sender is None:
        return {"round_trip_time_s": _EMPTY, "round_trip_time_at_s": _EMPTY}
    packets = sender.packets
    chosen = np.flatnonzero((packets.direction != direction) & (packets.round_trip_time_ns >= 0))
    return {
        "round_trip_time_s": packets.round_trip_time_ns[chosen] / 1e9,
        "round_trip_time_at_s": _seconds(packets.time_ns[chosen], origin_ns),
    }


def _windows(
    vantage: Vantage | None, end: str, direction: Direction, origin_ns: int, offset_s: float, drift: float
) -> dict[str, FloatArray]:
    """Receive window for `direction`'s data, without SYN (unscaled) and RST (meaningless)."""
    if vantage is None:
        return {f"{end}_window_at_s": _EMPTY, f"{end}_window_bytes": _EMPTY}
    packets = vantage.packets
    special = TcpFlag.SYN | TcpFlag.RST
    whole = (packets.marks & Mark.HEADER_TRUNCATED) == 0
    chosen = np.flatnonzero((packets.direction != direction) & ((packets.flags & special) == 0) & whole)
    return {
        f"{end}_window_at_s": _on_sender_clock(_seconds(packets.time_ns[chosen], origin_ns), offset_s, drift),
        f"{end}_window_bytes": packets.window_bytes[chosen].astype(np.float64),
    }


def _throughput(sender: Vantage | None, direction: Direction, origin_ns: int) -> dict[str, FloatArray]:
    """Payload that left the sender, copies included, in equal bins over the time in which it sent."""
    if sender is None:
        return {"throughput_at_s": _EMPTY, "throughput_bit_s": _EMPTY}
    packets: PacketColumns = sender.packets
    chosen = np.flatnonzero((packets.direction == direction) & (packets.payload_bytes > 0))
    if not len(chosen):
        return {"throughput_at_s": _EMPTY, "throughput_bit_s": _EMPTY}
    at = _seconds(packets.time_ns[chosen], origin_ns)
    first, span = float(at.min()), float(at.max() - at.min())
    width = max(span / THROUGHPUT_BINS, MIN_BIN_S)
    bins = int(span / width) + 1
    index = np.minimum(((at - first) / width).astype(np.int64), bins - 1)
    volume = np.bincount(index, weights=packets.payload_bytes[chosen].astype(np.float64), minlength=bins)
    return {
        "throughput_at_s": first + (np.arange(bins) + 0.5) * width,
        "throughput_bit_s": volume * 8 / width,
    }
