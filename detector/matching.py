"""Which connection of one capture is which of the other.

Stages, each only for what the earlier ones left: the same initial sequence numbers (whatever a NAT did), the same two
end points (port reuse told apart by order), payload anchors (proxies, spoofing, missing SYN), payload in UDP datagrams,
equal lengths that no other connection has, more of the payload, equal lengths, one remaining connection each to the
same server. Several connections with the same content are told apart by sizes and by time under the offset between the
capture clocks that most pairs share. A connection is used once. Summaries and payload samples suffice to match.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from detector import anchors
from detector.connection_source import ConnectionSource
from detector.datagram_leg import DatagramLeg
from detector.datagram_pairing import DatagramSource, find_legs, flow_clock_offset
from detector.start_times import common_offset, in_time_order
from pepscope.connections import Connection
from pepscope.packets import Direction


class Ground(StrEnum):
    """Why two connections were taken for the same."""

    END_POINTS = "same end points"
    SEQUENCE_NUMBERS = "same initial sequence numbers"
    PAYLOAD = "same payload"
    PAYLOAD_AND_TIME = "same payload, told apart by size and time"
    PAYLOAD_OTHER_TIME = "same payload, at another time by the capture clocks"
    DATAGRAMS = "same payload, carried in UDP at one end"
    OWN_LENGTHS = "same lengths, which no other connection has"
    LENGTHS = "same lengths"
    LAST_LEFT = "the only ones left"
    ENCRYPTED = "same sizes and times, with encryption added at one end"
    ALONE = "seen by one capture only"


#: Anchors that must agree before payload alone makes a pair: one may be a common phrase.
PAYLOAD_ANCHORS = 3


#: Share of a stream's anchors that agree from which the whole stream does: captures rarely miss more.
WHOLE_STREAM = 0.9

#: Clocks that nothing relates may be wrong by this much before connections that overlap seem not to.
CLOCK_SLACK_NS = 10_000_000_000

#: Equal lengths of fewer bytes in all may be those of any small exchange.
TELLING_BYTES = 1 << 14


@dataclass(frozen=True, slots=True)
class Match:
    """Connection `first` of the first capture and `second` of the second.

    `turned` says that a guess of client and server in one of them contradicts the other. `leg` is what the
    capture without the connection holds instead: a UDP flow with its bytes.
    """

    first: int | None
    second: int | None
    ground: Ground
    turned: bool = False
    leg: DatagramLeg | None = None


@dataclass(frozen=True, slots=True)
class _Offer:
    """Two connections that payload suggests: likeness of their sizes, how many of their streams agree as a whole (the
    same answer to another request is another transfer), and the share of anchors that agree in the better one."""

    likeness: float
    whole: int
    share: float
    first: int
    second: int
    turned: bool


class Matcher:
    """The stages of matching; `left` and `right` are what each capture still has to offer."""

    def __init__(self, first: ConnectionSource, second: ConnectionSource) -> None:
        self.first = first
        self.second = second
        self.left = {connection.id: connection for connection in first.connections}
        self.right = {connection.id: connection for connection in second.connections}
        self.matches: list[Match] = []
        #: Second capture's clock minus the first's (ns) by what earlier stages matched; None if nothing.
        self._offset: int | None = None

    def run(self) -> list[Match]:
        """All matches, and what is left of each capture by itself, in order of first packets."""
        self._by_key(_sequence_numbers, Ground.SEQUENCE_NUMBERS)
        self._by_key(_end_points, Ground.END_POINTS)
        self._offset = self._known_clock_offset()
        self._by_payload()
        self._offset = self._known_clock_offset()
        self._by_datagrams()
        self._by_key(_own_lengths(self.first, self.second), Ground.OWN_LENGTHS)
        self._by_payload(closely=True)
        self._by_key(_lengths, Ground.LENGTHS)
        self._last_left()
        self.matches += [Match(number, None, Ground.ALONE) for number in self.left]
        self.matches += [Match(None, number, Ground.ALONE) for number in self.right]
        return sorted(self.matches, key=self._order)

    def _order(self, match: Match) -> tuple[int, int]:
        if match.first is not None:
            return self.first.connections[match.first].first_time_ns, match.first
        return self.second.connections[match.second or 0].first_time_ns, match.second or 0

    def _take(self, first: int, second: int, ground: Ground) -> None:
        one, two = self.left.pop(first), self.right.pop(second)
        guessed = one.side_guessed or two.side_guessed
        turned = guessed and one.client != two.client and (one.client == two.server or one.server == two.client)
        self.matches.append(Match(first, second, ground, turned))

    def _by_key(self, key: Callable[[Connection], Hashable | None], ground: Ground) -> None:
        groups: dict[Hashable, tuple[list[Connection], list[Connection]]] = defaultdict(lambda: ([], []))
        for place, side in enumerate((self.left, self.right)):
            for connection in side.values():
                name = key(connection)
                if name is not None:
                    groups[name][place].append(connection)
        several = []
        content = ground in (Ground.OWN_LENGTHS, Ground.LENGTHS)
        for ones, twos in groups.values():
            if len(ones) == 1 and len(twos) == 1:
                if content and not self._overlap(ones[0], twos[0]):
                    continue
                self._take(ones[0].id, twos[0].id, ground)
            elif ones and twos:
                several.append((ones, twos))
        offset = self._clock_offset([(o.first_time_ns, t.first_time_ns) for os, ts in several for o in os for t in ts])
        for ones, twos in several:
            for one, two in in_time_order(ones, twos, offset):
                self._take(one.id, two.id, ground)

    def _clock_offset(self, candidates: list[tuple[int, int]]) -> int:
        """Second capture's clock minus the first's (ns) as pairs suggest: matched ones, else the candidates."""
        known = self._known_clock_offset()
        return common_offset(candidates) if known is None else known

    def _known_clock_offset(self) -> int | None:
        """The clock offset (ns) by the connections matched so far, or None."""
        known = [
            self.second.connections[match.second].first_time_ns - self.first.connections[match.first].first_time_ns
            for match in self.matches
            if match.first is not None and match.second is not None and match.ground is not Ground.PAYLOAD_OTHER_TIME
        ]
        return int(np.median(np.array(known, np.int64))) if known else None

    def _by_payload(self, *, closely: bool = False) -> None:
        """Payload identity: votes for stream pairs, then the best assignment by votes, sizes and time.

        `closely` looks at all that was captured, as far as memory lets it: the captures may hold other parts of the
        same stream but for a few. What so few share must lie in several places of it, since so little may be a header.
        """
        if not self.left or not self.right:
            return
        one_ids, two_ids = list(self.left), list(self.right)
        streams = 2 * max(len(one_ids), len(two_ids))
        most = max(anchors.SKETCH_SIZE, anchors.MOST_ANCHORS // streams) if closely else anchors.SKETCH_SIZE
        if closely and most == anchors.SKETCH_SIZE:
            return
        ones = anchors.gather([self.first.payload(i)[d] for i in one_ids for d in Direction], most)
        twos = anchors.gather([self.second.payload(i)[d] for i in two_ids for d in Direction], most)
        votes = anchors.vote(ones, twos)
        found = (votes.places if closely else votes.count).tolist()
        one_sizes = np.bincount(ones.stream, minlength=2 * len(one_ids))
        two_sizes = np.bincount(twos.stream, minlength=2 * len(two_ids))
        table: dict[tuple[int, int, bool], dict[int, int]] = defaultdict(lambda: {0: 0, 1: 0})
        for a, b, count in zip(votes.left.tolist(), votes.right.tolist(), found, strict=True):
            agreed = table[one_ids[a // 2], two_ids[b // 2], a % 2 != b % 2]
            agreed[a % 2] = max(agreed[a % 2], count)
        offered = []
        for (a, b, turned), counts in table.items():
            one, two = self.left[a], self.right[b]
            if turned and not (one.side_guessed or two.side_guessed):
                continue
            if not self._may_be_one(one, two):
                continue
            place_a, place_b = 2 * bisect_left(one_ids, a), 2 * bisect_left(two_ids, b)  # captures' ids ascend
            sizes = [int(max(one_sizes[place_a + d], two_sizes[place_b + (d ^ turned)])) for d in (0, 1)]
            least = PAYLOAD_ANCHORS if closely else min(PAYLOAD_ANCHORS, max(sizes))
            if max(counts.values()) >= least:
                shares = [counts[d] / sizes[d] for d in (0, 1) if sizes[d]]
                whole = sum(share >= WHOLE_STREAM for share in shares)
                offered.append(_Offer(_likeness(one, two, turned), whole, max(shares), a, b, turned))
        self._assign(offered)

    def _by_datagrams(self) -> None:
        """Payload identity between a connection here and a UDP flow there."""
        offset = self._offset
        if offset is None:
            offset = flow_clock_offset(self.first, self.second)
        if self.left and isinstance(self.second, DatagramSource):
            for found in find_legs(self.first, self.left.values(), self.second, offset):
                del self.left[found.connection]
                self.matches.append(Match(found.connection, None, Ground.DATAGRAMS, leg=found.leg))
        if self.right and isinstance(self.first, DatagramSource):
            backwards = None if offset is None else -offset
            for found in find_legs(self.second, self.right.values(), self.first, backwards):
                del self.right[found.connection]
                self.matches.append(Match(None, found.connection, Ground.DATAGRAMS, leg=found.leg))

    def _assign(self, offered: list[_Offer]) -> None:
        ones = Counter(offer.first for offer in offered)
        twos = Counter(offer.second for offer in offered)
        for offer in offered:
            if ones[offer.first] == 1 and twos[offer.second] == 1:
                self._take_payload(offer, Ground.PAYLOAD)
        open_ones = [offer for offer in offered if self._open(offer)]
        starts = [(self.left[o.first].first_time_ns, self.right[o.second].first_time_ns) for o in open_ones]
        offset = self._clock_offset(starts)

        def order(offer: _Offer) -> tuple[float, int, float, int]:
            gap = abs(self._start_gap(offer.first, offer.second) - offset)
            # Rounded, so that equal content leaves the choice to time.
            return -round(offer.likeness, 2), -offer.whole, -round(offer.share, 1), gap

        for offer in sorted(open_ones, key=order):
            if self._open(offer):
                self._take_payload(offer, Ground.PAYLOAD_AND_TIME)

    def _open(self, offer: _Offer) -> bool:
        return offer.first in self.left and offer.second in self.right

    def _start_gap(self, first: int, second: int) -> int:
        return self.right[second].first_time_ns - self.left[first].first_time_ns

    def _overlap(self, one: Connection, two: Connection) -> bool:
        """Whether they exist at the same time, as matched connections relate the clocks, or else as the clocks say."""
        offset = self._offset or 0
        gap = max(one.first_time_ns + offset - two.last_time_ns, two.first_time_ns - one.last_time_ns - offset)
        return gap <= CLOCK_SLACK_NS

    def _may_be_one(self, one: Connection, two: Connection) -> bool:
        """Whether the same content may be the same transfer: people fetch one object again and again.

        At the same time, it may; at another time only if clocks may be wrong and an address is the same.
        """
        related = one.server_address == two.server_address or one.client_address == two.client_address
        return self._overlap(one, two) or (related and self._offset is None)

    def _take_payload(self, offer: _Offer, ground: Ground) -> None:
        first, second = offer.first, offer.second
        if not self._overlap(self.left[first], self.right[second]):
            ground = Ground.PAYLOAD_OTHER_TIME
        del self.left[first], self.right[second]
        self.matches.append(Match(first, second, ground, offer.turned))

    def _last_left(self) -> None:
        """One connection to the same server left in each capture, at overlapping times."""
        if len(self.left) != 1 or len(self.right) != 1:
            return
        one, two = next(iter(self.left.values())), next(iter(self.right.values()))
        offset = self._clock_offset([(one.first_time_ns, two.first_time_ns)]) if self.matches else 0
        overlap = one.first_time_ns + offset <= two.last_time_ns and two.first_time_ns <= one.last_time_ns + offset
        if one.server == two.server and overlap:
            self._take(one.id, two.id, Ground.LAST_LEFT)


def _sequence_numbers(connection: Connection) -> Hashable | None:
    up, down = connection.up.initial_sequence_number, connection.down.initial_sequence_number
    return None if up is None or down is None else (up, down)


def _end_points(connection: Connection) -> Hashable | None:
    return frozenset(
        ((connection.client_address, connection.client_port), (connection.server_address, connection.server_port))
    )


def _lengths(connection: Connection) -> Hashable | None:
    up, down = connection.up.stream_bytes, connection.down.stream_bytes
    return None if up + down == 0 else (up, down)


def _own_lengths(*captures: ConnectionSource) -> Callable[[Connection], Hashable | None]:
    """Lengths as a key, for connections whose lengths occur once in each capture, matched or not."""
    alike = [Counter(_lengths(connection) for connection in capture.connections) for capture in captures]

    def key(connection: Connection) -> Hashable | None:
        lengths = _lengths(connection)
        own = connection.up.stream_bytes + connection.down.stream_bytes >= TELLING_BYTES
        return lengths if own and all(counts[lengths] == 1 for counts in alike) else None

    return key


def _likeness(one: Connection, two: Connection, turned: bool) -> float:
    """How alike the stream sizes are, 0 to 1."""
    up, down = (two.down, two.up) if turned else (two.up, two.down)
    sizes = ((one.up.stream_bytes, up.stream_bytes), (one.down.stream_bytes, down.stream_bytes))
    total = sum(max(a, b) for a, b in sizes)
    return sum(min(a, b) for a, b in sizes) / total if total else 1.0
