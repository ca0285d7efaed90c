"""Captures whose times tell nothing of when acknowledgements came, of pairs that times accuse.

Some have no times: simple packet blocks of pcapng carry none, and tools that make a capture of text count its packets
instead. Their steps are all equal, which no clock's are. Others have times that contradict each other. An
acknowledgement passes a capture after the SYN or the bytes that it acknowledges: neither the receiver nor a middlebox,
on either side of the capture, acknowledges what has not passed it. Where a capture shows many acknowledgements before
what they acknowledge, two clocks timed its directions (a tap with a card for each), or its file has one direction
behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Pair, Vantage
from detector.streams.curves import DOUBTED_STEP_NS, NEVER, acknowledgements, first_arrivals
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.evidence.columns import BoolArray

#: So many packets show whether they are counted.
COUNTED_PACKETS = 100_000

#: Steps of equal length, none or some, that a clock does not make by chance: packets come at no such beat from their
#: handshake on.
FEWEST_COUNTED = 8

#: Share of one direction's acknowledgements that may come before what they acknowledge: a capture that lost the first
#: copies, or cards that stamp late, put single ones there. Recorded captures and changes of them (1,915 connections at
#: one end) have none, captures with two clocks nearly all.
IMPOSSIBLE_SHARE = 0.25


def are_untimed(pairs: Sequence[Pair]) -> BoolArray:
    """Of which pairs a capture counts its packets in place of times, or contradicts itself; one by one."""
    return np.array([any(map(_is_untimed, pair.vantages)) for pair in pairs], np.bool_)


def _is_untimed(vantage: Vantage) -> bool:
    return (
        _is_counted(vantage)
        or any(_has_syn_behind_acks(vantage, direction) for direction in DIRECTIONS)
        or any(_has_bytes_behind_acks(vantage, direction) for direction in DIRECTIONS)
    )


def _is_counted(vantage: Vantage) -> bool:
    steps_ns = np.diff(vantage.packets.time_ns[:COUNTED_PACKETS])
    return len(steps_ns) >= FEWEST_COUNTED and bool(np.ptp(steps_ns) == 0)


def _has_syn_behind_acks(vantage: Vantage, direction: Direction) -> bool:
    """Whether acknowledgements of `direction` come before its SYN, as the capture holds both: of a sender without data
    nothing else stands before them."""
    packets = vantage.packets
    is_syn, is_ack = ((packets.flags & np.uint16(flag)) > 0 for flag in (TcpFlag.SYN, TcpFlag.ACK))
    syn_ns = packets.time_ns[is_syn & (packets.direction == direction)]
    acks_ns = packets.time_ns[is_ack & (packets.direction == direction.reverse)]
    return len(syn_ns) > 0 and _are_many(syn_ns.min() - acks_ns > DOUBTED_STEP_NS)


def _has_bytes_behind_acks(vantage: Vantage, direction: Direction) -> bool:
    """Whether acknowledgements of the bytes of `direction` come before these bytes, as the capture holds both."""
    acks = vantage.derived(acknowledgements, direction)
    captured_ns = vantage.derived(first_arrivals, direction).at(acks.value - 1)
    is_held = captured_ns != NEVER
    return _are_many(captured_ns[is_held] - acks.time_ns[is_held] > DOUBTED_STEP_NS)


def _are_many(early: BoolArray) -> bool:
    """Whether more acknowledgements are early than losses and cards explain."""
    return bool(np.count_nonzero(early) > IMPOSSIBLE_SHARE * len(early))
