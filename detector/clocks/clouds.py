"""Clouds: the times of one flow's data and acknowledgements at both ends, and what capture loss may have spoilt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from detector.pair import Pair, Vantage
from detector.streams import curves
from detector.streams.curves import NEVER
from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns

#: Chance that we accept, per connection, that capture loss alone makes more wrong constraints than are spared.
LOSS_TAIL = 1e-4


#: So many constraints on each side are never counted.
SPARED_LEAST = 2

#: Data and acknowledgements of one flow that are held against each other; of longer flows every k-th is taken. Fewer
#: constraints can only make room for a clock, so a sample never accuses where the whole would not.
POINTS_LIMIT = 1 << 16

#: A copy so soon after the first is the capture's own, taken twice: no sender sends again before a round trip.
SAME_COPY_NS = 1_000_000

#: With fewer compared pieces, disagreement may lie in a rewritten header alone, and lengths keep the alignment.
COMPARED_PIECES = 4


@dataclass(frozen=True, slots=True)
class FlowClouds:
    """Times (ns) of one data direction at its sender and its receiver.

    `data_*`: first copies that left, and their first arrival. `ack_*`: acknowledgements as they reached the sender, and
    when the receiver first sent one as high (`NEVER` where unknown); `arrival_ns`: when the last byte that each covers
    had arrived (`NEVER` where unknown).
    """

    direction: Direction
    data_sent_ns: Int64Array
    data_arrived_ns: Int64Array
    ack_value: Int64Array  # sender-side stream offset
    ack_seen_ns: Int64Array
    ack_sent_ns: Int64Array
    arrival_ns: Int64Array
    own_ack: curves.BoolArray  # plain ones of exactly that value at both ends, the receiver's before any with data
    round_trip_ns: Int64Array  # at the sender, first copy of the byte to its acknowledgement; NEVER where unknown
    sender_missed: tuple[float, int]  # data packets lost by the sender's capture, and held
    receiver_missed: tuple[float, int]
    retransmitted_share: float

    def earliest_ack_ns(self) -> Int64Array:
        """Robust lower bound of when the receiver can have acknowledged; `NEVER` where its capture lacks the byte."""
        return np.where(self.arrival_ns == NEVER, NEVER, np.minimum(self.arrival_ns, self.ack_sent_ns))


def flow_clouds(pair: Pair, direction: Direction) -> FlowClouds | None:
    """Times of one direction's data and acknowledgements at both ends; None where they cannot be compared."""
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    alignment = pair.alignment.get(direction)
    if sender is None or receiver is None or alignment is None:
        return None
    begins = _began(sender, direction) and _began(receiver, direction)
    if alignment.matched < 0.5 and (not begins or alignment.compared >= COMPARED_PIECES):
        return None
    sent = sender.derived(curves.sent_data, direction).first_copies
    if len(sent.start) == 0:
        return None
    shift = pair.receiver_shift(direction)
    arrived = receiver.derived(curves.first_arrivals, direction)
    seen = sender.derived(curves.acknowledgements, direction)
    returned = receiver.derived(curves.acknowledgements, direction)
    data = _every(len(sent.start))
    arrival = arrived.at(sent.start[data] - shift)
    known = (arrival != NEVER) & ~_missed_first_copies(sender, receiver, direction, sent.start[data], shift)
    # Values that were reached before the sender's capture began are late there, which is harmless.
    acks = np.flatnonzero(seen.value > max(seen.floor, 0))
    acks = acks[_every(len(acks))]
    value, seen_ns = seen.value[acks], seen.time_ns[acks]
    last_byte = sent.at(value - 1)
    round_trip = np.where(last_byte == NEVER, NEVER, seen_ns - last_byte)
    round_trip[_repeated(sender, direction, value, seen_ns)] = NEVER
    flow = sender.flow(direction)
    return FlowClouds(
        direction,
        sent.time_ns[data][known],
        arrival[known],
        value,
        seen_ns,
        returned.reaching(value - shift),
        arrived.at(value - 1 - shift),
        seen.plain[acks] & np.isin(value - shift, returned.value[returned.plain & (returned.value > returned.floor)]),
        round_trip,
        curves.missed_packets(sent, seen, from_start=_began(sender, direction)),
        curves.missed_packets(arrived, returned, from_start=_began(receiver, direction)),
        flow.retransmitted_packets / max(flow.data_packets, 1),
    )


def _missed_first_copies(
    sender: Vantage, receiver: Vantage, direction: Direction, start: Int64Array, shift: int
) -> curves.BoolArray:
    """Data of which more copies arrived than the sender's capture holds: it missed one, perhaps the first.

    A capture that began within a recovery, or lost records, shows the copy that was sent again as the first.
    """
    left = sender.derived(curves.sent_data, direction).repeats
    return _covered(start - shift, receiver.derived(_repeated_data, direction)) & ~_covered(start, left)


