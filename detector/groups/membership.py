"""Which connections form a group: one server port and one network of clients, seen by the same captures."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from detector.mispairing import is_doubtful
from detector.pair import Pair
from pepscope.connections import Connection
from pepscope.results import GroupSide, PairResult, VantageName

#: Networks of clients that one rule governs: no smaller ones are announced between operators (RFC 7454 section 6.1.3).
PREFIX_IPV4 = 24
PREFIX_IPV6 = 48


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the connections of one group have in common."""

    side: GroupSide
    network: str
    port: int


@dataclass(frozen=True, slots=True)
class Member:
    """One judged connection with what a group needs to know of it; times in nanoseconds."""

    result: PairResult
    key: GroupKey
    host: str  # the server's address
    started_ns: int  # by the clock of the client's side, else of the server's
    near_round_trip_ns: int | None
    hidden_round_trip_ns: int | None  # between the server and what answers it, where both sides were captured
    doubtful: bool = False  # whether the captures may show two transfers

    @classmethod
    def of(cls, pair: Pair, result: PairResult) -> Member:
        """The member that `pair`, judged as `result`, is."""
        client, server = (side.connection if side else None for side in (pair.client_side, pair.server_side))
        shown = next(name for name in reversed(result.vantages) if name.transport == "tcp")
        address, port = _address_and_port(shown.server)
        side = GroupSide.BOTH if len(result.vantages) > 1 else GroupSide.CLIENT if client else GroupSide.SERVER
        far_ns = _handshake_ns(server, at_client=False)
        return cls(
            result,
            GroupKey(side, _network(shown), port),
            address,
            pair.vantages[0].connection.first_time_ns,
            far_ns if client is None else _handshake_ns(client, at_client=True),
            None if client is None else far_ns,
            is_doubtful(pair, result.evidence),
        )

    @property
    def payload_bytes(self) -> int:
        """What it carried in both directions."""
        return self.result.payload_bytes_up + self.result.payload_bytes_down


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


def _network(vantage: VantageName) -> str:
    address = ipaddress.ip_address(_address_and_port(vantage.client)[0])
    prefix = PREFIX_IPV4 if address.version == 4 else PREFIX_IPV6
    return str(ipaddress.ip_network((address, prefix), strict=False))


def _address_and_port(end_point: str) -> tuple[str, int]:
    address, _, port = end_point.rpartition(":")
    return address.strip("[]"), int(port)


def _handshake_ns(connection: Connection | None, *, at_client: bool) -> int | None:
    """From a side's own packet of the handshake to the answer; none where the SYN was not seen."""
    if connection is None or connection.side_guessed:
        return None
    return connection.handshake_syn_ack_ns if at_client else connection.handshake_ack_ns
