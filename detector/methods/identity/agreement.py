"""How far arrived segments agree, field by field, with the emitted ones, and what that says as a likelihood ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from detector.methods.identity.membership import among, distinct
from detector.methods.identity.places import carried_agreement, within_known_span
from detector.methods.identity.segments import (
    BoolArray,
    Segments,
    acknowledgement_candidates,
    best_candidate,
    data_candidates,
    most_common,
)
from pepscope.packets import Int64Array

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
#: Boxes that rewrite IP IDs or windows, or take timestamps away, without splitting exist (NATs give IDs of their own),
#: and tools that make captures anonymous blank timestamps: all disagreement in these fields together says no more than
#: that one connection in a hundred passes one, which alone never makes a split.
REWRITABLE_FIELDS = frozenset({"ip-id", "window", "timestamps-present"})
REWRITABLE_NATS = math.log(100.0)
#: Two stacks have one timestamp clock, offset included, where both run on one machine (a path emulated between network
#: namespaces, say): one pair of captures in a hundred thousand. Their stamps agree as often as a segment is relayed
#: within a tick, which may be any share of the time.
SHARED_CLOCK_NATS = math.log(100_000.0)
#: Firewalls gave connections other sequence numbers on one path in ten (Honda et al., IMC 2011): both SYNs with
#: another number support a split by so much, and never make one.
RENUMBERED_NATS = math.log(10.0)
#: Bound of what one field says: beyond this the model, not the data, is in doubt.
MOST_NATS = 60.0
TIMESTAMP_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class FieldAgreement:
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


def total_nats(parts: Iterable[ClassComparison], only: frozenset[str] | None = None) -> float:
    """Sum over classes and fields (`only` some), positive for same packets; a rewriter explains all disagreement of the
    field that it rewrites."""
    by_field: dict[str, float] = {}
    stamped: list[FieldAgreement] = []
    for part in parts:
        for name, agreement in part.fields.items():
            if only is not None and name not in only:
                continue
            by_field[name] = by_field.get(name, 0.0) + agreement.nats
            stamped += [agreement] if agreement.shared_clock_nats is not None else []
    if "timestamps" in by_field:
        by_field["timestamps"] = _unless_shared_clock(by_field["timestamps"], stamped)
    habits = sum(nats for name, nats in by_field.items() if name in HABITS and nats > 0)
    excused = sum(nats for name, nats in by_field.items() if name in REWRITABLE_FIELDS and nats < 0)
    return sum(by_field.values()) - excused + max(excused, -REWRITABLE_NATS) - habits + min(habits, FITTED_NATS)


def _unless_shared_clock(nats: float, stamped: Iterable[FieldAgreement]) -> float:
    """What timestamps say for same packets, at most what they say against a relay with the same clock, but no less
    than nothing."""
    if nats <= 0:
        return nats
    against_relay = sum(agreement.shared_clock_nats or 0.0 for agreement in stamped)
    return max(0.0, min(nats, against_relay + SHARED_CLOCK_NATS))


def log_likelihood_ratio(units: float, share: float, same: float, chance: float) -> float:
    """Of `units` independent comparisons of which `share` agree: log P(same packets) / P(different packets)."""
    chance = min(max(chance, LEAST_CHANCE), 0.95)
    if units <= 0 or same <= chance:
        return 0.0
    gain = share * math.log(same / chance) + (1 - share) * math.log((1 - same) / (1 - chance))
    return max(-MOST_NATS, min(MOST_NATS, units * gain))


def compare_data(
    emitted: Segments, arrived: Segments, largest_payload: int, lost_share: float = 0.0
) -> ClassComparison:
    """Compare data segments; more than `largest_payload` bytes in one is an offload's super-packet.

    `lost_share` is what the emitter's capture is known to have missed: the copy that arrived may be one of those, where
    only another copy was captured.
    """
    if len(emitted) == 0 or len(arrived) == 0:
        return ClassComparison(0, 0)
    inside = (arrived.start >= emitted.start.min()) & (arrived.start < emitted.end.max())
    arrived = arrived.take(inside)
    rows = data_candidates(emitted, arrived)
    shift = _timestamp_shift(emitted, arrived, rows)
    arrived = _unshifted(arrived, shift)
    ids = _ip_id_informative(emitted, arrived)
    scores = _scores(emitted, arrived, rows, ids)
    partner = best_candidate(rows, scores)
    found = partner >= 0
    left, came = emitted.take(partner[found]), arrived.take(found)
    whole = (left.start == came.start) & (left.length == came.length)
    result = _compare_common(left, came, ids, whole, shift, lost_share)
    fields = result.fields
    offload = max(int(emitted.length.max()), int(arrived.length.max(initial=0))) > largest_payload
    clear = whole & ~_copies_differ_in_push(emitted, rows[found])
    if clear.any():
        fields["push"] = _push_agreement(left.push[clear], came.push[clear], lost_share)
    if whole.any():
        fields["carried-acknowledgement"] = _carried(emitted, rows[found][whole], left.take(whole), came.take(whole))
    if not offload:
        fields["boundaries"] = _boundary_agreement(emitted, came)
    changed = float(1 - whole.mean()) if len(whole) else 0.0
    return ClassComparison(
        len(arrived), int(found.sum()), fields, result.tsval_shift, result.tsecr_shift, result.window_scale_shift,
        result.narrowed_windows, changed, result.hops,
    )  # fmt: skip


def compare_acknowledgements(
    emitted: Segments,
    arrived: Segments,
    lost_share: float,
    boundaries: Int64Array,
    unseen: tuple[Int64Array, Int64Array],
    carried: Int64Array,
) -> ClassComparison:
    """Compare pure acknowledgements. `lost_share` is what the emitter's capture may have missed, `carried` are the
    numbers that the emitter's data acknowledged; for the other two see `_position_agreement`."""
    arrived = arrived.take(within_known_span(arrived.acknowledgement, emitted.acknowledgement, carried))
    if len(arrived) == 0 or len(emitted) + len(carried) == 0:
        return ClassComparison(0, 0)
    if len(emitted) == 0:
        position = _position_agreement(emitted, arrived, lost_share, boundaries, unseen)
        return ClassComparison(len(arrived), 0, {} if position is None else {"acknowledgement": position})
    ids = _ip_id_informative(emitted, arrived)
    shift = _timestamp_shift(emitted, arrived, acknowledgement_candidates(emitted, arrived, ("window",)))
    arrived = _unshifted(arrived, shift)
    rows = acknowledgement_candidates(emitted, arrived, _discriminators(emitted, arrived, ids))
    partner = best_candidate(rows, _scores(emitted, arrived, rows, ids))
    found = partner >= 0
    left, came = emitted.take(partner[found]), arrived.take(found)
    result = _compare_common(left, came, ids, np.ones(len(came), dtype=np.bool_), shift)
    fields = result.fields
    position = _position_agreement(emitted, arrived, lost_share, boundaries, unseen)
    if position is not None:
        fields["acknowledgement"] = position
    return ClassComparison(
        len(arrived), int(found.sum()), fields, result.tsval_shift, result.tsecr_shift, result.window_scale_shift,
        result.narrowed_windows, 0.0, result.hops,
    )  # fmt: skip