def _repeated_data(packets: PacketColumns, direction: Direction) -> curves.ByteTimes:
    """Data of which the capture holds another copy before; what was only reordered is no copy."""
    again = (packets.direction == direction) & (packets.payload_bytes > 0)
    again &= (packets.marks & np.uint16(Mark.RETRANSMISSION | Mark.DUPLICATE)) != 0
    again &= (packets.marks & np.uint16(Mark.REORDERED)) == 0
    start = packets.sequence_offset[again]
    return curves.ByteTimes(start, start + packets.payload_bytes[again].astype(np.int64), packets.time_ns[again])


def _covered(offsets: Int64Array, ranges: curves.ByteTimes) -> curves.BoolArray:
    """Which offsets lie in one of the ranges (near a long range also some beside it; a constraint less is no loss)."""
    if len(ranges.start) == 0:
        return np.zeros(len(offsets), np.bool_)
    order = np.argsort(ranges.start, kind="stable")
    reach = np.maximum.accumulate(ranges.end[order])
    index = np.searchsorted(ranges.start[order], offsets, side="right") - 1
    return np.asarray((index >= 0) & (reach[np.maximum(index, 0)] > offsets))


def _every(count: int) -> Int64Array:
    """Places of at most `POINTS_LIMIT` of `count` points, evenly spread, and the last one."""
    step = -(-count // POINTS_LIMIT)
    if step <= 1:
        return np.arange(count)
    return np.append(np.arange(0, count - 1, step), count - 1)


def _began(vantage: Vantage, direction: Direction) -> bool:
    """Whether the capture holds the beginning of the stream."""
    return vantage.flow(direction).initial_sequence_number is not None


def least_round_trip_ns(clouds: Mapping[Direction, FlowClouds]) -> float:
    """Least acknowledgement round trip at the sender of the larger flow (Karn); infinite where there is none."""
    largest = max(clouds.values(), key=lambda flow: len(flow.data_sent_ns))
    known = largest.round_trip_ns[largest.round_trip_ns != NEVER]
    return float(known.min()) if len(known) else math.inf


def least_hold_ns(clouds: Mapping[Direction, FlowClouds]) -> float:
    """Least time for which the receiver of the larger flow held an acknowledgement back; 0 where unknown."""
    largest = max(clouds.values(), key=lambda flow: len(flow.data_sent_ns))
    known = (largest.arrival_ns != NEVER) & (largest.ack_sent_ns != NEVER)
    return max(0.0, float((largest.ack_sent_ns - largest.arrival_ns)[known].min())) if known.any() else 0.0


def loss_share(missed: tuple[float, int]) -> float:
    """Share of packets that a capture loses, given how many data packets it missed and how many it holds.

    Before anything is seen a capture is taken to lose one packet in twenty, worth twenty packets of experience.
    """
    lost, held = missed
    return (lost + 1.0) / (held + lost + 20.0)


def spared_points(mean: float) -> int:
    """How many wrong constraints to spare when `mean` are expected.

    The least k with P(Poisson(mean) > k) <= `LOSS_TAIL`, and never below `SPARED_LEAST`: a body of packets is asked
    for, since one or two may be odd for reasons outside the model.
    """
    if mean > 500:  # normal tail, 4 standard deviations, where exp(-mean) would vanish
        return math.ceil(mean + 4 * math.sqrt(mean))
    term = math.exp(-mean)
    below, count = term, 0
    while 1.0 - below > LOSS_TAIL:
        count += 1
        term *= mean / count
        below += term
    return max(count, SPARED_LEAST)


def ack_points(flow: FlowClouds, *, as_sent: bool, server_clock: bool = False) -> tuple[Int64Array, Int64Array]:
    """x (ns, client or server clock) and y (ns, server minus client) of acknowledgements.

    `as_sent` takes the receiver's own acknowledgement time, else the robust earliest time.
    """
    receiver = flow.ack_sent_ns if as_sent else flow.earliest_ack_ns()
    known = receiver != NEVER
    return _points(flow.direction, flow.ack_seen_ns[known], receiver[known], server_clock=server_clock)


def data_points(flow: FlowClouds, *, server_clock: bool = False) -> tuple[Int64Array, Int64Array]:
    """x (ns, client or server clock) and y (ns, server minus client) of data."""
    return _points(flow.direction, flow.data_sent_ns, flow.data_arrived_ns, server_clock=server_clock)


def _points(
    direction: Direction, sender_ns: Int64Array, receiver_ns: Int64Array, *, server_clock: bool
) -> tuple[Int64Array, Int64Array]:
    client, server = (sender_ns, receiver_ns) if direction is Direction.UP else (receiver_ns, sender_ns)
    return (server if server_clock else client), server - client


def _repeated(sender: Vantage, direction: Direction, value: Int64Array, seen_ns: Int64Array) -> curves.BoolArray:
    """Acknowledgements whose last byte was sent again before they came (Karn)."""
    sent = sender.derived(curves.sent_data, direction)
    again = sent.repeats.time_ns - sent.first_copies.at(sent.repeats.start) > SAME_COPY_NS
    repeats = curves.ByteTimes(sent.repeats.start[again], sent.repeats.end[again], sent.repeats.time_ns[again])
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
