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
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from detector.clocks.clouds import (
    FlowClouds,
    ack_points,
    data_points,
    flow_clouds,
    least_hold_ns,
    least_round_trip_ns,
    loss_share,
    spared_points,
)
from detector.clocks.separation import Cloud, FloatArray, Separation, separate, separate_most, thin
from detector.clocks.step_evidence import steps_contradicted
from detector.clocks.steps import ClockPiece, Constraints, as_piece, on_client_clock, stepped, usual_steps
from detector.options import ClockMode
from detector.pair import Pair
from pepscope.captures.packets import Direction, Int64Array

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

    def piece_at(self, client_time_ns: Int64Array) -> Int64Array:
        """Places in `pieces` of what holds at client times; the first one before the second begins."""
        starts = np.array([piece.start_ns for piece in self.pieces[1:]], np.int64)
        return np.searchsorted(starts, client_time_ns, side="right").astype(np.int64)

    def to_server_ns(self, client_time_ns: Int64Array) -> Int64Array:
        """Client-side times on the server side's clock."""
        return client_time_ns + np.rint(self.server_minus_client_ns(client_time_ns)).astype(np.int64)


def relate(pair: Pair) -> ClockRelation:
    """Find the clock relation of a pair, in the mode that its options ask for."""
    mode = pair.options.clocks
    clouds = {direction: gathered for direction in Direction if (gathered := flow_clouds(pair, direction)) is not None}
    if not clouds:
        return ClockRelation(
            mode, ClockBasis.NONE, (), math.inf, math.inf, 0, 0, 0, 0, math.inf, clouds, -math.inf, math.inf
        )
    limit = pair.options.drift_limit_ppm * 1e-6 if mode is ClockMode.GENERAL else 0.0
    round_trip_ns = least_round_trip_ns(clouds)
    constraints = _gather(clouds, server_clock=False)
    exact = separate(constraints.lower, constraints.upper, limit)
    data = _data_separation(clouds, constraints, limit)
    if mode is ClockMode.GENERAL:
        found, most = _pieces(pair, clouds, constraints, limit, round_trip_ns, exact)
        two_way = math.isfinite(data.low_ns) and math.isfinite(data.high_ns)
        basis = ClockBasis.TWO_WAY_DATA if two_way else ClockBasis.DATA_AND_ACKS
        if two_way and most.slack_ns < 0 and len(found) == 1:
            found = (as_piece(data, constraints, most.slack_ns),)
    else:
        offset = 0 if mode is ClockMode.SYNCHRONISED else _first_difference(clouds)
        found, most = _fixed(constraints, offset)
        basis = ClockBasis.ASSUMED
    return ClockRelation(
        mode,
        basis,
        found,
        min(piece.slack_ns for piece in found) / 1e9,
        exact.slack_ns / 1e9,
        len(constraints.lower),
        len(constraints.upper),
        constraints.lower_spared,
        constraints.upper_spared,
        round_trip_ns / 1e9,
        clouds,
        (constraints.base_ns + data.low_ns) / 1e9,
        (constraints.base_ns + data.high_ns) / 1e9,
    )


def _gather(clouds: Mapping[Direction, FlowClouds], *, server_clock: bool) -> Constraints:
    sides: dict[bool, list[tuple[Int64Array, Int64Array]]] = {True: [], False: []}
    mean = {True: 0.0, False: 0.0}
    for flow in clouds.values():
        data_is_upper = flow.direction is Direction.UP
        data = data_points(flow, server_clock=server_clock)
        acks = ack_points(flow, as_sent=False, server_clock=server_clock)
        sides[data_is_upper].append(data)
        sides[not data_is_upper].append(acks)
        again = min(1.0, flow.retransmitted_share + loss_share(flow.sender_missed))
        mean[data_is_upper] += len(data[0]) * loss_share(flow.sender_missed) * again
        mean[not data_is_upper] += len(acks[0]) * loss_share(flow.receiver_missed) * again
    everything = [points for side in sides.values() for points in side if len(points[0])]
    reference = int(min(points[0].min() for points in everything)) if everything else 0
    base = int(np.median(everything[0][1])) if everything else 0
    spared = {side: spared_points(mean[side]) for side in sides}
    made = {side: _cloud(sides[side], reference, base, spared[side] + 1, highest=not side) for side in sides}
    return Constraints(made[False], made[True], reference, base, spared[False], spared[True])


def _cloud(
    points: list[tuple[Int64Array, Int64Array]], reference: int, base: int, kept: int, *, highest: bool
) -> Cloud:
    if not points:
        return Cloud(np.zeros(0), np.zeros(0))
    x = (np.concatenate([p[0] for p in points]) - reference).astype(np.float64)
    y = (np.concatenate([p[1] for p in points]) - base).astype(np.float64)
    return thin(Cloud(x, y), kept, TEST_BINS, highest=highest)


def _data_separation(clouds: Mapping[Direction, FlowClouds], constraints: Constraints, limit: float) -> Separation:
    """What data alone say: UP data bound theta from above, DOWN data from below."""
    made = {}
    for direction in Direction:
        points = [data_points(clouds[direction])] if direction in clouds else []
        made[direction] = _cloud(
            points, constraints.reference_ns, constraints.base_ns, 1, highest=direction is Direction.DOWN
        )
    return separate(made[Direction.DOWN], made[Direction.UP], limit)


def _first_difference(clouds: Mapping[Direction, FlowClouds]) -> int:
    """Server minus client of the first datum of the larger flow: the published Method 2 with i = 1."""
    flow = max(clouds.values(), key=lambda item: len(item.data_sent_ns))
    return int(data_points(flow)[1][0]) if len(flow.data_sent_ns) else 0


def _fixed(constraints: Constraints, offset_ns: int) -> tuple[tuple[ClockPiece, ...], Separation]:
    """The slack where theta is given: how far the worst unspared constraint stays on its own side of it."""
    given = float(offset_ns - constraints.base_ns)
    room = [math.inf]
    if len(constraints.upper) > constraints.upper_spared:
        high = np.partition(constraints.upper.y_ns, constraints.upper_spared)[constraints.upper_spared]
        room.append(float(high) - given)
    if len(constraints.lower) > constraints.lower_spared:
        low = np.partition(-constraints.lower.y_ns, constraints.lower_spared)[constraints.lower_spared]
        room.append(given + float(low))
    made = Separation(min(room), given, 0.0, given, given)
    return (as_piece(made, constraints, made.slack_ns),), made


def _pieces(
    pair: Pair,
    clouds: Mapping[Direction, FlowClouds],
    constraints: Constraints,
    limit: float,
    round_trip_ns: float,
    exact: Separation,
) -> tuple[tuple[ClockPiece, ...], Separation]:
    most = separate_most(
        constraints.lower, constraints.upper, limit, constraints.lower_spared, constraints.upper_spared, exact=exact
    )
    single = (as_piece(most, constraints, most.slack_ns),)
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
