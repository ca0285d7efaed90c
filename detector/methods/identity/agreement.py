"""How far arrived segments agree, field by field, with the emitted ones, and what that is worth as a likelihood ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

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
#: Boxes that rewrite IP IDs or windows without splitting are common: disagreement there says no more than this.
REWRITABLE_NATS = 3.0
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

    @property
    def nats(self) -> float:
        """Sum over fields: positive for same packets."""
        return sum(f.nats for f in self.fields.values())


def log_likelihood_ratio(units: float, share: float, same: float, chance: float) -> float:
    """Of `units` independent comparisons of which `share` agree: log P(same packets) / P(different packets)."""
    chance = min(max(chance, LEAST_CHANCE), 0.95)
    if units <= 0 or same <= chance:
        return 0.0
    gain = share * math.log(same / chance) + (1 - share) * math.log((1 - same) / (1 - chance))
    return max(-MOST_NATS, min(MOST_NATS, units * gain))


def compare_data(emitted: Segments, arrived: Segments, lost_share: float, largest_payload: int) -> ClassComparison:
    """Compare data segments. `lost_share` is what the emitter's capture is known to have missed."""
    if len(emitted) == 0 or len(arrived) == 0:
        return ClassComparison(0, 0)
    inside = (arrived.start >= emitted.start.min()) & (arrived.start < emitted.end.max())
    arrived = arrived.take(inside)
    rows = data_candidates(emitted, arrived)
    ids = _ip_id_informative(emitted, arrived)
    scores = _scores(emitted, arrived, rows, ids)
    partner = best_candidate(rows, scores)
    found = partner >= 0
    left, came = emitted.take(partner[found]), arrived.take(found)
    whole = (left.start == came.start) & (left.length == came.length)
    result = _compare_common(left, came, ids, whole, ambiguous=True)
    fields = result.fields
    offload = max(int(emitted.length.max()), int(arrived.length.max(initial=0))) > largest_payload
    if whole.any():
        fields["push"] = _push_agreement(left.push[whole], came.push[whole])
    if not offload:
        fields["boundaries"] = _boundary_agreement(emitted, arrived, lost_share)
    changed = float(1 - whole.mean()) if len(whole) else 0.0
    return ClassComparison(
        len(arrived), int(found.sum()), fields, result.tsval_shift, result.tsecr_shift, result.window_scale_shift,
        result.narrowed_windows, changed, result.hops,
    )  # fmt: skip


def compare_acknowledgements(
    emitted: Segments, arrived: Segments, lost_share: float, boundaries: Int64Array
) -> ClassComparison:
    """Compare pure acknowledgements. `boundaries` are the ends of data segments that could have been acknowledged."""
    if len(emitted) == 0 or len(arrived) == 0:
        return ClassComparison(0, 0)
    low, high = emitted.acknowledgement.min(), emitted.acknowledgement.max()
    arrived = arrived.take((arrived.acknowledgement >= low) & (arrived.acknowledgement <= high))
    ids = _ip_id_informative(emitted, arrived)
    stamped = emitted.has_timestamps.any() and arrived.has_timestamps.any()
    discriminator = "tsval" if stamped else "ip_id" if ids else "window"
    rows = acknowledgement_candidates(emitted, arrived, discriminator)
    partner = best_candidate(rows, _scores(emitted, arrived, rows, ids))
    found = partner >= 0
    left, came = emitted.take(partner[found]), arrived.take(found)
    result = _compare_common(left, came, ids, np.ones(len(came), dtype=np.bool_), ambiguous=False)
    fields = result.fields
    known = np.unique(emitted.acknowledgement)
    asked = np.unique(arrived.acknowledgement)
    possible = np.unique(boundaries[(boundaries >= low) & (boundaries <= high)])
    if len(possible) and len(asked):
        # How densely the emitter acknowledged is how often another stack's choice coincides with its own.
        chance = len(known) / max(len(possible), len(known))
        share = float(np.isin(asked, known).mean())
        same = SAME * (1 - lost_share)
        nats = log_likelihood_ratio(len(asked), share, same, chance)
        fields["acknowledgement"] = FieldAgreement(len(asked), share, nats)
    return ClassComparison(
        len(arrived), int(found.sum()), fields, result.tsval_shift, result.tsecr_shift, result.window_scale_shift,
        result.narrowed_windows, 0.0, result.hops,
    )  # fmt: skip


def _scores(emitted: Segments, arrived: Segments, rows: Int64Array, ids: bool) -> Int64Array:
    """Rank candidates by the number of fields in which they agree, timestamps first."""
    at = np.maximum(rows, 0)
    score = 8 * (emitted.tsval[at] == arrived.tsval[:, None]).astype(np.int64)
    score += 4 * (emitted.tsecr[at] == arrived.tsecr[:, None])
    if ids:
        score += 2 * (emitted.ip_id[at] == arrived.ip_id[:, None])
    score += emitted.window[at] == arrived.window[:, None]
    return score


