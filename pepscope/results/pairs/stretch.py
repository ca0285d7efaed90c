"""Which stretch of the path the captures of many connections cover, as columns, and in words."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope._core import row_codes
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.verdicts import FloatArray, Stretch

#: A near end that never answers sooner is some way off: above a host's own answering time (scheduling, interrupt
#: coalescing: below 1 ms on ordinary hosts) and below the round trip of a path worth two captures.
NEAR_ANSWER_S = 0.010

#: Codes of `StretchRows.place`: no stretch is known; something may lie between the captures; both are at one place.
NO_STRETCH, APART, ONE_PLACE = -1, 0, 1

#: The members of a stretch in results: the fields of `Stretch`.
STRETCH = (
    "one_place",
    "client_hops_beyond",
    "server_hops_beyond",
    "client_round_trip_beyond_s",
    "server_round_trip_beyond_s",
    "hops_between",
    "round_trip_between_s",
)

#: Stands for a number of hops that is not known, as NaN does for a time.
UNKNOWN_HOPS = -1


class StretchRows(Struct, frozen=True):
    """The stretches of many connections; names are those of `Stretch`."""

    place: Int64Array
    client_hops_beyond: Int64Array
    server_hops_beyond: Int64Array
    client_round_trip_beyond_s: FloatArray
    server_round_trip_beyond_s: FloatArray
    hops_between: Int64Array
    round_trip_between_s: FloatArray

    @classmethod
    def of(cls, stretches: Sequence[Stretch | None]) -> StretchRows:
        """The stretches as columns."""
        known = [Stretch(one_place=False) if each is None else each for each in stretches]

        def hops(name: str) -> Int64Array:
            values = [getattr(each, name) for each in known]
            return np.array([UNKNOWN_HOPS if value is None else value for value in values], np.int64)

        def times(name: str) -> FloatArray:
            return np.array([getattr(each, name) for each in known], np.float64)

        return cls(
            np.array([NO_STRETCH if each is None else int(each.one_place) for each in stretches], np.int64),
            hops("client_hops_beyond"), hops("server_hops_beyond"),
            times("client_round_trip_beyond_s"), times("server_round_trip_beyond_s"),
            hops("hops_between"), times("round_trip_between_s"),
        )  # fmt: skip

    @classmethod
    def unknown(cls, count: int) -> StretchRows:
        """So many connections that one capture holds."""

        def hops() -> Int64Array:
            return np.full(count, UNKNOWN_HOPS, np.int64)

        def times() -> FloatArray:
            return np.full(count, math.nan)

        return cls(np.full(count, NO_STRETCH, np.int64), hops(), hops(), times(), times(), hops(), times())

    def at(self, row: int) -> Stretch | None:
        """That of one connection."""
        if self.place[row] == NO_STRETCH:
            return None
        hops = [
            None if (count := int(counts[row])) == UNKNOWN_HOPS else count
            for counts in (self.client_hops_beyond, self.server_hops_beyond, self.hops_between)
        ]
        times = [
            None if math.isnan(value := float(values[row])) else value
            for values in (self.client_round_trip_beyond_s, self.server_round_trip_beyond_s, self.round_trip_between_s)
        ]
        return Stretch(bool(self.place[row] == ONE_PLACE), hops[0], hops[1], times[0], times[1], hops[2], times[2])


class StretchColumns:
    """The stretches of a table of pairs."""

    def __init__(self) -> None:
        self.place = array("b")
        self._hops = (array("h"), array("h"), array("h"))  # beyond the client's side and the server's, between
        self._round_trips_s = (array("d"), array("d"), array("d"))

    def append_rows(self, rows: StretchRows) -> None:
        """Add the stretches of many connections."""
        self.place.frombytes(rows.place.astype(np.int8).tobytes())
        hops = rows.client_hops_beyond, rows.server_hops_beyond, rows.hops_between
        times = rows.client_round_trip_beyond_s, rows.server_round_trip_beyond_s, rows.round_trip_between_s
        for counts, column in zip(self._hops, hops, strict=True):
            counts.frombytes(column.astype(np.int16).tobytes())
        for seconds, values in zip(self._round_trips_s, times, strict=True):
            seconds.frombytes(np.asarray(values, np.float64).tobytes())

    def extend(self, other: StretchColumns) -> None:
        """Add the rows of other columns."""
        self.place.extend(other.place)
        for own, added in zip(self._hops, other._hops, strict=True):
            own.extend(added)
        for seconds, more in zip(self._round_trips_s, other._round_trips_s, strict=True):
            seconds.extend(more)

    def of(self, rows: Int64Array) -> list[npt.NDArray[Any] | tuple[npt.NDArray[np.uint32], list[int | None]]]:
        """Columns of the stretches of some pairs, all of which have one, in the order of `STRETCH`: of hops each a
        place in a list, of times NaN for what is not known."""
        client, server, between = (_coded(np.asarray(column)[rows]) for column in self._hops)
        near_s, far_s, between_s = (np.asarray(column)[rows] for column in self._round_trips_s)
        return [np.asarray(self.place)[rows] == ONE_PLACE, client, server, near_s, far_s, between, between_s]

    def coverages(self, rows: Int64Array) -> tuple[npt.NDArray[np.uint32], list[str]]:
        """`coverage` of the stretches of some pairs, each a place in a list; it is put into words once where it is the
        same."""
        hops = [np.asarray(column)[rows].astype(np.int64) for column in self._hops[:2]]
        times_s = [np.asarray(column)[rows] for column in self._round_trips_s[:2]]
        far_s = [np.where(seconds >= NEAR_ANSWER_S, seconds, math.nan) for seconds in times_s]
        codes, first = row_codes([*hops, *far_s])
        return codes.astype(np.uint32), [coverage(self[row]) for row in rows[first].tolist()]

    def _values(self, row: int) -> tuple[Any, ...]:
        client, server, between = [None if (value := hops[row]) < 0 else value for hops in self._hops]
        near_s, far_s, between_s = [None if math.isnan(time_s := s[row]) else time_s for s in self._round_trips_s]
        return self.place[row] == ONE_PLACE, client, server, near_s, far_s, between, between_s

    def __getitem__(self, row: int) -> Stretch | None:
        return None if self.place[row] == NO_STRETCH else Stretch(*self._values(row))


def _coded(hops: npt.NDArray[np.int16]) -> tuple[npt.NDArray[np.uint32], list[int | None]]:
    """Numbers of hops as places in a list; None where one is not known."""
    return np.maximum(hops + 1, 0).astype(np.uint32), [None, *range(int(hops.max(initial=0)) + 1)]


def coverage(stretch: Stretch | None) -> str:
    """The sentence on the path that a verdict does not cover; empty where both captures were taken at the end hosts."""
    if stretch is None:
        return ""
    left_out = [
        text
        for text in (
            _beyond("client", stretch.client_hops_beyond, stretch.client_round_trip_beyond_s),
            _beyond("server", stretch.server_hops_beyond, stretch.server_round_trip_beyond_s),
        )
        if text
    ]
    if not left_out:
        return ""
    return f"Covers the stretch between the two captures; not covered: {', and '.join(left_out)}."


def _beyond(side: str, hops: int | None, round_trip_s: float | None) -> str:
    far = round_trip_s is not None and round_trip_s >= NEAR_ANSWER_S
    if hops:
        long = f" with a round trip of {1e3 * round_trip_s:.3g} ms" if far and round_trip_s is not None else ""
        return f"{hops} hop{'' if hops == 1 else 's'}{long} beyond the {side}-side capture"
    if far and round_trip_s is not None:
        return (
            f"whatever makes the near end of the {side}-side capture answer only after {1e3 * round_trip_s:.3g} ms "
            "(a path, or a host that is slow to answer)"
        )
    return ""