def _discriminators(emitted: Segments, arrived: Segments, ids: bool) -> tuple[str, ...]:
    """The fields that tell pure acknowledgements with equal numbers apart, where both captures hold them."""
    without_stamps = "ip_id" if ids else "window"
    if not (emitted.has_timestamps.any() and arrived.has_timestamps.any()):
        return (without_stamps,)
    cut = not (emitted.stamps_captured.all() and arrived.stamps_captured.all())
    return ("tsval", without_stamps) if cut else ("tsval",)


def _scores(emitted: Segments, arrived: Segments, rows: Int64Array, ids: bool) -> Int64Array:
    """Rank candidates by the number of fields in which they agree, timestamps first."""
    at = np.maximum(rows, 0)
    stamped = emitted.has_timestamps[at] & arrived.has_timestamps[:, None]
    score = 8 * (stamped & (emitted.tsval[at] == arrived.tsval[:, None])).astype(np.int64)
    score += 4 * (stamped & (emitted.tsecr[at] == arrived.tsecr[:, None]))
    if ids:
        score += 2 * (emitted.ip_id[at] == arrived.ip_id[:, None])
    score += emitted.window[at] == arrived.window[:, None]
    return np.asarray(score)


def _ip_id_informative(emitted: Segments, arrived: Segments) -> bool:
    """Whether both sides count IP IDs (a constant one is zeroed, or IPv6)."""
    return all(len(s) > 1 and int(s.ip_id.min()) != int(s.ip_id.max()) for s in (emitted, arrived))


