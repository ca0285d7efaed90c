"""A connection that changes hands: segments that are the far end's up to some byte, and another stack's from there on.

A middlebox that takes a connection over after so many bytes (from its first request on, say, once it has the server's
name) leaves the handshake and the first segments alone. Compared as a whole, such a connection is partly the same.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from detector.methods.identity.agreement import FITTED_NATS, LEAST_CHANCE, SAME, compare_data, sum_fields, total_nats
from detector.methods.identity.segment_counts import field_counts
from pepscope import _core
from pepscope.captures.packets import Direction

#: Fewer segments than this in either part may be what the end of a capture, or one retransmission, leaves.
FEWEST_SEGMENTS = 20

#: The arrived segments are divided into so many parts, and the stream is cut in two between any two of these.
PARTS = 16

#: Share of segments that agree in a field from which on it speaks for the same packets.
_FOR_SAME = math.log((1 - LEAST_CHANCE) / (1 - SAME))
LEAST_ALIKE = _FOR_SAME / (_FOR_SAME + math.log(SAME / LEAST_CHANCE))

#: What convinces where neither timestamps nor IP IDs agree as they are: shifted timestamps, and habits of a stack.
WITHOUT_LIKENESS_NATS = 2 * FITTED_NATS


class Change(Struct, frozen=True):
    """Where a stream's segments change their maker: `from_byte` is the first byte of the later part."""

    from_byte: int
    same_first: bool
    nats: float  # the sum of the weaker of the two parts for its side


def change_of_maker(
    segments: _core.PairSegments, direction: Direction, largest_payload: int, least_nats: float
) -> Change | None:
    """The cut at which one part of the data is the same packets and the other is not, each by `least_nats` or more.

    Parts are compared in every field only where one of them can be the same packets: where another stack made all the
    data, equal timestamps and IP IDs are rare in each part.
    """
    least_alike = LEAST_ALIKE if least_nats > WITHOUT_LIKENESS_NATS else None
    from_bytes, columns = segments.cut_data(direction, PARTS, FEWEST_SEGMENTS, least_alike)
    if not from_bytes:
        return None
    early, late = total_nats(sum_fields([compare_data(field_counts(columns), largest_payload)]))
    weaker = np.minimum(np.abs(early), np.abs(late))
    decided = np.where((early * late < 0) & (weaker >= least_nats), weaker, -math.inf)
    best = int(decided.argmax())
    return Change(from_bytes[best], bool(early[best] > 0), float(weaker[best])) if decided[best] > 0 else None
