"""Times of flows and the clouds of their constraints in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from detector.streams.curves import NEVER, AckTimes, ByteTimes, acknowledgements, sent_data
from pepscope.captures.packets import BoolArray, Direction, Int64Array, Mark, PacketColumns
from tests.detector.clocks.reference_separation import Cloud, thin
from tests.detector.streams.reference_curves import first_arrivals, missed_packets, reaching

Points: TypeAlias = tuple[Int64Array, Int64Array]

#: A copy so soon after the first is the capture's own, taken twice.
SAME_COPY_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class FlowTimes:
    """Times (ns) of one data direction at its sender and its receiver."""

    direction: Direction
    data_sent_ns: Int64Array
    data_arrived_ns: Int64Array
    ack_value: Int64Array
    ack_seen_ns: Int64Array
    ack_sent_ns: Int64Array
    arrival_ns: Int64Array
    own_ack: BoolArray
    round_trip_ns: Int64Array
    sender_missed: tuple[float, int]
    receiver_missed: tuple[float, int]

    @property
    def earliest_ack_ns(self) -> Int64Array:
        return np.where(self.arrival_ns == NEVER, NEVER, np.minimum(self.arrival_ns, self.ack_sent_ns))


def flow_times(
    direction: Direction,
    sender: PacketColumns,
    receiver: PacketColumns,
    shift: int,
    sender_began: bool,
    receiver_began: bool,
    points_limit: int,
) -> FlowTimes | None:
    sent = sent_data(sender, direction).first_copies
    if len(sent.start) == 0:
        return None
    arrived = first_arrivals(receiver, direction)
    seen, returned = acknowledgements(sender, direction), acknowledgements(receiver, direction)
    data = _every(len(sent.start), points_limit)
    arrival = arrived.at(sent.start[data] - shift)
    known = (arrival != NEVER) & ~_missed_first_copies(sender, receiver, direction, sent.start[data], shift)
    acks = np.flatnonzero(seen.value > max(seen.floor, 0))
    acks = acks[_every(len(acks), points_limit)]
    value, seen_ns = seen.value[acks], seen.time_ns[acks]
    last_byte, came = sent.at(value - 1), arrived.at(value - 1 - shift)
    round_trip = np.where(last_byte == NEVER, NEVER, seen_ns - last_byte)
    round_trip[_repeated(sender, direction, value, seen_ns)] = NEVER
    return FlowTimes(
        direction,
        sent.time_ns[data][known],
        arrival[known],
        value,
        seen_ns,
        reaching(returned, value - shift),
        came if receiver_began else _known_arrivals(came, value, shift, sent_data(sender, direction).repeats, returned),
        seen.plain[acks] & np.isin(value - shift, returned.value[returned.plain & (returned.value > returned.floor)]),
        round_trip,
        missed_packets(sent, seen, from_start=sender_began),
        missed_packets(arrived, returned, from_start=receiver_began),
    )


def _known_arrivals(
    arrival: Int64Array, value: Int64Array, shift: int, repeats: ByteTimes, returned: AckTimes
) -> Int64Array:
    """Arrivals without those of bytes that may have come before the receiver's capture began."""
    may_be_earlier = np.ones(len(value), np.bool_)
    is_late = np.zeros(len(value), np.bool_)
    if len(returned.value):
        may_be_earlier = value - shift <= returned.floor
        is_late = arrival > returned.time_ns[0]
    return np.where(may_be_earlier & (is_late | _covered(value - 1, repeats)), NEVER, arrival)


def ack_points(flow: FlowTimes, *, as_sent: bool, server_clock: bool = False) -> Points:
    """x (ns, client or server clock) and y (ns, server minus client) of acknowledgements."""
    receiver = flow.ack_sent_ns if as_sent else flow.earliest_ack_ns
    known = receiver != NEVER
    if as_sent:
        known &= flow.own_ack
    return _points(flow.direction, flow.ack_seen_ns[known], receiver[known], server_clock=server_clock)


def data_points(flow: FlowTimes, *, server_clock: bool = False) -> Points:
    """x (ns, client or server clock) and y (ns, server minus client) of data."""
    return _points(flow.direction, flow.data_sent_ns, flow.data_arrived_ns, server_clock=server_clock)


