"""A connection that changes hands: segments that are the far end's up to some byte, and another stack's from there on.

A middlebox that takes a connection over after so many bytes (from its first request on, say, once it has the server's
name) leaves the handshake and the first segments alone. Compared as a whole, such a connection is partly the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from detector.methods.identity.agreement import compare_data, sum_fields, total_nats
from pepscope import _core
from pepscope.captures.packets import Direction

#: Fewer segments than this in either part may be what the end of a capture, or one retransmission, leaves.
FEWEST_SEGMENTS = 20

#: The arrived segments are divided into so many parts, and the stream is cut in two between any two of these.
PARTS = 16


@dataclass(frozen=True, slots=True)
class Change:
    """Where a stream's segments change their maker: `from_byte` is the first byte of the later part."""

    from_byte: int
    same_first: bool
    nats: float  # the sum of the weaker of the two parts for its side


def change_of_maker(
    segments: _core.PairSegments, direction: Direction, largest_payload: int, least_nats: float
) -> Change | None:
    """The cut at which one part of the data is the same packets and the other is not, each by `least_nats` or more."""
    found: list[Change] = []
    for from_byte, before, after in segments.cut_data(direction, PARTS, FEWEST_SEGMENTS):
        early, late = (total_nats(sum_fields([compare_data(part, largest_payload)])) for part in (before, after))
        nats = min(abs(early), abs(late))
        if early * late < 0 and nats >= least_nats:
            found.append(Change(from_byte, early > 0, nats))
    return max(found, key=lambda change: change.nats, default=None)