def _compare_common(
    left: Segments, came: Segments, ids: bool, whole: BoolArray, shift: tuple[int, int], lost_share: float = 0.0
) -> ClassComparison:
    """Fields that data and acknowledgements share, over matched segments."""
    same = SAME * (1 - lost_share)
    fields: dict[str, FieldAgreement] = {}
    total = len(came)
    if total == 0:
        return ClassComparison(0, 0)
    stamped = left.has_timestamps & came.has_timestamps
    if stamped.any():
        fields["timestamps"] = _timestamp_agreement(left.take(stamped), came.take(stamped), shift != (0, 0), same)
    known = left.stamps_captured & came.stamps_captured
    differs = known & (left.has_timestamps != came.has_timestamps)
    if differs.any():
        # Neither stack leaves the option out once it was negotiated (RFC 7323 section 3.2).
        compared, share = int(known.sum()), float(1 - differs.sum() / known.sum())
        nats = log_likelihood_ratio(compared, share, SAME, 0.5)
        fields["timestamps-present"] = FieldAgreement(compared, share, min(nats, 0.0))
    if ids and whole.any():
        equal = float((left.ip_id[whole] == came.ip_id[whole]).mean())
        count = int(whole.sum())
        nats = log_likelihood_ratio(count, equal, same, LEAST_CHANCE)
        fields["ip-id"] = FieldAgreement(count, equal, min(IP_ID_NATS * min(1.0, count / 4), nats))
    scale, fields["window"] = _window_agreement(left.window, came.window)
    scaled = np.where(scale >= 0, came.window << max(scale, 0), came.window >> max(-scale, 0))
    hops = most_common(left.ttl - came.ttl)[0]
    return ClassComparison(
        total, total, fields, *shift, scale, float((scaled < left.window).mean()), 0.0, hops
    )  # fmt: skip


def _timestamp_shift(emitted: Segments, arrived: Segments, rows: Int64Array) -> tuple[int, int]:
    """Constant shifts of TSval and TSecr, (0, 0) unless half the segments with a single candidate say otherwise."""
    if rows.size == 0:
        return 0, 0
    candidate = rows.max(axis=1)
    # Copies that a capture holds twice are one candidate, and so are others with the same stamps.
    at = np.maximum(rows, 0)
    alike = (emitted.tsval[at] == emitted.tsval[candidate][:, None]) & (
        emitted.tsecr[at] == emitted.tsecr[candidate][:, None]
    )
    single = (candidate >= 0) & (alike | (rows < 0)).all(axis=1)
    single &= arrived.has_timestamps & emitted.has_timestamps[candidate]
    value, value_share = most_common((arrived.tsval - emitted.tsval[candidate])[single] % TIMESTAMP_WRAP)
    echo, echo_share = most_common((arrived.tsecr - emitted.tsecr[candidate])[single] % TIMESTAMP_WRAP)
    return (value, echo) if min(value_share, echo_share) >= 0.5 else (0, 0)


def _unshifted(arrived: Segments, shift: tuple[int, int]) -> Segments:
    """The segments with these shifts of TSval and TSecr taken off."""
    if shift == (0, 0):
        return arrived
    return replace(
        arrived,
        tsval=(arrived.tsval - shift[0]) % TIMESTAMP_WRAP,
        tsecr=(arrived.tsecr - shift[1]) % TIMESTAMP_WRAP,
    )


def _timestamp_agreement(left: Segments, came: Segments, fitted: bool, same: float) -> FieldAgreement:
    """Agreement of (TSval, TSecr); `fitted` where a shift was taken off first, `same` the share that agrees in the same
    packets."""
    share = float(((left.tsval == came.tsval) & (left.tsecr == came.tsecr)).mean())
    units = len(distinct(left.tsval * np.int64(1 << 20) ^ left.tsecr))
    if not fitted:
        nats = log_likelihood_ratio(units, share, same, LEAST_CHANCE)
        return FieldAgreement(units, share, nats, log_likelihood_ratio(units, share, same, share))
    # Where delay hardly varies two stacks' clocks too differ by a near constant, and where captures lost copies a
    # firewall's true shift holds for a part of them only: a fitted shift supports what other fields say, either way.
    nats = max(-FITTED_NATS, min(FITTED_NATS, log_likelihood_ratio(units, share, same, 0.9)))
    return FieldAgreement(units, share, nats, nats)


