"""How finely the clocks of captures tick, by the times of their packets.

A time that is cut to a tick is early by less than one. So data and acknowledgements of an end-to-end connection
contradict each other by less than a tick of the sender's capture and one of the receiver's, and a contradiction within
both is none. Of some captures the times tell nothing at all (`detector.clocks.untimed`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.clocks.untimed import FEWEST_COUNTED, are_untimed
from detector.pair import Pair
from detector.streams.known import are_known
from pepscope import _core
from pepscope.captures.packets import PacketColumns
from pepscope.results.verdicts import FloatArray

#: Share of equal successive timestamps from which a capture's clock is taken to tick coarsely.
TICKING_SHARE = 0.05

#: So many packets show whether it does.
TICKING_PACKETS = 100_000


def ticks_s(pairs: Sequence[Pair]) -> FloatArray:
    """The ticks of both captures of each pair together, 0 for a clock that ticks finely; infinite where all packets of
    one have the same time."""
    vantages = [pair.vantages for pair in pairs]
    return ticks_of_sides_s(*([each[side].packets for each in vantages] for side in (0, -1)))


def ticks_of_sides_s(*sides: Sequence[PacketColumns]) -> FloatArray:
    """The ticks of captures together, each of which shows so many connections."""
    ticks = np.zeros(len(sides[0]))
    for packets in sides:
        steps, equal, least_ns = _core.timestamp_steps(packets, TICKING_PACKETS)
        has_none = (steps >= FEWEST_COUNTED) & (equal == steps)
        is_coarse = are_known(least_ns) & (equal / np.maximum(steps, 1) >= TICKING_SHARE)
        ticks += np.select([has_none, is_coarse], [np.inf, least_ns / 1e9], 0.0)
    return ticks


def ticks_of_accused_s(pairs: Sequence[Pair]) -> FloatArray:
    """The ticks of pairs that times accuse; infinite also where the times of one tell nothing."""
    return np.where(are_untimed(pairs), np.inf, ticks_s(pairs))
