"""How sure a pairing is: by what it was made on, and by what comparing the payload showed afterwards.

The numbers are judgements, held against the corpus: of its pairs none is wrong on any ground, so they promise less than
was seen; and captures of different runs put together, which have the same objects in common and no transfer, find
pairs on payload alone only where runs overlap in time. Those end below one half, where no verdict is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from detector.datagram_leg import DatagramLeg
from detector.match import Ground
from detector.pair import StreamAlignment
from pepscope.packets import Direction

#: Confidence by ground before the payload is compared: what could have been mistaken grows down the list.
CONFIDENCE = {
    Ground.SEQUENCE_NUMBERS: 0.99,
    Ground.PACKETS: 0.99,
    Ground.END_POINTS: 0.98,
    Ground.END_POINTS_OTHER_TIME: 0.45,
    Ground.PAYLOAD: 0.95,
    Ground.PAYLOAD_AND_TIME: 0.8,
    Ground.OWN_LENGTHS: 0.8,
    Ground.PAYLOAD_OTHER_TIME: 0.4,
    Ground.LENGTHS: 0.5,
    Ground.LENGTHS_OTHER_TIME: 0.3,
    Ground.LAST_LEFT: 0.3,
    # Only where the user says that both captures show the same transfers, and no other connection has the shape.
    Ground.ENCRYPTED: 0.8,
    Ground.ALONE: 1.0,
}


#: Grounds that are content alone. Two connections with neither an address nor a request in common, of which one
#: direction agrees and the other does not, are two fetches of one object rather than one fetch through a proxy.
_CONTENT = (Ground.PAYLOAD, Ground.PAYLOAD_AND_TIME, Ground.PAYLOAD_OTHER_TIME, Ground.OWN_LENGTHS, Ground.LENGTHS)
STRANGERS = 0.3

#: Least confidence where the same object was asked for at the same time.
SAME_REQUEST = 0.7

#: Grounds that another transfer of the same object has as well.
_OTHER_TIME = (Ground.PAYLOAD_OTHER_TIME, Ground.END_POINTS_OTHER_TIME, Ground.LENGTHS_OTHER_TIME)

#: Where other connections have the same content, or may have, comparing it says nothing more.
_CONTENT_REPEATS = (Ground.PAYLOAD_AND_TIME, *_OTHER_TIME)

#: Share of compared pieces above which a direction's payload agrees.
AGREES = 0.9

#: Least confidence where one direction's payload agrees and no more than as much of the other's does not: HTTP proxies
#: rewrite the beginning of a request.
ONE_DIRECTION_AGREES = 0.8

#: A UDP flow with the bytes of both directions; what is missing to certainty is a relay of the application's own.
BOTH_DIRECTIONS_CARRIED = 0.97
ONE_DIRECTION_CARRIED = 0.9

#: What is taken off where nothing tells how the capture clocks relate.
CLOCKS_UNRELATED = 0.02


#: Most confidence where another pairing is nearly as good: below one half, so that there is no verdict without looking
#: at the rivals.
RIVALLED = 0.45


def certainty(margin_nats: float) -> float:
    """Probability that the best pairing is the true one, of it and the next best."""
    return 1.0 / (1.0 + math.exp(-margin_nats))


def pairing_confidence(
    ground: Ground, alignments: Iterable[StreamAlignment], *, related: bool, asked_alike: bool
) -> float:
    """The ground's confidence, raised or lowered by what comparing the payload showed.

    `related` says that the connections have an address in common, `asked_alike` that they begin with the same request.
    """
    start = CONFIDENCE[ground]
    if ground is Ground.PACKETS:
        return start  # the same packets are the same transfer, whatever else differs
    compared = [(item.compared, item.matched) for item in alignments if item.compared]
    if not compared:
        # Nothing but numbers and times: addresses may be used twice.
        return min(start, 0.9)
    share = sum(count * matched for count, matched in compared) / sum(count for count, _ in compared)
    if ground in _CONTENT and not related and not asked_alike and any(matched <= AGREES for _, matched in compared):
        return min(start, STRANGERS)
    if share > AGREES:
        return start if ground in _CONTENT_REPEATS else max(start, 0.95)
    if ground not in _CONTENT_REPEATS and share >= 0.5 and any(matched > AGREES for _, matched in compared):
        return max(start, ONE_DIRECTION_AGREES)
    doubtful = start * (0.5 + 0.5 * share)
    # Proxies change headers and shift what follows, so that little need agree where it is looked for.
    return max(doubtful, SAME_REQUEST) if asked_alike and ground not in _OTHER_TIME else doubtful


def leg_confidence(leg: DatagramLeg) -> float:
    """How sure it is that a UDP flow carries the connection that it was paired with."""
    both = len(leg.streams) == len(Direction)
    return (BOTH_DIRECTIONS_CARRIED if both else ONE_DIRECTION_CARRIED) - (0.0 if leg.clock_known else CLOCKS_UNRELATED)
