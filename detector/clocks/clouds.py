"""Clouds: the times of one flow's data and acknowledgements at both ends, and what capture loss may have spoilt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from detector.pair import Pair
from detector.streams.curves import NEVER
from detector.streams.loaded import OnDemand, packets_of
from detector.streams.sides import AlignmentColumns, Sides
from detector.streams.size_changes import are_moved_within
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: Chance that we accept, per connection, that capture loss alone makes more wrong constraints than are spared.
LOSS_TAIL = 1e-4

#: So many constraints on each side are never counted.
SPARED_LEAST = 2

#: Expected wrong constraints from which their number is as good as normal, where exp(-mean) would vanish.
MANY_EXPECTED = 500

#: Data and acknowledgements of one flow that are held against each other; of longer flows every k-th is taken. Fewer
#: constraints can only make room for a clock, so a sample never accuses where the whole would not.
POINTS_LIMIT = 1 << 16

#: A copy so soon after the first is the capture's own, taken twice: no sender sends again before a round trip.
SAME_COPY_NS = 1_000_000

#: Share of compared pieces above which payload shows alone where a stream lies.
AGREES = 0.9

#: With fewer compared pieces, disagreement may lie in a rewritten header alone, and lengths keep the alignment.
COMPARED_PIECES = 4

# A member is compared for each flow, and an enum takes long to find it.
_UP = Direction.UP


class FlowClouds(Struct, frozen=True):
    """Times of one data direction at its sender and its receiver, and the share of its data that was sent again."""

    direction: Direction
    times: _core.FlowTimes
    retransmitted_share: float


class Clouds(OnDemand[Mapping[Direction, FlowClouds]]):
    """The clouds of many pairs by direction: `times` up and down, None where these cannot be compared, and the shares
    of data that were sent again; objects of those that are read."""

    def __init__(self, times: Sequence[Sequence[_core.FlowTimes | None]], retransmitted_share: FloatArray) -> None:
        self.times = times
        self.retransmitted_share = retransmitted_share
        super().__init__(len(times[0]))

    @classmethod
    def of(cls, clouds: Sequence[Mapping[Direction, FlowClouds]]) -> Clouds:
        """Clouds that are objects already."""
        flows = [[each.get(direction) for each in clouds] for direction in DIRECTIONS]
        times = [[None if flow is None else flow.times for flow in way] for way in flows]
        shares = [[0.0 if flow is None else flow.retransmitted_share for flow in way] for way in flows]
        made = cls(times, np.array(shares, np.float64).reshape(2, -1))
        made.made.update(enumerate(clouds))
        return made

    def at(self, rows: Int64Array) -> Clouds:
        """Those of some pairs."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        chosen: list[int] = rows.tolist()
        return Clouds([[way[row] for row in chosen] for way in self.times], self.retransmitted_share[:, rows])

    @cached_property
    def are_compared(self) -> BoolArray:
        """Whether the flow of a direction (rows) of each pair can be compared."""
        return np.array([[times is not None for times in way] for way in self.times], np.bool_)

    def _make(self, row: int) -> Mapping[Direction, FlowClouds]:
        return {
            direction: FlowClouds(direction, times, float(self.retransmitted_share[direction, row]))
            for direction in DIRECTIONS
            if (times := self.times[direction][row]) is not None
        }


def clouds_of(pairs: Sequence[Pair], known_sides: Sides | None = None) -> Clouds:
    """Times of the data and acknowledgements of each pair at both ends, by direction, where they can be compared."""
    sides = known_sides or Sides.of(pairs)
    times_of: list[Sequence[_core.FlowTimes | None]] = []
    shares = np.zeros((2, len(pairs)))
    for direction in DIRECTIONS:
        aligned, began = sides.aligned(direction), sides.began(direction)
        chosen = np.flatnonzero(_can_be_compared(aligned, began) & ~are_moved_within(sides, direction))
        senders, receivers = (sides.clients, sides.servers)[:: 1 if direction is _UP else -1]
        shift = aligned.shift_bytes[chosen]
        places = chosen.tolist()
        found = _core.flow_times(
            [direction] * len(places),
            packets_of(senders, chosen),
            packets_of(receivers, chosen),
            (-shift if direction is _UP else shift).tolist(),
            began[0][chosen].tolist(),
            began[1][chosen].tolist(),
            POINTS_LIMIT,
            SAME_COPY_NS,
        )
        sent = sides.sender(direction)
        again, data = (sent.of_flow(direction, name)[chosen] for name in ("retransmitted_packets", "data_packets"))
        rows = sides.rows[chosen]
        shares[direction, rows] = again / np.maximum(data, 1)
        if len(rows) == len(pairs):
            times_of.append(found)
        else:
            times: list[_core.FlowTimes | None] = [None] * len(pairs)
            for row, of_flow in zip(rows.tolist(), found, strict=True):
                times[row] = of_flow
            times_of.append(times)
    return Clouds(times_of, shares)


def _can_be_compared(aligned: AlignmentColumns, began: tuple[BoolArray, BoolArray]) -> BoolArray:
    by_beginning = (aligned.matched >= 0.5) | (aligned.compared < COMPARED_PIECES)
    # Payload alone lays the streams over each other: content that repeats agrees in part at many places.
    by_payload = aligned.matched > AGREES
    return aligned.is_known & np.where(began[0] & began[1], by_beginning, by_payload)


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


def loss_share(lost: FloatArray, held: Int64Array) -> FloatArray:
    """Share of packets that captures lose, given how many data packets they missed and how many they hold.

    Before anything is seen a capture is taken to lose one packet in twenty, worth twenty packets of experience.
    """
    share: FloatArray = (lost + 1.0) / (held + lost + 20.0)
    return share


def spared_points(means: FloatArray) -> Int64Array:
    """How many wrong constraints to spare when so many are expected.

    The least k with P(Poisson(mean) > k) <= `LOSS_TAIL`, and never below `SPARED_LEAST`: a body of packets is asked
    for, since one or two may be odd for reasons outside the model.
    """
    is_many = means > MANY_EXPECTED
    mean = np.where(is_many, 0.0, means)
    term = np.exp(-mean)
    below, count = term.copy(), np.zeros(len(means), np.int64)
    while (short := 1.0 - below > LOSS_TAIL).any():
        count += short
        term = np.where(short, term * mean / np.maximum(count, 1), term)
        below = np.where(short, below + term, below)
    normal = np.ceil(means + 4 * np.sqrt(means)).astype(np.int64)  # its tail, 4 standard deviations
    return np.where(is_many, normal, np.maximum(count, SPARED_LEAST))


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
