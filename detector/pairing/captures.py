"""Two captures as pairs of connections: matched, loaded, aligned, and which side is which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from msgspec.structs import replace

from detector.options import ClockMode, DetectOptions
from detector.other_transport.encrypted_legs import EncryptedLegs, Guise, Legs, find_encrypted_legs
from detector.pair import DatagramLeg, Pair, StreamAlignment, Vantage
from detector.pairing.alignment import align, align_all
from detector.pairing.confidence import CONFIDENCE, RIVALLED, leg_confidence, pairing_confidence
from detector.pairing.loading import SummaryRows, load_vantage, load_vantages
from detector.pairing.match import Ground, Match
from detector.pairing.matching import Matcher
from detector.pairing.server_index import ServerIndex
from detector.pairing.starts.turns_within import TurnsWithin
from detector.pairing.transfers import LoadedTransfers
from detector.streams.loaded import LoadedPairs
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from detector.vantage.capture_sides import (
    are_both_timed,
    client_nearness,
    first_are_client_sides,
    first_is_client_side,
    handshake_nearness,
    is_contradicted,
    is_timed,
)
from detector.vantage.swapped_sides import swap_guessed_sides
from pepscope.captures.capture import Capture
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.hypotheses import logistic

#: Earlier pairs to look at where a connection may have been answered from a cache.
EARLIER_PAIRS = 4

#: Pairs to look at where it is asked what becomes of connections to one server.
PAIRS_LOOKED_AT = 4

#: Texts of grounds: looking one up is faster than asking an enum.
_IN_WORDS = {ground: ground.value for ground in Ground}


class PairedCaptures:
    """The pairs of two captures, in order of their first packets; iterating loads one pair's packets at a time."""

    def __init__(
        self,
        first: ConnectionSource,
        second: ConnectionSource | None,
        matches: Sequence[Match],
        options: DetectOptions,
        encrypted: Sequence[Legs] = (),
    ) -> None:
        self.matches = tuple(matches)
        self._encrypted = encrypted
        self._first = first
        self._second = second
        self._options = options
        self._lean = self._capture_lean()
        self._turns = TurnsWithin(self._alternative)

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[Pair]:
        return (self.pair(match) for match in self.matches)

    def pair(self, match: Match) -> Pair:
        """Load one pair; where the match has rivals its confidence allows for these being the truth."""
        first, second = self._loaded(match)
        if first is None or second is None:
            alone = self._single(first or second, match)
            return alone if match.leg is None else self._with_leg(alone, match.leg)
        pair = self._of_two(match, first, second)
        if pair.encrypted:
            return pair
        seen = LoadedTransfers(pair, match, self._turns, self._has_identified)
        confidence = pairing_confidence(match.ground, pair.alignment.values(), seen, match.one_transfer_nats)
        if match.rivals:
            confidence = min(confidence * logistic(match.margin), RIVALLED)
        return replace(pair, pairing_confidence=confidence)

    def _of_two(self, match: Match, first: Vantage, second: Vantage) -> Pair:
        """The pair of a match as if it were the truth."""
        if match.sides_swapped:
            first, second = swap_guessed_sides(first, second)
        client_side, server_side = (first, second) if self._is_first_nearer(first, second) else (second, first)
        if match.ground is Ground.ENCRYPTED:
            sure = CONFIDENCE[match.ground]
            return Pair(client_side, server_side, {}, sure, self._options, None, str(match.ground), encrypted=True)
        alignment = {direction: align(client_side, server_side, direction) for direction in DIRECTIONS}
        return Pair(client_side, server_side, alignment, 1.0, self._options, pairing_ground=str(match.ground))

    def _alternative(self, match: Match) -> Pair:
        """The pair of a match that has both connections."""
        first, second = self._loaded(match)
        assert first is not None
        assert second is not None
        return self._of_two(match, first, second)

    def _loaded(self, match: Match) -> tuple[Vantage | None, Vantage | None]:
        first, second = match.first, match.second
        one = None if first is None else load_vantage(self._first, first)
        return one, None if second is None or self._second is None else load_vantage(self._second, second)

    def pairs(self, matches: Sequence[Match]) -> Sequence[Pair]:
        """Load many pairs, those of two connections that lie over each other as they are together."""
        return self.with_sides(matches)[0]

    def with_sides(self, matches: Sequence[Match]) -> tuple[Sequence[Pair], Sides]:
        """The same with both sides of those that have two."""
        first, second = self._first, self._second
        plain = [place for place, match in enumerate(matches) if match.is_plain]
        if len(plain) < 2 or not isinstance(first, Capture) or not isinstance(second, Capture):
            pairs = [self.pair(match) for match in matches]
            return pairs, Sides.of(pairs)
        loaded, sides = self._together(first, second, [matches[place] for place in plain])
        if len(plain) == len(matches):
            return loaded, sides
        made = dict(zip(plain, loaded, strict=True))
        pairs = [made[place] if place in made else self.pair(match) for place, match in enumerate(matches)]
        return pairs, Sides.of(pairs)

    def _together(self, first: Capture, second: Capture, matches: Sequence[Match]) -> tuple[LoadedPairs, Sides]:
        ones = load_vantages(first, [match.first for match in matches if match.first is not None])
        twos = load_vantages(second, [match.second for match in matches if match.second is not None])
        sides = self._sides(Sides.of_vantages(ones, twos))
        alignments, columns = align_all(sides)
        confidence = self._confidences(matches, sides, alignments)
        grounds = [_IN_WORDS[match.ground] for match in matches]

        def pair(row: int) -> Pair:
            client, server, ground = sides.clients[row], sides.servers[row], grounds[row]
            return Pair(client, server, alignments[row], confidence[row], self._options, pairing_ground=ground)

        pairs = LoadedPairs(pair, self._options, np.array(confidence), grounds)
        return pairs, sides.with_pairs(pairs, columns)

    def _sides(self, loaded: Sides) -> Sides:
        """The clients' and the servers' sides, where those of the first capture were taken for the clients'."""
        ones, twos = loaded.clients, loaded.servers
        is_nearer = self._are_first_nearer(loaded)
        if all(is_nearer):
            return loaded
        clients = [one if nearer else two for one, two, nearer in zip(ones, twos, is_nearer, strict=True)]
        servers = [two if nearer else one for one, two, nearer in zip(ones, twos, is_nearer, strict=True)]
        return Sides.of_vantages(clients, servers)

    def _are_first_nearer(self, loaded: Sides) -> list[bool]:
        """`_is_first_nearer` of many connections, whose first sides were taken for the clients'."""
        ones, twos = loaded.clients, loaded.servers
        if self._options.first_at_client is not None:
            return [self._options.first_at_client] * len(ones)
        own, timed = first_are_client_sides(
            loaded.client, loaded.server, lambda row: (ones[row].connection, twos[row].connection)
        )
        lean = self._lean
        agrees = (own != 0) & (lean != 0) & ((own > 0) == (lean > 0))
        by_own, by_others = (own if lean == 0 else np.where(own != 0, own, lean)), lean or own
        nearer: list[bool] = np.where(
            agrees, own > 0, np.where(timed, by_own >= 0, np.asarray(by_others) >= 0)
        ).tolist()
        return nearer

    def _confidences(
        self, matches: Sequence[Match], sides: Sides, alignments: Sequence[dict[Direction, StreamAlignment]]
    ) -> list[float]:
        """How sure each match is; equal alignments, which are one, are judged once, where nothing else is asked."""
        known: dict[tuple[Ground, int, float], float] = {}
        confidences = list[float]()
        for row, (match, alignment) in enumerate(zip(matches, alignments, strict=True)):
            key = match.ground, id(alignment), match.one_transfer_nats
            confidence = known.get(key)
            if confidence is None:
                pair = Pair(sides.clients[row], sides.servers[row], alignment, 1.0, self._options)
                seen = LoadedTransfers(pair, match, self._turns, self._has_identified)
                confidence = pairing_confidence(match.ground, alignment.values(), seen, match.one_transfer_nats)
                if not seen.was_asked:
                    known[key] = confidence
            confidences.append(min(confidence * logistic(match.margin), RIVALLED) if match.rivals else confidence)
        return confidences

    def packet_counts(self, matches: Sequence[Match]) -> Int64Array:
        """Packets of each match in both captures."""
        counts = np.zeros(len(matches), np.int64)
        for capture, numbers in (
            (self._first, [match.first for match in matches]),
            (self._second, [match.second for match in matches]),
        ):
            held = [(place, number) for place, number in enumerate(numbers) if number is not None]
            if capture is not None and held:
                counts[[place for place, _ in held]] += _packets(capture, [number for _, number in held])
        return counts

    def _is_first_nearer(self, first: Vantage, second: Vantage) -> bool:
        """Whether `first` is the client's side."""
        if self._options.first_at_client is not None:
            return self._options.first_at_client
        own = first_is_client_side(first.connection, second.connection)
        if own and self._lean and (own > 0) == (self._lean > 0):
            return own > 0  # whichever is asked first
        if are_both_timed(first.connection, second.connection):
            return (own or self._lean) >= 0
        return (self._lean or own) >= 0

    @property
    def has_both(self) -> bool:
        """Whether there are two captures."""
        return self._second is not None

    def encrypted_candidates(self, match: Match) -> list[tuple[Connection, Guise]]:
        """Connections of the other capture that may be the other leg of an unpaired one, and what they look like."""
        if self._second is None:
            return []
        first, second = self._first.connections, self._second.connections
        if match.first is not None:
            return [(second[legs.second], legs.guises[1]) for legs in self._encrypted if legs.first == match.first]
        return [(first[legs.first], legs.guises[0]) for legs in self._encrypted if legs.second == match.second]

    def earlier_with_same_answer(self, alone: Pair) -> tuple[Pair, ...]:
        """Pairs, sure to be one transfer each, whose connection to the same server got as many bytes before `alone`
        (client's side only) began."""
        vantage = alone.client_side
        if vantage is None or self._second is None:
            return ()
        wanted = vantage.connection
        found = []
        for match in self._servers.with_answer(wanted.server, wanted.down.stream_bytes):
            pair = self.pair(match)
            near = pair.client_side
            is_sure = pair.pairing_confidence >= self._options.least_pairing_confidence
            if is_sure and near is not None and near.connection.first_time_ns < wanted.first_time_ns:
                found.append(pair)
            if len(found) == EARLIER_PAIRS:
                break
        return tuple(found)

    def to_server(self, server: str) -> Iterator[Pair]:
        """A few pairs whose connection either capture shows to this server and port, one after the other."""
        return map(self.pair, islice(self._servers.to(server), PAIRS_LOOKED_AT))

    def identified(self, client: Connection) -> Iterator[Pair]:
        """A few pairs of this connection's client and server that sequence numbers or packets identify, one after the
        other."""
        return map(self.pair, islice(self._servers.identified(client.client_address, client.server), PAIRS_LOOKED_AT))

    def _has_identified(self, client: Connection) -> bool:
        """Whether there is such a pair."""
        return any(True for _ in self._servers.identified(client.client_address, client.server))

    @cached_property
    def _servers(self) -> ServerIndex:
        """The matches by server; made when first asked for."""
        assert self._second is not None
        return ServerIndex(self._first, self._second, self.matches)

    def _single(self, vantage: Vantage | None, match: Match) -> Pair:
        if vantage is None:
            return Pair(None, None, {}, 0.0, self._options)
        known = self._options.first_at_client
        if known is not None:
            at_client = known == (match.first is not None)
            return Pair(vantage if at_client else None, None if at_client else vantage, {}, 1.0, self._options)
        own = client_nearness(vantage.connection)[0] - 0.5
        others = self._lean if match.first is not None else -self._lean
        lean = own if is_timed(vantage.connection) else others or own
        if match.leg is not None and lean == 0:
            lean = -1.0  # mobile legs are where providers use protocols of their own
        client_side, server_side = (vantage, None) if lean >= 0 else (None, vantage)
        return Pair(client_side, server_side, {}, 1.0, self._options)

    def _with_leg(self, alone: Pair, leg: DatagramLeg) -> Pair:
        confidence = leg_confidence(leg)
        return replace(alone, datagram_leg=leg, pairing_confidence=confidence, pairing_ground=str(Ground.DATAGRAMS))

    def _capture_lean(self) -> float:
        """Whether most pairs put the first capture (positive) or the second nearer to the clients; those of which it
        `is_contradicted` are asked where no other says it."""
        first, second = self._first, self._second
        if second is None:
            return 0.0
        both = [
            (match.first, match.second)
            for match in self.matches[:1000]
            if match.first is not None and match.second is not None and not match.sides_swapped
        ]

        def connections(row: int) -> tuple[Connection, Connection]:
            one, two = both[row]
            return first.connections[one], second.connections[two]

        if both and isinstance(first, Capture) and isinstance(second, Capture):
            ones, twos = zip(*both, strict=True)
            left, right = Summaries.of_table(SummaryRows(first, ones)), Summaries.of_table(SummaryRows(second, twos))
            own, timed = first_are_client_sides(left, right, connections)
            is_settled = timed | ~(handshake_nearness(left)[0] & handshake_nearness(right)[0])
        else:
            pairs = [connections(row) for row in range(len(both))]
            own = np.array([first_is_client_side(*each) for each in pairs])
            is_settled = np.array([not is_contradicted(*each) for each in pairs], np.bool_)
        return float(own[is_settled].sum()) or float(own.sum())


