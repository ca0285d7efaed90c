"""Whether some of the acknowledgements that arrive are another maker's than the far end, though others are its own.

A middlebox that acknowledges before the receiver has the data may let the receiver's acknowledgements pass as well.
Then those that have a counterpart at the emitter agree with it in every field, or in none. End to end all of them
agree, but for the few that a capture mistook for one another.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from msgspec import Struct

from detector.methods.identity.agreement import (
    HARD_FIELDS,
    SAME,
    ClassComparison,
    FieldAgreement,
    sum_fields,
    total_nats,
)
from detector.methods.identity.segment_counts import Integers, Reals, Truths

#: Twenty to one that the acknowledgements of a direction are the receiver's own: one that agrees in timestamps gives it
#: nearly, two do. One is not enough: of a middlebox's acknowledgements beside the receiver's, a filter may leave that
#: one.
OWN_ACKNOWLEDGEMENT_NATS = math.log(20.0)
#: Fewer data segments than this are acknowledged by what the other side sends anyway; data that acknowledge the larger
#: direction at fewer places answer it, and do not show who acknowledged what came before.
SEVERAL_SEGMENTS = 3
#: A filter that drops acknowledgements, a share of them or one in some, hardly spares so many of one maker.
SEVERAL_ACKNOWLEDGEMENTS = 3
#: Of acknowledgements ahead of their host one may have been corrupted on its way.
FEWEST_AHEAD = 2
#: Where IP IDs arrive as they left, gaps in them show what the emitter's capture missed, and what arrives with those is
#: not compared: of all else this share has a counterpart, if the far end sent it.
NUMBERED = 0.997
#: Below this share of equal IP IDs a middlebox on the way may give IP IDs of its own, and they are no evidence of the
#: sender, unless the data segments keep theirs, which a middlebox that assigns IDs does not allow.
_REWRITTEN = 0.05
#: From two to one on for two makers the acknowledgements of data are not taken for the receiver's; one of five that
#: differs is a mistaken counterpart.
TWO_MAKERS_NATS = math.log(2.0)
_NOT_COMPARED = FieldAgreement(0, 0.0, 0.0, is_compared=np.False_)


def other_maker_nats(segments: ClassComparison, lost_share: Reals, beside: ClassComparison | None = None) -> Reals:
    """Natural-log likelihood ratio of two makers against the far end alone, over segments with a counterpart.

    With k of n that agree, the far end alone explains them with q^k (1 - q)^(n - k), for any q from `SAME`, less what
    the captures are known to have lost, to 1; a middlebox that makes an unknown share of them, every share as likely as
    another, with B(k + 1, n - k + 1). 0 where no field distinguishes senders. `beside` are the data segments that
    travel with acknowledgements: a middlebox that gives IP IDs gives them to both.
    """
    stamps, ids, by_stamps, by_ids = _telling_fields(segments, beside)
    compared: Integers = np.where(by_stamps, stamps.compared, ids.compared)
    agreeing = np.rint(np.where(by_stamps, stamps.agreeing, ids.agreeing) * compared)
    return np.where(by_stamps | by_ids, two_makers_nats(compared, agreeing, lost_share), 0.0)


def _strangers_nats(
    segments: ClassComparison, lost_share: Reals, beside: ClassComparison, of_handshake: Integers
) -> Reals:
    """The same ratio over all segments: those without a counterpart and those that differ from theirs in a field count
    together as another maker's.

    Two makers may stamp within one tick: stamps that all agree tell one maker only where most of them are different
    ones, else IP IDs are asked as well. `of_handshake` segments without a counterpart acknowledge no data.
    """
    stamps, ids, by_stamps, by_ids = _telling_fields(segments, beside)
    one_maker = by_stamps & (stamps.agreeing == 1.0) & (2 * stamps.compared > segments.with_candidate)
    agreeing = np.minimum(np.where(by_stamps, stamps.agreeing, 1.0), np.where(by_ids & ~one_maker, ids.agreeing, 1.0))
    own = np.minimum(np.rint(agreeing * segments.with_candidate) + of_handshake, segments.arrived)
    told = np.where(by_ids, NUMBERED, SAME * (1.0 - lost_share))
    return np.where(by_stamps | by_ids, two_makers_nats(segments.arrived, own, 0.0, told), 0.0)


def _telling_fields(
    segments: ClassComparison, beside: ClassComparison | None
) -> tuple[FieldAgreement, FieldAgreement, Truths, Truths]:
    """Timestamps and IP IDs, and where each of them tells makers from each other."""
    stamps, ids = (segments.fields.get(name, _NOT_COMPARED) for name in ("timestamps", "ip-id"))
    by_ids = ids.is_compared & ((ids.agreeing >= _REWRITTEN) | _keeps_ip_ids(beside))
    return stamps, ids, stamps.is_compared & _keeps_stamps(segments), by_ids


def _keeps_stamps(segments: ClassComparison) -> Truths:
    """Where timestamps arrive as they left, not moved by a firewall."""
    return (segments.tsval_shift == 0) & (segments.tsecr_shift == 0) & ~np.asarray(segments.shift_unknown)


def _keeps_ip_ids(data: ClassComparison | None) -> Truths:
    if data is None:
        return np.False_
    ids = data.fields.get("ip-id", _NOT_COMPARED)
    return ids.is_compared & (ids.nats >= OWN_ACKNOWLEDGEMENT_NATS)


def two_makers_nats(compared: Integers, agreeing: Integers, lost_share: Reals, told: Reals = SAME) -> Reals:
    """Natural-log likelihood ratio of two makers against one, where so many of the compared ones are the far end's.

    Of one maker's segments the share `told`, less what captures are known to have lost, agrees at least.
    """
    same = np.maximum(told * (1.0 - lost_share), agreeing / np.maximum(compared, 1))
    alone = _log_likelihood(agreeing, same) + _log_likelihood(compared - agreeing, 1.0 - same)
    mixed = _log_factorial(agreeing) + _log_factorial(compared - agreeing) - _log_factorial(compared + 1)
    return mixed - alone


def _log_likelihood(times: Integers, probability: Reals) -> Reals:
    return times * np.log(np.where(times > 0, probability, 1.0))


def _log_factorial(of: Integers) -> Reals:
    values, places = np.unique(of, return_inverse=True)
    return np.array([math.lgamma(value + 1) for value in values.tolist()])[places].reshape(np.shape(of))


class Acknowledging(Struct, frozen=True, dict=True):
    """What two captures show of who acknowledges; rows of arrays are packet directions, up first."""

    data: ClassComparison
    acknowledgements: ClassComparison  # pure ones
    of_data: ClassComparison  # the pure ones that acknowledge data within a stream
    carried_places: Integers  # different places within the other direction that data acknowledge
    #: Pure acknowledgements that their host cannot have sent by the order of its timestamps, whatever was lost.
    ahead: Integers
    emitted: Integers  # pure acknowledgements that left within the span of those that arrived
    shared_places: Integers  # different numbers that pure acknowledgements have at both ends
    #: By connection: a SYN arrived with another number, as where a SYN proxy answered and acknowledged the handshake.
    renumbered: Truths
    lacks_packets: Truths  # either capture lacks packets of a direction
    #: What the capture near the emitter lost: only that one can lack the counterpart of what arrived.
    lost_shares: Reals
    #: The capture near the sender of a direction's data holds any pure acknowledgement; where it holds none, a filter
    #: may have removed a middlebox's, and those that data carry are the far end's anyway.
    shows_pure: Truths

    @cached_property
    def all_arrived(self) -> Truths:
        """Of which directions all pure acknowledgements that left arrived as they left, and nothing else."""
        arrived = self.acknowledgements.arrived
        is_all = (arrived == self.acknowledgements.with_candidate) & (arrived == self.emitted)
        return is_all & ~_disagrees(self.acknowledgements)

    def are_strangers(self, back: int) -> Truths:
        """Where some of the acknowledgements in a packet direction are another maker's than the far end."""
        acks, lost = self.acknowledgements.at(back), self.lost_shares[back]
        strangers = _strangers_nats(acks, lost, self.data.at(back), self.renumbered) > TWO_MAKERS_NATS
        return strangers | (self.ahead[back] > 0)

    def may_be_others(self, back: int) -> Truths:
        """Where those that have counterparts, or acknowledge data, look like another maker's."""
        acks, of_data, lost = self.acknowledgements.at(back), self.of_data.at(back), self.lost_shares[back]
        others = two_makers_nats(acks.arrived, acks.with_candidate, lost) > 0
        differ = other_maker_nats(of_data, lost, self.data.at(back)) > TWO_MAKERS_NATS
        return others | ((of_data.arrived > 0) & differ)

    def own_nats(self, way: int, is_larger: Truths) -> Reals:
        """How surely the acknowledgements of the data in a direction are the receiver's own, by those that speak most
        surely for it."""
        back = 1 - way
        acks, back_data = self.acknowledgements.at(back), self.data.at(back)
        pure = total_nats(sum_fields([self.of_data.at(back)]))
        # One segment of data, a request, may have left before what it would acknowledge; and all that acknowledge one
        # place, the end, may be the answer, sent after a middlebox acknowledged the data. What acknowledges an answer
        # of few segments is not asked for its places: who acknowledges both directions shows in the larger one.
        carrying = np.where(is_larger, self.carried_places[back], back_data.arrived)
        carries_own = self.shows_pure[way] & (carrying >= SEVERAL_SEGMENTS)
        carried = np.where(carries_own, total_nats(sum_fields([back_data]), HARD_FIELDS), 0.0)
        # Where all that left arrived, and nothing else, no middlebox acknowledged: a filter would have to spare the
        # receiver's alone. That needs no acknowledgement of data: few data are acknowledged with the FIN behind them.
        # Those of the sender, all of which arrived as well, show as much that its capture lacks none.
        sent = np.where(self.all_arrived[way], self.acknowledgements.arrived[way], 0)
        is_all = self.all_arrived[back] & (acks.arrived + sent >= SEVERAL_ACKNOWLEDGEMENTS)
        every = np.where(is_all, total_nats(sum_fields([acks]), HARD_FIELDS), 0.0)
        return np.maximum(np.maximum(pure, carried), np.maximum(every, 0.0))


