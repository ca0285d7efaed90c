"""What a table of pairs keeps, as columns, and what many pairs are added as."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from pepscope.captures.tables.texts import GivenTexts, SlicedTexts, joined
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.evidence.growing import CodedColumn, Repeated, TextColumn, row_numbers
from pepscope.results.evidence.table import EvidenceTable
from pepscope.results.pairs.stretch import NO_STRETCH, StretchColumns, StretchRows
from pepscope.results.verdicts import FloatArray, Mechanism, VantageName, Verdict

JUDGED = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)

#: `PairColumns.reason_item` where the reason is a text of its own.
OWN = -1

#: `PairColumns.started_ns` where it is not known.
UNKNOWN_TIME = -1


class VantageRows(Struct, frozen=True):
    """Where many connections were seen; `capture` and `transport` may be None, and then there is nothing else."""

    capture: Sequence[str | None]
    client: Sequence[str]
    server: Sequence[str]
    transport: Sequence[str]

    @classmethod
    def of(cls, vantages: Sequence[VantageName | None]) -> VantageRows:
        """The vantage points as columns."""
        return cls(
            [None if each is None else each.capture for each in vantages],
            ["" if each is None else each.client for each in vantages],
            ["" if each is None else each.server for each in vantages],
            ["" if each is None else each.transport for each in vantages],
        )

    @classmethod
    def nowhere(cls, count: int) -> VantageRows:
        """So many connections without such a vantage point."""
        nothing = Repeated("", count)
        return cls(Repeated(None, count), nothing, nothing, nothing)


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

    def append_rows(self, rows: VantageRows) -> None:
        """Add the vantage points of many more connections."""
        self.capture.append_each(rows.capture)
        self.transport.append_each(rows.transport)
        self.client.append_all(rows.client)
        self.server.append_all(rows.server)

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

    def of(self, rows: Sequence[int]) -> list[tuple[str, str, str, str] | None]:
        """Capture, client, server and transport of some connections; None where there is no such vantage point."""
        transports = self.transport.of(rows)
        return [
            None if capture is None else (capture, self.client[row], self.server[row], transport)
            for row, capture, transport in zip(rows, self.capture.of(rows), transports, strict=True)
        ]


class PairColumns(Struct, frozen=True):
    """What a table of pairs keeps, a row a connection in the order of judging."""

    vantages: tuple[VantageColumns, VantageColumns]
    verdict: CodedColumn[Verdict]
    mechanism: CodedColumn[Mechanism | None]
    probability: tuple[array[float], ...]  # by `JUDGED`; NaN where none was given
    own_text: TextColumn  # the whole reason, or what follows the sentence of a piece of evidence
    reason_item: array[int]  # that piece of evidence; `OWN` where the reason is whole
    remark: CodedColumn[str]  # what a group adds to the reason
    packets: array[int]
    payload_bytes: tuple[array[int], array[int]]  # up, down
    duration_s: array[float]
    started_ns: array[int]  # `UNKNOWN_TIME` where no time is known
    pairing_confidence: array[float]
    pairing_ground: CodedColumn[str]
    stretch: StretchColumns
    evidence: EvidenceTable

    def reasons(self, rows: Sequence[int] | Int64Array) -> SlicedTexts:
        """Why these pairs have their verdicts."""
        chosen = row_numbers(rows)
        items = np.asarray(self.reason_item, np.int64)[chosen]
        return self.reasons_with(chosen, self.evidence.summaries(chosen, items))

    def reason(self, row: int) -> str:
        """Why a pair has its verdict."""
        item = self.reason_item[row]
        return self.reason_with(row, "" if item == OWN else self.evidence.item(row, item).summary)

    def reason_with(self, row: int, leading: str) -> str:
        """Why a pair has its verdict; `leading` is what the piece of evidence says that gives the reason."""
        return self.reasons_with(np.array([row]), [leading])[0]

    def reasons_with(self, rows: Int64Array, leading: Sequence[str]) -> SlicedTexts:
        """Why pairs in some rows have their verdicts; `leading` as in `reason_with`."""
        is_own = np.asarray(self.reason_item)[rows] == OWN
        is_decided = self.verdict.codes_of(rows) != self.verdict.code(Verdict.INCONCLUSIVE)
        covered = np.flatnonzero(~is_own & is_decided & (np.asarray(self.stretch.place)[rows] != NO_STRETCH))
        places, texts = self.stretch.coverages(rows[covered])
        covers, of_cover = ["", *texts], np.zeros(len(rows), np.uint32)
        of_cover[covered] = 1 + places
        first, text, covering = SlicedTexts.of(leading), self.own_text.sliced(rows), (of_cover, covers)
        # Where the reason is a text of its own, nothing leads.
        has_first, has_text, has_cover = first.lengths > 0, text.lengths > 0, np.asarray(covers)[of_cover] != ""
        before_text, before_cover = (
            (is_apart.astype(np.uint32), ["", " "])
            for is_apart in (has_first & has_text, (has_first | has_text) & has_cover)
        )
        parts: list[GivenTexts] = [first, before_text, text, before_cover, covering, self.remark.coded(rows)]
        return joined(len(rows), [""] * (len(parts) + 1), parts)

    def started(self, row: int) -> int | None:
        """When a pair began (Unix time, ns)."""
        time_ns = self.started_ns[row]
        return None if time_ns == UNKNOWN_TIME else time_ns

    def extend(self, other: PairColumns) -> None:
        """Add the rows of other columns."""
        for name in self.__struct_fields__:
            mine, added = getattr(self, name), getattr(other, name)
            if isinstance(mine, tuple):
                for column, rows in zip(mine, added, strict=True):
                    column.extend(rows)
            else:
                mine.extend(added)


class PairRows(Struct, frozen=True):
    """Pairs as columns of one length.

    The reason of a pair is what the piece `reason_item` of its evidence says, then its text in `texts`, if any, and
    which stretch a verdict does not cover; where the item is `OWN` the text is all.
    """

    vantages: tuple[VantageRows, VantageRows]
    verdicts: Sequence[Verdict]
    verdict: Int64Array  # place in `verdicts`, and in `mechanisms`
    mechanisms: Sequence[Mechanism | None]
    probability: tuple[FloatArray, ...]  # by `JUDGED`
    reason_item: Int64Array
    texts: Mapping[int, str]
    packets: Int64Array
    payload_bytes: tuple[Int64Array, Int64Array]  # up, down
    duration_s: FloatArray
    started_ns: Int64Array
    pairing_confidence: FloatArray
    pairing_ground: Sequence[str]
    stretch: StretchRows

    def __len__(self) -> int:
        return len(self.packets)
