"""Who may have shut the receive windows that a sender saw shut, in NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from detector.streams.shut_windows import ShutBy
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, TcpFlag


class Side(NamedTuple):
    """Packets of a capture, and the power of two by which it scales the windows in question."""

    packets: PacketColumns
    window_shift: int | None


class Offers(NamedTuple):
    """Rows of packets of a capture, what they acknowledge, and the windows (bytes) that they advertise."""

    rows: Int64Array
    acknowledged: Int64Array
    windows: Int64Array

    def at(self, which: npt.NDArray[Any]) -> Offers:
        """Some of them."""
        return Offers(self.rows[which], self.acknowledged[which], self.windows[which])


def shut_by(sender: Side, receiver: Side, advertising: Direction, shift: int, shut_share: float) -> ShutBy:
    """Who may have shut the windows that packets in the `advertising` direction show the sender."""
    offers = _offers(sender.packets, advertising)
    shut = offers.at(offers.windows <= shut_share * np.maximum.accumulate(offers.windows))
    if _may_be_receivers(shut, sender, receiver, advertising, shift):
        return ShutBy.PERHAPS_RECEIVER
    if _are_in_receivers_packets(shut, sender, receiver, advertising, shift):
        return ShutBy.ON_RECEIVERS_PACKETS
    return ShutBy.ANOTHER_HOST


def _may_be_receivers(shut: Offers, sender: Side, receiver: Side, advertising: Direction, shift: int) -> bool:
    own = _offers(receiver.packets, advertising)
    own = own.at(np.argsort(own.acknowledged, kind="stable"))
    acknowledged = own.acknowledged + shift
    before = np.searchsorted(acknowledged, shut.acknowledged) - 1
    shifts = [side.window_shift for side in (receiver, sender)]
    power = next((each for each in shifts if each is not None), None)
    if power is None:
        within = (before >= 0) & (before < len(acknowledged) - 1)
        return not bool(within.any())
    own_bytes, shut_bytes = (
        offers.windows << (power if known is None else 0) for offers, known in zip((own, shut), shifts, strict=True)
    )
    offered = np.maximum.accumulate(acknowledged + own_bytes) - (1 << power)
    ends = shut.acknowledged + shut_bytes
    known = before >= 0
    return not bool((ends[known] <= offered[before[known]]).any())


def _are_in_receivers_packets(shut: Offers, sender: Side, receiver: Side, advertising: Direction, shift: int) -> bool:
    arrived = _fields(sender.packets, shut.rows, 0)
    back = np.flatnonzero(receiver.packets.direction == advertising)
    emitted = {*map(tuple, _fields(receiver.packets, back, shift).tolist())}
    own = np.array([each[0] != 0 and tuple(each) in emitted for each in arrived.tolist()], np.bool_)
    if not own.any():
        return False
    held = _offers(receiver.packets, advertising).acknowledged + shift
    places = np.intersect1d(shut.acknowledged, held)
    return 2 * len(np.unique(shut.acknowledged[own])) >= len(places)


def _fields(packets: PacketColumns, rows: Int64Array, shift: int) -> Int64Array:
    others = (packets.tsval, packets.tsecr, packets.payload_bytes)
    ip_id, acknowledged = packets.ip_id[rows].astype(np.int64), packets.acknowledgement_offset[rows] + shift
    return np.stack([ip_id, acknowledged, *(column[rows].astype(np.int64) for column in others)], axis=1)


def _offers(packets: PacketColumns, advertising: Direction) -> Offers:
    looked_at = np.uint16(TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST | TcpFlag.ACK)
    rows = np.flatnonzero((packets.direction == advertising) & ((packets.flags & looked_at) == TcpFlag.ACK))
    return Offers(rows, packets.acknowledgement_offset[rows], packets.window_bytes[rows].astype(np.int64))
