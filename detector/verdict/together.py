"""Connections that are loaded and judged together, each with what both captures show of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.method import LoadedObservations, Observation
from detector.pair import Pair, Vantage
from detector.pairing.absence import Absence
from detector.pairing.captures import PairedCaptures
from detector.pairing.match import Match
from detector.pairing.rivals import RivalJudge
from detector.streams.loaded import LoadedPairs
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


class LoadedTogether(Struct, frozen=True):
    """Connections that were loaded together: their pairs with packets, both sides of these, and as methods are given
    them."""

    matches: Sequence[Match]
    pairs: Sequence[Pair]
    observations: Sequence[Observation]
    sides: Sides

    def __len__(self) -> int:
        return len(self.matches)

    @property
    def rivalled(self) -> list[int]:
        """Places of those that must be judged with the connections that they might belong to instead."""
        return [
            row
            for row, match in enumerate(self.matches)
            if match.rivals and (seen := self.observations[row]).absent is None and seen.place is None
        ]

    @property
    def are_as_loaded(self) -> bool:
        """Whether each is judged as the pair that it is."""
        return isinstance(self.observations, LoadedObservations) or all(
            seen.pair is pair and seen.place is None for seen, pair in zip(self.observations, self.pairs, strict=True)
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
        observations: Sequence[Observation]
        if isinstance(pairs, LoadedPairs) and not may_be_one.any():
            observations = LoadedObservations(pairs)
        else:
            observations = [
                _observation(first_path, paired, match, pair, absence, may_be_one=may)
                for match, pair, may in zip(matches, pairs, may_be_one.tolist(), strict=True)
            ]
        yield LoadedTogether(matches, pairs, observations, sides)


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
    pairs, observations, rivalled = together.pairs, together.observations, together.rivalled
    table, rows, doubtful = PairTable(), np.zeros(len(together), np.int64), np.zeros(len(together), np.bool_)
    alone = np.delete(np.arange(len(together)), rivalled)
    if isinstance(observations, LoadedObservations) and not rivalled:
        judged = judge_columns(observations, pairs, (), together.sides)
    else:
        seen = [observations[row] for row in alone.tolist()]
        known_sides = together.sides if together.are_as_loaded and not rivalled else None
        judged = judge_columns(
            seen, [pairs[row] for row in alone.tolist()], [each.place for each in seen], known_sides
        )  # fmt: skip
    table.append_rows(judged.rows, judged.found.parts)
    rows[alone], doubtful[alone] = np.arange(len(alone)), judged.are_doubtful
    for row, result in zip(rivalled, rivals.judge([together.matches[row] for row in rivalled]), strict=True):
        rows[row], doubtful[row] = table.append(result), is_doubtful(pairs[row], result.evidence)
    return table, rows, doubtful


def _held(vantage: Vantage) -> tuple[int, int]:
    """How much a capture holds of a connection: packets, and bytes of payload."""
    sampled = sum(sample.captured_bytes for sample in vantage.payload.values())
    return vantage.connection.packets, sampled