def own_acknowledgement_nats(shown: Acknowledging) -> Reals:
    """How surely the acknowledgements of the larger direction, and of one with several segments, are the receiver's own
    (natural-log likelihood ratio, the lesser of both directions).

    0 where a capture lacks some, or where more than a capture is known to have lost stand where the receiver sent none:
    a middlebox may make them that forwards the data unchanged.
    """
    sizes = _segments_of(shown.data, shown.shared_places, shown.lacks_packets)
    least: Reals = math.inf
    for way in (0, 1):
        back = 1 - way
        is_larger = sizes[way] > sizes[back] if way else sizes[way] >= sizes[back]
        counts = is_larger | (shown.data.arrived[way] >= SEVERAL_SEGMENTS)
        strangers = shown.are_strangers(back)
        unsure = shown.lacks_packets[back] | shown.may_be_others(back) | strangers
        own = np.where(unsure, 0.0, shown.own_nats(way, is_larger))
        # Who acknowledges an answer of few segments is not asked, but another maker may show.
        least = np.minimum(least, np.where(counts, own, np.where(strangers, 0.0, math.inf)))
    return least


def are_unseen(data: ClassComparison, lacks_packets: Truths) -> Truths:
    """Of which directions a capture lacks the data, by a filter or another route."""
    return lacks_packets & (data.arrived == 0)


