"""Whether some of the acknowledgements that arrive are another maker's than the far end, though others are its own.

A middlebox that acknowledges before the receiver has the data may let the receiver's acknowledgements pass as well.
Then those that have a counterpart at the emitter agree with it in every field, or in none. End to end all of them
agree, but for the few that a capture mistook for one another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from detector.methods.identity.agreement import (
    HARD_FIELDS,
    SAME,
    ClassComparison,
    sum_fields,
    total_nats,
)
from detector.pair import Pair
from pepscope.captures.connections import MissingPackets
from pepscope.captures.packets import Direction

if TYPE_CHECKING:
    from detector.methods.identity.examination import DirectionComparison

#: Twenty to one that the acknowledgements of a direction are the receiver's own: one that agrees in timestamps gives it
#: nearly, two do. One is not enough: of a middlebox's acknowledgements beside the receiver's, a filter may leave that
#: one.
OWN_ACKNOWLEDGEMENT_NATS = math.log(20.0)
#: Fewer data segments than this are acknowledged by what the other side sends anyway; data that acknowledge the larger
#: direction at fewer places answer it, and do not show who acknowledged what came before.
SEVERAL_SEGMENTS = 3
#: Below this share of equal IP IDs a middlebox on the way may give IP IDs of its own, and they are no evidence of the
#: sender, unless the data segments keep theirs, which a middlebox that assigns IDs does not allow.
_REWRITTEN = 0.05
#: From two to one on for two makers the acknowledgements of data are not taken for the receiver's; one of five that
#: differs is a mistaken counterpart.
TWO_MAKERS_NATS = math.log(2.0)
#: Counts whose likelihood ratio is remembered: most connections of a capture are short and have the same few.
_REMEMBERED = 4096


def other_maker_nats(segments: ClassComparison, lost_share: float, beside: ClassComparison | None = None) -> float:
    """Natural-log likelihood ratio of two makers against the far end alone, over segments with a counterpart.

    With k of n that agree, the far end alone explains them with q^k (1 - q)^(n - k), for any q from `SAME`, less what
    the captures are known to have lost, to 1; a middlebox that makes an unknown share of them, every share as likely as
    another, with B(k + 1, n - k + 1). 0 where no field distinguishes senders. `beside` are the data segments that
    travel with acknowledgements: a middlebox that gives IP IDs gives them to both.
    """
    agreement = segments.fields.get("timestamps")
    if agreement is None or segments.tsval_shift or segments.tsecr_shift:
        agreement = segments.fields.get("ip-id")
        if agreement is None or (agreement.agreeing < _REWRITTEN and not _keeps_ip_ids(beside)):
            return 0.0
    return two_makers_nats(agreement.compared, round(agreement.agreeing * agreement.compared), lost_share)


def _keeps_ip_ids(data: ClassComparison | None) -> bool:
    ids = data.fields.get("ip-id") if data is not None else None
    return ids is not None and ids.nats >= OWN_ACKNOWLEDGEMENT_NATS


@lru_cache(_REMEMBERED)
def two_makers_nats(compared: int, agreeing: int, lost_share: float) -> float:
    """Natural-log likelihood ratio of two makers against one, where so many of the compared ones are the far end's."""
    same = max(SAME * (1.0 - lost_share), agreeing / max(compared, 1))
    alone = _log_likelihood(agreeing, same) + _log_likelihood(compared - agreeing, 1.0 - same)
    mixed = math.lgamma(agreeing + 1) + math.lgamma(compared - agreeing + 1) - math.lgamma(compared + 2)
    return mixed - alone


def _log_likelihood(times: int, probability: float) -> float:
    return times * math.log(probability) if times else 0.0


def own_acknowledgement_nats(
    pair: Pair, comparisons: Mapping[Direction, DirectionComparison], lost_shares: Mapping[Direction, float]
) -> float:
    """How surely the acknowledgements of the larger direction, and of one with several segments, are the receiver's own
    (natural-log likelihood ratio, the lesser of both directions).

    0 where a capture lacks some, or where more than a capture is known to have lost stand where the receiver sent none:
    a middlebox may make them that forwards the data unchanged. `lost_shares` are what the capture near the emitter of
    each packet direction lost: only that one can lack the counterpart of what arrived.
    """
    least = math.inf
    larger = max(comparisons, key=lambda direction: comparisons[direction].data.arrived)
    for direction, both in comparisons.items():
        if direction is not larger and both.data.arrived < SEVERAL_SEGMENTS:
            continue
        reverse = direction.reverse
        for vantage in pair.vantages:
            if vantage.flow(reverse).missing_packets is not MissingPackets.NONE:
                return 0.0
        back, lost = comparisons[reverse], lost_shares[reverse]
        places = back.acknowledgements
        if two_makers_nats(places.arrived, places.with_candidate, lost) > 0:
            return 0.0
        of_data = back.of_data()
        if of_data.arrived > 0 and other_maker_nats(of_data, lost, back.data) > TWO_MAKERS_NATS:
            return 0.0
        pure = total_nats(sum_fields([of_data]))
        # One segment of data, a request, may have left before what it would acknowledge; and all that acknowledge one
        # place, the end, may be the answer, sent after a middlebox acknowledged the data. What acknowledges an answer
        # of few segments is not asked for its places: who acknowledges both directions shows in the larger one.
        carrying = back.counts.carried_places if direction is larger else back.data.arrived
        carried = total_nats(sum_fields([back.data]), HARD_FIELDS) if carrying >= SEVERAL_SEGMENTS else 0.0
        least = min(least, max(pure, carried, 0.0))
    return least
