"""Which connections form a group: one server port and one network of clients, seen by the same captures."""

from __future__ import annotations

import ipaddress
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from msgspec import Struct

from detector.options import PREFIX_IPV4, PREFIX_IPV6
from detector.pair import Pair
from detector.streams.known import UNKNOWN
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from pepscope.captures.packets import Int64Array
from pepscope.captures.tables.texts import coded_addresses
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.evidence.pieces import Pieces
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Evidence, GroupSide, Verdict

#: Keys and networks of clients that are made once.
_REMEMBERED = 65_536


class GroupKey(Struct, frozen=True):
    """What the connections of one group have in common."""

    side: GroupSide
    network: str
    port: int


class Members(Struct, frozen=True):
    """What groups need to know of judged connections beside their verdicts, as columns of one length.

    Times are in nanoseconds, `UNKNOWN` where not known. `started_ns` is by the clock of the client's side, else of the
    server's; `hidden_round_trip_ns` is between the server and what answers it, where both sides were captured;
    `are_doubtful` says whether the captures may show two transfers.
    """

    keys: Sequence[GroupKey]
    hosts: Sequence[str]  # the servers' addresses
    started_ns: Int64Array
    near_round_trip_ns: Int64Array
    hidden_round_trip_ns: Int64Array
    are_doubtful: BoolArray

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, pairs: Sequence[Pair], are_doubtful: BoolArray, sides: Sides) -> Members:
        """The members that these pairs are; `sides` are those of the pairs."""
        if len(sides) == len(pairs):
            first, last = sides.client, sides.server
        else:
            first, last = (Summaries([pair.vantages[side] for pair in pairs]) for side in (0, -1))
        started, ports = first.numbers("first_time_ns"), last.numbers("server_port").tolist()
        (of_client, clients), (of_server, servers) = map(coded_addresses, last.end_points())
        networks, hosts = [_network(client) for client in clients], [sys.intern(server) for server in servers]
        seen_at = [GroupSide.BOTH] * len(pairs) if len(sides) == len(pairs) else [_side(pair) for pair in pairs]
        asked = zip(seen_at, of_client.tolist(), ports, strict=True)
        keys = [_key(side, networks[code], port) for side, code, port in asked]
        near, hidden = np.full(len(pairs), UNKNOWN), np.full(len(pairs), UNKNOWN)
        at_client, at_server = np.zeros(len(pairs), np.bool_), np.zeros(len(pairs), np.bool_)
        at_client[sides.rows] = at_server[sides.rows] = True
        for row in np.flatnonzero(~at_client).tolist():
            at_client[row], at_server[row] = pairs[row].client_side is not None, pairs[row].server_side is not None
        # Of one capture first and last are one.
        from_client, from_server = (
            _handshakes_ns(first, "handshake_syn_ack_ns"),
            _handshakes_ns(last, "handshake_ack_ns"),
        )
        near[at_client] = from_client[at_client]
        near[~at_client] = from_server[~at_client]
        hidden[at_client & at_server] = from_server[at_client & at_server]
        return cls(keys, [hosts[code] for code in of_server.tolist()], started, near, hidden, are_doubtful)

    @classmethod
    def in_order(cls, parts: Sequence[tuple[Sequence[int], Members]]) -> Members:
        """Members that were made by parts, each of which comes with their places."""
        order = np.argsort(np.concatenate([np.asarray(places, np.int64) for places, _ in parts] or [_NOTHING]))
        keys = [key for _, part in parts for key in part.keys]
        hosts = [host for _, part in parts for host in part.hosts]
        numbers = (
            np.concatenate([getattr(part, name) for _, part in parts] or [_NOTHING.astype(kind)])[order]
            for name, kind in _NUMBERS
        )
        return cls([keys[row] for row in order.tolist()], [hosts[row] for row in order.tolist()], *numbers)


_NOTHING = np.zeros(0, np.int64)
_NUMBERS = (
    ("started_ns", np.int64), ("near_round_trip_ns", np.int64), ("hidden_round_trip_ns", np.int64),
    ("are_doubtful", np.bool_),
)  # fmt: skip


class Group(Struct, frozen=True, dict=True):
    """Judged connections of one group, by their places in a table of verdicts and in `members`."""

    results: PairTable
    members: Members
    places: Int64Array

    def __len__(self) -> int:
        return len(self.places)

    def of(self, chosen: BoolArray) -> Group:
        """Some of the connections."""
        return self if chosen.all() else Group(self.results, self.members, self.places[chosen])

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each connection."""
        return self.results.verdicts(self.places)

    @cached_property
    def pieces(self) -> Pieces:
        """What methods found on the connections."""
        return self.results.pieces(self.places)

    @property
    def sizes_bytes(self) -> Int64Array:
        """What each connection carried in both directions."""
        return self.results.sizes_bytes(self.places)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The servers' addresses."""
        return tuple(sorted({self.members.hosts[place] for place in self.places.tolist()}))

    def piece(self, at: int) -> Evidence:
        """One of the `pieces`, with sentence and figures."""
        pieces = self.pieces
        return self.results.evidence(int(self.places[pieces.owner[at]]), int(pieces.number[at]))

    def reasons(self) -> list[str]:
        """Why each connection has its verdict."""
        return [self.results.reason(place) for place in self.places.tolist()]

    def least_s(self, times_ns: Int64Array) -> float | None:
        """The least of the connections' known times in a column of the members, in seconds."""
        known = times_ns[self.places]
        known = known[known != UNKNOWN]
        return float(known.min()) / 1e9 if len(known) else None


def grouped(members: Members) -> dict[GroupKey, Int64Array]:
    """Places of the members of each group, groups in order of their first member."""
    places: dict[GroupKey, list[int]] = defaultdict(list)
    for place, key in enumerate(members.keys):
        places[key].append(place)
    return {key: np.array(each, np.int64) for key, each in places.items()}


def _side(pair: Pair) -> GroupSide:
    if len(pair.vantages) > 1 or pair.datagram_leg is not None:
        return GroupSide.BOTH
    return GroupSide.CLIENT if pair.client_side is not None else GroupSide.SERVER


@lru_cache(_REMEMBERED)
def _key(side: GroupSide, network: str, port: int) -> GroupKey:
    return GroupKey(side, network, port)


@lru_cache(_REMEMBERED)
def _network(client: str) -> str:
    address = ipaddress.ip_address(client)
    prefix = PREFIX_IPV4 if address.version == 4 else PREFIX_IPV6
    return str(ipaddress.ip_network((address, prefix), strict=False))


def _handshakes_ns(side: Summaries, name: str) -> Int64Array:
    """From a side's own packet of the handshake to the answer; unknown where the SYN was not seen."""
    return np.where(side.are("side_guessed"), UNKNOWN, side.numbers(name))
