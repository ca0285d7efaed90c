"""Places of acknowledgements in NumPy: what the compiled counts are compared with."""

from __future__ import annotations

import numpy as np

from detector.methods.identity.agreement import SAME, FieldAgreement, log_likelihood_ratio
from detector.methods.identity.dropped_acks import PlaceCounts
from pepscope.captures.packets import BoolArray, Int64Array
from tests.detector.methods.reference_membership import among, distinct, share_of
from tests.detector.methods.reference_segments import Segments, most_common


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


def beyond_its_ends(
    asked: Int64Array, alone: Int64Array, carried: Int64Array, shown_ends: tuple[bool, bool]
) -> BoolArray:
    """Which of the arrived acknowledgement numbers may have gone before the emitter's capture began or after it ended:
    more than it holds of the first or the last."""
    beyond = np.zeros(len(asked), np.bool_)
    every = np.concatenate([alone, carried])
    if len(alone) == 0:
        return beyond
    first, last = int(alone.min()), int(alone.max())
    begins, ends = shown_ends
    for number, is_end in ((first, not begins and first == every.min()), (last, not ends and last == every.max())):
        places, held = np.flatnonzero(asked == number), np.count_nonzero(alone == number)
        if not is_end or len(places) <= held:
            continue
        if first == last:
            beyond[places] = True
        else:
            beyond[places[: len(places) - held] if number == first else places[held:]] = True
    return beyond


def count_places(
    emitted: Int64Array, arrived: Int64Array, boundaries: Int64Array, unseen: tuple[Int64Array, Int64Array]
) -> PlaceCounts:
    """Count places of pure acknowledgements in the stretch that both captures hold, but for the ranges `unseen`, in
    which the emitter's capture missed data; `boundaries` are the ends of the data that it holds."""
    left, came = distinct(emitted), distinct(arrived)
    every = distinct(np.concatenate([left, came]))
    if len(every):
        boundaries = boundaries[(boundaries >= every[0]) & (boundaries <= every[-1])]
    possible = distinct(np.concatenate([every, boundaries]))
    gap = np.searchsorted(unseen[0], possible, side="left") - 1
    if len(unseen[0]):
        possible = possible[(gap < 0) | (possible > unseen[1][np.maximum(gap, 0)])]
    here, there = among(possible, left), among(possible, came)
    return PlaceCounts(
        int((here & there).sum()), int((here & ~there).sum()), int((~here & there).sum()), int((~here & ~there).sum())
    )


def position_agreement(
    emitted: Segments,
    arrived: Segments,
    lost_share: float,
    boundaries: Int64Array,
    unseen: tuple[Int64Array, Int64Array],
) -> FieldAgreement | None:
    """Whether acknowledgements stand where the emitter put them.

    `boundaries` are the ends of data segments that could have been acknowledged, `unseen` the starts and ends of ranges
    in which the emitter's capture missed data, and so perhaps acknowledgements too.
    """
    known = distinct(emitted.acknowledgement)
    asked = distinct(arrived.acknowledgement)
    gap = np.searchsorted(unseen[0], asked, side="left") - 1
    if len(unseen[0]):
        asked = asked[(gap < 0) | (asked > unseen[1][np.maximum(gap, 0)])]
    if len(asked) == 0:
        return None
    every = np.concatenate([known, asked])
    possible = distinct(boundaries[(boundaries >= every.min()) & (boundaries <= every.max())])
    if len(possible) == 0:
        return None
    # How densely the emitter acknowledged is how often another stack's choice coincides with its own.
    chance = len(known) / max(len(possible), len(known))
    hit = among(asked, known)
    same = SAME * (1 - lost_share)
    nats = log_likelihood_ratio(len(asked), share_of(hit), same, chance)
    if nats > 0:
        # All stacks that acknowledge every second segment do so alike: only irregular strides identify the sender.
        strides = np.diff(known)
        irregular = among(asked, known[1:][strides != most_common(strides)[0]])
        strange = ~hit
        counted = irregular | strange
        share = share_of(hit[counted]) if counted.any() else 0.0
        nats = max(0.0, log_likelihood_ratio(int(counted.sum()), share, same, max(chance, 0.5)))
    return FieldAgreement(len(asked), share_of(hit), nats)
