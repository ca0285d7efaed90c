"""Whether some of the acknowledgements that arrive are another maker's than the far end, though others are its own.

A box that acknowledges in the receiver's name may let the receiver's acknowledgements pass as well. Then those that
have a counterpart at the emitter agree with it in every field, or in none. End to end all of them agree, but for the
few that a capture mistook for one another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from detector.methods.identity.agreement import HARD_FIELDS, SAME, ClassComparison, total_nats
from detector.pair import Pair
from pepscope.connections import MissingPackets
from pepscope.packets import Direction

if TYPE_CHECKING:
    from detector.methods.identity.examination import DirectionComparison

#: Twenty to one that the acknowledgements of a direction are the receiver's own: one that agrees in timestamps says so
#: nearly, two do.
OWN_ACKNOWLEDGEMENT_NATS = math.log(20.0)
#: Fewer data segments than this are acknowledged by what the other side sends anyway.
SEVERAL_SEGMENTS = 3
#: Below this share of equal IP IDs a box on the way gives IP IDs of its own, and they tell nothing of makers.
_REWRITTEN = 0.05


def other_maker_nats(acknowledgements: ClassComparison, lost_share: float) -> float:
    """Natural-log likelihood ratio of two makers against the far end alone, over acknowledgements with a counterpart.

    With k of n that agree, the far end alone explains them with q^k (1 - q)^(n - k), for any q from `SAME`, less what
    the captures are known to have lost, to 1; a box that makes an unknown share of them, every share as likely as
    another, with B(k + 1, n - k + 1). 0 where no field tells makers apart.
    """
    agreement = acknowledgements.fields.get("timestamps")
    if agreement is None or acknowledgements.tsval_shift or acknowledgements.tsecr_shift:
        agreement = acknowledgements.fields.get("ip-id")
        if agreement is None or agreement.agreeing < _REWRITTEN:
            return 0.0
    return two_makers_nats(agreement.compared, round(agreement.agreeing * agreement.compared), lost_share)


def two_makers_nats(compared: int, agreeing: int, lost_share: float) -> float:
    """Natural-log likelihood ratio of two makers against one, where so many of the compared ones are the far end's."""
    same = max(SAME * (1.0 - lost_share), agreeing / max(compared, 1))
    alone = _log_likelihood(agreeing, same) + _log_likelihood(compared - agreeing, 1.0 - same)
    mixed = math.lgamma(agreeing + 1) + math.lgamma(compared - agreeing + 1) - math.lgamma(compared + 2)
    return mixed - alone


def _log_likelihood(times: int, probability: float) -> float:
    return times * math.log(probability) if times else 0.0


def acknowledged_by_far_ends(
    pair: Pair, comparisons: Mapping[Direction, DirectionComparison], lost_share: float
) -> bool:
    """Whether the acknowledgements of the larger direction, and of one with several segments, are the receiver's own.

    Where they are not known to be, or where more than a capture is known to have lost stand where the receiver sent
    none, a box may make them that passes the data on untouched.
    """
    larger = max(comparisons, key=lambda direction: comparisons[direction].data.arrived)
    for direction, both in comparisons.items():
        if direction is not larger and both.data.arrived < SEVERAL_SEGMENTS:
            continue
        if any(v.flow(direction.reverse).missing_packets is not MissingPackets.NONE for v in pair.vantages):
            return False
        back = comparisons[direction.reverse]
        pure = total_nats([back.acknowledgements])
        # One segment of data, a request, may have left before what it would acknowledge.
        carried = total_nats([back.data], HARD_FIELDS) if back.data.arrived >= SEVERAL_SEGMENTS else 0.0
        places = back.acknowledgements
        strange = two_makers_nats(places.arrived, places.with_candidate, lost_share) > 0
        if strange or max(pure, carried) < OWN_ACKNOWLEDGEMENT_NATS:
            return False
    return True
