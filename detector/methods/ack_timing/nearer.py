"""Acknowledgements that came back sooner than the handshake that crossed the whole path, in either direction of data.

A middlebox that acknowledges data of both directions is in the half of the path before one of their senders, wherever
it stands: acknowledgements of the larger direction alone would hide one that is nearer to its receiver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.methods.ack_timing.measured import Flows, Measured
from detector.methods.ack_timing.strengths import NEARER_SHARE, SEVERAL_ACKS
from detector.pair import Pair
from detector.streams.known import are_known
from detector.streams.loaded import some_pairs
from detector.streams.receivers_own import are_receivers_own
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array, Mark
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray


class Nearer(Struct, frozen=True):
    """Of each connection the direction in which the greater share did so: `count` of `round_trips`, the least of which
    is `least_ns`, where the handshake took `handshake_path_ns`."""

    is_up: BoolArray
    count: Int64Array
    round_trips: Int64Array
    least_ns: Int64Array
    handshake_path_ns: Int64Array
    found: BoolArray  # several did

    @property
    def strength(self) -> FloatArray:
        """The share that did so, one more counted as if it had not."""
        return np.asarray(self.count / (self.round_trips + 1))

    def replaced(self, by: Nearer, places: Int64Array) -> Nearer:
        """With others at some places."""
        columns = {name: getattr(self, name).copy() for name in self.__struct_fields__}
        for name, column in columns.items():
            column[places] = getattr(by, name)
        return Nearer(**columns)

    def at(self, places: Int64Array) -> Nearer:
        """Those of some connections."""
        return Nearer(**{name: getattr(self, name)[places] for name in self.__struct_fields__})


def nearer_than_handshake(measured: Measured, data_s: FloatArray) -> tuple[Nearer, Nearer]:
    """Acknowledgements that took less than half of what handshake and data took to cross the path: of the larger
    direction, and of that in which the greater share did.

    First packets wait where later ones do not (for an address to be resolved, a flow's rule to be set up), so data that
    crossed sooner than the handshake (`data_s`, both ways) bound the path. They seem to cross sooner after a clock was
    set, too: that hides acknowledgements, and makes no connection a split.
    """
    larger = _in_one_direction(measured.of_larger, measured.pairs, data_s, measured.tick_s)
    places = measured.of_smaller.places
    against = some_pairs(measured.pairs, places)
    smaller = _in_one_direction(measured.of_smaller, against, data_s[places], measured.tick_s[places])
    beside = larger.at(places)
    is_firmer = smaller.found & (~beside.found | (smaller.strength > beside.strength))
    return larger, larger.replaced(smaller.at(np.flatnonzero(is_firmer)), places[is_firmer])


def _in_one_direction(flows: Flows, pairs: Sequence[Pair], data_s: FloatArray, tick_s: FloatArray) -> Nearer:
    path_ns, numbers = flows.handshake_path_ns, flows.numbers
    crossed_ns = np.minimum(path_ns, (data_s + flows.hold_s) * 1e9)
    limits_ns = NEARER_SHARE * crossed_ns - (TIMESTAMP_ERROR_S + tick_s) * 1e9
    count = _core.round_trips_below(flows.times, np.where(are_known(path_ns), limits_ns, -math.inf))
    found = (count >= SEVERAL_ACKS) & are_known(path_ns, numbers["least_round_trip_ns"])
    for row in np.flatnonzero(found).tolist():
        direction = Direction.UP if flows.is_up[row] else Direction.DOWN
        others = _of_others(pairs[row], direction, flows.times[row], limits_ns[row])
        found[row] = len(others) >= SEVERAL_ACKS and _are_timed(pairs[row], direction, others, path_ns[row])
    return Nearer(flows.is_up, count, numbers["round_trip_count"], numbers["least_round_trip_ns"], path_ns, found)


def _of_others(pair: Pair, direction: Direction, times: _core.FlowTimes, limit_ns: float) -> Int64Array:
    """When acknowledgements came that were back in less than this and are not the receiver's own packets: where those
    were back as soon, the handshake waited."""
    nearer = times.round_trip_ns < limit_ns
    sender = pair.sender(direction)
    assert sender is not None  # its acknowledgements were timed
    packets = sender.packets
    came = (packets.direction == direction.reverse) & np.isin(packets.time_ns, times.ack_seen_ns[nearer])
    came &= np.isin(packets.acknowledgement_offset, times.ack_value[nearer])
    rows = np.flatnonzero(came & ((packets.marks & Mark.DUPLICATE) == 0))
    return packets.time_ns[rows[~are_receivers_own(pair, direction, rows)]]


def _are_timed(pair: Pair, direction: Direction, came_ns: Int64Array, path_ns: int) -> bool:
    """Whether no clock that was set back made these acknowledgements come so soon: it does so to those of what was on
    its way, which all come within one round trip of the path."""
    sender = pair.sender(direction)
    return sender is None or not sender.clock_set_back or int(np.ptp(came_ns)) > path_ns
