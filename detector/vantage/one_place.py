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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from detector.pair import Pair
from pepscope.captures.packets import Direction, Int64Array, Mark, PacketColumns, UInt8Array

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

#: An odd constant with well-spread bits (2^64 over the golden ratio, as in Knuth's multiplicative hashing).
_MIXER = np.uint64(0x9E3779B97F4A7C15)

UInt64Array = npt.NDArray[np.uint64]
IntegerArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Common:
    """Packets that both captures hold: direction, both times (ns), and whether their hop limits agree.

    `comparable` is how many packets of the capture that has fewer could have been found in the other.
    """

    direction: UInt8Array
    first_ns: Int64Array
    second_ns: Int64Array
    same_ttl: BoolArray
    comparable: int

    def __len__(self) -> int:
        return len(self.first_ns)


@dataclass(frozen=True, slots=True)
class OnePlace:
    """Two captures that are one vantage point: packets in common, and the round trip between the captures.

    `round_trip_ns` is None where the packets all travel one way; `resolution_ns` is what their times are rounded to.
    """

    common: int
    round_trip_ns: float | None
    resolution_ns: int


def one_place(pair: Pair) -> OnePlace | None:
    """What shows that both captures of `pair` were taken at one place; None where nothing does."""
    one, two = pair.client_side, pair.server_side
    if one is None or two is None or not _may_be(pair):
        return None
    shifts = {direction: pair.alignment[direction].shift_bytes for direction in Direction}
    common = packets_in_common(one.packets, two.packets, shifts)
    if len(common) < max(1.0, COMMON_SHARE * common.comparable):
        return None
    if np.count_nonzero(~common.same_ttl) > ODD_SHARE * len(common):
        return None
    resolution = max(resolution_ns(one.packets.time_ns), resolution_ns(two.packets.time_ns), FORMAT_RESOLUTION_NS)
    later = common.second_ns - common.first_ns
    up, down = (common.direction == direction for direction in Direction)
    if not (up.any() and down.any()):
        steps = np.abs(np.diff(later[np.argsort(common.first_ns, kind="stable")]))
        rigid = len(steps) + 1 >= FEWEST_ONE_WAY and np.count_nonzero(steps > resolution) <= ODD_SHARE * len(steps)
        return OnePlace(len(common), None, resolution) if rigid else None
    sums = _round_trips(common.first_ns, later, up, down)
    low, high = np.quantile(sums, [ODD_SHARE, 1 - ODD_SHARE])
    if low <= resolution and high >= -resolution:
        return OnePlace(len(common), float(np.median(sums)), resolution)
    return None


def packets_in_common(one: PacketColumns, two: PacketColumns, shifts: dict[Direction, int]) -> Common:
    """Packets of two captures with the same fields, those left out that occur twice in either.

    `shifts` is what to add to the first's stream offsets to get the second's. Where that leaves less than half in
    common, IP ID and TCP timestamps distinguish packets without them: offsets are guessed where a SYN is missing.
    """
    stamped = all(np.count_nonzero(p.marks & Mark.HAS_TIMESTAMPS) > len(p) / 2 for p in (one, two))
    numbered = all(np.count_nonzero(p.ip_id) > len(p) / 2 for p in (one, two))
    best = _matched(one, two, _keys(one, stamped, shifts), _keys(two, stamped, dict.fromkeys(Direction, 0)))
    if 2 * len(best) < min(len(one), len(two)) and (stamped or numbered):
        other = _matched(one, two, _keys(one, stamped, None), _keys(two, stamped, None))
        best = other if len(other) > len(best) else best
    return best


def resolution_ns(time_ns: Int64Array) -> int:
    """The power of ten to which all times are rounded, in nanoseconds."""
    unit = 1
    while unit < COARSEST_NS and not (time_ns % (10 * unit)).any():
        unit *= 10
    return unit


def _may_be(pair: Pair) -> bool:
    """Whether the summaries allow it; looking at packets costs more."""
    connections = [vantage.connection for vantage in pair.vantages]
    return all(
        len({(flow.ttl) for flow in flows if flow.packets}) <= 1
        for flows in ([c.up for c in connections], [c.down for c in connections])
    )


def _keys(packets: PacketColumns, stamped: bool, shifts: dict[Direction, int] | None) -> UInt64Array:
    """One number a packet, mixed from the fields that no router changes."""
    columns: list[IntegerArray] = [packets.direction, packets.ip_id, packets.payload_bytes, packets.flags]
    if stamped:
        columns += [packets.tsval, packets.tsecr]
    if shifts is not None:
        shift = np.array([shifts[direction] for direction in Direction], np.int64)[packets.direction]
        columns.append(packets.sequence_offset + shift)
    keys = np.zeros(len(packets), np.uint64)
    for column in columns:
        keys = (keys ^ column.astype(np.int64).view(np.uint64)) * _MIXER
        keys ^= keys >> np.uint64(29)
    return keys


def _matched(one: PacketColumns, two: PacketColumns, one_keys: UInt64Array, two_keys: UInt64Array) -> Common:
    _, codes = np.unique(np.concatenate([one_keys, two_keys]), return_inverse=True)
    left, right = codes[: len(one)], codes[len(one) :]
    kinds = int(codes.max(initial=-1)) + 1
    once = (np.bincount(left, minlength=kinds) == 1) & (np.bincount(right, minlength=kinds) == 1)
    places = np.full((2, kinds), -1, np.int64)
    places[0, left], places[1, right] = np.arange(len(one)), np.arange(len(two))
    i, j = places[0, once], places[1, once]
    order = np.argsort(one.time_ns[i], kind="stable")
    i, j = i[order], j[order]
    comparable = min(np.count_nonzero(np.bincount(side, minlength=kinds) == 1) for side in (left, right))
    return Common(one.direction[i], one.time_ns[i], two.time_ns[j], one.ttl[i] == two.ttl[j], int(comparable))


def _round_trips(time_ns: Int64Array, later_ns: Int64Array, up: BoolArray, down: BoolArray) -> Int64Array:
    """Difference between each packet's lateness up and that of the nearest packet down, of the fewer of the two."""
    few, many = (up, down) if np.count_nonzero(up) <= np.count_nonzero(down) else (down, up)
    times = time_ns[many]
    after = np.searchsorted(times, time_ns[few]).clip(0, len(times) - 1)
    before = (after - 1).clip(0)
    nearer = np.where(np.abs(times[before] - time_ns[few]) < np.abs(times[after] - time_ns[few]), before, after)
    sums: Int64Array = (later_ns[few] - later_ns[many][nearer]) * (1 if few is up else -1)
    return sums
