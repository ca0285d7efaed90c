"""A connection that changes hands: segments that are the far end's up to some byte, and another stack's from there on.

A middlebox that takes a connection over after so many bytes (from its first request on, say, once it has the server's
name) leaves the handshake and the first segments alone. Compared as a whole, such a connection is partly the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.methods.identity.agreement import compare_parts_of_data, total_nats
from detector.methods.identity.segments import Segments

#: Fewer segments than this in either part may be what the end of a capture, or one retransmission, leaves.
FEWEST_SEGMENTS = 20

#: Places at which a stream is cut in two for the comparison, evenly spread over the arrived segments.
CUTS = 16


@dataclass(frozen=True, slots=True)
class Change:
    """Where a stream's segments change their maker: `from_byte` is the first byte of the later part."""

    from_byte: int
    same_first: bool
    nats: float  # the sum of the weaker of the two parts for its side


def change_of_maker(emitted: Segments, arrived: Segments, largest_payload: int, least_nats: float) -> Change | None:
    """The cut at which one part of the data is the same packets and the other is not, each by `least_nats` or more."""
    order = np.argsort(arrived.start, kind="stable")
    places = np.unique(np.linspace(0, len(order), CUTS + 1)[1:-1].astype(np.int64))
    arrived = arrived.take(order)
    cuts = [place for place in places.tolist() if FEWEST_SEGMENTS <= place <= len(order) - FEWEST_SEGMENTS]
    parts = [part for place in cuts for part in ((0, place), (place, len(order)))]
    said = [total_nats([part]) for part in compare_parts_of_data(emitted, arrived, parts, largest_payload)]
    found: list[Change] = []
    for place, early, late in zip(cuts, said[::2], said[1::2], strict=True):
        nats = min(abs(early), abs(late))
        if early * late < 0 and nats >= least_nats:
            found.append(Change(int(arrived.start[place]), early > 0, nats))
    return max(found, key=lambda change: change.nats, default=None)
