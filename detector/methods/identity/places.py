"""Where acknowledgements stand, on their own and on data: what boxes that rewrite packets one by one leave alone."""

from __future__ import annotations

import numpy as np

from detector.methods.identity.membership import distinct
from detector.methods.identity.segments import BoolArray, Segments
from pepscope.packets import Int64Array

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


def carried_agreement(emitted: Segments, rows: Int64Array, left: Segments, came: Segments) -> tuple[int, float]:
    """How many different acknowledgements data segments of equal extent carried, and the share carried alike.

    `rows` are the candidates of each: where copies carried different acknowledgements, which of them arrived may be
    unknown, and any of them will do.
    """
    there = rows >= 0
    alike = (emitted.acknowledgement[np.maximum(rows, 0)] == came.acknowledgement[:, None]) & there
    carried = distinct(left.acknowledgement)
    disagreeing = distinct(came.acknowledgement[~alike.any(axis=1)])
    units = max(len(carried), len(disagreeing))
    return units, 1.0 - len(disagreeing) / units if units else 0.0
