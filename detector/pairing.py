"""Which connection of one capture is which of the other, and how their streams lie over each other.

Stages, each only for what the earlier ones left: the same two end points (port reuse told apart by sequence numbers and
order), the same initial sequence numbers (NAT), payload anchors (proxies, spoofing, missing SYN), equal lengths in both
directions, one remaining connection each to the same server. Several connections with the same content are told apart
by sizes and by time under the offset between the capture clocks that most pairs share. A connection is used once.

Summaries and payload samples suffice to match; packets are loaded when a pair is taken from the result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from detector import anchors
from detector.alignment import align
from detector.curves import without_backward_steps
from detector.pair import DetectOptions, Pair, StreamAlignment, Vantage
from detector.vantage_side import client_nearness, first_is_client_side
from pepscope.connections import Connection
from pepscope.packets import Direction, Int64Array, PacketColumns, PayloadSample


class ConnectionSource(Protocol):
    """What pairing needs of a capture (`pepscope.capture.Capture` has it)."""

    @property
    def path(self) -> str:
        """Path as the user gave it."""

    @property
    def connections(self) -> Sequence[Connection]:
        """Summaries; the connection with id i stands at place i."""

    def packets(self, connection_id: int, /) -> PacketColumns:
        """Columns of one connection."""

    def payload(self, connection_id: int, /) -> dict[Direction, PayloadSample]:
        """Payload samples of one connection."""


class Ground(StrEnum):
    """Why two connections were taken for the same."""

    END_POINTS = "same end points"
    SEQUENCE_NUMBERS = "same initial sequence numbers"
    PAYLOAD = "same payload"
    PAYLOAD_AND_TIME = "same payload, told apart by size and time"
    LENGTHS = "same lengths"
    LAST_LEFT = "the only ones left"
    ALONE = "seen by one capture only"


#: Confidence by ground before the payload is compared: what could have been mistaken grows down the list.
CONFIDENCE = {
    Ground.END_POINTS: 0.98,
    Ground.SEQUENCE_NUMBERS: 0.99,
    Ground.PAYLOAD: 0.95,
    Ground.PAYLOAD_AND_TIME: 0.8,
    Ground.LENGTHS: 0.5,
    Ground.LAST_LEFT: 0.3,
    Ground.ALONE: 1.0,
}

#: Earlier pairs to look at where a connection may have been answered from a cache.
EARLIER_PAIRS = 4

#: Anchors that must agree before payload alone makes a pair: one may be a common phrase.
PAYLOAD_ANCHORS = 3


@dataclass(frozen=True, slots=True)
class Match:
    """Connection `first` of the first capture and `second` of the second.

    `turned` says that a guess of client and server in one of them contradicts the other.
    """

    first: int | None
    second: int | None
    ground: Ground
    turned: bool = False


class PairedCaptures:
    """The pairs of two captures, in order of their first packets; iterating loads one pair's packets at a time."""

    def __init__(
        self,
        first: ConnectionSource,
        second: ConnectionSource | None,
        matches: Sequence[Match],
        options: DetectOptions,
    ) -> None:
        self.matches = tuple(matches)
        self._first = first
        self._second = second
        self._options = options
        self._answers: dict[tuple[str, int], list[Match]] | None = None
        self._lean = self._capture_lean()

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[Pair]:
        return (self.pair(match) for match in self.matches)

    def pair(self, match: Match) -> Pair:
        """Load one pair."""
        first = None if match.first is None else _vantage(self._first, match.first)
        second = None
        if match.second is not None and self._second is not None:
            second = _vantage(self._second, match.second)
        if first is None or second is None:
            return self._single(first or second, match)
        if match.turned:
            first, second = _turn_guessed(first, second)
        swap = first_is_client_side(first.connection, second.connection) or self._lean
        client_side, server_side = (second, first) if swap < 0 else (first, second)
        alignment = {direction: align(client_side, server_side, direction) for direction in Direction}
        confidence = _confidence(match.ground, alignment.values())
        return Pair(client_side, server_side, alignment, confidence, self._options)

    @property
    def has_both(self) -> bool:
        """Whether there are two captures."""
        return self._second is not None

    def earlier_with_same_answer(self, alone: Pair) -> tuple[Pair, ...]:
        """Pairs whose connection to the same server got as many bytes, before `alone` (client's side only) began."""
        vantage = alone.client_side
        if vantage is None or self._second is None:
            return ()
        wanted = vantage.connection
        found = []
        for match in self._by_answer().get((wanted.server, wanted.down.stream_bytes), ()):
            pair = self.pair(match)
            near = pair.client_side
            if near is not None and near.connection.first_time_ns < wanted.first_time_ns:
                found.append(pair)
            if len(found) == EARLIER_PAIRS:
                break
        return tuple(found)

    def _by_answer(self) -> dict[tuple[str, int], list[Match]]:
        """Pairs by server and answer size, as either capture shows them; made when first asked for."""
        if self._answers is None:
            self._answers = defaultdict(list)
            for match in self.matches:
                if match.first is None or match.second is None or self._second is None:
                    continue
                seen = (self._first.connections[match.first], self._second.connections[match.second])
                for key in {(connection.server, connection.down.stream_bytes) for connection in seen}:
                    self._answers[key].append(match)
        return self._answers

    def _single(self, vantage: Vantage | None, match: Match) -> Pair:
        if vantage is None:
            return Pair(None, None, {}, 0.0, self._options)
        nearness, worth = client_nearness(vantage.connection)
        lean = nearness - 0.5 if worth else self._lean if match.first is not None else -self._lean
        client_side, server_side = (vantage, None) if lean >= 0 else (None, vantage)
        return Pair(client_side, server_side, {}, 1.0, self._options)

    def _capture_lean(self) -> float:
        """Whether most pairs put the first capture (positive) or the second nearer to the clients."""
        if self._second is None:
            return 0.0
        return sum(
            first_is_client_side(self._first.connections[match.first], self._second.connections[match.second])
            for match in self.matches[:1000]
            if match.first is not None and match.second is not None and not match.turned
        )


