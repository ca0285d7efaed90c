"""Packets in common of two captures in NumPy: what the compiled numbers are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.packets import BoolArray, Direction, Int64Array, Mark, PacketColumns, UInt8Array

#: An odd constant with well-spread bits.
_MIXER = np.uint64(0x9E3779B97F4A7C15)

UInt64Array = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Common:
    """Packets that both captures hold: direction, both times (ns), and whether their hop limits agree."""

    direction: UInt8Array
    first_ns: Int64Array
    second_ns: Int64Array
    same_ttl: BoolArray
    comparable: int

    def __len__(self) -> int:
        return len(self.first_ns)


def packets_in_common(one: PacketColumns, two: PacketColumns, shifts: tuple[int, int]) -> Common:
    """Packets of two captures with the same fields, those left out that occur twice in either."""
    stamped = all(np.count_nonzero(p.marks & Mark.HAS_TIMESTAMPS) > len(p) / 2 for p in (one, two))
    numbered = all(np.count_nonzero(p.ip_id) > len(p) / 2 for p in (one, two))
    best = _matched(one, two, _keys(one, stamped, shifts), _keys(two, stamped, (0, 0)))
    if 2 * len(best) < min(len(one), len(two)) and (stamped or numbered):
        other = _matched(one, two, _keys(one, stamped, None), _keys(two, stamped, None))
        best = other if len(other) > len(best) else best
    return best


def uneven(common: Common, resolution: int) -> int:
    """How often the difference of the times changes by more than the resolution."""
    later = (common.second_ns - common.first_ns)[np.argsort(common.first_ns, kind="stable")]
    return int(np.count_nonzero(np.abs(np.diff(later)) > resolution))


def spread_ns(common: Common, odd_share: float) -> tuple[float, float, float] | None:
    """Round trips between the captures without odd ones; None where all packets travel one way."""
    up, down = (common.direction == direction for direction in Direction)
    if not (up.any() and down.any()):
        return None
    sums = _round_trips(common.first_ns, common.second_ns - common.first_ns, up, down)
    low, high = np.quantile(sums, [odd_share, 1 - odd_share])
    return float(low), float(np.median(sums)), float(high)


def resolution_ns(time_ns: Int64Array, coarsest_ns: int) -> int:
    """The power of ten to which all times are rounded, in nanoseconds."""
    unit = 1
    while unit < coarsest_ns and not (time_ns % (10 * unit)).any():
        unit *= 10
    return unit


def _keys(packets: PacketColumns, stamped: bool, shifts: tuple[int, int] | None) -> UInt64Array:
    columns: list[npt.NDArray[np.integer[Any]]] = [
        packets.direction, packets.ip_id, packets.payload_bytes, packets.flags
    ]  # fmt: skip
    if stamped:
        columns += [packets.tsval, packets.tsecr]
    if shifts is not None:
        columns.append(packets.sequence_offset + np.array(shifts, np.int64)[packets.direction])
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
