"""What is measured of the timing of acknowledgements, as columns over connections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.clocks.capture_ticks import ticks_of_sides_s
from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockBasis
from detector.clocks.early_acks import ahead_of_receiver, violations
from detector.clocks.handshake_path import handshake_round_trips_ns, legs_ns
from detector.clocks.relation_columns import ClockRelations, LargerFlows
from detector.method import Context
from detector.methods.ack_timing.strengths import KEPT_SHARE
from detector.options import ClockMode
from detector.pair import Pair
from detector.streams.known import UNKNOWN, seconds
from detector.streams.loaded import packets_of
from detector.streams.sides import Sides
from detector.vantage.not_captured import hold_pure_acknowledgements
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray, Figure
from pepscope.results.verdicts import FloatArray

#: Directions of data as figures name them.
DIRECTION_NAMES = tuple(direction.name.lower() for direction in DIRECTIONS)

#: Texts of modes and bases: looking one up is faster than asking an enum.
_IN_WORDS: Mapping[str, str] = {member: member.value for kind in (ClockMode, ClockBasis) for member in kind}

OWN_BEFORE = "acks_before_receivers_own"
OWN_COMPARED = "acks_compared_with_receivers_own"


class Published(Struct, frozen=True):
    """Methods 1 and 2 on flows: violating share, least margin (s, negative when violated), and how many violate."""

    share: FloatArray
    margin_s: FloatArray
    violating: Int64Array


class Flows(Struct, frozen=True):
    """Flows of one direction of connections, at `places` among those that are measured: their times, which go up, the
    numbers of `pepscope._core.flow_numbers`, the receivers' least delay of an acknowledgement (0 where it is not
    known), and the handshakes' round trips over the whole path from their senders."""

    places: Int64Array
    times: Sequence[_core.FlowTimes]
    is_up: BoolArray
    numbers: Mapping[str, npt.NDArray[Any]]
    hold_ns: Int64Array
    handshake_path_ns: Int64Array

    @classmethod
    def of(
        cls,
        sides: Sides,
        places: Int64Array,
        times: Sequence[_core.FlowTimes],
        is_up: BoolArray,
        numbers: Mapping[str, npt.NDArray[Any]],
    ) -> Flows:
        """Those of connections with these sides."""
        hold_ns = np.where(_shows_holds(sides, is_up), np.maximum(numbers["least_hold_ns"], 0), 0)
        paths_ns = _by_direction(is_up, lambda way: handshake_round_trips_ns(sides, way, hold_ns))
        return cls(places, times, is_up, numbers, hold_ns, paths_ns)

    @property
    def hold_s(self) -> FloatArray:
        """The receivers' least delay of an acknowledgement."""
        return np.asarray(self.hold_ns / 1e9)


