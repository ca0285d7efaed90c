"""Which connection of one capture is which of the other.

Rounds, each one assignment (`detector.pairing.assignment`) over all candidates of its ground, of what the earlier ones
left:

1. identity: initial sequence numbers (whatever a NAT did), packets in common (whatever changed numbers), end points;
2. payload fingerprints (proxies, spoofing), and after it payload in UDP datagrams;
3. sizes: equal lengths that no other connection has, more of the payload, equal lengths;
4. one remaining connection each to the same server.

Packets in common go before content in common, since equal content may be fetched again and again; what the starts say
under the offset between the capture clocks decides among equals. A connection is used once. Summaries suffice to
match what sequence numbers settle; packets and payload samples are asked for only of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from detector.clocks.start_offset import agreed_offset, common_offset
from detector.other_transport.datagram_pairing import find_legs, flow_clock_offset
from detector.pairing.assignment import Edge, assign
from detector.pairing.candidates import (
    LENGTHS_NATS,
    SEQUENCE_NUMBER_NATS,
    are_sides_swapped,
    by_identity,
    by_key,
    end_points_text,
    lengths,
    merged,
    own_lengths,
    related_nats,
    tie_breaker,
)
from detector.pairing.content_candidates import by_payload
from detector.pairing.match import IDENTITY, Candidate, Ground, Match
from detector.pairing.starts.times import CLOCK_DRIFT, CLOCK_SLACK_NS, KNOWN_CLOCK_SLACK_NS, start_nats
from detector.pairing.starts.together import StartsTogether
from detector.pairing.starts.turns_within import has_turns
from detector.pairing.summary_columns import SummaryColumns, same_sequence_numbers
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection

#: Pairings that are worse by less than this (one to a hundred) might as well be true.
RIVAL_NATS = float(np.log(100.0))

#: Rivals remembered of a match.
MOST_RIVALS = 4

#: Content that agrees at another time by the clocks: the same object again.
_OTHER_TIME = {
    Ground.END_POINTS: Ground.END_POINTS_OTHER_TIME,
    Ground.PAYLOAD: Ground.PAYLOAD_OTHER_TIME,
    Ground.PAYLOAD_AND_TIME: Ground.PAYLOAD_OTHER_TIME,
    Ground.PAYLOAD_OF_SEVERAL_HOSTS: Ground.PAYLOAD_OTHER_TIME,
    Ground.LENGTHS: Ground.LENGTHS_OTHER_TIME,
}


class Matcher:
    """The rounds of matching; `left` and `right` are what each capture still has to offer. `same_clock`: the user says
    that the captures' clocks are synchronised."""

    def __init__(self, first: ConnectionSource, second: ConnectionSource, *, same_clock: bool = False) -> None:
        self._same_clock = same_clock
        self.first = first
        self.second = second
        self._ones, self._twos = SummaryColumns.of(first), SummaryColumns.of(second)
        self.matches: list[Match] = []
        #: Second capture's clock minus the first's (ns) by what earlier rounds matched; None if nothing.
        self._offset: int | None = None
        #: Start differences (ns) of what was matched at one time, and of that what began before both captures' eyes.
        self._gaps: list[int] = []
        self._sure_gaps: list[int] = []
        self._span_ns = max(self._ones.span_ns, self._twos.span_ns)
        settled = self._settle_by_sequence_numbers()
        #: Connections that are not matched yet.
        self.left, self.right = (
            {number: source.connections[number] for number in range(len(source.connections)) if number not in taken}
            for source, taken in zip((first, second), settled, strict=True)
        )

    def run(self) -> list[Match]:
        """All matches, and what is left of each capture by itself, in order of first packets."""
        self._by_identity()
        self._by_payload()
        self._by_datagrams()
        self._by_own_lengths()
        self._by_sizes()
        self._last_left()
        self._compare_starts()
        self.matches += [Match(number, None, Ground.ALONE) for number in self.left]
        self.matches += [Match(None, number, Ground.ALONE) for number in self.right]
        return sorted(self.matches, key=self._order)

    def _order(self, match: Match) -> tuple[int, int]:
        if match.first is not None:
            return int(self._ones.first_time_ns[match.first]), match.first
        return int(self._twos.first_time_ns[match.second or 0]), match.second or 0

    def _settle_by_sequence_numbers(self) -> tuple[set[int], set[int]]:
        """Take pairs whose both numbers no other connection of either capture has: no rival could be as good.

        Returns the connections of each capture that are settled.
        """
        one, two = same_sequence_numbers(self._ones, self._twos)
        guessed = (self._ones.side_guessed[one] | self._twos.side_guessed[two]).astype(np.bool_)
        gaps = self._twos.first_time_ns[two] - self._ones.first_time_ns[one]
        sure = (self._ones.up_syn_count[one] == 1) & (self._twos.up_syn_count[two] == 1)
        self._gaps, self._sure_gaps = gaps.tolist(), gaps[sure].tolist()
        numbers = one.tolist(), two.tolist()
        self.matches = [
            Match(
                left, right, Ground.SEQUENCE_NUMBERS,
                is_guessed and are_sides_swapped(self.first.connections[left], self.second.connections[right]),
            )
            for left, right, is_guessed in zip(*numbers, guessed.tolist(), strict=True)
        ]  # fmt: skip
        self._offset = self._known_clock_offset()
        return set(numbers[0]), set(numbers[1])

    def _by_identity(self) -> None:
        offset = self._offset or 0
        candidates = by_identity(self.first, self.second, self.left, self.right, offset)
        if self._offset is None:
            sure = [c for c in candidates if c.nats >= SEQUENCE_NUMBER_NATS] or _alone_on_both_sides(candidates)
            self._offset = agreed_offset(self._start_gaps(sure))
        self._assign(candidates)
        self._offset = self._known_clock_offset()

    def _by_payload(self) -> None:
        self._assign(by_payload(self.first, self.second, self.left, self.right, self._may_be_one), related=True)
        self._offset = self._known_clock_offset()

    def _by_own_lengths(self) -> None:
        if not self.left or not self.right:
            return
        key = own_lengths(self.first, self.second)
        found = by_key(self.left, self.right, key, Ground.OWN_LENGTHS, LENGTHS_NATS, 0)
        self._take([Match(c.first, c.second, c.ground, c.sides_swapped) for c in found if self._overlaps(c)])

    def _by_sizes(self) -> None:
        """What more of the payload, or equal lengths, suggest. (A further round has its place behind this one.)"""
        candidates = by_payload(self.first, self.second, self.left, self.right, self._may_be_one, closely=True)
        offset = self._offset
        if offset is None:
            offset = common_offset([two.first_time_ns - one.first_time_ns for one, two in self._equal_lengths()])
        equal = by_key(self.left, self.right, lengths, Ground.LENGTHS, LENGTHS_NATS, offset)
        self._assign(merged([*candidates, *(c for c in equal if self._overlaps(c))]), related=True)

    def _equal_lengths(self) -> Iterable[tuple[Connection, Connection]]:
        """Pairs of equal lengths, each with the one of the same rank in time: enough to find the clocks' offset."""
        by_length: dict[object, tuple[list[Connection], list[Connection]]] = {}
        for place, side in enumerate((self.left, self.right)):
            for connection in sorted(side.values(), key=lambda c: c.first_time_ns):
                by_length.setdefault(lengths(connection), ([], []))[place].append(connection)
        for name, (ones, twos) in by_length.items():
            if name is not None:
                yield from zip(ones, twos, strict=False)

    def _assign(self, candidates: list[Candidate], *, related: bool = False) -> None:
        """Take the best pairing of the candidates, weighed with starts and, if `related`, with end points as well."""
        offset = self._offset if self._offset is not None else common_offset(self._start_gaps(candidates))
        weighed = []
        lefts, rights = {c.first for c in candidates}, {c.second for c in candidates}
        names = {number: end_points_text(self.left[number]) for number in lefts}
        other_names = {number: end_points_text(self.right[number]) for number in rights}
        for candidate in candidates:
            one, two = self.left[candidate.first], self.right[candidate.second]
            nats = candidate.nats + start_nats(two.first_time_ns - one.first_time_ns - offset)
            tie = tie_breaker(names[candidate.first], other_names[candidate.second])
            nats += (related_nats(one, two) if related else 0.0) + tie
            if nats > 0:
                weighed.append(replace(candidate, nats=nats))
        chosen = assign([Edge(c.first, c.second, c.nats) for c in weighed])
        matches = []
        for choice in chosen:
            match = self._match(weighed[choice.edge], several=bool(choice.rivals))
            others = [weighed[place] for place, _ in choice.rivals]
            if match.ground is Ground.PAYLOAD_AND_TIME and self._are_of_several_hosts(weighed[choice.edge], others):
                match = replace(match, ground=Ground.PAYLOAD_OF_SEVERAL_HOSTS)
            near = [weighed[place] for place, loss in choice.rivals if loss < RIVAL_NATS]
            matches.append(self._with_rivals(replace(match, margin=choice.margin), near))
        self._take(matches)

    def _with_rivals(self, match: Match, rivals: Sequence[Candidate]) -> Match:
        """A match of which these are the rivals, the best first."""
        connection = None if match.first is None else self.left[match.first]
        if not rivals or connection is None or not has_turns(connection):
            return replace(match, rivals=tuple(self._match(each, several=True) for each in rivals[:MOST_RIVALS]))
        others = [self._match(each, several=True) for each in rivals]
        match, *others = (replace(each, alternatives=(match, *others)) for each in (match, *others))
        return replace(match, rivals=tuple(others[:MOST_RIVALS]))

    def _are_of_several_hosts(self, candidate: Candidate, rivals: Iterable[Candidate]) -> bool:
        """Whether a rival of this candidate leads from another client, or to another server, than what it rivals."""

        def addresses(connection: Connection) -> tuple[str, str]:
            return connection.client_address, connection.server_address

        one, two = addresses(self.left[candidate.first]), addresses(self.right[candidate.second])
        return any(
            addresses(self.left[rival.first]) != one or addresses(self.right[rival.second]) != two for rival in rivals
        )

    def _match(self, candidate: Candidate, *, several: bool) -> Match:
        ground = candidate.ground
        if ground is Ground.PAYLOAD and several:
            ground = Ground.PAYLOAD_AND_TIME
        if not self._overlaps(candidate) or (several and not self._overlaps_by_the_clocks(candidate)):
            ground = _OTHER_TIME.get(ground, ground)
        return Match(candidate.first, candidate.second, ground, candidate.sides_swapped)

    def _take(self, matches: Iterable[Match]) -> None:
        for match in matches:
            if match.first is not None and match.second is not None:
                one, two = self.left.pop(match.first), self.right.pop(match.second)
                self.matches.append(match)
                if match.ground not in _OTHER_TIME.values():
                    self._gaps.append(two.first_time_ns - one.first_time_ns)
                    if match.ground in IDENTITY and all(flow.syn_count == 1 for flow in (one.up, two.up)):
                        self._sure_gaps.append(self._gaps[-1])

    def _by_datagrams(self) -> None:
        """Payload identity between a connection here and a UDP flow there."""
        offset = self._offset
        if offset is None:
            offset = flow_clock_offset(self.first, self.second)
        if self.left:
            for found in find_legs(self.first, self.left.values(), self.second, offset):
                del self.left[found.connection]
                self.matches.append(Match(found.connection, None, Ground.DATAGRAMS, leg=found.leg))
        if self.right:
            backwards = None if offset is None else -offset
            for found in find_legs(self.second, self.right.values(), self.first, backwards):
                del self.right[found.connection]
                self.matches.append(Match(None, found.connection, Ground.DATAGRAMS, leg=found.leg))

    def _last_left(self) -> None:
        """One connection to the same server left in each capture, at overlapping times."""
        if len(self.left) != 1 or len(self.right) != 1:
            return
        one, two = next(iter(self.left.values())), next(iter(self.right.values()))
        offset = self._offset or 0
        overlap = one.first_time_ns + offset <= two.last_time_ns and two.first_time_ns <= one.last_time_ns + offset
        if one.server == two.server and overlap:
            self._take([Match(one.id, two.id, Ground.LAST_LEFT, are_sides_swapped(one, two))])

    def _compare_starts(self) -> None:
        """Raise and lower grounds by when all connections began."""
        captures = self.first, self.second
        compared = StartsTogether(
            captures, (self._ones, self._twos), (self.left.values(), self.right.values()), self.matches,
            are_clocks_known=bool(self._sure_gaps), same_clock=self._same_clock,
        )  # fmt: skip
        self.matches = compared.judged()

    def _start_gaps(self, candidates: Iterable[Candidate]) -> list[int]:
        return [self.right[c.second].first_time_ns - self.left[c.first].first_time_ns for c in candidates]

    def _known_clock_offset(self) -> int | None:
        """The clock offset (ns) by the connections matched so far, or else what was agreed on before."""
        gaps = self._sure_gaps or self._gaps
        return int(np.median(np.array(gaps, np.int64))) if gaps else self._offset

    @property
    def _known_slack_ns(self) -> float:
        """How far apart connections that are one may seem under clocks that are related."""
        return KNOWN_CLOCK_SLACK_NS + CLOCK_DRIFT * self._span_ns

    def _overlap(self, one: Connection, two: Connection, slack_ns: float | None = None) -> bool:
        """Whether they exist at the same time, as matched connections relate the clocks, or else as the clocks say."""
        if slack_ns is None:
            slack_ns = self._known_slack_ns if self._sure_gaps else CLOCK_SLACK_NS
        offset = self._offset or 0
        gap = max(one.first_time_ns + offset - two.last_time_ns, two.first_time_ns - one.last_time_ns - offset)
        return gap <= slack_ns

    def _overlaps(self, candidate: Candidate) -> bool:
        return self._overlap(self.left[candidate.first], self.right[candidate.second])

    def _overlaps_by_the_clocks(self, candidate: Candidate) -> bool:
        """As `_overlaps`, trusting clocks that nothing relates: content that is there several times may be there once
        more, where neither capture looked."""
        return self._overlap(self.left[candidate.first], self.right[candidate.second], self._known_slack_ns)

    def _may_be_one(self, one: Connection, two: Connection) -> bool:
        """Whether the same content may be the same transfer: people fetch one object again and again.

        At the same time, it may; at another time only if clocks may be wrong and an address is the same.
        """
        related = one.server_address == two.server_address or one.client_address == two.client_address
        return self._overlap(one, two) or (related and self._offset is None)


def _alone_on_both_sides(candidates: list[Candidate]) -> list[Candidate]:
    """Candidates whose connections are in no other."""
    ones = Counter(candidate.first for candidate in candidates)
    twos = Counter(candidate.second for candidate in candidates)
    return [c for c in candidates if ones[c.first] == 1 and twos[c.second] == 1]