def _ip_id_informative(emitted: Segments, arrived: Segments) -> bool:
    """Whether both sides count IP IDs (a constant one is zeroed, or IPv6)."""
    return all(len(s) > 1 and int(s.ip_id.min()) != int(s.ip_id.max()) for s in (emitted, arrived))


def _compare_common(left: Segments, came: Segments, ids: bool, whole: BoolArray, ambiguous: bool) -> ClassComparison:
    """Fields that data and acknowledgements share, over matched segments."""
    fields: dict[str, FieldAgreement] = {}
    total = len(came)
    if total == 0:
        return ClassComparison(0, 0)
    tsval_shift = tsecr_shift = 0
    stamped = left.has_timestamps & came.has_timestamps
    if stamped.any():
        tsval_shift, tsecr_shift, fields["timestamps"] = _timestamp_agreement(left.take(stamped), came.take(stamped))
    mismatch = float((left.has_timestamps != came.has_timestamps).mean())
    if mismatch > 0:
        # Neither stack leaves the option out once it was negotiated (RFC 7323 section 3.2).
        nats = log_likelihood_ratio(total, 1 - mismatch, SAME, 0.5)
        fields["timestamps-present"] = FieldAgreement(total, 1 - mismatch, min(nats, 0.0))
    if ids and whole.any():
        equal = left.ip_id[whole] == came.ip_id[whole]
        nats = log_likelihood_ratio(len(equal), float(equal.mean()), SAME, LEAST_CHANCE)
        fields["ip-id"] = FieldAgreement(
            len(equal), float(equal.mean()), max(-REWRITABLE_NATS, min(IP_ID_NATS * min(1.0, len(equal) / 4), nats))
        )
    scale, fields["window"] = _window_agreement(left.window, came.window)
    scaled = np.where(scale >= 0, came.window << max(scale, 0), came.window >> max(-scale, 0))
    hops = most_common(left.ttl - came.ttl)[0]
    return ClassComparison(
        total, total, fields, tsval_shift, tsecr_shift, scale, float((scaled < left.window).mean()), 0.0, hops
    )  # fmt: skip


def _timestamp_agreement(left: Segments, came: Segments) -> tuple[int, int, FieldAgreement]:
    """Agreement of (TSval, TSecr), after a constant shift of each where firewalls modulate them."""
    value = (came.tsval - left.tsval) % TIMESTAMP_WRAP
    echo = (came.tsecr - left.tsecr) % TIMESTAMP_WRAP
    equal = (value == 0) & (echo == 0)
    units = len(np.unique(left.tsval * np.int64(1 << 20) ^ left.tsecr))
    share = float(equal.mean())
    if share >= 0.5:
        return 0, 0, FieldAgreement(units, share, log_likelihood_ratio(units, share, SAME, LEAST_CHANCE))
    value_shift, echo_shift = most_common(value)[0], most_common(echo)[0]
    fitted = (value == value_shift) & (echo == echo_shift)
    fitted_share = float(fitted.mean())
    # Where delay hardly varies two stacks' clocks too differ by a near constant: a fitted shift must hold without
    # exception, and even then only supports what other fields say.
    nats = min(FITTED_NATS, log_likelihood_ratio(units, fitted_share, SAME, 0.9))
    return value_shift, echo_shift, FieldAgreement(units, fitted_share, nats)


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
    units = min(len(left), narrowing) if share >= 0.5 else len(np.unique(left)) - 1
    nats = log_likelihood_ratio(units, share, SAME, 0.5)
    return scale, FieldAgreement(len(left), share, max(-REWRITABLE_NATS, min(WINDOW_NATS, nats)))


def _push_agreement(left: BoolArray, came: BoolArray) -> FieldAgreement:
    """Agreement of PSH on segments of equal extent: nobody on the way has a reason to change it."""
    share = float((left == came).mean())
    first, second = float(left.mean()), float(came.mean())
    chance = first * second + (1 - first) * (1 - second)
    # Where one stack pushes at an application's writes, a relay of those writes pushes there too: pushes that agree
    # convince less than pushes that differ.
    nats = log_likelihood_ratio(len(left), share, 0.99, max(chance, 0.5))
    return FieldAgreement(len(left), share, min(nats, FITTED_NATS))


def _boundary_agreement(emitted: Segments, arrived: Segments, lost_share: float) -> FieldAgreement:
    """Whether each arrived segment begins and ends where an emitted one does (without offloads)."""
    extents = np.unique(emitted.start * np.int64(1 << 17) + emitted.length)
    same_extent = np.isin(arrived.start * np.int64(1 << 17) + arrived.length, extents)
    share = float(same_extent.mean()) if len(arrived) else 0.0
    # Two stacks cut a bulk stream alike, so agreement proves nothing; cuts at other places do.
    nats = log_likelihood_ratio(len(arrived), share, SAME * (1 - lost_share), 0.9)
    return FieldAgreement(len(arrived), share, min(nats, 0.0))
