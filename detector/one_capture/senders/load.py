"""How data respond to load: whether what a sender keeps in flight waits on the path, or in front of a shut window.

End to end a transfer that fills the slowest link queues there: round trips grow with the bytes in flight by queue /
rate, until loss or the congestion control ends it. Behind a split the near leg is not the slowest: its round trips
stay, and the split point's buffer fills instead until its window shuts, opens, shuts (RFC 3135, section 3.1).
Spearman's correlation of round trip and flight and the growth from idle to loaded tell the first, windows that shut the
second.

Little's law gives the growth a scale: on a link that is full, flight = rate * round trip, so both grow by one factor,
and the *elasticity* ln(round trips' ratio) / ln(flights' ratio) is 1; where nothing queues it is 0.

Harmless alternatives, which these numbers cannot tell from a split by themselves: a slow reader shuts windows on any
path; a link without a queue worth the name, or a congestion control that leaves it empty (BBR, Vegas), keeps round
trips flat; a window that is small from the beginning bounds the flight. A split point with a deep buffer that the
transfer does not fill shuts nothing, and one with a slow near leg grows round trips as well. Only long transfers
towards the far host count: at the receiver's end of a capture, round trips are its own.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.one_capture.members import Floats, Ints, quantiles, seconds
from pepscope.captures.direction import Direction
from pepscope.captures.senders import LoadResponses

#: Round trips that tell something of load: the quarters that are compared then have four each.
FEWEST_SAMPLES = 16

#: Below this ratio of flights their logarithm is too small to divide by.
_FLIGHT_RATIO = 2.0


class MemberLoad(Struct, frozen=True):
    """One element a member; NaN without a transfer that counts. Medians are over such transfers."""

    transfers: Ints  # with `FEWEST_SAMPLES`
    growth_s: Floats  # median of the loaded less the idle round trip
    flight_ratio: Floats  # median of the loaded over the idle flight: how much load there was to respond to
    elasticity: Floats  # median, of transfers whose flight at least doubled: 1 on a full link, 0 where nothing queues
    rank_correlation: Floats  # median
    times_shut: Ints  # of windows, sum over all connections
    shut_s: Floats  # sum


def member_load(load: LoadResponses, near: Direction, member: Ints, members: int) -> MemberLoad:
    """The response of data that the near end sends to each member; `near` is the direction that it sends in."""
    rows = slice(int(near), None, 2)
    counts = (load.samples[rows] >= FEWEST_SAMPLES) & (member >= 0)
    transfer = np.where(counts, member, -1)
    idle_s, loaded_s = seconds(load.idle_ns[rows]), seconds(load.loaded_ns[rows])
    flight_ratio = load.loaded_flight_bytes[rows] / np.maximum(load.idle_flight_bytes[rows], 1)
    some = member >= 0

    def median(values: Floats) -> Floats:
        return quantiles(values, transfer, members, 0.5)

    ratio = np.divide(loaded_s, idle_s, out=np.full(len(idle_s), np.nan), where=idle_s > 0)
    doubled = flight_ratio >= _FLIGHT_RATIO
    elasticity = np.log(ratio) / np.log(np.where(doubled, flight_ratio, np.nan))
    return MemberLoad(
        transfers=np.bincount(transfer[counts], minlength=members),
        growth_s=median(loaded_s - idle_s),
        flight_ratio=median(flight_ratio),
        elasticity=median(elasticity),
        rank_correlation=median(load.rank_correlation[rows]),
        times_shut=np.bincount(member[some], weights=load.times_shut[rows][some], minlength=members).astype(np.int64),
        shut_s=np.bincount(member[some], weights=load.shut_ns[rows][some] / 1e9, minlength=members).astype(np.float64),
    )
