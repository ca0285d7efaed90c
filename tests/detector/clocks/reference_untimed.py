"""`pepscope._core.contradicting_times` in NumPy: what the compiled one is compared with."""

from __future__ import annotations

import numpy as np

from detector.streams.curves import NEVER, acknowledgements, first_arrivals
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, TcpFlag


def even_steps(packets: PacketColumns, most: int) -> int:
    """Steps between the first times, 0 where they are not all equal."""
    steps_ns = np.diff(packets.time_ns[:most])
    return len(steps_ns) if len(steps_ns) and np.ptp(steps_ns) == 0 else 0


def standing_turns(packets: PacketColumns, most: int, quickest_ns: int) -> int:
    """The most turns in a row without more than `quickest_ns` between, at one step, unless the clock ticks coarsely."""
    steps_ns, turns = np.diff(packets.time_ns[:most]), np.diff(packets.direction[:most]) != 0
    is_equal = np.abs(steps_ns) <= quickest_ns
    is_equal[1:] &= steps_ns[1:] == steps_ns[:-1]
    counted = np.cumsum(turns & is_equal)
    before = np.maximum.accumulate(np.where(is_equal, 0, counted))
    return 0 if _ticks_coarsely(steps_ns, quickest_ns) else int((counted - before).max(initial=0))


def _ticks_coarsely(steps_ns: Int64Array, quickest_ns: int) -> bool:
    taken_ns = steps_ns[steps_ns > 0]
    if not len(taken_ns) or taken_ns.min() <= quickest_ns:
        return False
    over_ns = taken_ns % taken_ns.min()
    return bool((np.minimum(over_ns, taken_ns.min() - over_ns) <= quickest_ns).all())


def acks_before_syn(
    packets: PacketColumns, direction: Direction, least_ns: int, *, of_syn_alone: bool
) -> tuple[int, int]:
    """Acknowledgements before the SYN of `direction`, and all of them, or of those that acknowledge it alone."""
    is_syn, is_ack = ((packets.flags & np.uint16(flag)) > 0 for flag in (TcpFlag.SYN, TcpFlag.ACK))
    syn_ns = packets.time_ns[is_syn & (packets.direction == direction)]
    is_counted = is_ack & (packets.direction == direction.reverse)
    if of_syn_alone:
        is_counted &= packets.acknowledgement_offset == 0
    acks_ns = packets.time_ns[is_counted]
    return (int((syn_ns.min() - acks_ns > least_ns).sum()), len(acks_ns)) if len(syn_ns) else (0, 0)


def acks_before_bytes(packets: PacketColumns, direction: Direction, least_ns: int) -> tuple[int, int]:
    """Acknowledgements before the captured bytes that they acknowledge, and all of such bytes."""
    acks = acknowledgements(packets, direction)
    captured_ns = first_arrivals(packets, direction).at(acks.value - 1)
    is_held = captured_ns != NEVER
    early = captured_ns[is_held] - acks.time_ns[is_held] > least_ns
    return int(early.sum()), int(is_held.sum())
