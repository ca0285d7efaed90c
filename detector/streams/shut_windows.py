"""Receive windows that the sender saw shut: whether the receiver or a middlebox on the way may have shut them."""

from __future__ import annotations

from enum import IntEnum

from detector.pair import Pair, Vantage
from detector.streams.window_course import SHUT_SHARE
from pepscope import _core
from pepscope.captures.packets import Direction


class ShutBy(IntEnum):
    """Who may have shut them, as the core numbers it.

    The receiver may have, in acknowledgements that its own capture lacks: those before the first that it holds, behind
    the last, or, of those that a filter takes away, between.

    It may not shrink the window (RFC 9293, section 3.8.6): what it once offered to take, in bytes of the stream, stays
    offered, but for what its scale rounds down (RFC 7323, section 2.4). Where every shut window that the sender saw
    ends at or beyond all that the receiver had offered by then, the receiver may have sent it; where one ends before,
    only another host can have. Where neither capture knows the scale, windows are no bytes.

    A middlebox shuts windows in the receiver's own packets where these are known by IP ID, timestamps and length at
    half or more of the places in the stream that its capture holds acknowledged, too (a filter may take most of its
    acknowledgements away).
    """

    PERHAPS_RECEIVER = 0
    ON_RECEIVERS_PACKETS = 1
    ANOTHER_HOST = 2


def shut_by(pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage) -> ShutBy:
    """Who may have shut the windows for one direction's data that its sender saw shut."""
    advertising = direction.reverse
    seen, own = ((vantage.packets, vantage.flow(advertising).window_shift) for vantage in (sender, receiver))
    return ShutBy(_core.shut_by(seen, own, advertising.value, pair.receiver_shift(direction), SHUT_SHARE))
