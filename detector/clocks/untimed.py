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

from detector.pair import Pair, Vantage
from detector.streams.curves import DOUBTED_STEP_NS, NEVER, acknowledgements, first_arrivals
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array, TcpFlag
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
    """Of which pairs a capture counts its packets in place of times, or contradicts itself or the other; one by one."""
    untimed = [any(map(_is_untimed, pair.vantages)) or _took_less_than_no_time(pair) for pair in pairs]
    return np.array(untimed, np.bool_)


def _is_untimed(vantage: Vantage) -> bool:
    return (
        _is_counted(vantage)
        or _stands_still(vantage)
        or any(_has_syn_behind_acks(vantage, direction) for direction in DIRECTIONS)
        or any(_has_bytes_behind_acks(vantage, direction) for direction in DIRECTIONS)
    )


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


def _is_counted(vantage: Vantage) -> bool:
    steps_ns = np.diff(vantage.packets.time_ns[:COUNTED_PACKETS])
    return len(steps_ns) >= FEWEST_COUNTED and bool(np.ptp(steps_ns) == 0)


def _stands_still(vantage: Vantage) -> bool:
    """Whether packets of many turns (one direction, then the other) have one time or small equal steps between, while
    the clock ticks more finely elsewhere."""
    packets = vantage.packets
    steps_ns = np.diff(packets.time_ns[:COUNTED_PACKETS])
    turns = np.diff(packets.direction[:COUNTED_PACKETS]) != 0
    is_equal = np.abs(steps_ns) <= QUICKEST_TURN_NS
    is_equal[1:] &= steps_ns[1:] == steps_ns[:-1]
    counted = np.cumsum(turns & is_equal)
    before = np.maximum.accumulate(np.where(is_equal, 0, counted))
    return bool((counted - before).max(initial=0) >= FEWEST_COUNTED) and not _ticks_coarsely(steps_ns)


def _ticks_coarsely(steps_ns: Int64Array) -> bool:
    """Whether all steps are whole ticks, each longer than a turn."""
    taken_ns = steps_ns[steps_ns > QUICKEST_TURN_NS]
    if len(taken_ns) < np.count_nonzero(steps_ns > 0) or not len(taken_ns):
        return False
    over_ns = taken_ns % taken_ns.min()
    return bool((np.minimum(over_ns, taken_ns.min() - over_ns) <= QUICKEST_TURN_NS).all())


def _has_syn_behind_acks(vantage: Vantage, direction: Direction) -> bool:
    """Whether acknowledgements of `direction`, or those that acknowledge its SYN alone, come before the SYN, as the
    capture holds both: of a sender without data nothing else stands before them, and of two clocks that differ by less
    than data take to be acknowledged nothing else shows it."""
    packets = vantage.packets
    is_syn, is_ack = ((packets.flags & np.uint16(flag)) > 0 for flag in (TcpFlag.SYN, TcpFlag.ACK))
    syn_ns = packets.time_ns[is_syn & (packets.direction == direction)]
    is_ack &= packets.direction == direction.reverse
    if not len(syn_ns) or not is_ack.any():
        return False
    is_early = syn_ns.min() - packets.time_ns[is_ack] > DOUBTED_STEP_NS
    return _are_many(is_early) or _are_many(is_early[packets.acknowledgement_offset[is_ack] == 0])


def _has_bytes_behind_acks(vantage: Vantage, direction: Direction) -> bool:
    """Whether acknowledgements of the bytes of `direction` come before these bytes, as the capture holds both."""
    acks = vantage.derived(acknowledgements, direction)
    captured_ns = vantage.derived(first_arrivals, direction).at(acks.value - 1)
    is_held = captured_ns != NEVER
    return _are_many(captured_ns[is_held] - acks.time_ns[is_held] > DOUBTED_STEP_NS)


def _are_many(early: BoolArray) -> bool:
    """Whether more acknowledgements are early than losses and cards explain."""
    return bool(np.count_nonzero(early) > IMPOSSIBLE_SHARE * len(early))
