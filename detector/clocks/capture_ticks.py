"""How finely the clocks of captures tick, by the times of their packets.

A time that is cut to a tick is early by less than one. So data and acknowledgements of an end-to-end connection
contradict each other by less than a tick of the sender's capture and one of the receiver's, and a contradiction within
both is none. Some captures have no times at all: simple packet blocks of pcapng carry none, and tools that make a
capture of text count its packets instead. Their steps are all equal, which no clock's are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.pair import Pair, Vantage
from detector.streams.known import are_known
from pepscope import _core
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: Share of equal successive timestamps from which a capture's clock is taken to tick coarsely.
TICKING_SHARE = 0.05

#: So many packets show whether it does.
TICKING_PACKETS = 100_000

#: Steps of equal length, none or some, that a clock does not make by chance: packets come at no such beat from their
#: handshake on.
FEWEST_COUNTED = 8


def ticks_s(pairs: Sequence[Pair]) -> FloatArray:
    """The ticks of both captures of each pair together, 0 for a clock that ticks finely; infinite where all packets of
    one have the same time."""
    ticks = np.zeros(len(pairs))
    for side in (0, -1):
        packets = [pair.vantages[side].packets for pair in pairs]
        steps, equal, least_ns = _core.timestamp_steps(packets, TICKING_PACKETS)
        has_none = (steps >= FEWEST_COUNTED) & (equal == steps)
        is_coarse = are_known(least_ns) & (equal / np.maximum(steps, 1) >= TICKING_SHARE)
        ticks += np.select([has_none, is_coarse], [np.inf, least_ns / 1e9], 0.0)
    return ticks


def are_counted(pairs: Sequence[Pair]) -> BoolArray:
    """Of which pairs a capture counts its packets in place of times, one by one: for pairs that times accuse."""
    return np.array([any(map(_is_counted, pair.vantages)) for pair in pairs], np.bool_)


def ticks_of_accused_s(pairs: Sequence[Pair]) -> FloatArray:
    """The ticks of pairs that times accuse; infinite also where they are counted."""
    return np.where(are_counted(pairs), np.inf, ticks_s(pairs))


def _is_counted(vantage: Vantage) -> bool:
    steps_ns = np.diff(vantage.packets.time_ns[:TICKING_PACKETS])
    return len(steps_ns) >= FEWEST_COUNTED and bool(np.ptp(steps_ns) == 0)
