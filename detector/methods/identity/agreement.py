"""How far arrived segments agree, field by field, with the emitted ones, as a likelihood ratio.

Everything here is an array, an element a comparison: of one connection, of all that are examined together, or of both
of their directions. Numbers do as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from detector.methods.identity.segment_counts import FieldCounts, Integers, PositionCounts, Reals, Truths

#: Share of segments that agree in a field if they are the same packets: captures are rarely better than this, and
#: which of several copies arrived is sometimes ambiguous.
SAME = 0.97
#: No field is ever taken to separate better than this chance agreement of different packets.
LEAST_CHANCE = 0.05
#: A 16-bit counter with an arbitrary start agrees by chance once in 2^16: then all that follow agree too.
IP_ID_NATS = 16 * math.log(2)
#: A timestamp offset that had to be fitted, and a window that reader and kernel may reproduce, convince this far alone.
FITTED_NATS = 3.0
WINDOW_NATS = 3.0
#: Fields in which a relay's stack of the same kind agrees by habit: it pushes where the application's writes end and
#: widens windows alike. All classes of segments show one habit, so that it convinces once.
HABITS = frozenset({"push", "window"})
#: Middleboxes that rewrite IP IDs or windows, or take timestamps away, without splitting exist (NATs give IDs of their
#: own), and tools that make captures anonymous blank timestamps: all disagreement in these fields together counts no
#: more than that one connection in a hundred passes one, which alone never makes a split.
REWRITABLE_FIELDS = frozenset({"ip-id", "window", "timestamps-present"})
REWRITABLE_NATS = math.log(100.0)
#: No normaliser adds timestamps to segments that left without, as each segment would grow (RFC 7323, sections 2.2 and
#: 3.2): one in ten thousand, as of SYNs (`detector.methods.handshake.changes`), in whichever classes of segments.
ADDED_STAMPS = "timestamps-added"
ADDED_NATS = math.log(10_000.0)
#: A middlebox that joins segments, or cuts them, and ends no connection (a router that merges what it receives and
#: segments it anew) is as rare: where timestamps agree as often as the same packets' do, whatever the clocks, segments
#: that are cut elsewhere convince so far, in whichever classes.
BOUNDARIES = "boundaries"
RESEGMENTED_NATS = math.log(10_000.0)
#: Where every segment that arrives lies within one that left, each was cut by itself: a middlebox does that, and of
#: relays only those that forward each segment at once (`LOCKSTEP_NATS`), on a leg with a smaller segment size.
PIECES = "pieces"
#: Two stacks have one timestamp clock, offset included, where both run on one machine (a path emulated between network
#: namespaces, say): one pair of captures in a hundred thousand. Their stamps agree as often as a segment is relayed
#: within a tick, which may be any share of the time.
SHARED_CLOCK_NATS = math.log(100_000.0)
#: Firewalls gave connections other sequence numbers on one path in ten (Honda et al., IMC 2011): both SYNs with
#: another number support a split by so much, and never make one.
RENUMBERED_NATS = math.log(10.0)
#: A relay that forwards each segment at once, without a loss or a queue on either leg, has the receiver and its own
#: stack acknowledge at the same places: two of the eighty relayed connections of the training draws. However many
#: places agree, they convince no further, unless a SYN kept its sequence number, which a relay's stack draws anew.
LOCKSTEP_NATS = math.log(40.0)
PIECES_NATS = RESEGMENTED_NATS - LOCKSTEP_NATS
#: Bound of one field's sum: beyond this a wrong model is likelier than the data.
MOST_NATS = 60.0


class FieldAgreement(NamedTuple):
    """One field over one class of segments: how many informative ones were compared, the share that agrees, and the
    natural-log likelihood ratio of same packets against different ones, 0 where the field was not compared."""

    compared: Integers
    agreeing: Reals
    nats: Reals
    #: The same against a different stack that has the same clock; `None` for fields that no clock makes.
    shared_clock_nats: Reals | None = None
    is_compared: Truths = True


class ClassComparison(NamedTuple):
    """Data segments or pure acknowledgements of one packet direction, arrived against emitted."""

    arrived: Integers  # within the span that both captures cover
    with_candidate: Integers
    fields: Mapping[str, FieldAgreement] = MappingProxyType({})
    tsval_shift: Integers = 0
    tsecr_shift: Integers = 0
    window_scale_shift: Integers = 0
    narrowed_windows: Reals = 0.0  # share of windows that arrived smaller than they left
    length_changes: Reals = 0.0  # share of segments whose length differs from the emitted segment that holds it
    hops: Integers = 0  # of those with a candidate
    shift_unknown: Truths = False  # something else shows that timestamps are shifted, these do not show by how much

    def at(self, *place: int | slice) -> ClassComparison:
        """The comparisons at one place of these arrays."""
        fields = {
            name: FieldAgreement(*(None if each is None else np.asarray(each)[place] for each in agreement))
            for name, agreement in self.fields.items()
        }
        arrived, with_candidate, _, *others = self
        return ClassComparison(
            np.asarray(arrived)[place], np.asarray(with_candidate)[place], fields,
            *(np.asarray(each)[place] for each in others),
        )  # fmt: skip


#: Fields whose agreement a relay's stack cannot reproduce by acting alike.
HARD_FIELDS = frozenset({"timestamps", "ip-id"})


class FieldSums(NamedTuple):
    """Log-likelihood ratios of some classes of segments, summed by field."""

    by_field: Mapping[str, Reals]
    shared_clock_nats: Reals  # of timestamps, against a relay with the same clock


def sum_fields(parts: Iterable[ClassComparison]) -> FieldSums:
    """Sum every field over classes of segments."""
    by_field: dict[str, Reals] = {}
    shared_clock: Reals = 0.0
    for part in parts:
        for name, agreement in part.fields.items():
            by_field[name] = by_field.get(name, 0.0) + agreement.nats
            if agreement.shared_clock_nats is not None:
                shared_clock = shared_clock + agreement.shared_clock_nats
    return FieldSums(by_field, shared_clock)


def total_nats(sums: FieldSums, only: frozenset[str] | None = None, most_for_places: Reals = math.inf) -> Reals:
    """Sum over fields (`only` some), positive for same packets; a rewriter explains all disagreement of the fields that
    it rewrites. Places of acknowledgements that agree count for `most_for_places` at most."""
    total: Reals = 0.0
    habits: Reals = 0.0
    excused: Reals = 0.0
    added: Reals = 0.0
    cut: Reals = 0.0
    pieces: Reals = 0.0
    for name, nats in sums.by_field.items():
        if only is not None and name not in only:
            continue
        same, other = np.maximum(nats, 0.0), np.minimum(nats, 0.0)
        if name == "timestamps":
            same = _unless_shared_clock(same, sums.shared_clock_nats)
        elif name == "acknowledgement":
            same = np.minimum(same, most_for_places)
        if name in HABITS:
            habits = habits + same
        else:
            total = total + same
        if name in REWRITABLE_FIELDS:
            excused = excused + other
        elif name == ADDED_STAMPS:
            added = added + other
        elif name == BOUNDARIES:
            cut = cut + other
        elif name == PIECES:
            pieces = pieces + other
        else:
            total = total + other
    bounded = np.maximum(excused, -REWRITABLE_NATS) + np.maximum(added, -ADDED_NATS)
    bounded = bounded + np.maximum(pieces, -PIECES_NATS)
    bounded = bounded + np.where(sums.shared_clock_nats > 0, np.maximum(cut, -RESEGMENTED_NATS), cut)
    return total + bounded + np.minimum(habits, FITTED_NATS)


def _unless_shared_clock(nats: Reals, against_relay: Reals) -> Reals:
    """What timestamps say for same packets, at most what they say against a relay with the same clock, but no less
    than nothing."""
    return np.maximum(0.0, np.minimum(nats, against_relay + SHARED_CLOCK_NATS))


def log_likelihood_ratio(units: Reals, share: Reals, same: Reals, chance: Reals) -> Reals:
    """Of `units` independent comparisons of which `share` agree: log P(same packets) / P(different packets)."""
    chance = np.minimum(np.maximum(chance, LEAST_CHANCE), 0.95)
    gain = share * np.log(same / chance) + (1 - share) * np.log((1 - same) / (1 - chance))
    nats = np.maximum(-MOST_NATS, np.minimum(MOST_NATS, units * gain))
    return np.where((units <= 0) | (same <= chance), 0.0, nats)


def compare_data(
    counts: FieldCounts, largest_payload: Integers, lost_share: Reals = 0.0, may_add: Truths = False
) -> ClassComparison:
    """Compare data segments; more than `largest_payload` bytes in one is an offload's super-packet.

    The candidates for an arrived segment are the emitted ones that hold its first byte; the one that agrees in most
    fields is its partner, timestamps first. Before that a constant shift of the timestamps is taken off, which the
    segments show whose candidates all have one timestamp. `crates/evidence` counts; all counts are 0 where a side shows
    no data.

    `lost_share` is what the emitter's capture is known to have missed: the copy that arrived may be one of those, where
    only another copy was captured. `may_add` tells where timestamps that arrive alone were added on the way.
    """
    fields = _common_fields(counts, lost_share, may_add)
    fields["push"] = _push_agreement(counts.push_clear, counts.push_equal, counts.push_set, lost_share)
    fields["carried-acknowledgement"] = _carried_agreement(counts.whole, counts.carried, counts.carried_elsewhere)
    is_on_wire = (counts.longest > 0) & (counts.longest <= largest_payload)
    boundaries = _boundary_agreement(counts.partners, counts.boundaries_equal, is_on_wire)
    # A stack that cuts its stream elsewhere has half of its segments within one of the sender's at most, unless it cuts
    # them into many pieces.
    within = log_likelihood_ratio(counts.partners, _share(counts.held_whole, counts.partners), SAME, 0.5)
    are_pieces = (within > 0) & (boundaries.nats < 0)
    # What cuts segments gives them no timestamps; what takes these out of a capture cuts nothing.
    are_pieces &= counts.stamps_on_one_side == 0
    fields[BOUNDARIES] = _only_where(~are_pieces, boundaries)
    fields[PIECES] = _only_where(are_pieces, boundaries)
    return _comparison(counts, fields, np.where(counts.partners > 0, 1 - _share(counts.whole, counts.partners), 0.0))


def compare_acknowledgements(
    counts: FieldCounts, positions: PositionCounts, lost_share: Reals, may_add: Truths = False
) -> ClassComparison:
    """Compare pure acknowledgements: candidates have the same sequence and acknowledgement numbers.

    `lost_share` is what the emitter's capture may have missed. Where there is no place to compare all counts of
    `positions` are 0. `may_add` is that of `compare_data`.
    """
    fields = _common_fields(counts, 0.0, may_add)
    fields["acknowledgement"] = _position_agreement(positions, lost_share)
    return _comparison(counts, fields, np.zeros(np.shape(counts.partners)))


def _comparison(counts: FieldCounts, fields: dict[str, FieldAgreement], length_changes: Reals) -> ClassComparison:
    return ClassComparison(
        counts.arrived, counts.partners, fields, counts.tsval_shift, counts.tsecr_shift, counts.window_scale_shift,
        _share(counts.windows_narrowed, counts.partners), length_changes, counts.hops,
        np.zeros(np.shape(counts.partners), np.bool_),
    )  # fmt: skip


def _share(part: Integers, of: Integers) -> Reals:
    """The share, 0 of nothing."""
    return part / np.maximum(of, 1)


def _agreement(
    is_compared: Truths, compared: Integers, share: Reals, nats: Reals, shared_clock_nats: Reals | None = None
) -> FieldAgreement:
    """The agreement where a field was compared, and nothing elsewhere."""
    shared = None if shared_clock_nats is None else np.where(is_compared, shared_clock_nats, 0.0)
    return FieldAgreement(compared, share, np.where(is_compared, nats, 0.0), shared, is_compared)


def _common_fields(counts: FieldCounts, lost_share: Reals, may_add: Truths) -> dict[str, FieldAgreement]:
    """Fields that data and acknowledgements share, over matched segments."""
    same = SAME * (1 - lost_share)
    added = np.where(may_add, counts.stamps_added, 0)
    return {
        "timestamps": _timestamp_agreement(counts, same),
        "timestamps-present": _presence_agreement(counts.stamps_known, counts.stamps_on_one_side - added),
        ADDED_STAMPS: _presence_agreement(counts.stamps_known, added),
        "ip-id": _ip_id_agreement(counts, same),
        "window": _window_agreement(counts),
    }


def _timestamp_agreement(counts: FieldCounts, same: Reals) -> FieldAgreement:
    """Agreement of (TSval, TSecr), among emitted ones that differ; `same` is the share that agrees in the same
    packets."""
    distinct, share = counts.stamps_distinct, _share(counts.stamps_equal, counts.stamped)
    is_shifted = (counts.tsval_shift != 0) | (counts.tsecr_shift != 0)
    # Where delay hardly varies two stacks' clocks too differ by a near constant, and where captures lost copies a
    # firewall's true shift holds for a part of them only: a fitted shift supports what other fields say, either way.
    fitted = np.maximum(-FITTED_NATS, np.minimum(FITTED_NATS, log_likelihood_ratio(distinct, share, same, 0.9)))
    nats = np.where(is_shifted, fitted, log_likelihood_ratio(distinct, share, same, LEAST_CHANCE))
    shared = np.where(is_shifted, fitted, log_likelihood_ratio(distinct, share, same, share))
    return _agreement(counts.stamped > 0, distinct, share, nats, shared)


def _presence_agreement(known: Integers, on_one_side: Integers) -> FieldAgreement:
    """Agreement in having timestamps: neither stack leaves the option out once it was negotiated (RFC 7323 section
    3.2)."""
    share = 1 - _share(on_one_side, known)
    return _agreement(on_one_side > 0, known, share, np.minimum(log_likelihood_ratio(known, share, SAME, 0.5), 0.0))


def _ip_id_agreement(counts: FieldCounts, same: Reals) -> FieldAgreement:
    """Agreement of IP IDs of segments of equal extent; `same` is the share that agrees in the same packets."""
    whole, share = counts.whole, _share(counts.ip_ids_equal, counts.whole)
    nats = log_likelihood_ratio(whole, share, same, LEAST_CHANCE)
    is_compared = (whole > 0) & (counts.ip_ids_vary != 0)
    return _agreement(is_compared, whole, share, np.minimum(IP_ID_NATS * np.minimum(1.0, whole / 4), nats))


def _window_agreement(counts: FieldCounts) -> FieldAgreement:
    """Agreement of windows, up to a power of two (a capture that missed the SYN does not know the scale)."""
    partners, share = counts.partners, _share(counts.windows_equal, counts.partners)
    # Kernels grow windows alike over the same stream, so only narrowing shows who really made it.
    units = np.where(share >= 0.5, np.minimum(partners, counts.windows_shrink), counts.windows_distinct - 1)
    nats = np.minimum(WINDOW_NATS, log_likelihood_ratio(units, share, SAME, 0.5))
    return _agreement(partners > 0, partners, share, nats)


def _push_agreement(clear: Integers, equal: Integers, emitted_set: Integers, lost_share: Reals) -> FieldAgreement:
    """Agreement of PSH on segments of equal extent: no middlebox has a reason to change it.

    A first copy cut from a longer write goes without PSH, its retransmission with it, and which of them arrived may be
    unknown: segments whose copies differ do not count.
    """
    same = 0.99 * (1 - lost_share)
    share = _share(equal, clear)
    against = log_likelihood_ratio(clear, share, same, 0.5)
    # A relay of an application's writes pushes where they end too: pushes that agree convince less than pushes that
    # differ, and in a dialogue, where every segment is pushed, not at all.
    rarer = np.minimum(emitted_set, clear - emitted_set)
    agreeing = np.minimum(FITTED_NATS, np.maximum(0.0, log_likelihood_ratio(rarer, share, same, 0.9)))
    return _agreement(clear > 0, clear, share, np.where(against < 0, against, agreeing))


def _carried_agreement(whole: Integers, carried: Integers, elsewhere: Integers) -> FieldAgreement:
    """Agreement of the acknowledgements that data of equal extent carry: nothing on the way moves them elsewhere.

    Where copies carried different ones, which of them arrived may be unknown, and any of them will do.
    """
    units = np.maximum(carried, elsewhere)
    share = np.where(units > 0, 1.0 - _share(elsewhere, units), 0.0)
    # In a dialogue each side has received everything before it answers, through a relay too: only disagreement counts.
    nats = np.minimum(log_likelihood_ratio(units, share, SAME, 0.5), 0.0)
    return _agreement(whole > 0, units, share, nats)


def _boundary_agreement(partners: Integers, equal: Integers, is_on_wire: Truths) -> FieldAgreement:
    """Whether each arrived segment, of bytes that the emitter's capture holds, begins and ends where emitted ones do
    (captures without super-packets; receive offload may join whole segments)."""
    share = _share(equal, partners)
    # Two stacks cut a bulk stream alike, so agreement proves nothing; cuts at other places do.
    return _agreement(is_on_wire, partners, share, np.minimum(log_likelihood_ratio(partners, share, SAME, 0.9), 0.0))


def _only_where(is_so: Truths, agreement: FieldAgreement) -> FieldAgreement:
    """The agreement there, and nothing elsewhere."""
    return _agreement(is_so & agreement.is_compared, agreement.compared, agreement.agreeing, agreement.nats)


def _position_agreement(positions: PositionCounts, lost_share: Reals) -> FieldAgreement:
    """Whether acknowledgements stand where the emitter put them.

    They may stand at the ends of the data segments that they acknowledge, but for ranges in which the emitter's capture
    missed data, and so perhaps acknowledgements too.
    """
    emitted, arrived, hits = positions.emitted, positions.arrived, positions.hits
    # How densely the emitter acknowledged is how often another stack's choice coincides with its own.
    chance = _share(emitted, np.maximum(positions.possible, emitted))
    hit = _share(hits, arrived)
    same = SAME * (1 - lost_share)
    nats = log_likelihood_ratio(arrived, hit, same, chance)
    # All stacks that acknowledge every second segment do so alike: only irregular strides identify the sender.
    counted = positions.irregular + arrived - hits
    share = _share(positions.irregular, counted)
    stride = np.maximum(0.0, log_likelihood_ratio(counted, share, same, np.maximum(chance, 0.5)))
    return _agreement(arrived > 0, arrived, hit, np.where(nats > 0, stride, nats))
