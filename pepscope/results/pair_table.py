"""The verdicts on many connections, as columns; a `PairResult` is made when it is asked for."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import index
from typing import Any, overload

import msgspec
import numpy as np

from pepscope.results.columns import BytesColumn, CodedColumn, TextColumn
from pepscope.results.evidence.columns import EvidenceColumns, Form, Int64Array
from pepscope.results.evidence.named import PairPackets, packets_in, with_packets
from pepscope.results.evidence.table import EvidenceTable
from pepscope.results.verdicts import (
    Evidence,
    FloatArray,
    FlowSeries,
    Mechanism,
    PairResult,
    Stretch,
    VantageName,
    Verdict,
)

JUDGED = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)

#: `PairColumns.reason_item` where the reason is a text of its own.
_OWN = -1

#: `PairColumns.started_ns` where it is not known.
_UNKNOWN = -1

#: Codes of `PairColumns.one_place`; 0 where something may lie between the captures.
_NO_STRETCH, _ONE_PLACE = -1, 1


class VantageColumns:
    """Where connections were seen: the first vantage point of each, or the second one."""

    def __init__(self) -> None:
        self.capture: CodedColumn[str | None] = CodedColumn()  # None where there is no such vantage point
        self.transport: CodedColumn[str] = CodedColumn()
        self.client = TextColumn()
        self.server = TextColumn()

    def append(self, vantage: VantageName | None) -> None:
        """Add the vantage point of one more connection."""
        self.capture.append(None if vantage is None else vantage.capture)
        self.transport.append("" if vantage is None else vantage.transport)
        self.client.append("" if vantage is None else vantage.client)
        self.server.append("" if vantage is None else vantage.server)

    def extend(self, other: VantageColumns) -> None:
        """Add the rows of other columns."""
        self.capture.extend(other.capture)
        self.transport.extend(other.transport)
        self.client.extend(other.client)
        self.server.extend(other.server)

    def __getitem__(self, row: int) -> VantageName | None:
        capture = self.capture[row]
        if capture is None:
            return None
        return VantageName(capture, self.client[row], self.server[row], self.transport[row])


@dataclass(frozen=True, slots=True)
class PairColumns:
    """What a table of pairs keeps, a row a connection in the order of judging."""

    vantages: tuple[VantageColumns, VantageColumns]
    verdict: CodedColumn[Verdict]
    mechanism: CodedColumn[Mechanism | None]
    probability: tuple[array[float], ...]  # by `JUDGED`; NaN where none was given
    reason: TextColumn  # empty where it is what evidence says
    reason_item: array[int]  # the piece of evidence that says it; `_OWN` where none does
    remark: CodedColumn[str]  # what a group adds to the reason
    packets: array[int]
    payload_bytes: tuple[array[int], array[int]]  # up, down
    duration_s: array[float]
    started_ns: array[int]  # `_UNKNOWN` where no time is known
    pairing_confidence: array[float]
    pairing_ground: CodedColumn[str]
    one_place: array[int]
    stretch: BytesColumn
    evidence: EvidenceTable

    def reasons(self, rows: Iterable[int]) -> list[str]:
        """Why these pairs have their verdicts."""
        return [self.reason_with(row, None) for row in rows]

    def reason_with(self, row: int, said: Sequence[str] | None) -> str:
        """Why a pair has its verdict; `said` are the sentences of its evidence, where they are known."""
        item = self.reason_item[row]
        if item == _OWN:
            return self.reason[row] + self.remark[row]
        return (self.evidence.item(row, item).summary if said is None else said[item]) + self.remark[row]

    def started(self, row: int) -> int | None:
        """When a pair began (Unix time, ns)."""
        time_ns = self.started_ns[row]
        return None if time_ns == _UNKNOWN else time_ns

    def extend(self, other: PairColumns) -> None:
        """Add the rows of other columns."""
        for field in fields(self):
            mine, added = getattr(self, field.name), getattr(other, field.name)
            if isinstance(mine, tuple):
                for column, rows in zip(mine, added, strict=True):
                    column.extend(rows)
            else:
                mine.extend(added)


@dataclass(frozen=True, slots=True)
class PairRows:
    """Pairs with one vantage point, as columns of one length. `reasons` are those that are no evidence's: all others
    are what the first piece of evidence says."""

    captures: Sequence[str]
    capture: Int64Array  # place in `captures`
    client: Sequence[str]
    server: Sequence[str]
    verdicts: Sequence[Verdict]
    verdict: Int64Array  # place in `verdicts`, and in `mechanisms`
    mechanisms: Sequence[Mechanism | None]
    probability: tuple[FloatArray, ...]  # by `JUDGED`
    reasons: Mapping[int, str]
    packets: Int64Array
    payload_bytes: tuple[Int64Array, Int64Array]  # up, down
    duration_s: FloatArray
    started_ns: Int64Array

    def __len__(self) -> int:
        return len(self.packets)


class PairTable(Sequence[PairResult]):
    """Verdicts on connections; reads as a sequence of `PairResult`."""

    def __init__(self, pairs: Iterable[PairResult] = ()) -> None:
        self.columns = PairColumns(
            (VantageColumns(), VantageColumns()), CodedColumn(), CodedColumn(), tuple(array("d") for _ in JUDGED),
            TextColumn(), array("b"), CodedColumn(), array("q"), (array("q"), array("q")), array("d"), array("q"),
            array("d"),
            CodedColumn(), array("b"), BytesColumn(), EvidenceTable(),
        )  # fmt: skip
        self._series: dict[int, tuple[FlowSeries, ...]] = {}
        self._packets: dict[int, PairPackets] = {}
        self._order: Sequence[int] | None = None  # rows by place; None where they stand in order
        for pair in pairs:
            self.append(pair)

    @classmethod
    def of(cls, pairs: Sequence[PairResult]) -> PairTable:
        """The pairs as a table: themselves where they are one."""
        return pairs if isinstance(pairs, PairTable) else cls(pairs)

    def append(self, pair: PairResult) -> int:
        """Add a pair, and return its place."""
        number = self._append(pair)
        self.columns.evidence.append(pair.evidence)
        if (packets := packets_in(pair)) is not None:
            self._packets[number] = packets
        return number

    def append_judged(self, pairs: Sequence[PairResult], evidence: Sequence[EvidenceColumns]) -> int:
        """Add pairs whose evidence is in columns instead, and return the place of the first."""
        first = len(self)
        for pair in pairs:
            self._append(pair)
        self.columns.evidence.append_columns(len(pairs), evidence)
        return first

    def append_rows(self, rows: PairRows, evidence: Sequence[EvidenceColumns]) -> None:
        """Add pairs that are columns, as their evidence is."""
        columns, count = self.columns, len(rows)
        (first, second), none = columns.vantages, np.zeros(count, np.int64)
        nothing = [""] * count
        first.capture.append_all(rows.captures, rows.capture)
        first.transport.append_all(["tcp"], none)
        first.client.append_all(rows.client)
        first.server.append_all(rows.server)
        second.capture.append_all([None], none)
        second.transport.append_all([""], none)
        second.client.append_all(nothing)
        second.server.append_all(nothing)
        columns.verdict.append_all(rows.verdicts, rows.verdict)
        columns.mechanism.append_all(rows.mechanisms, rows.verdict)
        items = np.zeros(count, np.int8)
        items[list(rows.reasons)] = _OWN
        columns.reason_item.frombytes(items.tobytes())
        columns.reason.append_all([rows.reasons.get(row, "") for row in range(count)] if rows.reasons else nothing)
        columns.remark.append_all([""], none)
        floats = [*zip(columns.probability, rows.probability, strict=True), (columns.duration_s, rows.duration_s)]
        whole = [(columns.packets, rows.packets), (columns.started_ns, rows.started_ns)]
        whole += [*zip(columns.payload_bytes, rows.payload_bytes, strict=True)]
        for column, values in floats:
            column.frombytes(np.asarray(values, np.float64).tobytes())
        for sizes, numbers in whole:
            sizes.frombytes(np.asarray(numbers, np.int64).tobytes())
        columns.pairing_confidence.frombytes(np.ones(count).tobytes())
        columns.pairing_ground.append_all([""], none)
        columns.one_place.frombytes(np.full(count, _NO_STRETCH, np.int8).tobytes())
        columns.stretch.append_all([b""] * count)
        columns.evidence.append_columns(count, evidence)

    def _append(self, pair: PairResult) -> int:
        """Add all of a pair but its evidence."""
        columns, number = self.columns, len(self)
        for place, vantage in enumerate(columns.vantages):
            vantage.append(pair.vantages[place] if place < len(pair.vantages) else None)
        columns.verdict.append(pair.verdict)
        columns.mechanism.append(pair.mechanism)
        for kind, column in zip(JUDGED, columns.probability, strict=True):
            column.append(pair.probability.get(kind, math.nan))
        columns.reason.append(pair.reason)
        columns.reason_item.append(_OWN)
        columns.remark.append("")
        columns.packets.append(index(pair.packets))
        columns.payload_bytes[0].append(index(pair.payload_bytes_up))
        columns.payload_bytes[1].append(index(pair.payload_bytes_down))
        columns.duration_s.append(pair.duration_s)
        columns.started_ns.append(_UNKNOWN if pair.started_ns is None else pair.started_ns)
        columns.pairing_confidence.append(pair.pairing_confidence)
        columns.pairing_ground.append(pair.pairing_ground)
        columns.one_place.append(_NO_STRETCH if pair.stretch is None else int(pair.stretch.one_place))
        columns.stretch.append(_packed(pair.stretch))
        if pair.series:
            self._series[number] = pair.series
        return number

    def extend(self, others: PairTable) -> None:
        """Add the pairs of another table in the order in which they were added to it."""
        base = len(self)
        self.columns.extend(others.columns)
        self._series |= {base + row: series for row, series in others._series.items()}
        self._packets |= {base + row: packets for row, packets in others._packets.items()}

    def in_order(self, rows: Sequence[int]) -> PairTable:
        """The same pairs at other places: the pair of `rows[i]` at place i."""
        table = PairTable()
        table.columns, table._series, table._packets = self.columns, self._series, self._packets
        table._order = None if all(row == place for place, row in enumerate(rows)) else array("q", rows)
        return table

    def add_remark(self, place: int, text: str) -> None:
        """Add a sentence to the reason of a pair."""
        row = self._row(place)
        self.columns.remark[row] = f"{self.columns.remark[row]} {text}"

    def add_series(self, place: int, series: tuple[FlowSeries, ...]) -> None:
        """Give a pair what a page draws of it."""
        self._series[self._row(place)] = series

    def add_packets(self, place: int, packets: PairPackets) -> None:
        """Give a pair the packets that show what was found on it."""
        self._packets[self._row(place)] = packets

    def packets_of_row(self, row: int) -> PairPackets | None:
        """The packets that show what was found on the pair in a row of `columns`; None where none were given."""
        return self._packets.get(row)

    def series(self, place: int) -> tuple[FlowSeries, ...]:
        """What a page draws of a pair."""
        return self._series.get(self._row(place), ())

    @property
    def rows(self) -> Sequence[int]:
        """The row of each place in `columns`."""
        return range(len(self.columns.packets)) if self._order is None else self._order

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> PairResult: ...
    @overload
    def __getitem__(self, place: slice) -> list[PairResult]: ...
    def __getitem__(self, place: int | slice) -> PairResult | list[PairResult]:
        if isinstance(place, slice):
            return [self._made(row) for row in self.rows[place]]
        return self._made(self._row(place))

    def __iter__(self) -> Iterator[PairResult]:
        return map(self._made, self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # pairs are added

    def __repr__(self) -> str:
        return f"PairTable of {len(self)} pairs"

    def verdict(self, place: int) -> Verdict:
        """The verdict on a pair."""
        return self.columns.verdict[self._row(place)]

    def mechanism(self, place: int) -> Mechanism | None:
        """How a pair is split."""
        return self.columns.mechanism[self._row(place)]

    def probability(self, place: int) -> dict[Verdict, float]:
        """How probable each verdict on a pair is."""
        row = self._row(place)
        probability = zip(JUDGED, (column[row] for column in self.columns.probability), strict=True)
        return {kind: share for kind, share in probability if not math.isnan(share)}

    def reason(self, place: int) -> str:
        """Why a pair has its verdict."""
        return self.columns.reason_with(self._row(place), None)

    def packets(self, place: int) -> int:
        """Packets of a pair at all vantage points."""
        return self.columns.packets[self._row(place)]

    def payload_bytes(self, place: int) -> int:
        """What a pair carried in both directions."""
        row, (up, down) = self._row(place), self.columns.payload_bytes
        return up[row] + down[row]

    def pairing_confidence(self, place: int) -> float:
        """How sure it is that the vantage points of a pair show one transfer."""
        return self.columns.pairing_confidence[self._row(place)]

    def is_seen_twice(self, place: int) -> bool:
        """Whether a pair has two vantage points."""
        return self.columns.vantages[1].capture[self._row(place)] is not None

    def at_one_place(self, place: int) -> bool | None:
        """Whether both captures of a pair were taken at one place; None where no stretch is known."""
        code = self.columns.one_place[self._row(place)]
        return None if code == _NO_STRETCH else code == _ONE_PLACE

    def forms(self, place: int) -> list[Form]:
        """What methods found on a pair, without strength and figures."""
        return self.columns.evidence.forms(self._row(place))

    def strengths(self, place: int) -> Sequence[float]:
        """How firmly each of `forms` was found."""
        return self.columns.evidence.strengths(self._row(place))

    def evidence(self, place: int, number: int) -> Evidence:
        """One piece of what methods found on a pair: that of `forms(place)[number]`."""
        return self.columns.evidence.item(self._row(place), number)

    def _row(self, place: int) -> int:
        return self.rows[place]

    def _made(self, row: int) -> PairResult:
        columns = self.columns
        probability = zip(JUDGED, (column[row] for column in columns.probability), strict=True)
        evidence, stretch = columns.evidence[row], stretch_values(columns.stretch[row])
        vantages = tuple(vantage for column in columns.vantages if (vantage := column[row]) is not None)
        if (packets := self._packets.get(row)) is not None:
            vantages, evidence = with_packets(vantages, evidence, packets)
        return PairResult(
            vantages,
            columns.verdict[row],
            {kind: share for kind, share in probability if not math.isnan(share)},
            columns.reason_with(row, [item.summary for item in evidence]),
            evidence,
            columns.packets[row],
            columns.payload_bytes[0][row],
            columns.payload_bytes[1][row],
            columns.duration_s[row],
            self._series.get(row, ()),
            columns.pairing_confidence[row],
            columns.pairing_ground[row],
            columns.mechanism[row],
            columns.started(row),
            None if stretch is None else Stretch(**stretch),
        )


_STRETCH_FIELDS = tuple(Stretch.__dataclass_fields__)


def _packed(stretch: Stretch | None) -> bytes:
    if stretch is None:
        return b""
    return _PACKER.encode([getattr(stretch, name) for name in _STRETCH_FIELDS])


def stretch_values(content: bytes) -> dict[str, Any] | None:
    """The fields of a stretch that `PairColumns.stretch` holds, by name; None where there is none."""
    return dict(zip(_STRETCH_FIELDS, msgspec.msgpack.decode(content), strict=True)) if content else None


_PACKER = msgspec.msgpack.Encoder()
