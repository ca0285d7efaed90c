"""Connections that are loaded and judged together, each with what both captures show of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from detector.vantage.one_place import OnePlace, may_be_one_place, one_place
from detector.verdict.judging import judge_columns
from detector.verdict.mispairing import is_doubtful
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.pair_table import PairTable

#: Packets of the connections that are judged together. Methods that read columns read each column once for all of them:
#: for some hundred connections to web servers, whose packets take some megabytes (those of the last one aside).
PACKETS_TOGETHER = 1 << 16


class LoadedTogether(Struct, frozen=True):
    """Connections that were loaded together: their `numbers` among all matches, their pairs with packets, the sides of
    these pairs as columns, and the observations that methods examine."""

    numbers: Sequence[int]
    matches: Sequence[Match]
    pairs: Sequence[Pair]
    observations: Sequence[Observation]
    sides: Sides

    def __len__(self) -> int:
        return len(self.matches)

    @property
    def rivalled(self) -> list[int]:
        """Places of connections with rivals: their verdict must also hold under another pairing."""
        return [
            row
            for row, match in enumerate(self.matches)
            if match.rivals and (seen := self.observations[row]).absent is None and seen.place is None
        ]

    @property
    def are_as_loaded(self) -> bool:
        """Whether every pair is judged as it was loaded, with both its sides."""
        return isinstance(self.observations, LoadedObservations) or all(
            seen.pair is pair and seen.place is None for seen, pair in zip(self.observations, self.pairs, strict=True)
        )


class Loader(Struct, frozen=True):
    """Loads the connections of two captures, to judge them. `absence` tells why one capture lacks a connection; None
    if there is only one capture."""

    first_path: str
    paired: PairedCaptures
    absence: Absence | None = None

    def batches(self, numbers: Sequence[int], packets_together: int = PACKETS_TOGETHER) -> Iterator[Sequence[int]]:
        """The connections in their order, in batches whose packets take little memory: fewer than `packets_together`,
        if the last connection of the batch is not counted."""
        begin, before, total = 0, 0, 0
        matches = [self.paired.matches[number] for number in numbers]
        for place, count in enumerate(self.paired.packet_counts(matches).tolist()):
            total += count
            if total - before >= packets_together:
                yield numbers[begin : place + 1]
                begin, before = place + 1, total
        if begin < len(numbers):
            yield numbers[begin:]

    def load(self, numbers: Sequence[int]) -> Iterator[LoadedTogether]:
        """Load some connections: first those that can be judged as columns, then the others, as objects."""
        matches = self.paired.matches
        plain = {number for number in numbers if matches[number].is_plain and not matches[number].rivals}
        if len(plain) > 1:
            yield from self._load_plain([number for number in numbers if number in plain])
            numbers = [number for number in numbers if number not in plain]
        if numbers:
            chosen = [matches[number] for number in numbers]
            pairs, sides = self.paired.with_sides(chosen)
            places = _places(pairs, sides)
            yield LoadedTogether(numbers, chosen, pairs, self._observations(chosen, pairs, places), sides)

    def _load_plain(self, numbers: Sequence[int]) -> Iterator[LoadedTogether]:
        """Load plain connections: first those between two places, then those whose captures were taken at one place."""
        pairs, sides = self.paired.with_sides([self.paired.matches[number] for number in numbers])
        places = _places(pairs, sides)
        at_one_place = np.array([*places], np.int64)
        apart = np.delete(np.arange(len(numbers)), at_one_place)
        for rows, seen_at in ((apart, {}), (at_one_place, dict(enumerate(places.values())))):
            if len(rows):
                some, chosen = sides.alone(rows), [numbers[row] for row in rows.tolist()]
                matches = [self.paired.matches[number] for number in chosen]
                observations = (
                    LoadedObservations(some.pairs)
                    if isinstance(some.pairs, LoadedPairs) and not seen_at
                    else self._observations(matches, some.pairs, seen_at)
                )
                yield LoadedTogether(chosen, matches, some.pairs, observations, some)

    def _observations(
        self, matches: Sequence[Match], pairs: Sequence[Pair], places: Mapping[int, OnePlace]
    ) -> list[Observation]:
        return [
            self._observation(match, pair, places.get(row))
            for row, (match, pair) in enumerate(zip(matches, pairs, strict=True))
        ]

    def _observation(self, match: Match, pair: Pair, place: OnePlace | None) -> Observation:
        """The pair with the information of both captures; of captures taken at one place the one that holds more."""
        if self.absence is not None and len(pair.vantages) == 1 and pair.datagram_leg is None:
            candidates = self.paired.encrypted_candidates(match)
            return Observation(pair, absent=self.absence.of(match, pair), candidates=candidates)
        if place is None:
            return Observation(pair)
        richer = max(pair.vantages, key=_held).capture
        alone = replace(match, second=None) if richer == self.first_path else replace(match, first=None)
        return Observation(self.paired.pair(replace(alone, sides_swapped=False)), place=place)


def _places(pairs: Sequence[Pair], sides: Sides) -> dict[int, OnePlace]:
    """Which pairs were captured at one place, by their places among these."""
    asked = sides.rows[may_be_one_place(sides)].tolist()
    found = ((row, one_place(pairs[row])) for row in asked if not pairs[row].encrypted)
    return {row: place for row, place in found if place is not None}


def judge_together(together: LoadedTogether, rivals: RivalJudge) -> tuple[PairTable, Int64Array, BoolArray]:
    """Judge connections, those without rivals at once: a table of verdicts, where each connection's stands in it, and
    whether the captures may show two transfers."""
    pairs, observations = together.pairs, together.observations
    table, rows, doubtful = PairTable(), np.zeros(len(together), np.int64), np.zeros(len(together), np.bool_)
    rivalled = [] if isinstance(observations, LoadedObservations) else together.rivalled
    alone = np.delete(np.arange(len(together)), rivalled)
    if isinstance(observations, LoadedObservations):
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
