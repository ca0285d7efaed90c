"""Candidates for being one connection, by keys that connections of both captures share, and what each key is worth.

Worth is a log-likelihood ratio in nats: how much likelier one connection shows the key at two places than two do.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from detector.pairing.match import Candidate, Ground
from detector.pairing.packet_sketch import Connections, shared_packets
from pepscope.captures.capture import Capture
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection

#: An initial sequence number is one of 2^32 (RFC 6528).
SEQUENCE_NUMBER_NATS = 32 * math.log(2)

#: A client's port is one of 28,232 (Linux's default range, 32768 to 60999; others have 16,384 or more, RFC 6335).
PORT_NATS = math.log(28_232)

#: An address in common narrows the choice to the connections of that host: some tens, say.
ADDRESS_NATS = 3.0

#: Equal lengths of fewer bytes in all may be those of any small exchange.
TELLING_BYTES = 1 << 14

#: Equal lengths: beyond `TELLING_BYTES` sizes spread over more than ten thousand values.
LENGTHS_NATS = math.log(10_000.0)

Key = Callable[[Connection], Hashable | None]

#: Of a group with more connections each is held against so many of the other capture's, those that began nearest.
_NEAREST = 16


def both_sequence_numbers(connection: Connection) -> Hashable | None:
    """Both initial sequence numbers."""
    up, down = connection.up.initial_sequence_number, connection.down.initial_sequence_number
    return None if up is None or down is None else (up, down)


def end_points(connection: Connection) -> Hashable | None:
    """Both end points, without regard to which is the client."""
    return frozenset(
        ((connection.client_address, connection.client_port), (connection.server_address, connection.server_port))
    )


def lengths(connection: Connection) -> Hashable | None:
    """The lengths of both streams; None without payload."""
    up, down = connection.up.stream_bytes, connection.down.stream_bytes
    return None if up + down == 0 else (up, down)


def own_lengths(*captures: ConnectionSource) -> Key:
    """Lengths as a key, for connections whose lengths occur once in each capture, matched or not."""

    @cache
    def alike() -> list[Counter[Hashable]]:
        return [Counter(_all_lengths(capture)) for capture in captures]

    def key(connection: Connection) -> Hashable | None:
        found = lengths(connection)
        own = connection.up.stream_bytes + connection.down.stream_bytes >= TELLING_BYTES
        return found if own and all(counts[found] == 1 for counts in alike()) else None

    return key


def _all_lengths(capture: ConnectionSource) -> Iterable[Hashable]:
    """The lengths of all connections of a capture, from its columns where it has them."""
    if isinstance(capture, Capture):
        columns = capture.connection_columns()
        return zip(*(columns[f"{way}_stream_bytes"].tolist() for way in ("up", "down")), strict=True)
    return map(lengths, capture.connections)


def by_key(
    left: Connections, right: Connections, key: Key, ground: Ground, nats: float, offset: int
) -> list[Candidate]:
    """Pairs with the same key; of large groups those that began near each other under the clocks' offset (ns)."""
    groups: dict[Hashable, tuple[list[Connection], list[Connection]]] = defaultdict(lambda: ([], []))
    for place, side in enumerate((left, right)):
        for connection in side.values():
            name = key(connection)
            if name is not None:
                groups[name][place].append(connection)
    return [
        Candidate(one.id, two.id, ground, nats, are_sides_swapped(one, two))
        for ones, twos in groups.values()
        if ones and twos
        for one, two in _near_in_time(ones, twos, offset)
    ]


def by_identity(
    first: ConnectionSource, second: ConnectionSource, left: Connections, right: Connections, offset: int
) -> list[Candidate]:
    """Pairs that share what hardly two connections do: initial sequence numbers, packets, end points."""
    found = by_key(left, right, both_sequence_numbers, Ground.SEQUENCE_NUMBERS, 2 * SEQUENCE_NUMBER_NATS, offset)
    for key in (_up_sequence_number, _down_sequence_number):
        found += by_key(left, right, key, Ground.SEQUENCE_NUMBERS, SEQUENCE_NUMBER_NATS, offset)
    found += by_key(left, right, end_points, Ground.END_POINTS, PORT_NATS + 2 * ADDRESS_NATS, offset)
    found += [
        Candidate(pair.first, pair.second, Ground.PACKETS, pair.nats, pair.sides_swapped)
        for pair in shared_packets(first, second, left, right)
    ]
    return merged(found)


