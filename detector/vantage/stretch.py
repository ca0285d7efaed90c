"""Which stretch of the path lies between the two captures of a connection, and what lies beyond them.

A host sends with a hop limit of 64, 128 or 255 and every router lowers it by one, so the packets of the near end say
how many routers lie between that host and its side's capture. The round trip from the capture to the near end and back
(the answer to the handshake, acknowledgements of data that arrive there) gives the length of that stretch. Two captures
judge what lies between them and nothing beyond.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Pair
from detector.streams.known import UNKNOWN, are_known, column, least_known, seconds
from detector.vantage.capture_sides import INITIAL_HOP_LIMITS
from detector.vantage.one_place import OnePlace
from pepscope import _core
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.pairs.stretch import APART, ONE_PLACE, UNKNOWN_HOPS, StretchRows


def stretches_of(pairs: Sequence[Pair], places: Sequence[OnePlace | None]) -> StretchRows:
    """What lies between and beyond the captures of each pair, where both hold the connection in TCP.

    `places`: whether they were taken at one place.
    """
    both = [
        (row, client, server)
        for row, pair in enumerate(pairs)
        if (client := pair.client_side) is not None and (server := pair.server_side) is not None
    ]
    if not both:
        return StretchRows.unknown(len(pairs))
    rows = np.array([row for row, _, _ in both], np.int64)
    near, far = [each.connection for _, each, _ in both], [each.connection for _, _, each in both]
    # The most frequent one counts: a middlebox that answers handshakes in a host's stead uses its own.
    at_client = _core.hop_limits([each.packets for _, each, _ in both])
    at_server = _core.hop_limits([each.packets for _, _, each in both])
    same_handshake = _same_handshake(near, far)
    answered_near, answered_far = (column([each.handshake_syn_ack_ns for each in side]) for side in (near, far))
    between_ns = _difference(answered_near, answered_far, same_handshake)
    # Acknowledgements held back on purpose (Method 3) lengthen every answer of the receiver.
    held = np.array([pairs[row].options.ack_delay_s is not None for row in rows.tolist()], np.bool_)
    beyond_client_ns = least_known(
        column([each.handshake_ack_ns for each in near]), column([each.down.round_trip_time_min_ns for each in near])
    )
    beyond_server_ns = least_known(answered_far, column([each.up.round_trip_time_min_ns for each in far]))
    hops_between = _difference(at_client[Direction.UP], at_server[Direction.UP], same_handshake)
    found = StretchRows.unknown(len(pairs))
    found.place[rows] = [APART if places[row] is None else ONE_PLACE for row in rows.tolist()]
    found.client_hops_beyond[rows] = _hops(at_client[Direction.UP])
    found.server_hops_beyond[rows] = _hops(at_server[Direction.DOWN])
    found.client_round_trip_beyond_s[rows] = seconds(np.where(held, UNKNOWN, beyond_client_ns))
    found.server_round_trip_beyond_s[rows] = seconds(np.where(held, UNKNOWN, beyond_server_ns))
    found.hops_between[rows] = np.where(hops_between == UNKNOWN, UNKNOWN_HOPS, hops_between)
    found.round_trip_between_s[rows] = seconds(between_ns)
    return found


def _same_handshake(near: Sequence[Connection], far: Sequence[Connection]) -> BoolArray:
    """Whether both captures show the same SYN."""
    return np.array(
        [
            not (one.side_guessed or two.side_guessed)
            and one.up.initial_sequence_number == two.up.initial_sequence_number
            for one, two in zip(near, far, strict=True)
        ],
        np.bool_,
    )


def _hops(hop_limits: Int64Array) -> Int64Array:
    return _HOPS_TRAVELLED[np.maximum(hop_limits, -1)]


def _difference(client_side: Int64Array, server_side: Int64Array, compared: BoolArray) -> Int64Array:
    """By how much the client side's is greater; unknown where one of them is or it is not greater."""
    is_greater = compared & are_known(client_side, server_side) & (client_side >= server_side)
    return np.where(is_greater, client_side - server_side, UNKNOWN)


def _hops_of(hop_limit: int) -> int:
    return min((limit - hop_limit for limit in INITIAL_HOP_LIMITS if limit >= hop_limit), default=UNKNOWN_HOPS)


#: By hop limit; the last one is for packets that the capture does not hold.
_HOPS_TRAVELLED = np.array([*map(_hops_of, range(256)), UNKNOWN_HOPS], np.int64)
