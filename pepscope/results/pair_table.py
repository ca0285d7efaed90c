"""The verdicts on many connections, as columns; a `PairResult` is made when it is asked for."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pepscope.results.evidence.columns import BoolArray, EvidenceColumns, Form, Int64Array
from pepscope.results.evidence.growing import CodedColumn, Repeated, TextColumn, row_numbers
from pepscope.results.evidence.named import PairPackets, SentPackets, packets_in, with_packets
from pepscope.results.evidence.pieces import Pieces
from pepscope.results.evidence.table import EvidenceTable, Later
from pepscope.results.pairs.columns import (
    JUDGED,
    OWN,
    UNKNOWN_TIME,
    PairColumns,
    PairRows,
    VantageColumns,
)
from pepscope.results.pairs.stretch import NO_STRETCH, ONE_PLACE, StretchColumns, StretchRows
from pepscope.results.verdicts import Evidence, FlowSeries, Mechanism, PairResult, VantageName, Verdict


class PairTable(Sequence[PairResult]):
    """Verdicts on connections; reads as a sequence of `PairResult`."""

    def __init__(self, pairs: Iterable[PairResult] = ()) -> None:
        self.columns = PairColumns(
            (VantageColumns(), VantageColumns()), CodedColumn(), CodedColumn(), tuple(array("d") for _ in JUDGED),
            TextColumn(), array("b"), CodedColumn(), array("q"), (array("q"), array("q")), array("d"), array("q"),
            array("d"), CodedColumn(), StretchColumns(), EvidenceTable(),
        )  # fmt: skip
        self._series: dict[int, tuple[FlowSeries, ...]] = {}
        self._packets: dict[int, PairPackets] = {}
        self._order: Sequence[int] | None = None  # rows by place; None where they stand in order
        for pair in pairs:
            self.append(pair)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_packets": SentPackets.of(self._packets) if self._packets else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        sent: SentPackets | None = state["_packets"]
        self.__dict__ = {**state, "_packets": {} if sent is None else sent.by_row()}

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

    def append_rows(self, rows: PairRows, evidence: Sequence[EvidenceColumns]) -> int:
        """Add pairs that are columns, as their evidence is, and return the place of the first."""
        return self.append_blocks(rows, [(len(rows), evidence)])

    def append_blocks(self, rows: PairRows, blocks: Iterable[tuple[int, Sequence[EvidenceColumns]]]) -> int:
        """The same with evidence in blocks, of so many pairs each, which are packed and read one by one."""
        first = self._append_rows(rows)
        for together, evidence in blocks:
            self.columns.evidence.append_columns(together, evidence)
        return first

    def append_found_later(self, rows: PairRows, found: Later) -> int:
        """The same where the blocks are made when any evidence is asked for."""
        first = self._append_rows(rows)
        self.columns.evidence.append_later(found)
        return first

    def _append_rows(self, rows: PairRows) -> int:
        columns, first, count = self.columns, len(self), len(rows)
        for vantage, seen in zip(columns.vantages, rows.vantages, strict=True):
            vantage.append_rows(seen)
        columns.verdict.append_all(rows.verdicts, rows.verdict)
        columns.mechanism.append_all(rows.mechanisms, rows.verdict)
        columns.reason_item.frombytes(rows.reason_item.astype(np.int8).tobytes())
        nothing = Repeated("", count)
        columns.own_text.append_all([rows.texts.get(row, "") for row in range(count)] if rows.texts else nothing)
        columns.remark.append_each(nothing)
        floats = [*zip(columns.probability, rows.probability, strict=True)]
        floats += [(columns.duration_s, rows.duration_s), (columns.pairing_confidence, rows.pairing_confidence)]
        whole = [(columns.packets, rows.packets), (columns.started_ns, rows.started_ns)]
        whole += [*zip(columns.payload_bytes, rows.payload_bytes, strict=True)]
        for column, values in floats:
            column.frombytes(np.asarray(values, np.float64).tobytes())
        for sizes, numbers in whole:
            sizes.frombytes(np.asarray(numbers, np.int64).tobytes())
        columns.pairing_ground.append_each(rows.pairing_ground)
        columns.stretch.append_rows(rows.stretch)
        return first

    def _append(self, pair: PairResult) -> int:
        """Add all of a pair but its evidence."""
        columns, number = self.columns, len(self)
        for place, vantage in enumerate(columns.vantages):
            vantage.append(pair.vantages[place] if place < len(pair.vantages) else None)
        columns.verdict.append(pair.verdict)
        columns.mechanism.append(pair.mechanism)
        for kind, column in zip(JUDGED, columns.probability, strict=True):
            column.append(pair.probability.get(kind, math.nan))
        columns.own_text.append(pair.reason)
        columns.reason_item.append(OWN)
        columns.remark.append("")
        columns.packets.append(index(pair.packets))
        columns.payload_bytes[0].append(index(pair.payload_bytes_up))
        columns.payload_bytes[1].append(index(pair.payload_bytes_down))
        columns.duration_s.append(pair.duration_s)
        columns.started_ns.append(UNKNOWN_TIME if pair.started_ns is None else pair.started_ns)
        columns.pairing_confidence.append(pair.pairing_confidence)
        columns.pairing_ground.append(pair.pairing_ground)
        columns.stretch.append_rows(StretchRows.of([pair.stretch]))
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

    def add_remarks(self, places: Int64Array, text: str) -> None:
        """Add a sentence to the reasons of some pairs."""
        self.columns.remark.change(self.rows_at(places), lambda before: f"{before} {text}")

    def add_series(self, place: int, series: tuple[FlowSeries, ...]) -> None:
        """Give a pair what a page draws of it."""
        self._series[self._row(place)] = series

    def add_packets(self, place: int, packets: PairPackets) -> None:
        """Give a pair the packets that show what was found on it."""
        self._packets[self._row(place)] = packets

    def set_packets_aside(self, kept: frozenset[int]) -> dict[int, PairPackets]:
        """Take the packets by row from all pairs but those in these rows of `columns`, and return them."""
        aside = {row: packets for row, packets in self._packets.items() if row not in kept}
        for row in aside:
            del self._packets[row]
        return aside

    def packets_of_row(self, row: int) -> PairPackets | None:
        """The packets that show what was found on the pair in a row of `columns`; None where none were given."""
        return self._packets.get(row)

    def packets_of_rows(self, rows: Int64Array) -> dict[int, PairPackets]:
        """The packets of those pairs in some rows that were given any, by their place among the rows."""
        packets = self._packets
        if not packets:
            return {}
        return {place: packets[row] for place, row in enumerate(rows.tolist()) if row in packets}

    def series(self, place: int) -> tuple[FlowSeries, ...]:
        """What a page draws of a pair."""
        return self._series.get(self._row(place), ())

    @property
    def rows(self) -> Sequence[int]:
        """The row of each place in `columns`."""
        return range(len(self.columns.packets)) if self._order is None else self._order

    @property
    def is_in_order(self) -> bool:
        """Whether places are rows of `columns`."""
        return self._order is None

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
        return self.columns.reason(self._row(place))

    def packets(self, place: int) -> int:
        """Packets of a pair at all vantage points."""
        return self.columns.packets[self._row(place)]

    def are(self, verdict: Verdict, places: Int64Array) -> BoolArray:
        """Which of some pairs have a verdict."""
        codes = self.columns.verdict
        return np.asarray(codes.codes_of(self.rows_at(places)) == codes.code(verdict))

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
        code = self.columns.stretch.place[self._row(place)]
        return None if code == NO_STRETCH else code == ONE_PLACE

    def counts_at_one_place(self) -> tuple[int, int]:
        """How many pairs have both captures at one place, and of how many a stretch is known at all."""
        places = np.asarray(self.columns.stretch.place)
        return int((places == ONE_PLACE).sum()), int((places != NO_STRETCH).sum())

    def forms(self, place: int) -> list[Form]:
        """What methods found on a pair, without strength and figures."""
        return self.columns.evidence.forms(self._row(place))

    def strengths(self, place: int) -> Sequence[float]:
        """How firmly each of `forms` was found."""
        return self.columns.evidence.strengths(self._row(place))

    def pieces(self, places: Int64Array) -> Pieces:
        """What methods found on some pairs, without figures and sentences."""
        return self.columns.evidence.pieces(self.rows_at(places))

    def verdicts(self, places: Int64Array | None = None) -> list[Verdict]:
        """The verdicts on some pairs, or on all of them."""
        rows = self.rows if places is None else self.rows_at(places).tolist()
        return self.columns.verdict.of(rows)

    def coded_verdicts(self) -> tuple[npt.NDArray[np.uint32], list[Verdict]]:
        """The verdicts on all pairs, as places in a list."""
        return self.columns.verdict.coded(row_numbers(self.rows))

    def ranked(self, ranks: Mapping[Verdict, int]) -> Int64Array:
        """The places of all pairs, those with the lowest ranks of their verdicts first; of one rank in order."""
        codes, verdicts = self.coded_verdicts()
        of_verdicts = np.array([ranks[verdict] for verdict in verdicts], np.int64)
        return np.argsort(of_verdicts[codes], kind="stable")

    def sizes_bytes(self, places: Int64Array) -> Int64Array:
        """What each of some pairs carried in both directions."""
        rows = self.rows_at(places)
        up, down = (np.asarray(column)[rows] for column in self.columns.payload_bytes)
        return np.asarray(up + down)

    def vantages(self, place: int) -> tuple[VantageName, ...]:
        """Where a pair was seen, without frames."""
        row = self._row(place)
        return tuple(vantage for column in self.columns.vantages if (vantage := column[row]) is not None)

    def unworded_evidence(self, places: Int64Array, names: frozenset[str]) -> Sequence[Sequence[Evidence]]:
        """What methods found on some pairs, without sentences, caveats and packets, and of figures those of these
        names."""
        return self.columns.evidence.unworded(self.rows_at(places), names)

    def evidence(self, place: int, number: int) -> Evidence:
        """One piece of what methods found on a pair: that of `forms(place)[number]`."""
        return self.columns.evidence.item(self._row(place), number)

    def _row(self, place: int) -> int:
        return self.rows[place]

    def rows_at(self, places: Int64Array) -> Int64Array:
        """The rows of some places in `columns`."""
        return places if self._order is None else np.asarray(self._order)[places]

    def with_evidence(self, place: int, evidence: tuple[Evidence, ...]) -> PairResult:
        """A pair whose evidence is known, and need not be in the table."""
        return self._result(self._row(place), evidence)

    def _made(self, row: int) -> PairResult:
        return self._result(row, self.columns.evidence[row])

    def _result(self, row: int, evidence: tuple[Evidence, ...]) -> PairResult:
        columns = self.columns
        probability = zip(JUDGED, (column[row] for column in columns.probability), strict=True)
        item = columns.reason_item[row]
        vantages = tuple(vantage for column in columns.vantages if (vantage := column[row]) is not None)
        reason = columns.reason_with(row, "" if item == OWN else evidence[item].summary)
        if (packets := self._packets.get(row)) is not None:
            vantages, evidence = with_packets(vantages, evidence, packets)
        return PairResult(
            vantages,
            columns.verdict[row],
            {kind: share for kind, share in probability if not math.isnan(share)},
            reason,
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
            columns.stretch[row],
        )
