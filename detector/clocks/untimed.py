"""Captures whose times tell nothing of when acknowledgements came, of pairs that times accuse.

Some have no times: simple packet blocks of pcapng carry none, and tools that make a capture of text count its packets
instead. Their steps are all equal, which no clock's are. A tool that keeps times from falling (`editcap -S`) lets time
stand still where the clock was set back, until that has caught up. Others have times that contradict each other. An
acknowledgement passes a capture after the SYN or the bytes that it acknowledges: neither the receiver nor a middlebox,
on either side of the capture, acknowledges what has not passed it. Where a capture shows many acknowledgements before
what they acknowledge, two clocks timed its directions (a tap with a card for each), or its file has one direction
behind the other. Two captures contradict each other where SYN and SYN-ACK, which passed both, took less than no time
from one to the other and back: two clocks that differ by less than a capture's own round trip show so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Pair
from detector.streams.curves import DOUBTED_STEP_NS
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import PacketColumns
from pepscope.results.evidence.columns import BoolArray

#: So many packets show whether they are counted.
COUNTED_PACKETS = 100_000

#: Steps of equal length, none or some, that a clock does not make by chance: packets come at no such beat from their
#: handshake on.
FEWEST_COUNTED = 8

#: A host takes longer than this to answer, so that of packets in both directions few have so little between them.
QUICKEST_TURN_NS = 10_000

#: Share of one direction's acknowledgements that may come before what they acknowledge: a capture that lost the first
#: copies, or cards that stamp late, put single ones there. Recorded captures and changes of them (1,915 connections at
#: one end) have none, captures with two clocks nearly all.
IMPOSSIBLE_SHARE = 0.25


def are_untimed(pairs: Sequence[Pair]) -> BoolArray:
    """Of which pairs a capture counts its packets in place of times, or contradicts itself or the other."""
    first, last = ([pair.vantages[side].packets for pair in pairs] for side in (0, -1))
    return _tell_nothing(first) | _tell_nothing(last) | np.array([*map(_took_less_than_no_time, pairs)], np.bool_)


def _tell_nothing(packets: Sequence[PacketColumns]) -> BoolArray:
    even_steps, standing_turns, early, compared = _core.contradicting_times(
        packets, COUNTED_PACKETS, QUICKEST_TURN_NS, DOUBTED_STEP_NS
    )
    contradict: BoolArray = np.logical_or.reduce(early > IMPOSSIBLE_SHARE * compared)
    return contradict | (even_steps >= FEWEST_COUNTED) | (standing_turns >= FEWEST_COUNTED)


def _took_less_than_no_time(pair: Pair) -> bool:
    """Whether the SYN-ACK came back to the client's capture sooner than the server's capture had it, by more than cards
    stamp late, where both hold the same SYN and SYN-ACK, once each."""
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return False
    for near, far in ((client.flow(direction), server.flow(direction)) for direction in DIRECTIONS):
        if near.initial_sequence_number is None or near.initial_sequence_number != far.initial_sequence_number:
            return False
        if near.syn_count != 1 or far.syn_count != 1:
            return False
    whole_ns, beyond_ns = (side.connection.handshake_syn_ack_ns for side in (client, server))
    return whole_ns is not None and beyond_ns is not None and beyond_ns - whole_ns > DOUBTED_STEP_NS