def merged(candidates: Iterable[Candidate]) -> list[Candidate]:
    """One candidate for each two connections: the weightiest one's ground and `sides_swapped`, and the sum of all."""
    best: dict[tuple[int, int], Candidate] = {}
    for found in candidates:
        key = (found.first, found.second)
        known = best.get(key)
        if known is None:
            best[key] = found
            continue
        lead = max(known, found, key=lambda candidate: candidate.nats)
        best[key] = Candidate(*key, lead.ground, known.nats + found.nats, lead.sides_swapped)
    return list(best.values())


def related_nats(one: Connection, two: Connection) -> float:
    """What end points in common are worth: the server's address, the client's address, the client's port."""
    nats = ADDRESS_NATS * (one.server_address == two.server_address)
    nats += ADDRESS_NATS * (one.client_address == two.client_address)
    return nats + PORT_NATS * (one.client_port == two.client_port)


def lead_through_one_host(client_side: Sequence[str], server_side: Sequence[str]) -> bool:
    """Whether two connections, each by its client's and its server's address, have an end's in common, or a proxy's,
    which the client asks and which asks the server."""
    client, server = client_side
    return client == server_side[0] or server in server_side


def have_an_address_in_common(client: str, server: str, other_client: str, other_server: str) -> bool:
    """Of two connections (`ip:port`): an end's, or that of a proxy, which one leads to and the other comes from."""
    one, other = (
        [each.rpartition(":")[0] for each in ends] for ends in ((client, server), (other_client, other_server))
    )
    return lead_through_one_host(one, other) or lead_through_one_host(other, one)


def end_points_text(connection: Connection) -> str:
    """Client and server in words."""
    return f"{connection.client} {connection.server}"


def tie_breaker(one: str, two: str) -> float:
    """A weight too small to mean anything, by the end points in words alone: equals pair alike in whatever order they
    come."""
    return zlib.crc32("|".join(sorted((one, two))).encode()) * 2.0**-52


def are_sides_swapped(one: Connection, two: Connection) -> bool:
    """Whether a guess of client and server in one of them contradicts the other's end points."""
    guessed = one.side_guessed or two.side_guessed
    return guessed and one.client != two.client and (one.client == two.server or one.server == two.client)


def _up_sequence_number(connection: Connection) -> Hashable | None:
    """The client's number and both ports, which hold where the answer to the SYN was lost."""
    number = connection.up.initial_sequence_number
    return None if number is None else (number, connection.client_port, connection.server_port)


def _down_sequence_number(connection: Connection) -> Hashable | None:
    number = connection.down.initial_sequence_number
    return None if number is None else (number, connection.client_port, connection.server_port)


def _near_in_time(
    ones: list[Connection], twos: list[Connection], offset: int
) -> Iterable[tuple[Connection, Connection]]:
    """All pairs of two groups, or of large groups for each connection those that began nearest."""
    if max(len(ones), len(twos)) <= _NEAREST:
        return [(one, two) for one in ones for two in twos]
    left, right = (sorted(group, key=lambda connection: connection.first_time_ns) for group in (ones, twos))
    starts = np.array([connection.first_time_ns for connection in left], np.int64) + offset
    others = np.array([connection.first_time_ns for connection in right], np.int64)
    pairs = {(i, j) for i, places in enumerate(_nearest(starts, others)) for j in places}
    pairs |= {(i, j) for j, places in enumerate(_nearest(others, starts)) for i in places}
    # Groups of equal size pair in order whatever the offset.
    if len(left) == len(right):
        pairs |= {(i, i) for i in range(len(left))}
    return [(left[i], right[j]) for i, j in sorted(pairs)]


def _nearest(starts: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> Iterable[range]:
    middle = np.searchsorted(others, starts)
    low = np.clip(middle - _NEAREST // 2, 0, max(0, len(others) - _NEAREST))
    return [range(place, min(place + _NEAREST, len(others))) for place in low.tolist()]
