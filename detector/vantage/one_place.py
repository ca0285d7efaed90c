"""Whether two captures of a connection were taken at one place: a capture and a copy of it, or two tools on one wire.

Packets that both captures hold pass from one place to the other. With theta the second clock minus the first's, a
packet up is dated theta + a later by the second capture and a packet down theta - b later, where a and b are the delays
between the places. The difference of the two, a + b, is the round trip between the captures; no clock enters it, and
drift does not either where the two packets are close in time. Two places have a + b > 0 at every packet, since nothing
travels back in time. At one place it is zero except for the rounding of timestamps. Where it cannot be distinguished
from zero, no machine that could split a connection has room between the captures: they are one vantage point, and that
they agree is no evidence about the path. A router between them would have lowered the hop limits (RFC 791, RFC 8200),
so these agree as well.

Where the packets in common all travel one way, their time differences must be constant but for rounding, which the
delays of no real path are.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.pair import Pair, Vantage
from detector.streams.sides import Sides
from pepscope import _core
from pepscope.captures.connections import Connection
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction
from pepscope.results.evidence.columns import BoolArray

#: Time stamps are rounded to at least this by common formats and tools (pcap in microseconds).
FORMAT_RESOLUTION_NS = 1_000

#: Coarsest resolution looked for: 1 s, in which no capture tool writes any more coarsely.
COARSEST_NS = 1_000_000_000

#: Share of packets in common that may be out of order, stepped over by a clock or mistaken for one another.
ODD_SHARE = 0.1

#: Share of the distinguishable packets that captures of one place have in common. A relay that keeps addresses
#: and runs on the sender's machine may make some packets alike by chance.
COMMON_SHARE = 0.5

#: Packets in common all travelling one way that must have one time difference: two may by chance.
FEWEST_ONE_WAY = 8


class OnePlace(Struct, frozen=True):
    """Two captures that are one vantage point: packets in common, and the round trip between the captures.

    `round_trip_ns` is None where the packets all travel one way; `resolution_ns` is what their times are rounded to.
    """

    common: int
    round_trip_ns: float | None
    resolution_ns: int


def one_place(pair: Pair) -> OnePlace | None:
    """What shows that both captures of `pair` were taken at one place; None where nothing does."""
    one, two = pair.client_side, pair.server_side
    if one is None or two is None or not _may_be(one.connection, two.connection):
        return None
    if not _core.may_share_packets(one.packets, two.packets):
        return None
    common = packets_in_common(pair, one, two)
    if common.count < max(1.0, COMMON_SHARE * common.comparable):
        return None
    if common.other_hop_limits > ODD_SHARE * common.count:
        return None
    resolution = common.resolution_ns
    if common.round_trips_ns is None:
        rigid = common.count >= FEWEST_ONE_WAY and common.uneven <= ODD_SHARE * (common.count - 1)
        return OnePlace(common.count, None, resolution) if rigid else None
    low, middle, high = common.round_trips_ns
    return OnePlace(common.count, middle, resolution) if low <= resolution and high >= -resolution else None


def packets_in_common(pair: Pair, one: Vantage, two: Vantage) -> _core.CommonPackets:
    """Packets of two captures with the same fields, those left out that occur twice in either.

    Where stream offsets leave less than half in common, IP ID and TCP timestamps distinguish packets without them:
    offsets are guessed where a SYN is missing.
    """
    up, down = (pair.alignment[direction].shift_bytes for direction in Direction)
    return _core.common_packets(one.packets, two.packets, (up, down), FORMAT_RESOLUTION_NS, COARSEST_NS, ODD_SHARE)


def may_be_one_place(sides: Sides) -> BoolArray:
    """Of which connections the summaries allow that both captures were taken at one place."""
    allowed = np.ones(len(sides), np.bool_)
    for direction in DIRECTIONS:
        ttl = [side.of_flow(direction, "ttl") for side in (sides.client, sides.server)]
        packets = [side.of_flow(direction, "packets") for side in (sides.client, sides.server)]
        allowed &= (ttl[0] == ttl[1]) | (packets[0] == 0) | (packets[1] == 0)
    return allowed


def _may_be(one: Connection, two: Connection) -> bool:
    """Whether the summaries allow it; looking at packets costs more."""
    flows = ((one.up, two.up), (one.down, two.down))
    return all(first.ttl == second.ttl or not (first.packets and second.packets) for first, second in flows)
