"""The packets that show what was found, added to results: of the connections that deserve attention, and of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, repeat

import numpy as np

from detector.presentation.requested import RequestedPackets
from detector.presentation.telling_packets.exchanges import (
    declaring_exchanges,
    exchanges_by_connection,
    fastest_exchanges,
    fastest_handshakes,
)
from detector.presentation.telling_packets.naming import ConnectionToName, PacketNames, was_judged_as_seen
from detector.presentation.telling_packets.observing import Connections, Observed
from detector.presentation.telling_packets.references import fastest_references
from detector.presentation.telling_packets.telling import READ_FIGURES
from pepscope.captures.capture import Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.results.attention import ATTENTION
from pepscope.results.evidence.named import PairPackets
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Evidence, GroupResult, GroupSide

#: What shows the findings of methods of one capture.
_FINDERS: Mapping[str, tuple[Callable[[Capture, Sequence[int], GroupSide, int], list[EvidencePacket]], ...]] = {
    "exchange_timing": (fastest_exchanges,),
    "declared_proxy": (declaring_exchanges,),
    "near_ends": (fastest_handshakes,),
    "client_stacks": (fastest_handshakes,),
    "reference": (fastest_references, fastest_handshakes),
    "handshake": (fastest_handshakes,),
}
#: Methods whose findings on a connection exchanges show, seen from the side of a group.
BY_EXCHANGES = frozenset({"exchange_timing", "declared_proxy"})

#: An exchange takes up to so many packets: question, acknowledgement and answer.
_OF_EXCHANGE = 3


def name_packets(
    captures: Sequence[Capture],
    results: PairTable,
    groups: Sequence[GroupResult],
    connections: Connections,
    requested: RequestedPackets,
) -> tuple[GroupResult, ...]:
    """Give connections the packets that show what was found on them, and return the groups with those of theirs.

    Connections that have packets already keep them if they are among the requested ones. Captures of one name, as file
    objects may have, have no packets that a name would find.
    """
    if not can_be_named(captures):
        return tuple(groups)
    naming = _Naming(captures, results, groups, connections, requested)
    naming.add_all(sorted(requested.places(results), key=lambda each: (connections.partition(each), each)))
    if requested.choose is not None:
        return tuple(groups)
    first = sorted(range(len(groups)), key=lambda number: ATTENTION[groups[number].verdict])
    chosen = frozenset(first[: requested.connections])
    return tuple(
        replace(group, evidence=tuple(naming.of_group(group))) if number in chosen else group
        for number, group in enumerate(groups)
    )


def can_be_named(captures: Sequence[Capture]) -> bool:
    """Whether the names of captures say which is meant."""
    return len({capture.path for capture in captures}) == len(captures)


class _Naming:
    """Names packets in the results of one detection."""

    def __init__(
        self,
        captures: Sequence[Capture],
        results: PairTable,
        groups: Sequence[GroupResult],
        connections: Connections,
        requested: RequestedPackets,
    ) -> None:
        self._captures = {capture.path: capture for capture in captures}
        self._names = PacketNames(self._captures)
        self._results = results
        self._connections = connections
        self._moments = requested.moments
        self._spare: dict[int, PairPackets] = {}  # by row, of connections that were not requested
        self._sides = sorted({group.side for group in groups} - {GroupSide.BOTH})

    def add_all(self, places: Sequence[int]) -> None:
        """Name the packets of connections that have none yet; of others none stay."""
        results = self._results
        self._spare = results.set_packets_aside(frozenset([results.rows[place] for place in places]))
        missing = [place for place in places if results.packets_of_row(results.rows[place]) is None]
        alike = [place for place in missing if self._is_shown_by_exchanges(place)]
        self._add_by_exchanges(alike)
        others = [*filter(frozenset(missing).difference(alike).__contains__, missing)]
        if not others:
            return  # loading packets imports all methods
        told = iter(self._results.unworded_evidence(np.array(others, np.int64), READ_FIGURES))
        left = iter(others)
        for together in self._connections.observed(others):
            count = len(together)
            self._add_together([*islice(left, count)], together, [*islice(told, count)])

    def _is_shown_by_exchanges(self, place: int) -> bool:
        """Whether exchanges alone show what was found on a connection, of which one capture is enough."""
        forms = self._results.forms(place)
        return not self._results.is_seen_twice(place) and all(form.method in BY_EXCHANGES for form in forms)

    def _add_by_exchanges(self, places: Sequence[int]) -> None:
        """Name the packets of connections of which nothing but exchanges is shown."""
        for capture, of_capture in self._by_capture(places):
            numbers = self._connections.numbers(of_capture, capture.path)
            # A capture between the ends has evidence for either side, the client's first.
            by_side = [exchanges_by_connection(capture, numbers, side) for side in self._sides]
            spans = self._names.frames_of_connections(capture, numbers)
            for place, number, frames in zip(of_capture, numbers, spans, strict=True):
                shown = chain((each.get(number, ()) for each in by_side), repeat(()))
                pieces = len(self._results.forms(place))
                self._results.add_packets(place, PairPackets(frames, tuple(islice(shown, pieces))))

    def add(self, place: int) -> PairPackets | None:
        """Name the packets of a connection, once; None where it was judged as another pair than its own."""
        row = self._results.rows[place]
        known = self._results.packets_of_row(row)
        if known is None and (known := self._spare.pop(row, None)) is not None:
            self._results.add_packets(place, known)
        if known is not None:
            return known
        (observed,) = self._connections.observed([place])
        self._add_together([place], observed, self._results.unworded_evidence(np.array([place]), READ_FIGURES))
        return self._results.packets_of_row(row)

    def _add_together(
        self, places: Sequence[int], observed: Sequence[Observed], told: Sequence[Sequence[Evidence]]
    ) -> None:
        """Name the packets of connections that were judged as the pairs that they are."""
        to_name: list[tuple[int, ConnectionToName]] = []
        for place, each, evidence in zip(places, observed, told, strict=True):
            # A capture between the ends has evidence for either side, the client's first.
            by_exchanges = partial(self._by_exchanges, place, each, iter(self._sides))
            if was_judged_as_seen(self._results.vantages(place), each):
                to_name.append((place, ConnectionToName(evidence, each, dict.fromkeys(BY_EXCHANGES, by_exchanges))))
        made = self._names.named([each for _, each in to_name], self._moments)
        for (place, _), packets in zip(to_name, made, strict=True):
            self._results.add_packets(place, packets)

    def _by_exchanges(
        self, place: int, observed: Observed, sides: Iterator[GroupSide], _: Evidence
    ) -> tuple[EvidencePacket, ...]:
        side = next(sides, None)
        if side is None:
            return ()
        capture = self._captures[observed.seen.pair.vantages[0].capture]
        return tuple(fastest_exchanges(capture, [self._connections.number(place, capture.path)], side, self._moments))

    def of_group(self, group: GroupResult) -> Iterator[Evidence]:
        """The group's evidence with its packets."""
        for item in group.evidence:
            if group.side is not GroupSide.BOTH and item.method in _FINDERS:
                yield replace(item, packets=self._of_one_vantage(group, item))
            else:
                yield replace(item, packets=self._of_members(group, item))

    def _of_one_vantage(self, group: GroupResult, item: Evidence) -> tuple[EvidencePacket, ...]:
        """Exchanges or handshakes of the group in the captures of one vantage point."""
        shown = list[EvidencePacket]()
        for capture, places in self._by_capture(group.pairs):
            numbers = self._connections.numbers(places, capture.path)
            for find in _FINDERS[item.method]:
                shown += find(capture, numbers, group.side, self._moments)
        return tuple(shown[: _OF_EXCHANGE * self._moments])

    def _by_capture(self, places: Sequence[int]) -> Iterator[tuple[Capture, list[int]]]:
        every = np.asarray(places, np.int64)
        paths = self._results.columns.vantages[0].capture
        codes, first, which = np.unique(
            paths.codes_of(self._results.rows_at(every)), return_index=True, return_inverse=True
        )
        for number in np.argsort(first).tolist():
            if (path := paths.values[codes[number]]) is not None:
                yield self._captures[path], every[which == number].tolist()

    def _of_members(self, group: GroupResult, item: Evidence) -> tuple[EvidencePacket, ...] | None:
        """The packets of the connection that shows a finding most firmly, or of several that show it together."""
        results, together = self._results, "pooled_connections" in item.numbers
        shown = list[EvidencePacket]()
        for place in group.pairs:
            for number, form in enumerate(results.forms(place)):
                is_same = form.finding == item.finding and results.strengths(place)[number] == item.strength
                if form.method != item.method or not (together or is_same):
                    continue
                named = self.add(place)
                if named is not None and not together:
                    return named.evidence[number]
                shown += () if named is None else named.evidence[number][:2]
            if len(shown) >= 2 * self._moments:
                break
        return tuple(shown) if together else None