def _window_agreement(left: Int64Array, came: Int64Array) -> tuple[int, FieldAgreement]:
    """Agreement of windows, up to a power of two (a capture that missed the SYN does not know the scale)."""
    positive = (left > 0) & (came > 0)
    scale = 0
    if positive.any() and not (left == came).mean() >= 0.5:
        ratio = np.log2(left[positive] / came[positive])
        rounded = np.rint(ratio).astype(np.int64)
        exact = np.abs(ratio - rounded) < 1e-9
        common, share = most_common(np.where(exact, rounded, 99))
        scale = common if share > 0.5 and abs(common) <= 14 else 0
    scaled = came << scale if scale >= 0 else came
    equal = scaled == (left if scale >= 0 else left << -scale)
    share = float(equal.mean())
    # Kernels grow windows alike over the same stream, so only narrowing shows who really made it.
    narrowing = int(np.count_nonzero(np.diff(left) < 0))
    units = min(len(left), narrowing) if share >= 0.5 else len(distinct(left)) - 1
    nats = log_likelihood_ratio(units, share, SAME, 0.5)
    return scale, FieldAgreement(len(left), share, min(WINDOW_NATS, nats))


def _copies_differ_in_push(emitted: Segments, rows: Int64Array) -> BoolArray:
    """Where one candidate bears PSH and another does not: a first copy cut from a longer write goes without, its
    retransmission with it, and which of them arrived may be unknown."""
    there = rows >= 0
    pushed = emitted.push[np.maximum(rows, 0)]
    return np.asarray((there & pushed).any(axis=1) & (there & ~pushed).any(axis=1))


def _push_agreement(left: BoolArray, came: BoolArray, lost_share: float) -> FieldAgreement:
    """Agreement of PSH on segments of equal extent: nobody on the way has a reason to change it."""
    same = 0.99 * (1 - lost_share)
    share = float((left == came).mean())
    against = log_likelihood_ratio(len(left), share, same, 0.5)
    # A relay of an application's writes pushes where they end too: pushes that agree convince less than pushes that
    # differ, and in a dialogue, where every segment is pushed, not at all.
    rarer = min(int(left.sum()), int((~left).sum()))
    nats = against if against < 0 else min(FITTED_NATS, max(0.0, log_likelihood_ratio(rarer, share, same, 0.9)))
    return FieldAgreement(len(left), share, nats)


def _carried(emitted: Segments, rows: Int64Array, left: Segments, came: Segments) -> FieldAgreement:
    """Agreement of the acknowledgements that data carry: nothing on the way moves them between segments."""
    units, share = carried_agreement(emitted, rows, left, came)
    # In a dialogue each side has got all before it answers, through a relay too: only disagreement says something.
    return FieldAgreement(units, share, min(log_likelihood_ratio(units, share, SAME, 0.5), 0.0))


def _boundary_agreement(emitted: Segments, came: Segments) -> FieldAgreement:
    """Whether each arrived segment, of bytes that the emitter's capture holds, begins and ends where emitted ones do
    (captures without super-packets; receive offload may join whole segments)."""
    begins = among(came.start, np.sort(emitted.start))
    ends = among(came.end, np.sort(emitted.end))
    share = float((begins & ends).mean()) if len(came) else 0.0
    # Two stacks cut a bulk stream alike, so agreement proves nothing; cuts at other places do.
    return FieldAgreement(len(came), share, min(log_likelihood_ratio(len(came), share, SAME, 0.9), 0.0))


def _position_agreement(
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
    nats = log_likelihood_ratio(len(asked), float(hit.mean()), same, chance)
    if nats > 0:
        # Stacks that acknowledge every second segment do so alike: only irregular strides tell who did it.
        strides = np.diff(known)
        irregular = among(asked, known[1:][strides != most_common(strides)[0]])
        strange = ~hit
        counted = irregular | strange
        share = float(hit[counted].mean()) if counted.any() else 0.0
        nats = max(0.0, log_likelihood_ratio(int(counted.sum()), share, same, max(chance, 0.5)))
    return FieldAgreement(len(asked), float(hit.mean()), nats)