def gathered(
    flows: list[FlowTimes], lower_spared: int, upper_spared: int, bins: int, *, server_clock: bool
) -> tuple[Cloud, Cloud, int, int]:
    """Lower and upper cloud, reference time and reference difference."""
    sides: dict[bool, list[Points]] = {True: [], False: []}
    for flow in flows:
        data_is_upper = flow.direction is Direction.UP
        sides[data_is_upper].append(data_points(flow, server_clock=server_clock))
        sides[not data_is_upper].append(ack_points(flow, as_sent=False, server_clock=server_clock))
    everything = [points for side in sides.values() for points in side if len(points[0])]
    reference = int(min(points[0].min() for points in everything)) if everything else 0
    base = int(np.median(everything[0][1])) if everything else 0
    lower = cloud_of(sides[False], reference, base, lower_spared + 1, bins, highest=True)
    upper = cloud_of(sides[True], reference, base, upper_spared + 1, bins, highest=False)
    return lower, upper, reference, base


def cloud_of(points: list[Points], reference: int, base: int, kept: int, bins: int, *, highest: bool) -> Cloud:
    if not points:
        return Cloud(np.zeros(0), np.zeros(0))
    x = (np.concatenate([p[0] for p in points]) - reference).astype(np.float64)
    y = (np.concatenate([p[1] for p in points]) - base).astype(np.float64)
    return thin(Cloud(x, y), kept, bins, highest=highest)


def _points(direction: Direction, sender_ns: Int64Array, receiver_ns: Int64Array, *, server_clock: bool) -> Points:
    client, server = (sender_ns, receiver_ns) if direction is Direction.UP else (receiver_ns, sender_ns)
    return (server if server_clock else client), server - client


def _missed_first_copies(
    sender: PacketColumns, receiver: PacketColumns, direction: Direction, start: Int64Array, shift: int
) -> BoolArray:
    left = sent_data(sender, direction).repeats
    return _covered(start - shift, _repeated_data(receiver, direction)) & ~_covered(start, left)


def _repeated_data(packets: PacketColumns, direction: Direction) -> ByteTimes:
    """Data that the capture shows to have been sent again; what was only reordered, or captured again, was not."""
    again = (packets.direction == direction) & (packets.payload_bytes > 0)
    again &= (packets.marks & np.uint16(Mark.RETRANSMISSION)) != 0
    again &= (packets.marks & np.uint16(Mark.DUPLICATE | Mark.REORDERED)) == 0
    start = packets.sequence_offset[again]
    return ByteTimes(start, start + packets.payload_bytes[again].astype(np.int64), packets.time_ns[again])


def _covered(offsets: Int64Array, ranges: ByteTimes) -> BoolArray:
    """Which offsets lie in one of the ranges (near a long range also some beside it; a constraint less is no loss)."""
    if len(ranges.start) == 0:
        return np.zeros(len(offsets), np.bool_)
    order = np.argsort(ranges.start, kind="stable")
    reach = np.maximum.accumulate(ranges.end[order])
    index = np.searchsorted(ranges.start[order], offsets, side="right") - 1
    return np.asarray((index >= 0) & (reach[np.maximum(index, 0)] > offsets))


def _every(count: int, limit: int) -> Int64Array:
    step = -(-count // limit)
    if step <= 1:
        return np.arange(count)
    return np.append(np.arange(0, count - 1, step), count - 1)


def _repeated(sender: PacketColumns, direction: Direction, value: Int64Array, seen_ns: Int64Array) -> BoolArray:
    """Acknowledgements whose last byte was sent again before they came (Karn)."""
    sent = sent_data(sender, direction)
    again = sent.repeats.time_ns - sent.first_copies.at(sent.repeats.start) > SAME_COPY_NS
    repeats = ByteTimes(sent.repeats.start[again], sent.repeats.end[again], sent.repeats.time_ns[again])
    result = np.zeros(len(value), np.bool_)
    if len(repeats.start) == 0:
        return result
    order = np.argsort(repeats.start, kind="stable")
    reach = np.maximum.accumulate(repeats.end[order])
    index = np.searchsorted(repeats.start[order], value - 1, side="right") - 1
    inside = (index >= 0) & (reach[np.maximum(index, 0)] >= value)
    # One early repeat anywhere in the range is enough: a sample less is no loss.
    earliest = np.minimum.accumulate(repeats.time_ns[order])
    result[inside] = earliest[index[inside]] <= seen_ns[inside]
    return result
