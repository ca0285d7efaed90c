"""Connections that are loaded and judged together, each with what both captures show of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.method import Observation
from detector.pair import Pair, Vantage
from detector.pairing.absence import Absence
from detector.pairing.captures import PairedCaptures
from detector.pairing.match import Match
from detector.pairing.rivals import RivalJudge
from detector.streams.sides import Sides
from detector.vantage.one_place import may_be_one_place, one_place
from detector.verdict.judging import judge_columns
from detector.verdict.mispairing import is_doubtful
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.pair_table import PairTable

#: Connections are judged together until their packets are so many: methods that read columns ask for each column once,
#: which some hundred connections to web servers share then, and the packets take some megabytes beside the last
#: connection.
PACKETS_TOGETHER = 1 << 16


class Loaded(Struct, frozen=True):
    """A connection with its packets, and as methods are given it."""

    match: Match
    pair: Pair
    observation: Observation

    @property
    def has_rivals(self) -> bool:
        """Whether it must be judged with the connections that it might belong to instead."""
        return bool(self.match.rivals) and self.observation.absent is None and self.observation.place is None


class LoadedTogether(NamedTuple):
    """Connections that were loaded together, and both sides of their pairs."""

    connections: Sequence[Loaded]
    sides: Sides

    @property
    def are_as_loaded(self) -> bool:
        """Whether each is judged as the pair that it is, by itself."""
        return all(
            each.observation.pair is each.pair and each.observation.place is None and not each.match.rivals
            for each in self.connections
        )


def loaded_together(
    first_path: str,
    paired: PairedCaptures,
    absence: Absence | None,
    numbers: Sequence[int],
    packets_together: int = PACKETS_TOGETHER,
) -> Iterator[LoadedTogether]:
    """The connections to judge together, so many at a time that their packets take little memory: those of the last one
    aside, fewer than `packets_together`."""
    for matches in _batches(paired, [paired.matches[number] for number in numbers], packets_together):
        pairs, sides = paired.with_sides(matches)
        may_be_one = np.zeros(len(pairs), np.bool_)
        may_be_one[sides.rows] = may_be_one_place(sides)
        loaded = [
            Loaded(match, pair, _observation(first_path, paired, match, pair, absence, may_be_one=may))
            for match, pair, may in zip(matches, pairs, may_be_one.tolist(), strict=True)
        ]
        yield LoadedTogether(loaded, sides)


def _batches(paired: PairedCaptures, matches: Sequence[Match], packets_together: int) -> Iterator[Sequence[Match]]:
    """The matches in their order, a few at a time: as many as it takes for `packets_together` packets."""
    begin, before, total = 0, 0, 0
    for place, count in enumerate(paired.packet_counts(matches).tolist()):
        total += count
        if total - before >= packets_together:
            yield matches[begin : place + 1]
            begin, before = place + 1, total
    if begin < len(matches):
        yield matches[begin:]


def _observation(
    first_path: str, paired: PairedCaptures, match: Match, pair: Pair, absence: Absence | None, *, may_be_one: bool
) -> Observation:
    """The pair with the information of both captures; of captures taken at one place the one that holds more."""
    if absence is not None and len(pair.vantages) == 1 and pair.datagram_leg is None:
        return Observation(pair, absent=absence.of(match, pair), candidates=paired.encrypted_candidates(match))
    place = one_place(pair) if may_be_one and not pair.encrypted else None
    if place is None:
        return Observation(pair)
    richer = max(pair.vantages, key=_held).capture
    alone = replace(match, second=None) if richer == first_path else replace(match, first=None)
    return Observation(paired.pair(replace(alone, sides_swapped=False)), place=place)


def judge_together(together: LoadedTogether, rivals: RivalJudge) -> tuple[PairTable, Int64Array, BoolArray]:
    """Judge connections, those without rivals at once: a table of verdicts, where each connection's stands in it, and
    whether the captures may show two transfers."""
    loaded, known_sides = together.connections, together.sides if together.are_as_loaded else None
    table, rows, doubtful = PairTable(), np.zeros(len(loaded), np.int64), np.zeros(len(loaded), np.bool_)
    alone = [row for row, each in enumerate(loaded) if not each.has_rivals]
    judged = judge_columns(
        [loaded[row].observation for row in alone],
        [loaded[row].pair for row in alone],
        [loaded[row].observation.place for row in alone],
        known_sides,
    )
    table.append_rows(judged.rows, judged.found.parts)
    rows[alone], doubtful[alone] = np.arange(len(alone)), judged.are_doubtful
    rivalled = [row for row, each in enumerate(loaded) if each.has_rivals]
    for row, result in zip(rivalled, rivals.judge([loaded[row].match for row in rivalled]), strict=True):
        rows[row], doubtful[row] = table.append(result), is_doubtful(loaded[row].pair, result.evidence)
    return table, rows, doubtful


def _held(vantage: Vantage) -> tuple[int, int]:
    """How much a capture holds of a connection: packets, and bytes of payload."""
    sampled = sum(sample.captured_bytes for sample in vantage.payload.values())
    return vantage.connection.packets, sampled
