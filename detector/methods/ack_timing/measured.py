"""What is measured of the timing of acknowledgements, as columns over connections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from detector.clocks.clouds import FlowClouds, larger
from detector.clocks.early_acks import ahead_of_receiver, violations
from detector.clocks.handshake_path import handshake_round_trips_ns, legs_ns
from detector.clocks.relation import TIMESTAMP_ERROR_S, ClockRelation
from detector.method import Context
from detector.options import ClockMode
from detector.pair import Pair
from detector.streams.known import UNKNOWN, are_known, seconds
from detector.streams.sides import Sides
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray, Figure
from pepscope.results.verdicts import FloatArray, Number

#: Share of equal successive timestamps from which a capture's clock is taken to tick coarsely.
TICKING_SHARE = 0.05

#: So many packets show whether it does.
TICKING_PACKETS = 100_000

OWN_BEFORE = "acks_before_receivers_own"
OWN_COMPARED = "acks_compared_with_receivers_own"


@dataclass(frozen=True, slots=True)
class Published:
    """Methods 1 and 2 on flows: violating share, least margin (s, negative when violated), and how many violate."""

    share: FloatArray
    margin_s: FloatArray
    violating: Int64Array


@dataclass(frozen=True, slots=True)
class Measured:
    """The larger flow of each connection that has acknowledgements at its sender, and its clock relation.

    `rows` are the places of these connections in the context. `numbers` are those of `pepscope._core.flow_numbers`.
    `violating`, and `ahead` of `compared`, count early acknowledgements (`detector.clocks.early_acks`).
    """

    rows: Int64Array
    pairs: Sequence[Pair]
    flows: Sequence[FlowClouds]
    clocks: Sequence[ClockRelation]
    numbers: Mapping[str, npt.NDArray[Any]]
    tick_s: FloatArray
    handshake_s: FloatArray  # NaN where it is not known
    handshake_path_ns: Int64Array
    violating: Int64Array
    timed: Int64Array
    ahead: Int64Array
    compared: Int64Array

    @classmethod
    def of(cls, context: Context) -> Measured:
        """What the connections of a context show."""
        chosen = [
            (row, observation.pair, flow, clock)
            for row, (observation, clock) in enumerate(zip(context.observations, context.clocks, strict=True))
            if (flow := larger(clock.clouds)) is not None and flow.times.ack_count
        ]
        pairs = [pair for _, pair, _, _ in chosen]
        flows, clocks = [flow for _, _, flow, _ in chosen], [clock for *_, clock in chosen]
        # Of those that have clouds both sides are known.
        sides = context.sides if len(pairs) == len(context.sides) else Sides.of(pairs)
        is_up = np.array([flow.direction is Direction.UP for flow in flows], np.bool_)
        violating, timed = violations(flows, clocks)
        ahead, compared = ahead_of_receiver(flows, clocks)
        return cls(
            np.array([row for row, *_ in chosen], np.int64),
            pairs,
            flows,
            clocks,
            _core.flow_numbers([flow.times for flow in flows]),
            _ticks_s(pairs),
            seconds(_by_direction(is_up, lambda way: legs_ns(sides.sender(way), way)[0])),
            _by_direction(is_up, lambda way: handshake_round_trips_ns(sides, way)),
            violating,
            timed,
            ahead,
            compared,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def of_clocks(self, name: str) -> FloatArray:
        """A number of every clock relation."""
        return np.array([getattr(clock, name) for clock in self.clocks], np.float64)

    @property
    def spared(self) -> Int64Array:
        """Constraints that were left out."""
        return np.array([clock.lower_spared + clock.upper_spared for clock in self.clocks], np.int64)

    @property
    def are_general(self) -> BoolArray:
        """Of which connections no clock was given."""
        return np.array([clock.mode is ClockMode.GENERAL for clock in self.clocks], np.bool_)

    def published(self, mode: ClockMode) -> Published:
        """Method 1 (theta = 0) or Method 2 with i = 1 (theta from the first datum), by the receiver's own ACK times."""
        first_ns = self.numbers["first_delay_ns"]
        theta_ns = np.zeros(len(self), np.int64) if mode is ClockMode.SYNCHRONISED else first_ns
        (timed, violating), margin_s = _core.published([flow.times for flow in self.flows], theta_ns, TIMESTAMP_ERROR_S)
        nothing = (first_ns == UNKNOWN) | (timed == 0)
        violating = np.where(nothing, 0, violating)
        return Published(violating / np.maximum(timed, 1), np.where(nothing, math.inf, margin_s), violating)

    def figures(self, first: Published, second: Published) -> list[Figure]:
        """The figures of every finding."""
        clocks, pieces = self.clocks, [clock.pieces[0] for clock in self.clocks]
        return [
            Figure("direction", [flow.direction.name.lower() for flow in self.flows]),
            Figure("clocks", [clock.mode.value for clock in clocks]),
            Figure("clock_basis", [clock.basis.value for clock in clocks]),
            Figure("slack_s", finite(self.of_clocks("slack_s"))),
            Figure("exact_slack_s", finite(self.of_clocks("exact_slack_s"))),
            Figure("violating_share", self.violating / np.maximum(self.timed, 1)),
            Figure("violating_acks", self.violating),
            Figure("acks", self.numbers["ack_count"]),
            Figure(OWN_BEFORE, self.ahead),
            Figure(OWN_COMPARED, self.compared),
            Figure("lower_constraints", [clock.lower_points for clock in clocks]),
            Figure("upper_constraints", [clock.upper_points for clock in clocks]),
            Figure("spared_constraints", self.spared),
            Figure("method1_share", first.share),
            Figure("method1_margin_s", finite(first.margin_s)),
            Figure("method2_share", second.share),
            Figure("method2_margin_s", finite(second.margin_s)),
            Figure("offset_s", [piece.offset_ns / 1e9 for piece in pieces]),
            Figure("drift_ppm", [piece.drift * 1e6 for piece in pieces]),
            Figure("pieces", [len(clock.pieces) for clock in clocks]),
            Figure("step_s", [clock.steps_s[0] if len(clock.pieces) > 1 else None for clock in clocks]),
            Figure("round_trip_min_s", finite(self.of_clocks("round_trip_min_s"))),
            Figure("clock_was_set", [clock.was_set for clock in clocks]),
            Figure("timestamp_tick_s", self.tick_s),
            Figure("handshake_s", finite(self.handshake_s)),
        ]


def finite(values: FloatArray) -> list[Number]:
    """The numbers, None for infinite ones and those that are not known."""
    is_finite = np.isfinite(values)
    if is_finite.all():
        return list(values.tolist())
    return [value if known else None for value, known in zip(values.tolist(), is_finite.tolist(), strict=True)]


def _by_direction(is_up: BoolArray, number: Callable[[Direction], Int64Array]) -> Int64Array:
    """A number of the larger flow of each connection: the handshake's round trip at the sender of its data, say."""
    return np.where(is_up, number(Direction.UP), number(Direction.DOWN))


def _ticks_s(pairs: Sequence[Pair]) -> FloatArray:
    """The coarser capture's clock tick of each pair, where many successive packets bear the same time; else 0."""
    ticks = np.zeros(len(pairs))
    for side in (0, -1):
        packets = [pair.vantages[side].packets for pair in pairs]
        steps, equal, least_ns = _core.timestamp_steps(packets, TICKING_PACKETS)
        is_coarse = are_known(least_ns) & (equal / np.maximum(steps, 1) >= TICKING_SHARE)
        ticks = np.maximum(ticks, np.where(is_coarse, least_ns / 1e9, 0.0))
    return ticks
