"""Which connections form a group: one server port and one network of clients, seen by the same captures."""

from __future__ import annotations

import ipaddress
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from detector.pair import Pair
from pepscope.captures.connections import Connection
from pepscope.results.evidence.columns import Form
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Evidence, GroupSide, Mechanism, PairResult, Verdict

#: Networks of clients that one rule governs: no smaller ones are announced between operators (RFC 7454 section 6.1.3).
PREFIX_IPV4 = 24
PREFIX_IPV6 = 48

#: Keys and networks of clients that are made once.
_REMEMBERED = 65_536


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the connections of one group have in common."""

    side: GroupSide
    network: str
    port: int


@dataclass(frozen=True, slots=True)
class Member:
    """One judged connection with what a group needs to know of it; times in nanoseconds."""

    pairs: PairTable
    place: int  # of the connection in `pairs`
    key: GroupKey
    host: str  # the server's address
    started_ns: int  # by the clock of the client's side, else of the server's
    near_round_trip_ns: int | None
    hidden_round_trip_ns: int | None  # between the server and what answers it, where both sides were captured
    doubtful: bool = False  # whether the captures may show two transfers

    @classmethod
    def of(cls, pair: Pair, pairs: PairTable, place: int, *, doubtful: bool) -> Member:
        """The member that `pair` is, which stands at a place of `pairs`."""
        client, server = (side.connection if side else None for side in (pair.client_side, pair.server_side))
        vantages = pair.vantages
        shown = vantages[-1].connection
        is_seen_twice = len(vantages) > 1 or pair.datagram_leg is not None
        side = GroupSide.BOTH if is_seen_twice else GroupSide.CLIENT if client else GroupSide.SERVER
        far_ns = _handshake_ns(server, at_client=False)
        return cls(
            pairs,
            place,
            _key(side, _network(shown.client_address), shown.server_port),
            sys.intern(shown.server_address),
            vantages[0].connection.first_time_ns,
            far_ns if client is None else _handshake_ns(client, at_client=True),
            None if client is None else far_ns,
            doubtful,
        )

    def moved(self, pairs: PairTable, by: int) -> Member:
        """The same member where its pair stands `by` places later, in another table."""
        return replace(self, pairs=pairs, place=self.place + by)

    @property
    def result(self) -> PairResult:
        """The verdict in full, made anew."""
        return self.pairs[self.place]

    @property
    def verdict(self) -> Verdict:
        """The verdict alone."""
        return self.pairs.verdict(self.place)

    @property
    def mechanism(self) -> Mechanism | None:
        """How it is split."""
        return self.pairs.mechanism(self.place)

    @property
    def reason(self) -> str:
        """Why it has its verdict."""
        return self.pairs.reason(self.place)

    @property
    def evidence(self) -> list[Form]:
        """What methods found, without strength and figures."""
        return self.pairs.forms(self.place)

    @property
    def strengths(self) -> Sequence[float]:
        """How firmly each of `evidence` was found."""
        return self.pairs.strengths(self.place)

    def in_full(self, number: int) -> Evidence:
        """The piece of its evidence that is `evidence[number]`, with sentence and figures."""
        return self.pairs.evidence(self.place, number)

    @property
    def payload_bytes(self) -> int:
        """What it carried in both directions."""
        return self.pairs.payload_bytes(self.place)


def grouped(members: Sequence[Member]) -> dict[GroupKey, list[int]]:
    """Places of the members of each group, groups in order of their first member."""
    places: dict[GroupKey, list[int]] = defaultdict(list)
    for place, member in enumerate(members):
        places[member.key].append(place)
    return dict(places)


def least_s(times_ns: Iterable[int | None]) -> float | None:
    """The least of the times that are known, in seconds."""
    known = [time for time in times_ns if time is not None]
    return min(known) / 1e9 if known else None


@lru_cache(_REMEMBERED)
def _key(side: GroupSide, network: str, port: int) -> GroupKey:
    return GroupKey(side, network, port)


@lru_cache(_REMEMBERED)
def _network(client: str) -> str:
    address = ipaddress.ip_address(client)
    prefix = PREFIX_IPV4 if address.version == 4 else PREFIX_IPV6
    return str(ipaddress.ip_network((address, prefix), strict=False))


def _handshake_ns(connection: Connection | None, *, at_client: bool) -> int | None:
    """From a side's own packet of the handshake to the answer; none where the SYN was not seen."""
    if connection is None or connection.side_guessed:
        return None
    return connection.handshake_syn_ack_ns if at_client else connection.handshake_ack_ns
