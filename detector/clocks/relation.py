"""The relation between the clocks of a pair's two captures, and whether an end-to-end connection allows one.

Let theta(t) be the server side's clock minus the client side's at client time t. End to end, causality bounds it: data
client to server and acknowledgements of data server to client give `theta <= y`, the others `theta >= y`, where y is
the server's minus the client's time of one datum or acknowledgement and x the client's. theta is a line of bounded
drift (clock skew), broken by steps. Data bound theta with or without a middlebox, since nothing forwards a byte that it
does not have; acknowledgements bound it only end to end. So a line that fits both clouds must exist unless a middlebox
acknowledges.

An acknowledgement of byte a - 1 cannot have left before that byte arrived. The time of that arrival is used for the
robust test, since it does not suffer from acknowledgements that the receiver's capture lost; the receiver's own
acknowledgement time (the papers' A^r) is kept beside it. Constraints can still be wrong where a capture lost packets,
so some are spared: see `spared_points`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from detector.clocks.clouds import (
    FlowClouds,
    flow_clouds,
    larger,
    least_hold_ns,
    least_round_trip_ns,
    loss_share,
    spared_points,
)
from detector.clocks.separation import Separation, separate, separate_most
from detector.clocks.set_clock import clock_was_set
from detector.clocks.step_evidence import steps_contradicted
from detector.clocks.steps import ClockPiece, as_piece, on_client_clock, stepped, usual_steps
from detector.options import ClockMode
from detector.pair import Pair
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray

#: Timestamps of ordinary hosts (interrupt coalescing, several receive queues) may be this wrong; smaller overlaps of
#: the clouds are no finding.
TIMESTAMP_ERROR_S = 1e-3

#: After a step, a piece must leave at least this share of the least round trip free between its clouds. End to end the
#: gap is the least forward plus the least backward delay, nearly the whole least round trip; a queue at a split point
#: that a step would have to explain leaves none.
STEP_SLACK_SHARE = 0.5

#: Of a round trip whose acknowledgements the receiver held back, at least this share is taken for the path's.
HELD_PATH_SHARE = 0.05

#: Time bins for the test.
TEST_BINS = 4096


class ClockBasis(StrEnum):
    """What the offset was read from."""

    TWO_WAY_DATA = "two-way data"
    DATA_AND_ACKS = "data and acknowledgements"  # only bounds; a line between the clouds
    ASSUMED = "assumed"  # synchronised clocks, or the first datum
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ClockRelation:
    """How the server side's clock relates to the client side's, and how well an end-to-end connection fits.

    `slack_s` is the room between the clouds after sparing what capture loss may have spoilt, `exact_slack_s` before;
    both are infinite where nothing bounds one side. `pieces` is empty where a vantage is missing.
    """

    mode: ClockMode
    basis: ClockBasis
    pieces: tuple[ClockPiece, ...]
    slack_s: float
    exact_slack_s: float
    lower_points: int
    upper_points: int
    lower_spared: int
    upper_spared: int
    round_trip_min_s: float  # at the sender of the larger flow; infinite where unknown
    clouds: Mapping[Direction, FlowClouds]
    data_low_s: float  # theta as bounded by data alone at the first piece's reference, |drift| within the limit
    data_high_s: float
    was_set: bool = False  # captures show that a clock was set, in ways that no admitted steps explain

    @property
    def separable(self) -> bool:
        """Whether an admissible clock fits data and acknowledgements."""
        return self.slack_s >= -TIMESTAMP_ERROR_S

    @property
    def fits_data(self) -> bool:
        """Whether one clock without a step fits the data of both directions; if not, one of the clocks was set."""
        return self.data_high_s - self.data_low_s >= -TIMESTAMP_ERROR_S

    @property
    def unusual_steps(self) -> int:
        """How many steps are taken for granted beyond those that clocks make while daemons keep them."""
        return max(0, len(self.pieces) - 1 - usual_steps(self.pieces)) if self.pieces else 0

    @property
    def steps_s(self) -> tuple[float, ...]:
        """Sizes of the clock steps (server minus client)."""
        return tuple(
            (after.at_ns(after.start_ns) - before.at_ns(after.start_ns)) / 1e9
            for before, after in itertools.pairwise(self.pieces)
        )

    @property
    def lines(self) -> list[tuple[int, int, float, float]]:
        """Start and reference (client clock), offset (server minus client) and drift of each piece; times in ns."""
        return [(piece.start_ns, piece.reference_ns, piece.offset_ns, piece.drift) for piece in self.pieces]

    def server_minus_client_ns(self, client_time_ns: Int64Array) -> FloatArray:
        """theta at client times; zeros where nothing is known."""
        if len(self.pieces) == 1:
            (piece,) = self.pieces
            return np.asarray(piece.offset_ns + piece.drift * (client_time_ns - piece.reference_ns), np.float64)
        result = np.zeros(len(client_time_ns), np.float64)
        for number, piece in enumerate(self.pieces):
            inside = client_time_ns >= piece.start_ns if number else np.ones(len(client_time_ns), np.bool_)
            result[inside] = piece.offset_ns + piece.drift * (client_time_ns[inside] - piece.reference_ns)
        return result


def relate(pair: Pair) -> ClockRelation:
    """Find the clock relation of a pair, in the mode that its options ask for."""
    mode = pair.options.clocks
    clouds = {direction: gathered for direction in DIRECTIONS if (gathered := flow_clouds(pair, direction)) is not None}
    if not clouds:
        return ClockRelation(
            mode, ClockBasis.NONE, (), math.inf, math.inf, 0, 0, 0, 0, math.inf, clouds, -math.inf, math.inf
        )
    limit = pair.options.drift_limit_ppm * 1e-6 if mode is ClockMode.GENERAL else 0.0
    round_trip_ns = least_round_trip_ns(clouds)
    constraints = _gather(clouds, server_clock=False)
    exact = separate(constraints, limit)
    data = separate(constraints.of_data([flow.times for flow in clouds.values()], TEST_BINS), limit)
    if mode is ClockMode.GENERAL:
        found, most = _pieces(pair, clouds, constraints, limit, round_trip_ns, exact)
        two_way = math.isfinite(data.low_ns) and math.isfinite(data.high_ns)
        basis = ClockBasis.TWO_WAY_DATA if two_way else ClockBasis.DATA_AND_ACKS
        if two_way and most.slack_ns < 0 and len(found) == 1:
            found = (as_piece(replace(data, slack_ns=most.slack_ns), constraints),)
    else:
        offset = 0 if mode is ClockMode.SYNCHRONISED else _first_difference(clouds)
        found, most = _fixed(constraints, offset)
        basis = ClockBasis.ASSUMED
    return ClockRelation(
        mode,
        basis,
        found,
        min([piece.slack_ns for piece in found]) / 1e9,
        exact.slack_ns / 1e9,
        constraints.lower_count,
        constraints.upper_count,
        constraints.lower_spared,
        constraints.upper_spared,
        round_trip_ns / 1e9,
        clouds,
        (constraints.base_ns + data.low_ns) / 1e9,
        (constraints.base_ns + data.high_ns) / 1e9,
        mode is ClockMode.GENERAL and _was_set(pair, found, data, limit),
    )


def _was_set(pair: Pair, found: tuple[ClockPiece, ...], data: Separation, limit: float) -> bool:
    """Whether no admitted clock fits, and the captures show by themselves that a clock was set."""
    overlap_ns = -min(piece.slack_ns for piece in found)
    return overlap_ns > TIMESTAMP_ERROR_S * 1e9 and clock_was_set(pair, overlap_ns, data, limit)


def _gather(clouds: Mapping[Direction, FlowClouds], *, server_clock: bool) -> _core.Constraints:
    """Bounds on theta: data of the client and acknowledgements to the server from above, the others from below."""
    lower_mean = upper_mean = 0.0
    for flow in clouds.values():
        times = flow.times
        sender_loss = loss_share(times.sender_missed)
        again = min(1.0, flow.retransmitted_share + sender_loss)
        data_mean = times.data_count * sender_loss * again
        ack_mean = times.timed_ack_count * loss_share(times.receiver_missed) * again
        upper, lower = (data_mean, ack_mean) if flow.direction is Direction.UP else (ack_mean, data_mean)
        upper_mean, lower_mean = upper_mean + upper, lower_mean + lower
    return _core.Constraints.of_flows(
        [flow.times for flow in clouds.values()],
        server_clock,
        spared_points(lower_mean),
        spared_points(upper_mean),
        TEST_BINS,
    )


def _first_difference(clouds: Mapping[Direction, FlowClouds]) -> int:
    """Server minus client of the first datum of the larger flow: the published Method 2 with i = 1."""
    flow = larger(clouds)
    delay_ns = None if flow is None else flow.times.first_delay_ns
    if flow is None or delay_ns is None:
        return 0
    return delay_ns if flow.direction is Direction.UP else -delay_ns


def _fixed(constraints: _core.Constraints, offset_ns: int) -> tuple[tuple[ClockPiece, ...], Separation]:
    """The slack where theta is given: how far the worst unspared constraint stays on its own side of it."""
    given = float(offset_ns - constraints.base_ns)
    low, high = constraints.unspared_bounds_ns()
    made = Separation(min(high - given, given - low), given, 0.0, given, given)
    return (as_piece(made, constraints),), made


def _pieces(
    pair: Pair,
    clouds: Mapping[Direction, FlowClouds],
    constraints: _core.Constraints,
    limit: float,
    round_trip_ns: float,
    exact: Separation,
) -> tuple[tuple[ClockPiece, ...], Separation]:
    most = separate_most(constraints, limit, exact)
    single = (as_piece(most, constraints),)
    if most.slack_ns >= -TIMESTAMP_ERROR_S * 1e9 or not math.isfinite(round_trip_ns):
        return single, most
    path_ns = max(round_trip_ns - least_hold_ns(clouds), HELD_PATH_SHARE * round_trip_ns)
    # A step of one host's clock is a clean cut only on that host's time axis.
    found: list[tuple[ClockPiece, ...]] = []
    for server_clock in (False, True):
        gathered = _gather(clouds, server_clock=True) if server_clock else constraints
        pieces = stepped(gathered, limit, STEP_SLACK_SHARE * path_ns)
        if pieces is None:
            continue
        pieces = on_client_clock(pieces) if server_clock else pieces
        if not steps_contradicted(pair, pieces, limit, round_trip_ns, TIMESTAMP_ERROR_S * 1e9):
            found.append(pieces)
    return (min(found, key=len), most) if found else (single, most)
