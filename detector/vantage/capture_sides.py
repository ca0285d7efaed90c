"""Which of two captures was taken nearer to the client: read from the handshake, round trips and hop limits.

Near the client a SYN waits long for its SYN-ACK and the client's ACK follows at once; near the server it is the other
way round. The same holds for data and their acknowledgements. Hop limits count down from 64, 128 or 255 at the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from detector.streams.known import UNKNOWN, are_known
from detector.streams.summaries import Summaries
from pepscope.captures.connections import Connection
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: What a nearness is worth by what it was read from.
FROM_HANDSHAKE, FROM_ROUND_TRIPS, FROM_HOP_LIMITS, FROM_ONE_ROUND_TRIP = 3.0, 2.0, 1.0, 0.5

#: Network cards stamp packets late by less. Where both gaps of a handshake differ between captures by the path's round
#: trip, the lesser difference is more than this, or at least this share of the greater one.
_STAMPED_NS = 1_000_000
_SAME_PATH_SHARE = 0.1

#: Hop limits that hosts send with.
INITIAL_HOP_LIMITS = (64, 128, 255)


def client_nearness(connection: Connection) -> tuple[float, float]:
    """Nearness to the client in [0, 1] (0.5 where nothing is known) and how much it is worth."""
    handshake_far, handshake_near = connection.handshake_syn_ack_ns, connection.handshake_ack_ns
    if not connection.side_guessed and handshake_far is not None and handshake_near is not None:
        return _share(handshake_far, handshake_near), FROM_HANDSHAKE
    up, down = connection.up.round_trip_time_min_ns, connection.down.round_trip_time_min_ns
    if up is not None and down is not None:
        return _share(up, down), FROM_ROUND_TRIPS
    hops_up, hops_down = _hops(connection.up.ttl), _hops(connection.down.ttl)
    if hops_up != hops_down:
        return _share(hops_down, hops_up), FROM_HOP_LIMITS
    one_way = up if up is not None else down
    if one_way is not None:
        # Only one side's data were acknowledged: a short delay means that the acknowledging side is near. 10 ms lies
        # above a host's own answering time and below the round trip of a path worth two captures.
        far = one_way > 10_000_000
        return (0.75 if far == (up is not None) else 0.25), FROM_ONE_ROUND_TRIP
    return 0.5, 0.0


def are_both_timed(first: Connection, second: Connection) -> bool:
    """Whether two captures of a connection show by their times which one is nearer: `is_timed` of both, unless
    `is_contradicted`."""
    return is_timed(first) and is_timed(second) and not is_contradicted(first, second)


def is_contradicted(first: Connection, second: Connection) -> bool:
    """Whether two captures hold handshakes that one path does not explain, and nothing else says which one is nearer.

    What `first_is_client_side` still takes from them may be wrong of all connections alike.
    """
    return _contradict(first, second) and _beside(first, second) == 0.0


def is_timed(connection: Connection) -> bool:
    """Whether the connection's own packets show by their times, in both directions, which end was nearer.

    Where they do not, the capture's other connections say it better: hosts may send with any hop limit.
    """
    return client_nearness(connection)[1] >= FROM_ROUND_TRIPS


def first_is_client_side(first: Connection, second: Connection) -> float:
    """Positive where `first` was captured nearer to the client than `second`, negative where `second` was."""
    near_first, worth_first = client_nearness(first)
    near_second, worth_second = client_nearness(second)
    worth = min(worth_first, worth_second)
    if _contradict(first, second):
        compared = _beside(first, second)
        if compared != 0.0:
            return compared
    if worth < FROM_HANDSHAKE:
        by_gaps, by_round_trips = _by_equal_gaps(first, second), _by_equal_round_trips(first, second)
        # One of them timed other packets than it seems: copies in another order, or what a capture lacks.
        arbiter = _by_first_data(first, second) if by_gaps * by_round_trips < 0.0 else 0.0
        compared = _by_hop_limits(first, second) or arbiter or by_gaps or by_round_trips
        if compared != 0.0:
            return compared
    if worth == 0.0 or near_first == near_second:
        return (near_first - 0.5) * worth_first - (near_second - 0.5) * worth_second
    return (near_first - near_second) * worth


def first_are_client_sides(
    first: Summaries, second: Summaries, connections: Callable[[int], tuple[Connection, Connection]]
) -> tuple[FloatArray, BoolArray]:
    """`first_is_client_side` of many connections, and of which both are timed.

    `connections` gives those of a row, of which few are asked for: handshakes say it of most.
    """
    known, shares = zip(*map(handshake_nearness, (first, second)), strict=True)
    by_handshake = known[0] & known[1]
    own = (shares[0] - shares[1]) * FROM_HANDSHAKE
    timed = by_handshake.copy()
    gaps = [(side.numbers("handshake_syn_ack_ns"), side.numbers("handshake_ack_ns")) for side in (first, second)]
    numbers = [[side.of_flow(way, "initial_sequence_number") for way in DIRECTIONS] for side in (first, second)]
    for row in np.flatnonzero(~by_handshake | _gaps_contradict(*gaps) | _is_answered_anew(*numbers)).tolist():
        one, two = connections(row)
        own[row], timed[row] = first_is_client_side(one, two), are_both_timed(one, two)
    return own, timed


def _contradict(first: Connection, second: Connection) -> bool:
    """Whether two captures hold handshakes that one path does not explain."""
    if client_nearness(first)[1] < FROM_HANDSHAKE or client_nearness(second)[1] < FROM_HANDSHAKE:
        return False
    gaps_contradict = bool(_gaps_contradict(_gaps(first), _gaps(second)))
    return gaps_contradict or bool(_is_answered_anew(_numbers(first), _numbers(second)))


def _beside(first: Connection, second: Connection) -> float:
    """As `first_is_client_side`, by what two captures show beside their handshakes."""
    return _by_hop_limits(first, second) or _by_agreeing_round_trips(first, second)


def _numbers(connection: Connection) -> list[int]:
    """Initial sequence numbers of both directions, `UNKNOWN` where a capture lacks one."""
    known = [flow.initial_sequence_number for flow in (connection.up, connection.down)]
    return [UNKNOWN if number is None else number for number in known]


def _is_answered_anew(first: Sequence[Any], second: Sequence[Any]) -> Any:
    """Whether a SYN has one number in both captures and its answer two: a firewall's, or another host's answer."""
    up, down = ((one != UNKNOWN) & (two != UNKNOWN) for one, two in zip(first, second, strict=True))
    return up & down & ((first[0] == second[0]) != (first[1] == second[1]))


def _gaps(connection: Connection) -> tuple[int, int]:
    """From SYN to SYN-ACK, and from there to the ACK (ns): both are known where the handshake says which side it is."""
    far, near = connection.handshake_syn_ack_ns, connection.handshake_ack_ns
    return (0 if far is None else far), (0 if near is None else near)


def _gaps_contradict(first: tuple[Any, Any], second: tuple[Any, Any]) -> Any:
    """Whether two captures of one handshake disagree on the path between them, by the gap behind the SYN and by the one
    behind the SYN-ACK: each differs by the path's round trip, unless a first packet waited.

    A clock that ticks coarsely changes one gap by a tick and the other by nothing.
    """
    longer, shorter = first[0] - second[0], second[1] - first[1]
    least, most = (of(abs(longer), abs(shorter)) for of in (np.minimum, np.maximum))
    same_way = (longer > 0) == (shorter > 0)
    return ~(same_way & ((least > _STAMPED_NS) | (least > _SAME_PATH_SHARE * most)))


def handshake_nearness(side: Summaries) -> tuple[BoolArray, FloatArray]:
    """Of which connections the handshake says how near the client is, and how near: `client_nearness` of these."""
    far, near = side.numbers("handshake_syn_ack_ns"), side.numbers("handshake_ack_ns")
    return are_known(far, near) & ~side.are("side_guessed"), _shares(far, near)


def _shares(far: Int64Array, near: Int64Array) -> FloatArray:
    """`_share` of many."""
    far, near = np.maximum(far, 0), np.maximum(near, 0)
    both = far + near
    return np.where(both > 0, far / np.maximum(both, 1), 0.5)


def _by_hop_limits(first: Connection, second: Connection) -> float:
    """As `first_is_client_side`, by the hop limits of packets that passed both captures: no router raises one.

    0 unless SYN and SYN-ACK have one sequence number each in both captures, and both directions say the same.
    """
    for one, two in ((first.up, second.up), (first.down, second.down)):
        if one.initial_sequence_number is None or one.initial_sequence_number != two.initial_sequence_number:
            return 0.0
    up, down = first.up.ttl - second.up.ttl, second.down.ttl - first.down.ttl
    return math.copysign(FROM_HOP_LIMITS, up) if up * down > 0 else 0.0


def _by_agreeing_round_trips(first: Connection, second: Connection) -> float:
    """As `first_is_client_side`, by the round trips of data, where one path explains those of both directions; by those
    of one direction, unless gaps of handshakes that one path explains say otherwise (a capture may lack the first
    acknowledgement).

    Who answers a handshake need not be who acknowledges data: a SYN proxy stands between.
    """
    one, two = ((each.up.round_trip_time_min_ns, each.down.round_trip_time_min_ns) for each in (first, second))
    compared, gaps = _by_equal_round_trips(first, second), (_gaps(first), _gaps(second))
    if None not in (*one, *two):
        return 0.0 if _gaps_contradict(one, two) else compared
    is_disputed = not _gaps_contradict(*gaps) and (gaps[0][0] > gaps[1][0]) != (compared > 0.0)
    return 0.0 if is_disputed else compared


def _by_equal_gaps(first: Connection, second: Connection) -> float:
    """As `first_is_client_side`, by one gap of the handshake that both captures hold, where one lacks the other gap.

    Both show the same two packets, while the least round trips of a capture that lacks acknowledgements are too long.
    """
    if first.side_guessed or second.side_guessed:
        return 0.0
    return FROM_HANDSHAKE * _shorter(
        (first.handshake_ack_ns, second.handshake_ack_ns, 1.0),
        (first.handshake_syn_ack_ns, second.handshake_syn_ack_ns, -1.0),
    )


def _by_equal_round_trips(first: Connection, second: Connection) -> float:
    """As `first_is_client_side`, by the round trips of one direction's data in both captures: its receiver is nearer
    where they are shorter. 0 where no direction has both."""
    return FROM_ROUND_TRIPS * _shorter(
        (first.down.round_trip_time_min_ns, second.down.round_trip_time_min_ns, 1.0),
        (first.up.round_trip_time_min_ns, second.up.round_trip_time_min_ns, -1.0),
    )


def _by_first_data(first: Connection, second: Connection) -> float:
    """As `first_is_client_side`, by the time from the first data up to the first data down: near the client it is the
    longer by a round trip between the captures. 0 where a capture lacks either, and where the two are the same.
    """
    after_ns = [
        None if up is None or down is None else down - up
        for up, down in ((each.up.first_data_time_ns, each.down.first_data_time_ns) for each in (first, second))
    ]
    one, two = after_ns
    if one is None or two is None or one == two:
        return 0.0
    return FROM_ROUND_TRIPS * (one - two) / max(abs(one), abs(two))


def _shorter(*times: tuple[int | None, int | None, float]) -> float:
    """Sum of signs, each times the share by which the first of two times is shorter; unknown ones count nothing."""
    known = [(one, two, sign) for one, two, sign in times if one is not None and two is not None and max(one, two) > 0]
    return sum(sign * (two - one) / max(one, two) for one, two, sign in known)


def _share(far: float, near: float) -> float:
    far, near = max(far, 0.0), max(near, 0.0)
    return far / (far + near) if far + near > 0 else 0.5


def _hops(ttl: int) -> int:
    return min((limit - ttl for limit in INITIAL_HOP_LIMITS if limit >= ttl), default=0)