def _segments_of(data: ClassComparison, shared_places: Integers, lacks_packets: Truths) -> Integers:
    """How many segments of data each direction has, at least.

    Where a capture lacks a direction, by a filter or another route, what came back shows that there were data: each
    place that was acknowledged ends a segment, one of them the FIN.
    """
    acknowledged = np.maximum(shared_places[::-1] - 1, 0)
    return np.where(are_unseen(data, lacks_packets), acknowledged, data.arrived)


def acknowledgements_ahead(data: ClassComparison, acknowledgements: ClassComparison, ahead: Integers) -> Integers:
    """The counts of acknowledgements that run ahead of their host by its own timestamps, by packet direction (rows).

    They hold where those timestamps are the host's own at both ends, as segments of that direction show which agree in
    them; elsewhere 0.
    """
    kept: Truths = np.False_
    for part in (data, acknowledgements):
        stamps = part.fields["timestamps"]
        kept = kept | (stamps.is_compared & (stamps.agreeing > 0) & _keeps_stamps(part))
    return np.where(kept, ahead, 0).astype(np.int64)


def _disagrees(segments: ClassComparison) -> Truths:
    """Whether any segment differs from its counterpart in a field that tells its maker."""
    disagrees: Truths = np.False_
    for name in HARD_FIELDS:
        field = segments.fields.get(name, _NOT_COMPARED)
        disagrees = disagrees | (field.is_compared & (field.agreeing < 1.0))
    return disagrees