def pair_captures(
    first: ConnectionSource, second: ConnectionSource | None, options: DetectOptions | None = None
) -> PairedCaptures:
    """Match the connections of two captures (in either order), or list those of one."""
    chosen = options or DetectOptions()
    if second is None:
        alone = [Match(number, None, Ground.ALONE) for number in range(len(first.connections))]
        return PairedCaptures(first, None, alone, chosen)
    matches = Matcher(first, second, same_clock=chosen.clocks is ClockMode.SYNCHRONISED).run()
    legs = _encrypted_legs(first, second, matches)
    if chosen.same_transfers:
        matches = _with_encrypted_legs(matches, legs.assigned)
    return PairedCaptures(first, second, matches, chosen, legs.candidates)


def _encrypted_legs(first: ConnectionSource, second: ConnectionSource, matches: Sequence[Match]) -> EncryptedLegs:
    """Look for legs with encryption among what nothing else paired."""
    alone = [match for match in matches if match.ground is Ground.ALONE]
    ones = [match.first for match in alone if match.first is not None]
    twos = [match.second for match in alone if match.second is not None]
    if not ones or not twos:
        return EncryptedLegs((), ())
    starts = [
        second.connections[match.second].first_time_ns - first.connections[match.first].first_time_ns
        for match in matches
        if match.first is not None and match.second is not None and match.ground is not Ground.PAYLOAD_OTHER_TIME
    ]
    return find_encrypted_legs(first, second, ones, twos, int(np.median(starts)) if starts else None)


def _with_encrypted_legs(matches: Sequence[Match], assigned: Sequence[Legs]) -> list[Match]:
    """The matches, where both legs of a transfer become one."""
    second_of = {legs.first: legs.second for legs in assigned}
    used = set(second_of.values())
    made = []
    for match in matches:
        if match.ground is Ground.ALONE and match.first in second_of:
            made.append(Match(match.first, second_of[match.first], Ground.ENCRYPTED))
        elif not (match.ground is Ground.ALONE and match.second in used):
            made.append(match)
    return made


def _packets(capture: ConnectionSource, numbers: Sequence[int]) -> Sequence[int] | Int64Array:
    """Packets of some connections."""
    if isinstance(capture, Capture):
        return capture.packet_counts(numbers)
    return [capture.connections[number].packets for number in numbers]
