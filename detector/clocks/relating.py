"""Find how the clocks of the two captures of pairs are related, and whether an end-to-end connection allows that.

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

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockBasis, ClockRelation
from detector.clocks.clouds import (
    Clouds,
    FlowClouds,
    clouds_of,
    larger,
    least_hold_ns,
    least_round_trip_ns,
    loss_share,
    spared_points,
)
from detector.clocks.relation_columns import NO_FLOW, ClockRelations
from detector.clocks.separation import DRIFT_STEPS, Separation
from detector.clocks.set_clock import clock_was_set
from detector.clocks.step_evidence import steps_contradicted
from detector.clocks.steps import ClockPiece, as_piece, on_client_clock, stepped
from detector.options import ClockMode, DetectOptions
from detector.pair import Pair
from detector.streams.known import UNKNOWN
from detector.streams.loaded import option_of
from detector.streams.sides import Sides
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray

#: After a step, a piece must leave at least this share of the least round trip free between its clouds. End to end the
#: gap is the least forward plus the least backward delay, nearly the whole least round trip; a queue at a split point
#: that a step would have to explain leaves none.
STEP_SLACK_SHARE = 0.5

#: Of a round trip whose acknowledgements the receiver held back, at least this share is taken for the path's.
HELD_PATH_SHARE = 0.05

#: Time bins for the test.
TEST_BINS = 4096

# A member is compared for each flow, and an enum takes long to find it.
_UP = Direction.UP


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


def relate_all(pairs: Sequence[Pair], sides: Sides | None = None) -> ClockRelations:
    """Find the clock relations of many pairs, each in the mode that its options ask for.

    `sides` are those of the pairs, where they are known already.
    """
    clouds = clouds_of(pairs, sides)
    relating = _Relating(pairs, clouds)
    alike: dict[tuple[ClockMode, float], list[int]] = defaultdict(list)
    modes = option_of(pairs, _mode_and_limit)
    for row in np.flatnonzero(clouds.are_compared.any(axis=0)).tolist():
        alike[modes[row]].append(row)
    for (mode, limit), rows in alike.items():
        relating.add(mode, limit, np.array(rows, np.int64))
    return relating.relations()


def _mode_and_limit(options: DetectOptions) -> tuple[ClockMode, float]:
    """In which mode clocks are related, and by how much they may drift then."""
    return options.clocks, options.drift_limit_ppm * 1e-6 if options.clocks is ClockMode.GENERAL else 0.0


def _unrelated(pair: Pair) -> ClockRelation:
    """The relation where no flow can be compared."""
    return ClockRelation(
        pair.options.clocks, ClockBasis.NONE, (), math.inf, math.inf, 0, 0, 0, 0, math.inf, {}, -math.inf, math.inf
    )


class _Relating:
    """Relates the clocks of connections, those together that are related by the same rules.

    Of most one line fits all packets; their numbers are taken from columns, and an object is made of none. The others
    are related one by one.
    """

    def __init__(self, pairs: Sequence[Pair], clouds: Clouds) -> None:
        self._pairs = pairs
        self._clouds = clouds
        nothing = ClockRelations.of([_unrelated(pairs[0])]) if pairs else ClockRelations.of([])
        self._numbers = {name: np.repeat(column, len(pairs)) for name, column in nothing.numbers.items()}
        self._bases = [ClockBasis.NONE] * len(pairs)
        self._larger_way = np.full(len(pairs), NO_FLOW)
        self._lines: list[_OwnedLines] = []
        self._alike: list[_Alike] = []
        self._place_of = np.full((2, len(pairs)), _NOWHERE)  # among these, and in one of them
        self._made: dict[int, ClockRelation] = {}

    def add(self, mode: ClockMode, limit: float, rows: Int64Array) -> None:
        """Relate those in some rows, which have clouds."""
        flows = _Flows(self._clouds.at(rows))
        spared = flows.spared()
        steps = DRIFT_STEPS if mode is ClockMode.GENERAL else None
        constraints, found = _core.clock_bounds(flows.by_connection, spared, TEST_BINS, limit, steps)
        self._place_of[:, rows] = np.full(len(rows), len(self._alike)), np.arange(len(rows))
        self._alike.append(_Alike(mode, limit, constraints, found))
        self._larger_way[rows] = flows.larger_way()
        if mode is ClockMode.GENERAL:
            is_plain = found["most"][0] >= -TIMESTAMP_ERROR_S * 1e9
            self._add_plain(rows, np.flatnonzero(is_plain), flows, found, spared)
        else:
            is_plain = np.zeros(len(rows), np.bool_)
        self._add_others(rows[~is_plain].tolist())

    def _add_plain(
        self,
        rows: Int64Array,
        chosen: Int64Array,
        flows: _Flows,
        found: Mapping[str, npt.NDArray[Any]],
        spared: Sequence[tuple[int, int]],
    ) -> None:
        """The columns of those whose packets one line fits: `_relation` of a single piece."""
        at = rows[chosen]
        most, data, exact = (found[name][:, chosen] for name in ("most", "data", "exact"))
        reference_ns, base_ns, lower, upper = (
            found[name][chosen] for name in ("reference_ns", "base_ns", "lower_count", "upper_count")
        )
        two_way = np.isfinite(data[_LOW]) & np.isfinite(data[_HIGH])
        line = np.where(two_way & (most[_SLACK] < 0), data, most)
        offset_ns = base_ns + line[_OFFSET]
        columns: dict[str, npt.NDArray[Any]] = {
            "slack_s": most[_SLACK] / 1e9,
            "exact_slack_s": exact[_SLACK] / 1e9,
            "round_trip_min_s": flows.round_trips_s()[chosen],
            "least_acknowledged_s": flows.least_acknowledged_s()[chosen],
            "data_low_s": (base_ns + data[_LOW]) / 1e9,
            "data_high_s": (base_ns + data[_HIGH]) / 1e9,
            "offset_ns": offset_ns,
            "drift": line[_DRIFT],
            "lower_points": lower,
            "upper_points": upper,
            "lower_spared": np.array([spared[place][0] for place in chosen.tolist()], np.int64),
            "upper_spared": np.array([spared[place][1] for place in chosen.tolist()], np.int64),
            "pieces": np.ones(len(chosen), np.int64),
            "unusual_steps": np.zeros(len(chosen), np.int64),
            "was_set": np.zeros(len(chosen), np.bool_),
        }
        for name, column in columns.items():
            self._numbers[name][at] = column
        start_ns = reference_ns + np.trunc(found["span_ns"][0, chosen]).astype(np.int64)
        self._lines.append((at, start_ns, reference_ns, offset_ns, line[_DRIFT]))
        for row, both in zip(at.tolist(), two_way.tolist(), strict=True):
            self._bases[row] = ClockBasis.TWO_WAY_DATA if both else ClockBasis.DATA_AND_ACKS

    def _add_others(self, rows: Sequence[int]) -> None:
        made = [self._make(row) for row in rows]
        self._made |= zip(rows, made, strict=True)
        columns = ClockRelations.of(made)
        for name, column in columns.numbers.items():
            self._numbers[name][list(rows)] = column
        for row, clock in zip(rows, made, strict=True):
            self._bases[row] = clock.basis
            for start_ns, reference_ns, offset_ns, drift in clock.lines:
                self._lines.append(
                    (np.array([row]), *np.array([[start_ns], [reference_ns]]), *np.array([[offset_ns], [drift]]))
                )

    def relations(self) -> ClockRelations:
        """All of them."""
        modes = option_of(self._pairs, lambda options: options.clocks)
        lines = [np.concatenate(column) for column in zip(_NO_LINES, *self._lines, strict=True)]
        order = np.argsort(lines[0], kind="stable")
        ordered = _core.ClockLineColumns(len(self._pairs), *(column[order] for column in lines))
        columns = modes, self._bases, self._clouds, self._larger_way, ordered, self._numbers
        return ClockRelations(*columns, self._make, self._made)

    def _make(self, row: int) -> ClockRelation:
        which, place = self._place_of[:, row].tolist()
        pair, clouds = self._pairs[row], self._clouds[row]
        if which == _NOWHERE:
            return _unrelated(pair)
        alike = self._alike[which]
        return _relation(pair, clouds, alike.mode, alike.limit, alike.bounds(place))


#: Whose a line is, and its numbers as in `Lines`, as columns.
_OwnedLines = tuple[Int64Array, Int64Array, Int64Array, FloatArray, FloatArray]

_NO_LINES: _OwnedLines = (*np.zeros((3, 0), np.int64), *np.zeros((2, 0)))
_NOWHERE = -1


class _Alike(Struct, frozen=True):
    """Connections that are related by the same rules, and what the times of their flows say."""

    mode: ClockMode
    limit: float
    constraints: _core.ConstraintsOfMany
    found: Mapping[str, npt.NDArray[Any]]

    def bounds(self, place: int) -> _Bounds:
        """What the times of one of them say."""
        exact, data, most = (Separation(*self.found[name][:, place].tolist()) for name in ("exact", "data", "most"))
        return _Bounds(self.constraints[place], exact, data, most)


#: Rows of a column of lines (`pepscope._core.clock_bounds`), as in `Separation`.
_SLACK, _OFFSET, _DRIFT, _LOW, _HIGH = range(5)


class _Flows:
    """The flows of connections that have some, as columns over all flows of all of them."""

    def __init__(self, clouds: Clouds) -> None:
        self._clouds = clouds
        are_compared = clouds.are_compared.T
        self._rows, self._ways = np.nonzero(are_compared)
        self._retransmitted_share = clouds.retransmitted_share.T[are_compared]
        #: The times of the flows of each connection.
        self.by_connection = [
            [times for times in both if times is not None] for both in zip(*clouds.times, strict=True)
        ]
        self._numbers = _core.flow_numbers([*chain.from_iterable(self.by_connection)])
        first = np.searchsorted(self._rows, np.arange(len(clouds)))
        last = np.searchsorted(self._rows, np.arange(len(clouds)), side="right") - 1
        data = self._numbers["data_count"]
        # Of equal ones the first: `clouds.larger`.
        self._larger = np.where(data[last] > data[first], last, first)

    def larger_way(self) -> Int64Array:
        """The direction of the flow of each connection with most data points."""
        return np.asarray(self._ways[self._larger])

    def round_trips_s(self) -> FloatArray:
        """The least acknowledgement round trip at the sender of the larger flow; infinite where unknown."""
        least_ns = self._numbers["least_round_trip_ns"][self._larger]
        return np.where(least_ns == UNKNOWN, math.inf, least_ns / 1e9)

    def least_acknowledged_s(self) -> FloatArray:
        """The least at the senders of both directions; NaN where unknown."""
        least_s = np.full(len(self._clouds), math.inf)
        times_ns = self._numbers["least_round_trip_ns"]
        known = times_ns != UNKNOWN
        np.minimum.at(least_s, self._rows[known], times_ns[known] / 1e9)
        return np.where(np.isfinite(least_s), least_s, math.nan)

    def spared(self) -> list[tuple[int, int]]:
        """How many lower and upper bounds of each connection may be wrong, since a capture lost packets."""
        numbers, rows, count = self._numbers, self._rows, len(self._clouds)
        sender_loss = loss_share(numbers["sender_lost"], numbers["sender_held"])
        receiver_loss = loss_share(numbers["receiver_lost"], numbers["receiver_held"])
        again = np.minimum(1.0, self._retransmitted_share + sender_loss)
        data_mean = numbers["data_count"] * sender_loss * again
        ack_mean = numbers["timed_ack_count"] * receiver_loss * again
        is_up = self._ways == _UP
        # Data of the client and acknowledgements to the server bound from above, the others from below.
        lower: FloatArray = np.bincount(rows, np.where(is_up, ack_mean, data_mean), count).astype(np.float64)
        upper: FloatArray = np.bincount(rows, np.where(is_up, data_mean, ack_mean), count).astype(np.float64)
        return list(zip(spared_points(lower).tolist(), spared_points(upper).tolist(), strict=True))


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
