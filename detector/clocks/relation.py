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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.clocks.clouds import (
    FlowClouds,
    clouds_of,
    larger,
    least_hold_ns,
    least_round_trip_ns,
    loss_share,
    spared_points,
)
from detector.clocks.separation import DRIFT_STEPS, Separation
from detector.clocks.set_clock import clock_was_set
from detector.clocks.step_evidence import steps_contradicted
from detector.clocks.steps import ClockPiece, as_piece, on_client_clock, stepped, usual_steps
from detector.options import ClockMode
from detector.pair import Pair
from detector.streams.sides import Sides
from pepscope import _core
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


class ClockRelation(Struct, frozen=True, dict=True):
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

    @cached_property
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

    @cached_property
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


class _Bounds(Struct, frozen=True):
    """What the times of a pair's flows say: the constraints, and the lines between them, between data alone, and where
    the spared ones are left out (in the general form)."""

    constraints: _core.Constraints
    exact: Separation
    data: Separation
    most: Separation


def relate(pair: Pair) -> ClockRelation:
    """Find the clock relation of a pair, in the mode that its options ask for."""
    return relate_all([pair])[0]


def relate_all(pairs: Sequence[Pair], sides: Sides | None = None) -> list[ClockRelation]:
    """Find the clock relations of many pairs, each in the mode that its options ask for.

    `sides` are those of the pairs, where they are known already.
    """
    clouds = clouds_of(pairs, sides)
    made: dict[int, ClockRelation] = {}
    alike: dict[tuple[ClockMode, float], list[int]] = defaultdict(list)
    for row, pair in enumerate(pairs):
        if clouds[row]:
            mode = pair.options.clocks
            alike[mode, pair.options.drift_limit_ppm * 1e-6 if mode is ClockMode.GENERAL else 0.0].append(row)
    for (mode, limit), rows in alike.items():
        bounds = _bounds([clouds[row] for row in rows], mode, limit)
        for row, found in zip(rows, bounds, strict=True):
            made[row] = _relation(pairs[row], clouds[row], mode, limit, found)
    return [made.get(row) or _unrelated(pair) for row, pair in enumerate(pairs)]


def _unrelated(pair: Pair) -> ClockRelation:
    """The relation where no flow can be compared."""
    return ClockRelation(
        pair.options.clocks, ClockBasis.NONE, (), math.inf, math.inf, 0, 0, 0, 0, math.inf, {}, -math.inf, math.inf
    )


def _bounds(clouds: Sequence[Mapping[Direction, FlowClouds]], mode: ClockMode, limit: float) -> list[_Bounds]:
    constraints, lines = _core.clock_bounds(
        [[flow.times for flow in each.values()] for each in clouds],
        _spared(clouds),
        TEST_BINS,
        limit,
        DRIFT_STEPS if mode is ClockMode.GENERAL else None,
    )
    exact, data, most = (
        [Separation(*line) for line in zip(*lines[name].tolist(), strict=True)] for name in ("exact", "data", "most")
    )
    return [_Bounds(*found) for found in zip(constraints, exact, data, most, strict=True)]


