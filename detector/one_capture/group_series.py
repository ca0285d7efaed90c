"""What a page draws of groups: exchanges beside their transport, handshakes and references, host by host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.columns import VantageColumns
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import EXCHANGE_KINDS
from pepscope.captures.packets import Direction
from pepscope.captures.references import ReferenceKind
from pepscope.captures.tables.addresses import address_texts
from pepscope.results.attention import group_attention
from pepscope.results.verdicts import FloatArray, GroupResult, GroupSeries, GroupSide, IntArray

#: Groups that are drawn, those that deserve attention first: as many as a page gives sections of their own.
SERIES_GROUPS = 50

#: Exchanges, handshakes and references kept of a group, evenly chosen: as many as a figure can tell apart.
SERIES_POINTS = 400

#: A resolver's answer holds the time that others took to answer it.
_NOT_DRAWN = (ReferenceKind.DNS,)

_Bools = npt.NDArray[np.bool_]


def with_series(
    groups: Sequence[GroupResult], sides: Sequence[tuple[VantageColumns, SidePosteriors]]
) -> list[GroupResult]:
    """The groups, side by side as they were judged by what is seen there, with the series of those that deserve
    attention."""
    found = list(groups)
    start = 0
    wanted = set(sorted(range(len(found)), key=lambda place: group_attention(found[place]))[:SERIES_GROUPS])
    for vantage, side in sides:
        count = len(side.places.network)
        numbers = [number for number in range(count) if start + number in wanted]
        shown = _Shown.of(vantage, side)
        for number in numbers:
            found[start + number] = replace(found[start + number], series=shown.series(number))
        start += count
    return found


class _Shown(Struct, frozen=True):
    """Exchanges, handshakes and references of a side, with the member that each belongs to."""

    side: SidePosteriors
    exchange_s: FloatArray
    exchange_kind: IntArray
    handshake_member: IntArray
    handshake_s: FloatArray
    reference_address: Sequence[str]
    reference_kind: IntArray
    reference_s: FloatArray

    @classmethod
    def of(cls, vantage: VantageColumns, side: SidePosteriors) -> _Shown:
        """Those of a judged side."""
        exchanges, timing = vantage.exchanges, side.timing
        asked = (Direction.UP if side.side is GroupSide.CLIENT else Direction.DOWN).value
        trips = exchanges.round_trips
        shaken = np.flatnonzero((trips.asked == asked) & (trips.handshake_ns >= 0))
        tied = vantage.references.tied()
        tied = tied.of(~np.isin(tied.kind, _NOT_DRAWN))
        return cls(
            side,
            exchanges.exchange_ns[timing.row] / 1e9,
            exchanges.kind[timing.row].astype(np.int64),
            side.places.member[trips.connection[shaken]].astype(np.int64),
            trips.handshake_ns[shaken] / 1e9,
            [str(text) for text in address_texts(tied.host_address)],
            tied.kind.astype(np.int64),
            tied.round_trip_ns / 1e9,
        )

    def series(self, group: int) -> GroupSeries:
        """What is drawn of one group."""
        places, timing = self.side.places, self.side.timing
        members = np.flatnonzero(places.member_group == group)
        first = int(members[0])
        place_of = {str(places.member_address[member]): member - first for member in members.tolist()}
        in_group = _rows(places.member_group[timing.member] == group)
        shaken = _rows(places.member_group[self.handshake_member] == group)
        answering = np.asarray([place_of.get(address, -1) for address in self.reference_address], np.int64)
        referred = _rows(answering >= 0)
        exchange = _chosen(in_group)
        handshake, reference = _chosen(shaken), _chosen(referred)
        return GroupSeries(
            exchange_host=timing.member[exchange] - first,
            exchange_kind=tuple(_kind(code) for code in self.exchange_kind[exchange]),
            exchange_s=self.exchange_s[exchange],
            exchange_transport_s=self.exchange_s[exchange] - timing.excess_s[exchange],
            exchange_count=len(in_group),
            handshake_host=self.handshake_member[handshake] - first,
            handshake_s=self.handshake_s[handshake],
            handshake_count=len(shaken),
            reference_host=answering[reference],
            reference_kind=tuple(ReferenceKind(code).title for code in self.reference_kind[reference]),
            reference_s=self.reference_s[reference],
            reference_count=len(referred),
        )


def _kind(code: Any) -> str:
    return EXCHANGE_KINDS[int(code)]


def _rows(where: _Bools) -> IntArray:
    return np.flatnonzero(where).astype(np.int64)


def _chosen(rows: IntArray) -> IntArray:
    """At most `SERIES_POINTS` of the rows, evenly."""
    if len(rows) <= SERIES_POINTS:
        return rows
    chosen: IntArray = rows[np.linspace(0, len(rows) - 1, SERIES_POINTS).astype(np.int64)]
    return chosen