def pair_captures(
    first: ConnectionSource, second: ConnectionSource | None, options: DetectOptions | None = None
) -> PairedCaptures:
    """Match the connections of two captures (in either order), or list those of one."""
    chosen = options or DetectOptions()
    if second is None:
        alone = [Match(connection.id, None, Ground.ALONE) for connection in first.connections]
        return PairedCaptures(first, None, alone, chosen)
    matcher = _Matcher(first, second)
    return PairedCaptures(first, second, matcher.run(), chosen)


class _Matcher:
    """The stages of matching; `left` and `right` are what each capture still has to offer."""

    def __init__(self, first: ConnectionSource, second: ConnectionSource) -> None:
        self.first = first
        self.second = second
        self.left = {connection.id: connection for connection in first.connections}
        self.right = {connection.id: connection for connection in second.connections}
        self.matches: list[Match] = []

    def run(self) -> list[Match]:
        self._by_key(_sequence_numbers, Ground.SEQUENCE_NUMBERS)
        self._by_key(_end_points, Ground.END_POINTS)
        self._by_payload()
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
        for ones, twos in groups.values():
            if len(ones) == 1 and len(twos) == 1:
                self._take(ones[0].id, twos[0].id, ground)
            elif ones and twos:
                several.append((ones, twos))
        offset = self._clock_offset([(o.first_time_ns, t.first_time_ns) for os, ts in several for o in os for t in ts])
        for ones, twos in several:
            for one, two in _in_time_order(ones, twos, offset):
                self._take(one.id, two.id, ground)

    def _clock_offset(self, candidates: list[tuple[int, int]]) -> int:
        """Second capture's clock minus the first's (ns) as pairs suggest: matched ones, else the candidates."""
        known = [
            self.second.connections[match.second].first_time_ns - self.first.connections[match.first].first_time_ns
            for match in self.matches
            if match.first is not None and match.second is not None
        ]
        if known:
            return int(np.median(np.array(known, np.int64)))
        return _common_offset(candidates)

    def _by_payload(self) -> None:
        """Payload identity: votes for stream pairs, then the best assignment by votes, sizes and time."""
        if not self.left or not self.right:
            return
        one_ids, two_ids = list(self.left), list(self.right)
        ones = anchors.gather([self.first.payload(i)[d] for i in one_ids for d in Direction])
        twos = anchors.gather([self.second.payload(i)[d] for i in two_ids for d in Direction])
        votes = anchors.vote(ones, twos)
        one_sizes = np.bincount(ones.stream, minlength=2 * len(one_ids))
        two_sizes = np.bincount(twos.stream, minlength=2 * len(two_ids))
        table: dict[tuple[int, int, bool], int] = defaultdict(int)
        for a, b, count in zip(votes.left.tolist(), votes.right.tolist(), votes.count.tolist(), strict=True):
            key = (one_ids[a // 2], two_ids[b // 2], a % 2 != b % 2)
            table[key] = max(table[key], count)
        offered = []
        for (a, b, turned), count in table.items():
            one, two = self.left[a], self.right[b]
            if turned and not (one.side_guessed or two.side_guessed):
                continue
            most = max(_anchors_of(one_sizes, one_ids, a), _anchors_of(two_sizes, two_ids, b))
            if count >= min(PAYLOAD_ANCHORS, most):
                offered.append((_likeness(one, two, turned), count / max(most, 1), a, b, turned))
        self._assign(offered)

    def _assign(self, offered: list[tuple[float, float, int, int, bool]]) -> None:
        ones: dict[int, int] = defaultdict(int)
        twos: dict[int, int] = defaultdict(int)
        for _, _, a, b, _ in offered:
            ones[a] += 1
            twos[b] += 1
        unique = [item for item in offered if ones[item[2]] == 1 and twos[item[3]] == 1]
        for _, _, a, b, turned in unique:
            self._take_payload(a, b, turned, Ground.PAYLOAD)
        starts = [
            (self.left[a].first_time_ns, self.right[b].first_time_ns)
            for _, _, a, b, _ in offered
            if a in self.left and b in self.right
        ]
        offset = self._clock_offset(starts)

        def order(item: tuple[float, float, int, int, bool]) -> tuple[float, float, int]:
            likeness, share, a, b, _ = item
            gap = 0 if a not in self.left or b not in self.right else abs(self._start_gap(a, b) - offset)
            # Rounded, so that equal content leaves the choice to time.
            return -round(likeness, 2), -round(share, 1), gap

        for _, _, a, b, turned in sorted(offered, key=order):
            if a in self.left and b in self.right:
                self._take_payload(a, b, turned, Ground.PAYLOAD_AND_TIME)

    def _start_gap(self, first: int, second: int) -> int:
        return self.right[second].first_time_ns - self.left[first].first_time_ns

    def _take_payload(self, first: int, second: int, turned: bool, ground: Ground) -> None:
        del self.left[first], self.right[second]
        self.matches.append(Match(first, second, ground, turned))

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


def _common_offset(candidates: list[tuple[int, int]]) -> int:
    """The start difference that most candidates share within half a second; the smallest among equals."""
    if not candidates:
        return 0
    differences = np.sort(np.array([two - one for one, two in candidates[:4096]], np.int64))
    half = 500_000_000
    near = np.searchsorted(differences, differences + half, side="right")
    near -= np.searchsorted(differences, differences - half, side="left")
    best = differences[near == near.max()]
    return int(best[np.abs(best).argmin()])


def _in_time_order(
    ones: list[Connection], twos: list[Connection], offset: int
) -> Iterable[tuple[Connection, Connection]]:
    """Pair a group: in order where both captures hold equally many, else nearest starts first."""
    ones = sorted(ones, key=lambda connection: connection.first_time_ns)
    twos = sorted(twos, key=lambda connection: connection.first_time_ns)
    if len(ones) == len(twos):
        return list(zip(ones, twos, strict=True))
    few, many = (ones, twos) if len(ones) < len(twos) else (twos, ones)
    sign = 1 if few is ones else -1
    starts = np.array([connection.first_time_ns for connection in many], np.int64)
    used: set[int] = set()
    made = []
    for connection in few:
        gaps = np.abs(starts - (connection.first_time_ns + sign * offset))
        place = next(int(index) for index in np.argsort(gaps, kind="stable")[: len(used) + 1] if int(index) not in used)
        used.add(place)
        made.append((connection, many[place]) if few is ones else (many[place], connection))
    return made


def _anchors_of(sizes: Int64Array, ids: list[int], number: int) -> int:
    place = bisect_left(ids, number)  # ids ascend, since they come in the captures' own order
    return int(max(sizes[2 * place], sizes[2 * place + 1]))


def _likeness(one: Connection, two: Connection, turned: bool) -> float:
    """How alike the stream sizes are, 0 to 1."""
    up, down = (two.down, two.up) if turned else (two.up, two.down)
    sizes = ((one.up.stream_bytes, up.stream_bytes), (one.down.stream_bytes, down.stream_bytes))
    total = sum(max(a, b) for a, b in sizes)
    return sum(min(a, b) for a, b in sizes) / total if total else 1.0


def _confidence(ground: Ground, alignments: Iterable[StreamAlignment]) -> float:
    """The ground's confidence, raised or lowered by what comparing the payload showed."""
    start = CONFIDENCE[ground]
    compared = [(item.compared, item.matched) for item in alignments if item.compared]
    if not compared:
        # Nothing but numbers and times: addresses may be used twice.
        return min(start, 0.9)
    share = sum(count * matched for count, matched in compared) / sum(count for count, _ in compared)
    if share > 0.9:
        return start if ground is Ground.PAYLOAD_AND_TIME else max(start, 0.95)
    return start * (0.5 + 0.5 * share)


def _vantage(capture: ConnectionSource, number: int) -> Vantage:
    packets = without_backward_steps(capture.packets(number))
    return Vantage(capture.path, capture.connections[number], packets, capture.payload(number))


def _turn_guessed(first: Vantage, second: Vantage) -> tuple[Vantage, Vantage]:
    """Turn round the vantage whose sides were guessed."""
    if first.connection.side_guessed:
        return _turned(first), second
    return first, _turned(second)


def _turned(vantage: Vantage) -> Vantage:
    """The same connection with client and server exchanged."""
    old = vantage.connection
    connection = replace(
        old,
        client_address=old.server_address,
        client_port=old.server_port,
        server_address=old.client_address,
        server_port=old.client_port,
        tunnel_up=old.tunnel_down,
        tunnel_down=old.tunnel_up,
        up=old.down,
        down=old.up,
    )
    packets = replace(vantage.packets, direction=vantage.packets.direction ^ np.uint8(1))
    payload = {direction: vantage.payload[direction.reverse] for direction in Direction}
    return Vantage(vantage.capture, connection, packets, payload)