def _relation(
    pair: Pair, clouds: Mapping[Direction, FlowClouds], mode: ClockMode, limit: float, bounds: _Bounds
) -> ClockRelation:
    round_trip_ns = least_round_trip_ns(clouds)
    constraints, data = bounds.constraints, bounds.data
    if mode is ClockMode.GENERAL:
        found = _pieces(pair, clouds, bounds, limit, round_trip_ns)
        two_way = math.isfinite(data.low_ns) and math.isfinite(data.high_ns)
        basis = ClockBasis.TWO_WAY_DATA if two_way else ClockBasis.DATA_AND_ACKS
        if two_way and bounds.most.slack_ns < 0 and len(found) == 1:
            found = (as_piece(replace(data, slack_ns=bounds.most.slack_ns), constraints),)
    else:
        offset = 0 if mode is ClockMode.SYNCHRONISED else _first_difference(clouds)
        found, basis = _fixed(constraints, offset), ClockBasis.ASSUMED
    return ClockRelation(
        mode,
        basis,
        found,
        min([piece.slack_ns for piece in found]) / 1e9,
        bounds.exact.slack_ns / 1e9,
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


def _spared(clouds: Sequence[Mapping[Direction, FlowClouds]]) -> list[tuple[int, int]]:
    """How many lower and upper bounds of each connection may be wrong, since a capture lost packets."""
    flows = [(row, flow) for row, each in enumerate(clouds) for flow in each.values()]
    rows = np.array([row for row, _ in flows], np.int64)
    numbers = _core.flow_numbers([flow.times for _, flow in flows])
    sender_loss = loss_share(numbers["sender_lost"], numbers["sender_held"])
    receiver_loss = loss_share(numbers["receiver_lost"], numbers["receiver_held"])
    again = np.minimum(1.0, np.array([flow.retransmitted_share for _, flow in flows]) + sender_loss)
    data_mean = numbers["data_count"] * sender_loss * again
    ack_mean = numbers["timed_ack_count"] * receiver_loss * again
    is_up = np.array([flow.direction is Direction.UP for _, flow in flows], np.bool_)
    # Data of the client and acknowledgements to the server bound from above, the others from below.
    lower: FloatArray = np.bincount(rows, np.where(is_up, ack_mean, data_mean), len(clouds)).astype(np.float64)
    upper: FloatArray = np.bincount(rows, np.where(is_up, data_mean, ack_mean), len(clouds)).astype(np.float64)
    return list(zip(spared_points(lower).tolist(), spared_points(upper).tolist(), strict=True))


def _first_difference(clouds: Mapping[Direction, FlowClouds]) -> int:
    """Server minus client of the first datum of the larger flow: the published Method 2 with i = 1."""
    flow = larger(clouds)
    delay_ns = None if flow is None else flow.times.first_delay_ns
    if flow is None or delay_ns is None:
        return 0
    return delay_ns if flow.direction is Direction.UP else -delay_ns


def _fixed(constraints: _core.Constraints, offset_ns: int) -> tuple[ClockPiece, ...]:
    """The slack where theta is given: how far the worst unspared constraint stays on its own side of it."""
    given = float(offset_ns - constraints.base_ns)
    low, high = constraints.unspared_bounds_ns()
    return (as_piece(Separation(min(high - given, given - low), given, 0.0, given, given), constraints),)


def _pieces(
    pair: Pair, clouds: Mapping[Direction, FlowClouds], bounds: _Bounds, limit: float, round_trip_ns: float
) -> tuple[ClockPiece, ...]:
    constraints, most = bounds.constraints, bounds.most
    single = (as_piece(most, constraints),)
    if most.slack_ns >= -TIMESTAMP_ERROR_S * 1e9 or not math.isfinite(round_trip_ns):
        return single
    path_ns = max(round_trip_ns - least_hold_ns(clouds), HELD_PATH_SHARE * round_trip_ns)
    # A step of one host's clock is a clean cut only on that host's time axis.
    found: list[tuple[ClockPiece, ...]] = []
    for server_clock in (False, True):
        gathered = _by_server_clock(clouds, constraints) if server_clock else constraints
        pieces = stepped(gathered, limit, STEP_SLACK_SHARE * path_ns)
        if pieces is None:
            continue
        pieces = on_client_clock(pieces) if server_clock else pieces
        if not steps_contradicted(pair, pieces, limit, round_trip_ns, TIMESTAMP_ERROR_S * 1e9):
            found.append(pieces)
    return min(found, key=len) if found else single


def _by_server_clock(clouds: Mapping[Direction, FlowClouds], constraints: _core.Constraints) -> _core.Constraints:
    """The same constraints at the server's times."""
    flows = [flow.times for flow in clouds.values()]
    return _core.Constraints.of_flows(flows, True, constraints.lower_spared, constraints.upper_spared, TEST_BINS)
