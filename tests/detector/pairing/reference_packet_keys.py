"""Keys of packets in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Int64Array, Mark, PacketColumns, TcpFlag

UInt64Array = npt.NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)


class KeyFields(NamedTuple):
    """What keys are made of."""

    stamps: bool
    ip_id: bool
    places: bool


def packet_keys(packets: PacketColumns, form: KeyFields, most: int) -> tuple[UInt64Array, Int64Array]:
    """The connection's least keys, ascending and each once, and the directions of their packets.

    SYN and RST are left out: middleboxes answer with their own.
    """
    wanted = (packets.flags & np.uint16(TcpFlag.SYN | TcpFlag.RST)) == 0
    wanted &= packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT
    if form.stamps:
        wanted &= packets.marked(Mark.HAS_TIMESTAMPS)
    values, directions = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for direction in Direction:
        at = np.flatnonzero(wanted & packets.going(direction))
        if form.ip_id and (len(at) < 2 or (packets.ip_id[at] == packets.ip_id[at[0]]).all()):
            continue  # a constant IP ID identifies no packet (RFC 6864 allows it for packets that are never fragmented)
        value = _keys(packets, at, form)
        values.append(value)
        directions.append(np.full(len(value), direction, np.int64))
    value, place = np.unique(np.concatenate(values), return_index=True)
    return value[:most], np.concatenate(directions)[place[:most]]


def _keys(packets: PacketColumns, at: Int64Array, form: KeyFields) -> UInt64Array:
    """Keys of these packets of one direction."""
    if form.stamps:
        fields = [packets.tsval[at], packets.tsecr[at], packets.payload_bytes[at]]
        return _hashed([*fields, packets.ip_id[at]] if form.ip_id else fields)
    if form.places:
        places = [packets.sequence_offset[at], packets.acknowledgement_offset[at]]
        return _hashed([packets.ip_id[at], packets.payload_bytes[at], *places])
    known = at[packets.payload_hash[at] != 0]
    here, following = known[:-1], known[1:]
    return _hashed([
        column[which]
        for column in (packets.ip_id, packets.payload_bytes, packets.payload_hash)
        for which in (here, following)
    ])  # fmt: skip


def _hashed(fields: Sequence[npt.NDArray[np.generic]]) -> UInt64Array:
    value = np.zeros(len(fields[0]), np.uint64)
    with np.errstate(over="ignore"):
        for field in fields:
            value = (value ^ field.astype(np.int64).view(np.uint64)) * _MIX
            value ^= value >> np.uint64(29)
    return value
