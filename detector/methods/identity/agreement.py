"""How far arrived segments agree, field by field, with the emitted ones, as a likelihood ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
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


class FieldAgreement(NamedTuple):
    """One field over one class of segments: how many informative ones were compared, the share that agrees, and the
    natural-log likelihood ratio of same packets against different ones."""

    compared: int
    agreeing: float
    nats: float
    #: The same against a different stack that has the same clock; `None` for fields that no clock makes.
    shared_clock_nats: float | None = None


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """Data segments or pure acknowledgements of one packet direction, arrived against emitted."""

    arrived: int  # within the span that both captures cover
    with_candidate: int
    fields: dict[str, FieldAgreement] = field(default_factory=dict)
    tsval_shift: int = 0
    tsecr_shift: int = 0
    window_scale_shift: int = 0
    narrowed_windows: float = 0.0  # share of windows that arrived smaller than they left
    length_changes: float = 0.0  # share of segments whose length differs from the emitted segment that holds it
    hops: int | None = None


#: Fields whose agreement a relay's stack cannot reproduce by acting alike.
HARD_FIELDS = frozenset({"timestamps", "ip-id"})


def total_nats(
    parts: Iterable[ClassComparison], only: frozenset[str] | None = None, most_for_places: float = math.inf
) -> float:
    """Sum over classes and fields (`only` some), positive for same packets; a rewriter explains all disagreement of the
    field that it rewrites. Places of acknowledgements that agree count for `most_for_places` at most."""
    by_field: dict[str, float] = {}
    shared_clock = 0.0
    for part in parts:
        for name, agreement in part.fields.items():
            if only is not None and name not in only:
                continue
            by_field[name] = by_field.get(name, 0.0) + agreement.nats
            shared_clock += agreement.shared_clock_nats or 0.0
    if "timestamps" in by_field:
        by_field["timestamps"] = _unless_shared_clock(by_field["timestamps"], shared_clock)
    if "acknowledgement" in by_field:
        by_field["acknowledgement"] = min(by_field["acknowledgement"], most_for_places)
    habits = sum(nats for name, nats in by_field.items() if name in HABITS and nats > 0)
    excused = sum(nats for name, nats in by_field.items() if name in REWRITABLE_FIELDS and nats < 0)
    return sum(by_field.values()) - excused + max(excused, -REWRITABLE_NATS) - habits + min(habits, FITTED_NATS)


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
        fields["push"] = _push_agreement(counts, lost_share)
    if counts.whole:
        fields["carried-acknowledgement"] = _carried_agreement(counts)
    if counts.longest <= largest_payload:
        fields["boundaries"] = _boundary_agreement(counts)
    return _comparison(counts, fields, 1 - counts.whole / counts.partners if counts.partners else 0.0)


def compare_acknowledgements(
    counts: _core.FieldCounts, positions: _core.PositionCounts | None, lost_share: float
) -> ClassComparison:
    """Compare pure acknowledgements: candidates have the same sequence and acknowledgement numbers.

    `lost_share` is what the emitter's capture may have missed.
    """
    fields = _common_fields(counts, 0.0)
    if positions is not None:
        fields["acknowledgement"] = _position_agreement(positions, lost_share)
    return _comparison(counts, fields, 0.0)


def _comparison(counts: _core.FieldCounts, fields: dict[str, FieldAgreement], length_changes: float) -> ClassComparison:
    narrowed = counts.windows_narrowed / counts.partners if counts.partners else 0.0
    return ClassComparison(
        counts.arrived, counts.partners, fields, counts.tsval_shift, counts.tsecr_shift, counts.window_scale_shift,
        narrowed, length_changes, counts.hops if counts.partners else None,
    )  # fmt: skip


def _common_fields(counts: _core.FieldCounts, lost_share: float) -> dict[str, FieldAgreement]:
    """Fields that data and acknowledgements share, over matched segments."""
    same = SAME * (1 - lost_share)
    fields: dict[str, FieldAgreement] = {}
    if counts.stamped:
        fields["timestamps"] = _timestamp_agreement(counts, same)
    if counts.stamps_on_one_side:
        # Neither stack leaves the option out once it was negotiated (RFC 7323 section 3.2).
        share = 1 - counts.stamps_on_one_side / counts.stamps_known
        nats = log_likelihood_ratio(counts.stamps_known, share, SAME, 0.5)
        fields["timestamps-present"] = FieldAgreement(counts.stamps_known, share, min(nats, 0.0))
    if counts.ip_ids_vary and counts.whole:
        equal = counts.ip_ids_equal / counts.whole
        nats = log_likelihood_ratio(counts.whole, equal, same, LEAST_CHANCE)
        nats = min(IP_ID_NATS * min(1.0, counts.whole / 4), nats)
        fields["ip-id"] = FieldAgreement(counts.whole, equal, nats)
    if counts.partners:
        fields["window"] = _window_agreement(counts)
    return fields


def _timestamp_agreement(counts: _core.FieldCounts, same: float) -> FieldAgreement:
    """Agreement of (TSval, TSecr); `same` is the share that agrees in the same packets."""
    units, share = counts.stamps_distinct, counts.stamps_equal / counts.stamped
    if (counts.tsval_shift, counts.tsecr_shift) == (0, 0):
        nats = log_likelihood_ratio(units, share, same, LEAST_CHANCE)
        return FieldAgreement(units, share, nats, log_likelihood_ratio(units, share, same, share))
    # Where delay hardly varies two stacks' clocks too differ by a near constant, and where captures lost copies a
    # firewall's true shift holds for a part of them only: a fitted shift supports what other fields say, either way.
    nats = max(-FITTED_NATS, min(FITTED_NATS, log_likelihood_ratio(units, share, same, 0.9)))
    return FieldAgreement(units, share, nats, nats)


def _window_agreement(counts: _core.FieldCounts) -> FieldAgreement:
    """Agreement of windows, up to a power of two (a capture that missed the SYN does not know the scale)."""
    share = counts.windows_equal / counts.partners
    # Kernels grow windows alike over the same stream, so only narrowing shows who really made it.
    units = min(counts.partners, counts.windows_shrink) if share >= 0.5 else counts.windows_distinct - 1
    return FieldAgreement(counts.partners, share, min(WINDOW_NATS, log_likelihood_ratio(units, share, SAME, 0.5)))


def _push_agreement(counts: _core.FieldCounts, lost_share: float) -> FieldAgreement:
    """Agreement of PSH on segments of equal extent: no middlebox has a reason to change it.

    A first copy cut from a longer write goes without PSH, its retransmission with it, and which of them arrived may be
    unknown: segments whose copies differ do not count.
    """
    same = 0.99 * (1 - lost_share)
    share = counts.push_equal / counts.push_clear
    against = log_likelihood_ratio(counts.push_clear, share, same, 0.5)
    # A relay of an application's writes pushes where they end too: pushes that agree convince less than pushes that
    # differ, and in a dialogue, where every segment is pushed, not at all.
    rarer = min(counts.push_set, counts.push_clear - counts.push_set)
    nats = against if against < 0 else min(FITTED_NATS, max(0.0, log_likelihood_ratio(rarer, share, same, 0.9)))
    return FieldAgreement(counts.push_clear, share, nats)


def _carried_agreement(counts: _core.FieldCounts) -> FieldAgreement:
    """Agreement of the acknowledgements that data of equal extent carry: nothing on the way moves them elsewhere.

    Where copies carried different ones, which of them arrived may be unknown, and any of them will do.
    """
    units = max(counts.carried, counts.carried_elsewhere)
    share = 1.0 - counts.carried_elsewhere / units if units else 0.0
    # In a dialogue each side has received everything before it answers, through a relay too: only disagreement counts.
    return FieldAgreement(units, share, min(log_likelihood_ratio(units, share, SAME, 0.5), 0.0))


def _boundary_agreement(counts: _core.FieldCounts) -> FieldAgreement:
    """Whether each arrived segment, of bytes that the emitter's capture holds, begins and ends where emitted ones do
    (captures without super-packets; receive offload may join whole segments)."""
    share = counts.boundaries_equal / counts.partners if counts.partners else 0.0
    # Two stacks cut a bulk stream alike, so agreement proves nothing; cuts at other places do.
    nats = min(log_likelihood_ratio(counts.partners, share, SAME, 0.9), 0.0)
    return FieldAgreement(counts.partners, share, nats)


def _position_agreement(counts: _core.PositionCounts, lost_share: float) -> FieldAgreement:
    """Whether acknowledgements stand where the emitter put them.

    They may stand at the ends of the data segments that they acknowledge, but for ranges in which the emitter's capture
    missed data, and so perhaps acknowledgements too.
    """
    # How densely the emitter acknowledged is how often another stack's choice coincides with its own.
    chance = counts.emitted / max(counts.possible, counts.emitted)
    hit = counts.hits / counts.arrived
    same = SAME * (1 - lost_share)
    nats = log_likelihood_ratio(counts.arrived, hit, same, chance)
    if nats > 0:
        # All stacks that acknowledge every second segment do so alike: only irregular strides identify the sender.
        counted = counts.irregular + counts.arrived - counts.hits
        share = counts.irregular / counted if counted else 0.0
        nats = max(0.0, log_likelihood_ratio(counted, share, same, max(chance, 0.5)))
    return FieldAgreement(counts.arrived, hit, nats)
