"""Alignment and comparison of both captures' segments in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.methods.identity.agreement import ClassComparison
from detector.methods.identity.dropped_acks import PlaceCounts
from pepscope.captures.packets import Direction
from tests.detector.methods import reference_agreement
from tests.detector.methods.reference_places import beyond_its_ends, count_places, position_agreement, within_known_span
from tests.detector.methods.reference_segments import (
    Segments,
    VantageColumns,
    about_one_stream,
    fields_in_common,
    read_segments,
    shift_from_fields,
    uncovered,
)

#: The segments of both directions at one vantage.
BothWays = dict[Direction, Segments]


@dataclass(frozen=True, slots=True)
class Compared:
    """One packet direction: agreement of its classes, and counts."""

    data: ClassComparison
    acknowledgements: ClassComparison
    of_data: ClassComparison
    emitted_acknowledgements: int
    places: PlaceCounts
    carried_places: int
    shown: int
    uncovered: float
    uncovered_reverse: float


def aligned_segments(
    client: VantageColumns,
    server: VantageColumns,
    shifts: tuple[int, int],
    supported: tuple[bool, bool],
    thinning: int,
    fewest_sampled: int,
) -> tuple[BothWays, BothWays] | None:
    """Segments at the client's and at the server's vantage, in the client side's offsets.

    Packets that are alike whatever their offsets give the best alignment of the streams; otherwise the known one is
    used where it is supported. A stream may be aligned alone: then its data and the acknowledgements of it are
    compared, and nothing else. None where no stream is.
    """
    near = read_segments(client, dict.fromkeys(Direction, 0), thinning, fewest_sampled)
    far = read_segments(server, dict(zip(Direction, shifts, strict=True)), thinning, fewest_sampled)
    best: dict[Direction, int] | None = None
    joined = 0
    for direction in Direction:
        emitted, arrived = (near, far) if direction is Direction.UP else (far, near)
        found = shift_from_fields(emitted[direction], arrived[direction])
        if found is not None and found.share > 0.5 and found.joined > joined:
            joined, sign = found.joined, 1 if direction is Direction.UP else -1
            best = {direction: sign * found.sequence, direction.reverse: sign * found.acknowledgement}
    if best is None:
        aligned = [d for d in Direction if supported[d]]
        if len(aligned) == 1:
            return about_one_stream(near, aligned[0]), about_one_stream(far, aligned[0])
        return (near, far) if aligned else None
    if any(best.values()):
        moved = read_segments(server, {d: shifts[d] + best[d] for d in Direction}, thinning, fewest_sampled)
        if not all(supported) or _in_common(near, moved) > _in_common(near, far):
            far = moved
    return near, far


def _in_common(near: BothWays, far: BothWays) -> int:
    """Fields that agree between the data segments of both vantages."""
    return sum(fields_in_common(near[d].take(near[d].length > 0), far[d].take(far[d].length > 0)) for d in Direction)


def compare_direction(
    sides: tuple[BothWays, BothWays],
    direction: Direction,
    largest_payload: int,
    lost_share: float,
    *,
    is_whole: bool,
    is_reset: bool,
    shown_ends: tuple[bool, bool],
    both_ways: bool,
) -> Compared:
    """Compare the packets of one direction; `is_whole` unless the segments are a sample. `is_reset`: the emitter's
    capture shows a reset; `shown_ends`: it shows that the connection begins, and that it ends, within it; `both_ways`:
    it holds packets of both hosts."""
    at_emitter, at_arriver = sides if direction is Direction.UP else sides[::-1]
    emitted, arrived = at_emitter[direction], at_arriver[direction]
    reverse = at_emitter[direction.reverse]
    reverse_data = reverse.take(reverse.length > 0)
    unseen = uncovered(reverse_data) if is_whole else (reverse.start[:0], reverse.start[:0])
    data_out, data_in = emitted.take(emitted.length > 0), arrived.take(arrived.length > 0)
    settled = _emitted_to_the_end(data_out, data_in, reverse, largest_payload, both_ways=both_ways)
    data_in = settled if len(settled) > 0 or not is_reset else data_in
    acks_out, acks_in = emitted.take(emitted.length == 0), arrived.take(arrived.length == 0)
    held = acks_out.acknowledgement, data_out.acknowledgement
    known = within_known_span(acks_in.acknowledgement, *held)
    known[known] = ~beyond_its_ends(acks_in.acknowledgement[known], *held, shown_ends)
    asked = within_known_span(acks_out.acknowledgement, acks_in.acknowledgement, data_in.acknowledgement)
    acks_known = acks_in.take(known)
    bulk = reverse_data.end.max(initial=0)
    of_data = acks_known.take((acks_known.acknowledgement > 0) & (acks_known.acknowledgement < bulk))

    def acknowledgements(came: Segments) -> ClassComparison:
        plain = reference_agreement.compare_acknowledgements(acks_out, came)
        position = position_agreement(acks_out, came, lost_share, reverse_data.end, unseen)
        return plain if position is None else plain._replace(fields={**plain.fields, "acknowledgement": position})

    return Compared(
        reference_agreement.compare_data(data_out, data_in, largest_payload, lost_share),
        acknowledgements(acks_known),
        acknowledgements(of_data),
        _within(acks_out, acks_in),
        count_places(acks_out.acknowledgement[asked], acks_in.acknowledgement[known], reverse_data.end, unseen),
        len(np.unique(data_in.acknowledgement[(data_in.acknowledgement > 0) & (data_in.acknowledgement <= bulk)])),
        len(emitted) + len(reverse_data),
        _uncovered_share(data_out) if is_whole else 0.0,
        _uncovered_share(reverse_data) if is_whole else 0.0,
    )


def _emitted_to_the_end(
    emitted: Segments, arrived: Segments, reverse: Segments, largest_payload: int, *, both_ways: bool
) -> Segments:
    """The arrived data that the emitter's capture shows acknowledged: others may be copies sent after its end.

    Where it shows none acknowledged, all if it holds nothing of the other host, or if most are equal in timestamps or
    IP IDs; else nothing.
    """
    settled = arrived.take(arrived.start < reverse.acknowledgement.max(initial=-1))
    if len(settled) > 0:
        return settled
    if not both_ways:
        return arrived
    compared = reference_agreement.compare_data(emitted, arrived, largest_payload)
    is_shifted = (compared.tsval_shift, compared.tsecr_shift) != (0, 0)
    marks = ["ip-id"] if is_shifted else ["ip-id", "timestamps"]
    is_equal = any(compared.fields[mark].agreeing > 0.5 for mark in marks if mark in compared.fields)
    return arrived if is_equal else settled


def _uncovered_share(segments: Segments) -> float:
    """Share of the span of these data segments that none of them covers."""
    if len(segments) == 0:
        return 0.0
    starts, ends = uncovered(segments)
    return float((ends - starts).sum() / (segments.end.max() - segments.start.min()))


def _within(emitted: Segments, arrived: Segments) -> int:
    """Emitted acknowledgements in the span that the arrived ones cover."""
    if len(arrived) == 0:
        return 0
    low, high = arrived.acknowledgement.min(), arrived.acknowledgement.max()
    return int(np.count_nonzero((emitted.acknowledgement >= low) & (emitted.acknowledgement <= high)))
