"""The verdicts on the connections of one vantage point, as columns; their sentences are made when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.classes import Explanation
from detector.one_capture.columns import VantageColumns
from detector.one_capture.judging import JudgedPools, JudgedSide, inside, mechanism_of, probability_columns, verdict_of
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from detector.one_capture.reasons.evidence import exchange_evidence_columns
from detector.one_capture.reasons.sentences import NO_PATH, at_odds, leg_too_short, reason
from pepscope.results.evidence.columns import EvidenceColumns, columns_of
from pepscope.results.evidence.growing import Repeated
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, OWN, PairRows, VantageRows
from pepscope.results.pairs.stretch import StretchRows
from pepscope.results.verdicts import Evidence, GroupSide, Mechanism, Outcome, Verdict

#: Probability of a split before any evidence.
_UNKNOWN = 0.5

#: Connections whose evidence is packed together: reading one of them unpacks no more than so many.
_TOGETHER = 1024

#: Connections that are added to the table together: some hundred bytes each until they are.
_ADDED_TOGETHER = 8 * _TOGETHER

_VERDICTS = tuple(Verdict)

#: What a connection may be, by its place: a verdict with a mechanism. The last is relayed by a proxy that it asks for.
_KINDS = (*_VERDICTS, Verdict.SPLIT_TCP)
_MECHANISMS = (*(mechanism_of(verdict, relays=False) for verdict in _VERDICTS), Mechanism.RELAY)
_REGULAR, _INCONCLUSIVE, _SPLIT = (
    _VERDICTS.index(each) for each in (Verdict.REGULAR, Verdict.INCONCLUSIVE, Verdict.SPLIT_TCP)
)
_CODES = np.asarray([_VERDICTS.index(verdict_of(each)) for each in Explanation], np.int64)

FurtherEvidence = Callable[[int], Sequence[Evidence]]


def pair_table(
    vantage: VantageColumns,
    sides: Sequence[JudgedSide],
    further_evidence: FurtherEvidence | None,
    least_probability: float,
) -> tuple[PairTable, set[int]]:
    """The verdicts on all connections, and the places of those whose reason names their group already."""
    judged = _judged(sides, len(vantage.capture))
    columns, table = vantage.columns, PairTable()
    clients, servers = vantage.end_points("client"), vantage.end_points("server")
    duration_s = (columns["last_time_ns"] - columns["first_time_ns"]) / 1e9
    shown = [_ShownSide(side.side, side.connections, side.rows) for side in sides]
    paths = [capture.path for capture in vantage.captures]
    is_one = len(paths) == 1
    # What further methods find is packed block by block, before they examine the next one.
    together = _ADDED_TOGETHER if further_evidence is None else _TOGETHER
    for rows in _parts(slice(0, len(vantage.capture)), together):
        part, count = judged.of(rows), rows.stop - rows.start
        exchanges, evidence = partial(_exchange_evidence, shown, rows), None
        if further_evidence is not None:
            ((_, found),) = exchanges()
            evidence = part.weighed(found, further_evidence, rows.start, least_probability)
        item = np.zeros(count, np.int64)
        item[list(part.reasons)] = OWN
        captures = Repeated(paths[0], count) if is_one else [paths[place] for place in vantage.capture[rows].tolist()]
        seen = VantageRows(captures, clients[rows], servers[rows], Repeated("tcp", count))
        pairs = PairRows(
            (seen, VantageRows.nowhere(count)),
            _KINDS,
            np.where((part.verdict == _SPLIT) & part.relays, len(_VERDICTS), part.verdict),
            _MECHANISMS,
            part.probability,
            item,
            part.reasons,
            columns["packets"][rows],
            (columns["up_stream_bytes"][rows], columns["down_stream_bytes"][rows]),
            duration_s[rows],
            columns["first_time_ns"][rows],
            np.ones(count),
            Repeated("", count),
            StretchRows.unknown(count),
        )
        if evidence is None:
            table.append_found_later(pairs, exchanges)
        else:
            table.append_rows(pairs, evidence)
    return table, judged.told


class _ShownSide(Struct, frozen=True):
    """What evidence on exchanges is made of, of a side whose other columns need not be kept for it."""

    side: GroupSide
    connections: JudgedPools
    rows: Ints | None  # as in `JudgedSide`


def _exchange_evidence(sides: Sequence[_ShownSide], rows: slice) -> list[tuple[int, list[EvidenceColumns]]]:
    """What exchanges show of connections, in blocks of so many."""
    of_sides: list[EvidenceColumns] = []
    for side in sides:
        own = inside(side.rows, rows)
        found = exchange_evidence_columns(
            side.side, side.connections.figure_columns(own), side.connections.explanations[own]
        )
        if (places := side.rows) is not None:
            found = [replace(part, rows=places[own.start + part.rows] - rows.start) for part in found]
        of_sides += found
    blocks = []
    for block in _parts(slice(0, rows.stop - rows.start), _TOGETHER):
        among = [part.between(block.start, block.stop) for part in of_sides]
        blocks.append((block.stop - block.start, [part for part in among if len(part)]))
    return blocks


def _parts(rows: slice, together: int) -> Iterator[slice]:
    starts = range(rows.start, rows.stop, together)
    return (slice(first, min(first + together, rows.stop)) for first in starts)


class _Judged(Struct, frozen=True):
    """Connections as both stretches show them: where both are judged the worse one decides.

    `verdict` are places in `_VERDICTS`; `relays` says which a proxy relays that their client asks for; `reasons` those
    that are not what the evidence of the first side says; `told` the connections whose reason names their group.
    """

    verdict: Ints
    relays: npt.NDArray[np.bool_]
    probability: tuple[Floats, ...]
    reasons: dict[int, str]
    told: set[int]

    def of(self, rows: slice) -> _Judged:
        """Some of them, counted from the first."""
        inside = filter(self.reasons.__contains__, range(rows.start, rows.stop)) if self.reasons else ()
        reasons = {row - rows.start: self.reasons[row] for row in inside}
        return _Judged(
            self.verdict[rows],
            self.relays[rows],
            tuple(shares[rows] for shares in self.probability),
            reasons,
            self.told,
        )

    def weighed(
        self, evidence: list[EvidenceColumns], further: FurtherEvidence, first: int, least_probability: float
    ) -> list[EvidenceColumns]:
        """All evidence; connections of which further methods say something are judged by all of it together."""
        from detector.verdict.weighing import judge

        found = [tuple(further(first + row)) for row in range(len(self.verdict))]
        own: list[list[Evidence]] = [[] for _ in found]
        for part in evidence:
            for place, row in enumerate(part.rows.tolist()):
                own[row].append(part.evidence(place))
        for row, items in enumerate(found):
            if any(item.outcome is not Outcome.INAPPLICABLE for item in items):
                judgement = judge((*own[row], *items), least_probability=least_probability)
                self.verdict[row] = _VERDICTS.index(judgement.verdict)
                self.reasons[row] = judgement.reason
                self.told.discard(first + row)
                for shares, kind in zip(self.probability, JUDGED, strict=True):
                    shares[row] = judgement.probability[kind]
        most = max(map(len, found), default=0)
        placed = ([items[place] if place < len(items) else None for items in found] for place in range(most))
        return [*evidence, *(part for items in placed for part in columns_of(items))]


def _judged(sides: Sequence[JudgedSide], count: int) -> _Judged:
    # Each connection is judged on one side at least, if there is any (`judged_sides`).
    if not sides:
        undecided = np.full(count, _INCONCLUSIVE)
        nothing = probability_columns(np.full(count, _UNKNOWN), np.zeros(count, np.bool_))
        return _Judged(undecided, np.zeros(count, np.bool_), nothing, dict.fromkeys(range(count), NO_PATH), set())
    found = [_on_side(side, count) for side in sides]
    bad = np.asarray([np.where(each.is_judged, _BADNESS[each.verdict], -1) for each in found])
    worst, of = bad.max(axis=0), np.count_nonzero(bad >= 0, axis=0)
    shown, first = np.argmax(bad == worst, axis=0), np.argmax(bad >= 0, axis=0)
    split = 1.0 - np.prod([1.0 - side.spread(side.connections.classes.split, count, 0.0) for side in sides], axis=0)
    dialogues, relays = (
        np.choose(shown, [side.spread(getattr(side.connections, name), count, False) for side in sides])
        for name in ("dialogues", "relays")
    )
    verdict = np.choose(shown, [each.verdict for each in found])
    reasons, told = dict[int, str](), set[int]()
    for number, each in enumerate(found):
        is_shown = shown == number
        told |= set(np.flatnonzero(is_shown & each.is_told).tolist())
        # The evidence of the first side says the reason, but for what a group knows better.
        is_placed = is_shown & (each.verdict == _SPLIT) & (of > 1)
        for row in np.flatnonzero(is_shown & (each.is_told | is_placed | (number > first))).tolist():
            why = each.reason(row)
            side = sides[number].side.value
            reasons[row] = f"Between this capture and the {side}s: {why}" if is_placed[row] else why
    return _Judged(verdict, relays, probability_columns(split, dialogues), reasons, told)


#: How bad a verdict is, by its place.
_BADNESS = np.asarray([2 if each.is_split else each is Verdict.INCONCLUSIVE for each in _VERDICTS], np.int64)


class _OnSide(Struct, frozen=True):
    """All connections as one side shows those that it judges, which their groups may know better.

    `place` is that of each among those that are judged here; -1 where one is not.
    """

    connections: JudgedPools
    place: Ints
    explanation: Ints
    verdict: Ints
    too_short: npt.NDArray[np.bool_]
    at_odds: npt.NDArray[np.bool_]

    @property
    def is_told(self) -> npt.NDArray[np.bool_]:
        """Of which connections the reason names their group."""
        told: npt.NDArray[np.bool_] = self.too_short | self.at_odds
        return told

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """Which connections are judged here."""
        judged: npt.NDArray[np.bool_] = self.place >= 0
        return judged

    def reason(self, row: int) -> str:
        """Why a connection has its verdict."""
        figures = self.connections.figures(int(self.place[row]), 1)
        if self.too_short[row]:
            return leg_too_short(figures)
        return at_odds(figures) if self.at_odds[row] else reason(figures, Explanation(int(self.explanation[row])))


def _on_side(side: JudgedSide, count: int) -> _OnSide:
    places = side.posteriors.places
    explanation, alone = side.connections.explanations, side.alone.explanations
    of_group = _CODES[side.groups.explanations][places.member_group[places.member]]
    too_short = (_CODES[alone] == _REGULAR) & (of_group == _SPLIT)
    odd = (_CODES[alone] == _SPLIT) & (of_group == _REGULAR) & (alone != Explanation.SITE)
    verdict = np.where(too_short | odd, _INCONCLUSIVE, _CODES[explanation])
    place = np.arange(len(explanation))
    return _OnSide(
        side.connections,
        side.spread(place, count, -1),
        side.spread(explanation, count, 0),
        side.spread(verdict, count, _INCONCLUSIVE),
        side.spread(too_short, count, False),
        side.spread(odd, count, False),
    )
