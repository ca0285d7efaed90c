"""Clouds: the times of one flow's data and acknowledgements at both ends, and what capture loss may have spoilt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from detector.pair import Pair
from detector.streams.curves import NEVER
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array

#: Chance that we accept, per connection, that capture loss alone makes more wrong constraints than are spared.
LOSS_TAIL = 1e-4

#: So many constraints on each side are never counted.
SPARED_LEAST = 2

#: Data and acknowledgements of one flow that are held against each other; of longer flows every k-th is taken. Fewer
#: constraints can only make room for a clock, so a sample never accuses where the whole would not.
POINTS_LIMIT = 1 << 16

#: A copy so soon after the first is the capture's own, taken twice: no sender sends again before a round trip.
SAME_COPY_NS = 1_000_000

#: Share of compared pieces above which payload shows alone where a stream lies.
AGREES = 0.9

#: With fewer compared pieces, disagreement may lie in a rewritten header alone, and lengths keep the alignment.
COMPARED_PIECES = 4


@dataclass(frozen=True, slots=True)
class FlowClouds:
    """Times of one data direction at its sender and its receiver, and the share of its data that was sent again."""

    direction: Direction
    times: _core.FlowTimes
    retransmitted_share: float


def flow_clouds(pair: Pair, direction: Direction) -> FlowClouds | None:
    """Times of one direction's data and acknowledgements at both ends; None where they cannot be compared."""
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    alignment = pair.alignment.get(direction)
    if sender is None or receiver is None or alignment is None:
        return None
    sent, arrived = sender.flow(direction), receiver.flow(direction)
    sender_began, receiver_began = sent.initial_sequence_number is not None, arrived.initial_sequence_number is not None
    if not (sender_began and receiver_began):
        # Payload alone lays the streams over each other: content that repeats agrees in part at many places.
        if alignment.matched <= AGREES:
            return None
    elif alignment.matched < 0.5 and alignment.compared >= COMPARED_PIECES:
        return None
    times = _core.FlowTimes.of_captures(
        direction,
        sender.packets,
        receiver.packets,
        pair.receiver_shift(direction),
        sender_began,
        receiver_began,
        POINTS_LIMIT,
        SAME_COPY_NS,
    )
    if times is None:
        return None
    return FlowClouds(direction, times, sent.retransmitted_packets / max(sent.data_packets, 1))


def larger(clouds: Mapping[Direction, FlowClouds]) -> FlowClouds | None:
    """The flow with most data points; None without flows."""
    most: FlowClouds | None = None
    for flow in clouds.values():
        if most is None or flow.times.data_count > most.times.data_count:
            most = flow
    return most


def least_round_trip_ns(clouds: Mapping[Direction, FlowClouds]) -> float:
    """Least acknowledgement round trip at the sender of the larger flow (Karn); infinite where there is none."""
    flow = larger(clouds)
    least_ns = None if flow is None else flow.times.least_round_trip_ns
    return math.inf if least_ns is None else float(least_ns)


def least_hold_ns(clouds: Mapping[Direction, FlowClouds]) -> float:
    """Least time for which the receiver of the larger flow held an acknowledgement back; 0 where unknown."""
    flow = larger(clouds)
    least_ns = None if flow is None else flow.times.least_hold_ns
    return 0.0 if least_ns is None else max(0.0, float(least_ns))


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


def ack_points(flow: FlowClouds) -> tuple[Int64Array, Int64Array]:
    """x (ns, client clock) and y (ns, server minus client) of acknowledgements, from the robust earliest time."""
    receiver = flow.times.earliest_ack_ns
    known = receiver != NEVER
    return _points(flow.direction, flow.times.ack_seen_ns[known], receiver[known])


def data_points(flow: FlowClouds) -> tuple[Int64Array, Int64Array]:
    """x (ns, client clock) and y (ns, server minus client) of data."""
    return _points(flow.direction, flow.times.data_sent_ns, flow.times.data_arrived_ns)


def _points(direction: Direction, sender_ns: Int64Array, receiver_ns: Int64Array) -> tuple[Int64Array, Int64Array]:
    client, server = (sender_ns, receiver_ns) if direction is Direction.UP else (receiver_ns, sender_ns)
    return client, server - client
