"""Clock relations of many connections as columns; the relation of one is an object where one is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockBasis, ClockRelation, Lines
from detector.clocks.clouds import Clouds, FlowClouds, larger
from detector.options import ClockMode
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray

#: `ClockRelations.larger_way` of a connection without a flow that can be compared.
NO_FLOW = -1


def _way_of(flow: FlowClouds | None) -> int:
    return NO_FLOW if flow is None else flow.direction


def _least_acknowledged_s(clock: ClockRelation) -> float:
    """The least acknowledgement round trip at the senders of both directions; NaN for none."""
    known = [least for flow in clock.clouds.values() if (least := flow.times.least_round_trip_ns) is not None]
    return min(known) / 1e9 if known else math.nan


#: The numbers of a relation that are columns, with their types and how an object gives them: `ClockRelation` says what
#: they are. `offset_ns` and `drift` are those of the first piece, NaN without any.
NUMBERS: Mapping[str, tuple[type[np.generic], Callable[[ClockRelation], Any]]] = {
    "slack_s": (np.float64, lambda clock: clock.slack_s),
    "exact_slack_s": (np.float64, lambda clock: clock.exact_slack_s),
    "round_trip_min_s": (np.float64, lambda clock: clock.round_trip_min_s),
    "least_acknowledged_s": (np.float64, _least_acknowledged_s),
    "data_low_s": (np.float64, lambda clock: clock.data_low_s),
    "data_high_s": (np.float64, lambda clock: clock.data_high_s),
    "offset_ns": (np.float64, lambda clock: clock.pieces[0].offset_ns if clock.pieces else math.nan),
    "drift": (np.float64, lambda clock: clock.pieces[0].drift if clock.pieces else math.nan),
    "lower_points": (np.int64, lambda clock: clock.lower_points),
    "upper_points": (np.int64, lambda clock: clock.upper_points),
    "lower_spared": (np.int64, lambda clock: clock.lower_spared),
    "upper_spared": (np.int64, lambda clock: clock.upper_spared),
    "pieces": (np.int64, lambda clock: len(clock.pieces)),
    "unusual_steps": (np.int64, lambda clock: clock.unusual_steps),
    "was_set": (np.bool_, lambda clock: clock.was_set),
}


def line_columns(lines: Sequence[Lines]) -> _core.ClockLineColumns:
    """The lines of many connections."""
    owners = [row for row, each in enumerate(lines) for _ in each]
    starts_ns, references_ns, offsets_ns, drifts = zip(*chain.from_iterable(lines), strict=True) if owners else [()] * 4
    columns = list(starts_ns), list(references_ns), list(offsets_ns), list(drifts)
    return _core.ClockLineColumns(len(lines), owners, *columns)


class LargerFlows(NamedTuple):
    """The larger flows of some connections: their rows, the times of these, and which go up."""

    rows: Int64Array
    times: Sequence[_core.FlowTimes]
    is_up: BoolArray

    def at(self, places: Int64Array) -> LargerFlows:
        """Some of them, by place."""
        if len(places) == len(self.rows):
            return self
        times = [self.times[place] for place in places.tolist()]
        return LargerFlows(self.rows[places], times, self.is_up[places])


@dataclass(frozen=True)
class ClockRelations(Sequence[ClockRelation]):
    """Each column has an element a connection: its clouds and the direction of the larger one of them (`NO_FLOW`
    without any), pieces as `ClockRelation.lines`, numbers by the names of `NUMBERS`. `make` makes the object of one."""

    modes: Sequence[ClockMode]
    bases: Sequence[ClockBasis]
    clouds: Clouds
    larger_way: Int64Array
    lines: _core.ClockLineColumns
    numbers: Mapping[str, npt.NDArray[Any]]
    make: Callable[[int], ClockRelation]
    _made: dict[int, ClockRelation] = field(default_factory=dict)

    @classmethod
    def of(cls, relations: Sequence[ClockRelation]) -> ClockRelations:
        """Relations that are objects already."""
        numbers = {name: np.array([of(each) for each in relations], kind) for name, (kind, of) in NUMBERS.items()}
        return cls(
            [each.mode for each in relations],
            [each.basis for each in relations],
            Clouds.of([each.clouds for each in relations]),
            np.array([_way_of(larger(each.clouds)) for each in relations], np.int64),
            line_columns([each.lines for each in relations]),
            numbers,
            relations.__getitem__,
        )

    def __len__(self) -> int:
        return len(self.modes)

    @overload
    def __getitem__(self, row: int) -> ClockRelation: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[ClockRelation]: ...
    def __getitem__(self, row: int | slice) -> ClockRelation | Sequence[ClockRelation]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not 0 <= row < len(self):
            raise IndexError(f"relation {row} of {len(self)}")
        if row not in self._made:
            self._made[row] = self.make(row)
        return self._made[row]

    def at(self, rows: Int64Array) -> ClockRelations:
        """Those of some of the connections."""
        if len(rows) == len(self):
            return self
        places: list[int] = rows.tolist()
        return ClockRelations(
            [self.modes[place] for place in places],
            [self.bases[place] for place in places],
            self.clouds.at(rows),
            self.larger_way[rows],
            self.lines.at(rows),
            {name: column[rows] for name, column in self.numbers.items()},
            lambda row: self[places[row]],
        )

    @cached_property
    def flows(self) -> LargerFlows:
        """The larger flows of those that have one."""
        rows, of_way = np.flatnonzero(self.larger_way != NO_FLOW), self.clouds.times
        ways = self.larger_way[rows]
        found = (of_way[way][row] for way, row in zip(ways.tolist(), rows.tolist(), strict=True))
        return LargerFlows(rows, [times for times in found if times is not None], ways == Direction.UP)

    @cached_property
    def are_separable(self) -> BoolArray:
        """`ClockRelation.separable` of each."""
        return np.asarray(self.numbers["slack_s"] >= -TIMESTAMP_ERROR_S)

    @cached_property
    def fit_data(self) -> BoolArray:
        """Where one clock without a step fits the data of both directions; elsewhere one of the clocks was set."""
        return np.asarray(self.numbers["data_high_s"] - self.numbers["data_low_s"] >= -TIMESTAMP_ERROR_S)