class Measured(Struct, frozen=True):
    """The larger flow of each connection that has acknowledgements at its sender, and its clock relation.

    `rows` are the places of these connections in the context. `numbers` are those of `pepscope._core.flow_numbers`.
    `of_smaller` are the flows in the other direction, where they can be compared.
    `violating`, and `ahead` of `compared`, count early acknowledgements (`detector.clocks.early_acks`).
    """

    rows: Int64Array
    pairs: Sequence[Pair]
    flows: LargerFlows
    clocks: ClockRelations
    numbers: Mapping[str, npt.NDArray[Any]]
    tick_s: FloatArray
    shows_pure: BoolArray  # both captures hold pure acknowledgements
    handshake_s: FloatArray  # NaN where it is not known
    of_larger: Flows
    of_smaller: Flows
    violating: Int64Array
    timed: Int64Array
    ahead: Int64Array
    compared: Int64Array

    @classmethod
    def of(cls, context: Context) -> Measured:
        """What the connections of a context show."""
        known = context.clocks.flows
        numbers = _core.flow_numbers(known.times)
        acknowledged = np.flatnonzero(numbers["ack_count"] > 0)
        flows = known.at(acknowledged)
        clocks, is_up = context.clocks.at(flows.rows), flows.is_up
        # Of those that have clouds both sides are known.
        sides = context.sides.at(flows.rows)
        violating, timed = violations(flows, clocks)
        ahead, compared = ahead_of_receiver(flows, clocks)
        own = {name: column[acknowledged] for name, column in numbers.items()}
        return cls(
            flows.rows,
            sides.pairs,
            flows,
            clocks,
            own,
            ticks_of_sides_s(packets_of(sides.clients), packets_of(sides.servers)),
            hold_pure_acknowledgements(sides.client) & hold_pure_acknowledgements(sides.server),
            seconds(_by_direction(is_up, lambda way: legs_ns(sides.sender(way), way)[0])),
            Flows.of(sides, np.arange(len(acknowledged)), flows.times, is_up, own),
            _smaller(sides, clocks, is_up),
            violating,
            timed,
            ahead,
            compared,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def of_clocks(self, name: str) -> npt.NDArray[Any]:
        """A number of every clock relation."""
        return self.clocks.numbers[name]

    @property
    def handshake_path_ns(self) -> Int64Array:
        """The handshakes' round trips over the whole path from the senders."""
        return self.of_larger.handshake_path_ns

    @property
    def spared(self) -> Int64Array:
        """Constraints that were left out."""
        return np.asarray(self.of_clocks("lower_spared") + self.of_clocks("upper_spared"))

    @property
    def are_general(self) -> BoolArray:
        """Of which connections no clock was given."""
        return np.array([mode is ClockMode.GENERAL for mode in self.clocks.modes], np.bool_)

    def published(self, mode: ClockMode) -> Published:
        """Method 1 (theta = 0) or Method 2 with i = 1 (theta from the first datum), by the receiver's own ACK times."""
        first_ns = self.numbers["first_delay_ns"]
        theta_ns = np.zeros(len(self), np.int64) if mode is ClockMode.SYNCHRONISED else first_ns
        (timed, violating), margin_s = _core.published(self.flows.times, theta_ns, TIMESTAMP_ERROR_S)
        nothing = (first_ns == UNKNOWN) | (timed == 0)
        violating = np.where(nothing, 0, violating)
        return Published(violating / np.maximum(timed, 1), np.where(nothing, math.inf, margin_s), violating)

    def figures(self, first: Published, second: Published) -> list[Figure]:
        """The figures of every finding."""
        clocks, pieces = self.clocks, self.of_clocks("pieces")
        steps_s = np.full(len(self), np.nan)
        for row in np.flatnonzero(pieces > 1).tolist():
            steps_s[row] = clocks[row].steps_s[0]
        return [
            Figure("direction", [DIRECTION_NAMES[not is_up] for is_up in self.flows.is_up.tolist()]),
            Figure("clocks", [_IN_WORDS[mode] for mode in clocks.modes]),
            Figure("clock_basis", [_IN_WORDS[basis] for basis in clocks.bases]),
            Figure("slack_s", finite(self.of_clocks("slack_s"))),
            Figure("exact_slack_s", finite(self.of_clocks("exact_slack_s"))),
            Figure("violating_share", self.violating / np.maximum(self.timed, 1)),
            Figure("violating_acks", self.violating),
            Figure("acks", self.numbers["ack_count"]),
            Figure(OWN_BEFORE, self.ahead),
            Figure(OWN_COMPARED, self.compared),
            Figure("lower_constraints", self.of_clocks("lower_points")),
            Figure("upper_constraints", self.of_clocks("upper_points")),
            Figure("spared_constraints", self.spared),
            Figure("method1_share", first.share),
            Figure("method1_margin_s", finite(first.margin_s)),
            Figure("method2_share", second.share),
            Figure("method2_margin_s", finite(second.margin_s)),
            Figure("offset_s", self.of_clocks("offset_ns") / 1e9),
            Figure("drift_ppm", self.of_clocks("drift") * 1e6),
            Figure("pieces", pieces),
            Figure("step_s", steps_s),
            Figure("round_trip_min_s", finite(self.of_clocks("round_trip_min_s"))),
            Figure("clock_was_set", self.of_clocks("was_set")),
            Figure("timestamp_tick_s", finite(self.tick_s)),
            Figure("handshake_s", finite(self.handshake_s)),
        ]


def finite(values: FloatArray) -> FloatArray:
    """The numbers, NaN for infinite ones too: as figures both are not known."""
    return np.where(np.isfinite(values), values, np.nan)


def _smaller(sides: Sides, clocks: ClockRelations, is_up: BoolArray) -> Flows:
    """The flows against the larger ones."""
    of_way = clocks.clouds.times
    against = [of_way[Direction.DOWN if up else Direction.UP][row] for row, up in enumerate(is_up.tolist())]
    places = np.flatnonzero([times is not None for times in against])
    times = [each for each in against if each is not None]
    return Flows.of(sides.at(sides.rows[places]), places, times, ~is_up[places], _core.flow_numbers(times))


def _shows_holds(sides: Sides, is_up: BoolArray) -> BoolArray:
    """Where the captures at the receivers hold their pure acknowledgements: without, data show how long they waited.

    A filter may have kept one in many. The sender's capture shows how many there were, a middlebox's among them.
    """

    def shown(way: Direction) -> Int64Array:
        kept, came = (
            side.of_flow(way.reverse, "pure_acknowledgements") for side in (sides.receiver(way), sides.sender(way))
        )
        return ((kept > 0) & (kept >= KEPT_SHARE * came)).astype(np.int64)

    return _by_direction(is_up, shown) > 0


def _by_direction(is_up: BoolArray, number: Callable[[Direction], Int64Array]) -> Int64Array:
    """A number of each flow by its direction: the handshake's round trip at the sender of its data, say."""
    return np.where(is_up, number(Direction.UP), number(Direction.DOWN))
