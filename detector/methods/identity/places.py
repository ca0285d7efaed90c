"""Places of acknowledgements, pure or on data, which middleboxes that rewrite single packets leave unchanged."""

from __future__ import annotations

import numpy as np

from detector.methods.identity.segments import BoolArray
from pepscope.captures.packets import Int64Array

#: What is believed of a capture's losses before looking, as so many segments of which so many were lost: captures of
#: busy machines lose up to some percent, and of few packets in sight none need be missing.
PRIOR_SEGMENTS, PRIOR_LOST = 20.0, 1.0


def probable_loss(missed_share: float, segments: int) -> float:
    """Share of packets that a capture lost, by the share of the stream it is seen to have missed in so many segments
    (mean of a beta distribution)."""
    return (missed_share * segments + PRIOR_LOST) / (segments + PRIOR_SEGMENTS)


def within_known_span(asked: Int64Array, alone: Int64Array, carried: Int64Array) -> BoolArray:
    """Which acknowledgement numbers the emitter's capture would hold had it been sent them.

    From the first to the last of its pure acknowledgements, and between the ends of what its data carried: at those
    ends themselves a pure acknowledgement may have gone before the capture began, or after it ended.
    """
    inside = np.zeros(len(asked), np.bool_)
    if len(alone):
        inside |= (asked >= alone.min()) & (asked <= alone.max())
    every = np.concatenate([alone, carried])
    if len(every):
        inside |= (asked > every.min()) & (asked < every.max())
    return inside
