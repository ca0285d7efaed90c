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
from detector.streams.known import UNKNOWN, are_known, least_known, seconds
from detector.streams.loaded import option_of, packets_of
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from detector.vantage.capture_sides import INITIAL_HOP_LIMITS
from detector.vantage.one_place import OnePlace
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.pairs.stretch import APART, ONE_PLACE, UNKNOWN_HOPS, StretchRows


def stretches_of(
    pairs: Sequence[Pair], places: Sequence[OnePlace | None], known_sides: Sides | None = None
) -> StretchRows:
    """What lies between and beyond the captures of each pair, where both hold the connection in TCP.

    `places`: whether they were taken at one place. `known_sides` are those of the pairs, where they are known already.
    """
    sides = known_sides or Sides.of(pairs)
    if not len(sides):
        return StretchRows.unknown(len(pairs))
    rows, near, far = sides.rows, sides.client, sides.server
    # The most frequent one counts: a middlebox that answers handshakes in a host's stead uses its own.
    at_client = _core.hop_limits(packets_of(sides.clients))
    at_server = _core.hop_limits(packets_of(sides.servers))
    same_handshake = _same_handshake(near, far)
    answered_near, answered_far = (side.numbers("handshake_syn_ack_ns") for side in (near, far))
    between_ns = _difference(answered_near, answered_far, same_handshake)
    # Acknowledgements held back on purpose (Method 3) lengthen every answer of the receiver.
    held = np.array(option_of(pairs, lambda options: options.ack_delay_s is not None), np.bool_)[rows]
    beyond_client_ns = least_known(
        near.numbers("handshake_ack_ns"), near.of_flow(Direction.DOWN, "round_trip_time_min_ns")
    )
    beyond_server_ns = least_known(answered_far, far.of_flow(Direction.UP, "round_trip_time_min_ns"))
    hops_between = _difference(at_client[Direction.UP], at_server[Direction.UP], same_handshake)
    found = StretchRows.unknown(len(pairs))
    found.place[rows] = np.array([APART if place is None else ONE_PLACE for place in places])[rows]
    found.client_hops_beyond[rows] = _hops(at_client[Direction.UP])
    found.server_hops_beyond[rows] = _hops(at_server[Direction.DOWN])
    found.client_round_trip_beyond_s[rows] = seconds(np.where(held, UNKNOWN, beyond_client_ns))
    found.server_round_trip_beyond_s[rows] = seconds(np.where(held, UNKNOWN, beyond_server_ns))
    found.hops_between[rows] = np.where(hops_between == UNKNOWN, UNKNOWN_HOPS, hops_between)
    found.round_trip_between_s[rows] = seconds(between_ns)
    return found


def _same_handshake(near: Summaries, far: Summaries) -> BoolArray:
    """Whether both captures show the same SYN."""
    numbers = [side.of_flow(Direction.UP, "initial_sequence_number") for side in (near, far)]
    return np.asarray(~near.are("side_guessed") & ~far.are("side_guessed") & (numbers[0] == numbers[1]))


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
