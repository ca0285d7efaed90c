"""The path's round trip as a handshake shows it whose SYN and SYN-ACK crossed the whole path."""

from __future__ import annotations

import numpy as np

from detector.streams.known import UNKNOWN, are_known
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray


def handshake_round_trips_ns(sides: Sides, direction: Direction, least_holds_ns: Int64Array) -> Int64Array:
    """Round trips from the capture at the sender of `direction`'s data to the receiver, as handshakes took them.

    The lesser of two measurements of the way between the captures, there and back, neither of which needs a relation of
    the clocks: SYN to SYN-ACK at the client's capture less the same at the server's, and SYN-ACK to ACK at the server's
    less the same at the client's. A SYN that waits for a radio to wake up, or a clock that is set in between, changes
    one of them only. A host that answers late changes neither. Beyond the receiver's capture the round trip is the
    least that an acknowledgement took there (`least_holds_ns`, `UNKNOWN` for none), at most the handshake's.

    Unknown unless both captures hold the same SYN and the same SYN-ACK, once each: a proxy answers SYNs itself, and of
    repeated ones it is not known which was answered.
    """
    toward, beyond = legs_ns(sides.sender(direction), direction)
    from_receiver, from_sender = legs_ns(sides.receiver(direction), direction)
    known = _are_one_handshake(sides) & are_known(toward, beyond, from_receiver, from_sender)
    between = np.minimum(toward - from_receiver, from_sender - beyond)
    rest = np.clip(least_holds_ns, 0, np.maximum(from_receiver, 0))
    return np.where(known, np.maximum(between, 0) + rest, UNKNOWN)


def legs_ns(side: Summaries, direction: Direction) -> tuple[Int64Array, Int64Array]:
    """The handshakes' round trips from the captures to the receivers of `direction`'s data, and to their senders."""
    to_server, to_client = side.numbers("handshake_syn_ack_ns"), side.numbers("handshake_ack_ns")
    return (to_server, to_client) if direction is Direction.UP else (to_client, to_server)


def _are_one_handshake(sides: Sides) -> BoolArray:
    """Of which connections both captures hold the same SYN and the same SYN-ACK, once each."""
    one = np.ones(len(sides), np.bool_)
    for direction in DIRECTIONS:
        first, other = (side.of_flow(direction, "initial_sequence_number") for side in (sides.client, sides.server))
        one &= (first != UNKNOWN) & (first == other)
        for side in (sides.client, sides.server):
            one &= side.of_flow(direction, "syn_count") == 1
    return one
