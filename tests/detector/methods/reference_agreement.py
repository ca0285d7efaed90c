"""Agreement of header fields in NumPy, field by field: what the compiled counts are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.methods.identity.agreement import (
    FITTED_NATS,
    IP_ID_NATS,
    LEAST_CHANCE,
    SAME,
    WINDOW_NATS,
    ClassComparison,
    FieldAgreement,
    log_likelihood_ratio,
)
from detector.methods.identity.segments import COPIES
from pepscope.captures.packets import BoolArray, Int64Array
from tests.detector.methods.reference_membership import among, distinct
from tests.detector.methods.reference_segments import Segments, most_common

TIMESTAMP_WRAP = 1 << 32
_MIX = np.int64(-7046029254386353131)  # odd, from the golden ratio: spreads keys over 64 bits


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
    fields = dict(result.fields)
    offload = max(int(emitted.length.max()), int(arrived.length.max(initial=0))) > largest_payload
    clear = whole & ~_copies_differ_in_push(emitted, rows[found])
    if clear.any():
        fields["push"] = _push_agreement(left.push[clear], came.push[clear], lost_share)
    if whole.any():
        fields["carried-acknowledgement"] = _carried(emitted, rows[found][whole], left.take(whole), came.take(whole))
    if not offload:
        boundaries, are_pieces = _boundary_agreement(emitted, came, rows[found])
        on_one_side = (left.has_timestamps != came.has_timestamps) & left.stamps_captured & came.stamps_captured
        fields["pieces" if are_pieces and not on_one_side.any() else "boundaries"] = boundaries
    changed = float(1 - whole.mean()) if len(whole) else 0.0
    return ClassComparison(
        len(arrived), int(found.sum()), fields, result.tsval_shift, result.tsecr_shift, result.window_scale_shift,
        result.narrowed_windows, changed, result.hops,
    )  # fmt: skip


def compare_acknowledgements(emitted: Segments, arrived: Segments) -> ClassComparison:
    """Compare pure acknowledgements of one span, but for the places where they stand."""
    if len(arrived) == 0 or len(emitted) == 0:
        return ClassComparison(len(arrived), 0)
    ids = _ip_id_informative(emitted, arrived)
    shift = _timestamp_shift(emitted, arrived, acknowledgement_candidates(emitted, arrived, ("window",)))
    arrived = _unshifted(arrived, shift)
    rows = acknowledgement_candidates(emitted, arrived, _discriminators(emitted, arrived, ids))
    partner = best_candidate(rows, _scores(emitted, arrived, rows, ids))
    found = partner >= 0
    left, came = emitted.take(partner[found]), arrived.take(found)
    result = _compare_common(left, came, ids, np.ones(len(came), dtype=np.bool_), shift)
    return result._replace(arrived=len(arrived), with_candidate=int(found.sum()))


def _discriminators(emitted: Segments, arrived: Segments, ids: bool) -> tuple[str, ...]:
    """The fields that tell pure acknowledgements with equal numbers apart, where both captures hold them."""
    without_stamps = "ip_id" if ids else "window"
    if not (emitted.has_timestamps.any() and arrived.has_timestamps.any()):
        return (without_stamps,)
    cut = not (emitted.stamps_captured.all() and arrived.stamps_captured.all())
    # Several may be sent within a tick of the timestamp clock.
    return ("tsval", without_stamps) if ids or cut else ("tsval",)


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
    return arrived.replaced(
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
    """Agreement of PSH on segments of equal extent: no middlebox has a reason to change it."""
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


def _boundary_agreement(emitted: Segments, came: Segments, rows: Int64Array) -> tuple[FieldAgreement, bool]:
    """Whether each arrived segment, of bytes that the emitter's capture holds, begins and ends where emitted ones do
    (captures without super-packets; receive offload may join whole segments), and whether those that do not lie within
    one of the candidates in `rows`."""
    begins = among(came.start, np.sort(emitted.start))
    ends = among(came.end, np.sort(emitted.end))
    share = float((begins & ends).mean()) if len(came) else 0.0
    within = ((rows >= 0) & (emitted.end[rows] >= came.end[:, None])).any(axis=1) | (begins & ends)
    held = log_likelihood_ratio(len(came), float(within.mean()) if len(came) else 0.0, SAME, 0.5)
    # Two stacks cut a bulk stream alike, so agreement proves nothing; cuts at other places do.
    nats = min(log_likelihood_ratio(len(came), share, SAME, 0.9), 0.0)
    return FieldAgreement(len(came), share, nats), nats < 0 < held


def data_candidates(emitted: Segments, arrived: Segments) -> Int64Array:
    """For each arrived data segment the emitted ones that hold its first byte, as rows of indices; -1 for none.

    Containment rather than equality, because a capture at an offloading host shows super-packets. The first column is
    the first copy sent (first copies do not overlap), the others are retransmissions.
    """
    rows = np.full((len(arrived), COPIES), -1, dtype=np.int64)
    first = np.flatnonzero(emitted.first_copy)
    again = np.flatnonzero(~emitted.first_copy)
    for column, (pool, depth) in enumerate(((first, 1), (again, COPIES - 1))):
        if len(pool) == 0:
            continue
        pool = pool[np.argsort(emitted.start[pool], kind="stable")]
        last = np.searchsorted(emitted.start[pool], arrived.start, side="right") - 1
        for back in range(depth):
            place = last - back
            chosen = pool[np.maximum(place, 0)]
            holds = (place >= 0) & (emitted.end[chosen] > arrived.start)
            rows[:, column + back] = np.where(holds, chosen, -1)
    return rows


def acknowledgement_candidates(emitted: Segments, arrived: Segments, discriminators: Sequence[str]) -> Int64Array:
    """For each arrived pure ACK the emitted ones with its sequence and acknowledgement numbers; -1 for none.

    Runs of duplicate ACKs can be long: two columns for each discriminator are the first and last that agree in it too,
    the last two columns the first and last of the whole run.
    """
    rows = np.full((len(arrived), 2 * len(discriminators) + 2), -1, dtype=np.int64)
    plain_emitted, plain_arrived = (s.acknowledgement * _MIX + s.start for s in (emitted, arrived))
    if len(emitted) == 0:
        return rows
    sought = [
        (plain_emitted * _MIX + getattr(emitted, name), plain_arrived * _MIX + getattr(arrived, name))
        for name in discriminators
    ]
    for column, (keys, asked) in enumerate([*sought, (plain_emitted, plain_arrived)]):
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        ends = np.searchsorted(ordered, asked, side="left"), np.searchsorted(ordered, asked, side="right") - 1
        for which, place in enumerate(ends):
            chosen = order[np.clip(place, 0, len(order) - 1)]
            rows[:, 2 * column + which] = np.where(keys[chosen] == asked, chosen, -1)
    return rows


def best_candidate(rows: Int64Array, scores: Int64Array) -> Int64Array:
    """Of each row of candidates the one with the best score (rows and scores of one shape); -1 where there is none."""
    if rows.size == 0:
        return np.full(len(rows), -1, dtype=np.int64)
    masked = np.where(rows >= 0, scores, -1)
    pick = np.argmax(masked, axis=1)
    return np.asarray(rows[np.arange(len(rows)), pick])


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
