"""Receive windows that the sender saw shut: whether the receiver or a middlebox on the way may have shut them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from detector.pair import Pair, Vantage
from detector.streams.receivers_own import are_receivers_own
from detector.streams.window_course import SHUT_SHARE
from pepscope.captures.packets import Direction, Int64Array, TcpFlag


class Offers(NamedTuple):
    """Rows of packets of a capture, what they acknowledge, and the windows (bytes) that they advertise."""

    rows: Int64Array
    acknowledged: Int64Array
    windows: Int64Array

    def at(self, which: npt.NDArray[Any]) -> Offers:
        """Some of them."""
        return Offers(self.rows[which], self.acknowledged[which], self.windows[which])


def shut_windows(vantage: Vantage, direction: Direction) -> Offers:
    """Those that are shut, of the windows that packets in `direction` advertise."""
    offers = _offers(vantage, direction)
    return offers.at(offers.windows <= SHUT_SHARE * np.maximum.accumulate(offers.windows))


def may_be_receivers(pair: Pair, direction: Direction, shut: Offers, sender: Vantage, receiver: Vantage) -> bool:
    """Whether the receiver may have shut the window in acknowledgements that its own capture lacks: those before the
    first that it holds, behind the last, or, of those that a filter takes away, between.

    It may not shrink the window (RFC 9293, section 3.8.6): what it once offered to take, in bytes of the stream, stays
    offered, but for what its scale rounds down (RFC 7323, section 2.4). Where every shut window that the sender saw
    ends at or beyond all that the receiver had offered by then, the receiver may have sent it; where one ends before,
    only another host can have. Where neither capture knows the scale, windows are no bytes.
    """
    own = _offers(receiver, direction.reverse)
    own = own.at(np.argsort(own.acknowledged, kind="stable"))
    acknowledged = own.acknowledged + pair.receiver_shift(direction)
    # Of the same bytes it may have opened the window later.
    before = np.searchsorted(acknowledged, shut.acknowledged) - 1
    shifts = [vantage.flow(direction.reverse).window_shift for vantage in (receiver, sender)]
    # If the receiver's own windows reach the sender, one scale is that of both.
    shift = next((each for each in shifts if each is not None), None)
    if shift is None:
        within = (before >= 0) & (before < len(acknowledged) - 1)
        return not bool(within.any())
    own_bytes, shut_bytes = (
        offers.windows << (shift if known is None else 0) for offers, known in zip((own, shut), shifts, strict=True)
    )
    offered = np.maximum.accumulate(acknowledged + own_bytes) - (1 << shift)
    ends = shut.acknowledged + shut_bytes
    known = before >= 0
    return not bool((ends[known] <= offered[before[known]]).any())


def are_in_receivers_packets(pair: Pair, direction: Direction, shut: Offers, receiver: Vantage) -> bool:
    """Whether these windows came in the receiver's own packets: at half or more of the places in the stream that its
    capture holds acknowledged, too (a filter may take most of its acknowledgements away)."""
    own = are_receivers_own(pair, direction, shut.rows)
    if not own.any():
        return False
    held = _offers(receiver, direction.reverse).acknowledged + pair.receiver_shift(direction)
    places = np.intersect1d(shut.acknowledged, held)
    return 2 * len(np.unique(shut.acknowledged[own])) >= len(places)


def _offers(vantage: Vantage, direction: Direction) -> Offers:
    packets = vantage.packets
    looked_at = TcpFlag.SYN | TcpFlag.FIN | TcpFlag.RST | TcpFlag.ACK
    rows = np.flatnonzero((packets.direction == direction) & ((packets.flags & looked_at) == TcpFlag.ACK))
    return Offers(rows, packets.acknowledgement_offset[rows], packets.window_bytes[rows].astype(np.int64))
