"""How far arrived segments agree, field by field, with the emitted ones, as a likelihood ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from pepscope import _core

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
#: Bound of one field's sum: beyond this a wrong model is likelier than the data.
MOST_NATS = 60.0
#: Counts whose agreement is remembered: most connections of a capture are short and have the same few.
_REMEMBERED = 4096


class FieldAgreement(NamedTuple):
    """One field over one class of segments: how many informative ones were compared, the share that agrees, and the
    natural-log likelihood ratio of same packets against different ones."""

    compared: int
    agreeing: float
    nats: float
    #: The same against a different stack that has the same clock; `None` for fields that no clock makes.
    shared_clock_nats: float | None = None


class ClassComparison(NamedTuple):
    """Data segments or pure acknowledgements of one packet direction, arrived against emitted."""

    arrived: int  # within the span that both captures cover
    with_candidate: int
    fields: Mapping[str, FieldAgreement] = MappingProxyType({})
    tsval_shift: int = 0
    tsecr_shift: int = 0
    window_scale_shift: int = 0
    narrowed_windows: float = 0.0  # share of windows that arrived smaller than they left
    length_changes: float = 0.0  # share of segments whose length differs from the emitted segment that holds it
    hops: int | None = None


#: Fields whose agreement a relay's stack cannot reproduce by acting alike.
HARD_FIELDS = frozenset({"timestamps", "ip-id"})


class FieldSums(NamedTuple):
    """Log-likelihood ratios of some classes of segments, summed by field."""

    by_field: Mapping[str, float]
    shared_clock_nats: float  # of timestamps, against a relay with the same clock


def sum_fields(parts: Iterable[ClassComparison]) -> FieldSums:
    """Sum every field over classes of segments."""
    by_field: dict[str, float] = {}
    shared_clock = 0.0
    for part in parts:
        for name, agreement in part.fields.items():
            by_field[name] = by_field.get(name, 0.0) + agreement.nats
            shared_clock += agreement.shared_clock_nats or 0.0
    return FieldSums(by_field, shared_clock)


def total_nats(sums: FieldSums, only: frozenset[str] | None = None, most_for_places: float = math.inf) -> float:
    """Sum over fields (`only` some), positive for same packets; a rewriter explains all disagreement of the fields that
    it rewrites. Places of acknowledgements that agree count for `most_for_places` at most."""
    total = habits = excused = 0.0
    for name, nats in sums.by_field.items():
        if only is not None and name not in only:
            continue
        if name in HABITS and nats > 0:
            habits += nats
        elif name in REWRITABLE_FIELDS and nats < 0:
            excused += nats
        elif name == "timestamps":
            total += _unless_shared_clock(nats, sums.shared_clock_nats)
        elif name == "acknowledgement":
            total += min(nats, most_for_places)
        else:
            total += nats
    return total + max(excused, -REWRITABLE_NATS) + min(habits, FITTED_NATS)


def _unless_shared_clock(nats: float, against_relay: float) -> float:
    """What timestamps say for same packets, at most what they say against a relay with the same clock, but no less
    than nothing."""
    return nats if nats <= 0 else max(0.0, min(nats, against_relay + SHARED_CLOCK_NATS))


def log_likelihood_ratio(units: float, share: float, same: float, chance: float) -> float:
    """Of `units` independent comparisons of which `share` agree: log P(same packets) / P(different packets)."""
    chance = min(max(chance, LEAST_CHANCE), 0.95)
    if units <= 0 or same <= chance:
        return 0.0
    gain = share * math.log(same / chance) + (1 - share) * math.log((1 - same) / (1 - chance))
    return max(-MOST_NATS, min(MOST_NATS, units * gain))


def compare_data(counts: _core.FieldCounts | None, largest_payload: int, lost_share: float = 0.0) -> ClassComparison:
    """Compare data segments; more than `largest_payload` bytes in one is an offload's super-packet.

    The candidates for an arrived segment are the emitted ones that hold its first byte; the one that agrees in most
    fields is its partner, timestamps first. Before that a constant shift of the timestamps is taken off, which the
    segments show whose candidates all have one timestamp. `crates/evidence` counts; None where a side shows no data.

    `lost_share` is what the emitter's capture is known to have missed: the copy that arrived may be one of those, where
    only another copy was captured.
    """
    if counts is None:
        return ClassComparison(0, 0)
    fields = _common_fields(counts, lost_share)
    if counts.push_clear:
        fields["push"] = _push_agreement(counts.push_clear, counts.push_equal, counts.push_set, lost_share)
    if counts.whole:
        fields["carried-acknowledgement"] = _carried_agreement(counts.carried, counts.carried_elsewhere)
    if counts.longest <= largest_payload:
        fields["boundaries"] = _boundary_agreement(counts.partners, counts.boundaries_equal)
    return _comparison(counts, fields, 1 - counts.whole / counts.partners if counts.partners else 0.0)


def compare_acknowledgements(
    counts: _core.FieldCounts, positions: _core.PositionCounts | None, lost_share: float
) -> ClassComparison:
    """Compare pure acknowledgements: candidates have the same sequence and acknowledgement numbers.

    `lost_share` is what the emitter's capture may have missed.
    """
    fields = _common_fields(counts, 0.0)
    if positions is not None:
        fields["acknowledgement"] = _position_agreement(
            positions.emitted, positions.possible, positions.arrived, positions.hits, positions.irregular, lost_share
        )
    return _comparison(counts, fields, 0.0)


def _comparison(counts: _core.FieldCounts, fields: dict[str, FieldAgreement], length_changes: float) -> ClassComparison:
    partners = counts.partners
    narrowed = counts.windows_narrowed / partners if partners else 0.0
    return ClassComparison(
        counts.arrived, partners, fields, counts.tsval_shift, counts.tsecr_shift, counts.window_scale_shift,
        narrowed, length_changes, counts.hops if partners else None,
    )  # fmt: skip


def _common_fields(counts: _core.FieldCounts, lost_share: float) -> dict[str, FieldAgreement]:
    """Fields that data and acknowledgements share, over matched segments."""
    same = SAME * (1 - lost_share)
    stamped, whole, partners = counts.stamped, counts.whole, counts.partners
    fields: dict[str, FieldAgreement] = {}
    if stamped:
        is_shifted = counts.tsval_shift != 0 or counts.tsecr_shift != 0
        fields["timestamps"] = _timestamp_agreement(
            stamped, counts.stamps_equal, counts.stamps_distinct, is_shifted, same
        )
    if counts.stamps_on_one_side:
        fields["timestamps-present"] = _presence_agreement(counts.stamps_known, counts.stamps_on_one_side)
    if whole and counts.ip_ids_vary:
        fields["ip-id"] = _ip_id_agreement(whole, counts.ip_ids_equal, same)
    if partners:
        fields["window"] = _window_agreement(
            partners, counts.windows_equal, counts.windows_shrink, counts.windows_distinct
        )
    return fields


@lru_cache(_REMEMBERED)
def _timestamp_agreement(stamped: int, equal: int, distinct: int, is_shifted: bool, same: float) -> FieldAgreement:
    """Agreement of (TSval, TSecr), of which so many emitted ones are distinct; `same` is the share that agrees in the
    same packets."""
    share = equal / stamped
    if not is_shifted:
        nats = log_likelihood_ratio(distinct, share, same, LEAST_CHANCE)
        return FieldAgreement(distinct, share, nats, log_likelihood_ratio(distinct, share, same, share))
    # Where delay hardly varies two stacks' clocks too differ by a near constant, and where captures lost copies a
    # firewall's true shift holds for a part of them only: a fitted shift supports what other fields say, either way.
    nats = max(-FITTED_NATS, min(FITTED_NATS, log_likelihood_ratio(distinct, share, same, 0.9)))
    return FieldAgreement(distinct, share, nats, nats)


@lru_cache(_REMEMBERED)
def _presence_agreement(known: int, on_one_side: int) -> FieldAgreement:
    """Agreement in having timestamps: neither stack leaves the option out once it was negotiated (RFC 7323 section
    3.2)."""
    share = 1 - on_one_side / known
    return FieldAgreement(known, share, min(log_likelihood_ratio(known, share, SAME, 0.5), 0.0))


@lru_cache(_REMEMBERED)
def _ip_id_agreement(whole: int, equal: int, same: float) -> FieldAgreement:
    """Agreement of IP IDs of segments of equal extent; `same` is the share that agrees in the same packets."""
    share = equal / whole
    nats = log_likelihood_ratio(whole, share, same, LEAST_CHANCE)
    return FieldAgreement(whole, share, min(IP_ID_NATS * min(1.0, whole / 4), nats))


@lru_cache(_REMEMBERED)
def _window_agreement(partners: int, equal: int, shrink: int, distinct: int) -> FieldAgreement:
    """Agreement of windows, up to a power of two (a capture that missed the SYN does not know the scale)."""
    share = equal / partners
    # Kernels grow windows alike over the same stream, so only narrowing shows who really made it.
    units = min(partners, shrink) if share >= 0.5 else distinct - 1
    return FieldAgreement(partners, share, min(WINDOW_NATS, log_likelihood_ratio(units, share, SAME, 0.5)))


@lru_cache(_REMEMBERED)
def _push_agreement(clear: int, equal: int, emitted_set: int, lost_share: float) -> FieldAgreement:
    """Agreement of PSH on segments of equal extent: no middlebox has a reason to change it.

    A first copy cut from a longer write goes without PSH, its retransmission with it, and which of them arrived may be
    unknown: segments whose copies differ do not count.
    """
    same = 0.99 * (1 - lost_share)
    share = equal / clear
    against = log_likelihood_ratio(clear, share, same, 0.5)
    # A relay of an application's writes pushes where they end too: pushes that agree convince less than pushes that
    # differ, and in a dialogue, where every segment is pushed, not at all.
    rarer = min(emitted_set, clear - emitted_set)
    nats = against if against < 0 else min(FITTED_NATS, max(0.0, log_likelihood_ratio(rarer, share, same, 0.9)))
    return FieldAgreement(clear, share, nats)


@lru_cache(_REMEMBERED)
def _carried_agreement(carried: int, elsewhere: int) -> FieldAgreement:
    """Agreement of the acknowledgements that data of equal extent carry: nothing on the way moves them elsewhere.

    Where copies carried different ones, which of them arrived may be unknown, and any of them will do.
    """
    units = max(carried, elsewhere)
    share = 1.0 - elsewhere / units if units else 0.0
    # In a dialogue each side has received everything before it answers, through a relay too: only disagreement counts.
    return FieldAgreement(units, share, min(log_likelihood_ratio(units, share, SAME, 0.5), 0.0))


@lru_cache(_REMEMBERED)
def _boundary_agreement(partners: int, equal: int) -> FieldAgreement:
    """Whether each arrived segment, of bytes that the emitter's capture holds, begins and ends where emitted ones do
    (captures without super-packets; receive offload may join whole segments)."""
    share = equal / partners if partners else 0.0
    # Two stacks cut a bulk stream alike, so agreement proves nothing; cuts at other places do.
    return FieldAgreement(partners, share, min(log_likelihood_ratio(partners, share, SAME, 0.9), 0.0))


@lru_cache(_REMEMBERED)
def _position_agreement(
    emitted: int, possible: int, arrived: int, hits: int, irregular: int, lost_share: float
) -> FieldAgreement:
    """Whether acknowledgements stand where the emitter put them.

    They may stand at the ends of the data segments that they acknowledge, but for ranges in which the emitter's capture
    missed data, and so perhaps acknowledgements too.
    """
    # How densely the emitter acknowledged is how often another stack's choice coincides with its own.
    chance = emitted / max(possible, emitted)
    hit = hits / arrived
    same = SAME * (1 - lost_share)
    nats = log_likelihood_ratio(arrived, hit, same, chance)
    if nats > 0:
        # All stacks that acknowledge every second segment do so alike: only irregular strides identify the sender.
        counted = irregular + arrived - hits
        share = irregular / counted if counted else 0.0
        nats = max(0.0, log_likelihood_ratio(counted, share, same, max(chance, 0.5)))
    return FieldAgreement(arrived, hit, nats)
