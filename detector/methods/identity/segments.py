"""Segments of one packet direction at both vantages, and which of them are candidates for being the same packet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from detector.pair import Vantage
from pepscope.packets import NO_ACKNOWLEDGEMENT, Direction, Int64Array, Mark, PacketColumns, TcpFlag

BoolArray = npt.NDArray[np.bool_]

#: Above this many packets a connection is compared on a sample of its stream regions.
SAMPLE_PACKETS = 20_000
#: Fewer packets that look alike do not fix the offsets of two captures against each other.
FEWEST_JOINED = 8
#: Copies of one byte range that are looked at.
COPIES = 8
_REGION_BITS = 16
_MIX = np.int64(-7046029254386353131)  # odd, from the golden ratio: spreads keys over 64 bits


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of one packet direction; offsets in the emitting side's stream coordinates.

    Timestamps are present, absent, or not captured: absent only where `stamps_captured` without `has_timestamps`.
    """

    start: Int64Array
    length: Int64Array
    acknowledgement: Int64Array
    window: Int64Array
    push: BoolArray
    first_copy: BoolArray
    has_timestamps: BoolArray
    stamps_captured: BoolArray
    tsval: Int64Array
    tsecr: Int64Array
    ip_id: Int64Array
    ttl: Int64Array

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Int64Array:
        """Offset after the last payload byte."""
        return self.start + self.length

    def take(self, which: npt.NDArray[np.bool_] | Int64Array) -> Segments:
        """The segments at these places."""
        return Segments(*(getattr(self, name)[which] for name in self.__slots__))


def windows_in_bytes(client: Vantage, server: Vantage) -> frozenset[Direction]:
    """Directions in which both captures hold what scales windows; windows of the others compare as on the wire."""
    vantages = (client, server)
    return frozenset(d for d in Direction if all(v.flow(d).window_shift is not None for v in vantages))


def read_segments(
    vantage: Vantage, shifts: Mapping[Direction, int], thinning: int, in_bytes: frozenset[Direction]
) -> dict[Direction, Segments]:
    """Read the segments of both directions without SYN and RST (those are made or changed by all kinds of boxes).

    `shifts` are added to the offsets of each stream. With `thinning` m > 1 only every m-th region of 64 KiB of a stream
    is kept, the same ones at both vantages: data by its own offset, pure acknowledgements by what they acknowledge.
    Windows are in bytes in these directions (`windows_in_bytes`), and as on the wire in others.
    """
    packets = vantage.packets
    wanted = (packets.flags & np.uint16(TcpFlag.SYN | TcpFlag.RST)) == 0
    wanted &= packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT
    wanted &= ~_after_abort(vantage)
    if thinning > 1:
        kept = _sampled(packets, shifts, thinning)
        if np.count_nonzero(wanted & kept) >= SAMPLE_PACKETS // 8:
            wanted &= kept
    at = np.flatnonzero(wanted)
    down = packets.direction[at] == Direction.DOWN
    unscaled = {d: 0 if d in in_bytes else vantage.flow(d).window_shift or 0 for d in Direction}
    places = {Direction.UP: at[~down], Direction.DOWN: at[down]}
    return {d: _segments(packets, places[d], shifts[d], shifts[d.reverse], unscaled[d]) for d in Direction}


def about_one_stream(segments: Mapping[Direction, Segments], stream: Direction) -> dict[Direction, Segments]:
    """The data segments of one stream and the pure acknowledgements of it; where in the other stream these stand is
    left out."""
    back = segments[stream.reverse]
    acknowledgements = back.take(back.length == 0)
    nowhere = np.zeros_like(acknowledgements.start)
    forth = segments[stream]
    return {stream: forth.take(forth.length > 0), stream.reverse: replace(acknowledgements, start=nowhere)}


def _after_abort(vantage: Vantage) -> BoolArray:
    """Packets towards a host that has sent RST: it has no connection any more, and they say nothing of the others.

    After an abort a split point's machine may route what is still in flight past itself, straight from the far end.
    """
    packets = vantage.packets
    late = np.zeros(len(packets), dtype=np.bool_)
    for direction in Direction:
        reset_ns = vantage.flow(direction.reverse).reset_time_ns
        if reset_ns is not None:
            late |= (packets.direction == direction) & (packets.time_ns > reset_ns)
    return late


def _sampled(packets: PacketColumns, shifts: Mapping[Direction, int], thinning: int) -> BoolArray:
    """Packets whose data, or whose acknowledgement, lies in a region that is kept."""
    data = packets.payload_bytes > 0
    place = np.where(data, packets.sequence_offset, packets.acknowledgement_offset)
    if any(shifts.values()):
        of_down = data == (packets.direction == Direction.DOWN)
        place += np.where(of_down, shifts[Direction.DOWN], shifts[Direction.UP])
    place >>= _REGION_BITS
    place *= _MIX
    # The top bits of the product are as good as random: compare instead of dividing.
    return np.asarray(place.view(np.uint64) < np.uint64((1 << 64) // thinning))


def _segments(
    packets: PacketColumns, at: Int64Array, sequence_shift: int, acknowledgement_shift: int, window_shift: int
) -> Segments:
    flags, marks = packets.flags[at], packets.marks[at]
    stamped = (marks & Mark.HAS_TIMESTAMPS) != 0
    return Segments(
        start=packets.sequence_offset[at] + sequence_shift,
        length=packets.payload_bytes[at].astype(np.int64),
        acknowledgement=packets.acknowledgement_offset[at] + acknowledgement_shift,
        window=packets.window_bytes[at].astype(np.int64) >> window_shift,
        push=(flags & TcpFlag.PSH) != 0,
        first_copy=(marks & Mark.RETRANSMISSION) == 0,
        has_timestamps=stamped,
        stamps_captured=stamped | ((marks & Mark.OPTIONS_TRUNCATED) == 0),
        tsval=np.where(stamped, packets.tsval[at], 0).astype(np.int64),
        tsecr=np.where(stamped, packets.tsecr[at], 0).astype(np.int64),
        ip_id=packets.ip_id[at].astype(np.int64),
        ttl=packets.ttl[at].astype(np.int64),
    )


def thinning_for(packets: int) -> int:
    """Every how many-th region is enough for a connection of so many packets."""
    return max(1, -(-packets // SAMPLE_PACKETS))


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


def most_common(values: Int64Array) -> tuple[int, float]:
    """The most common value and its share; (0, 0.0) of nothing."""
    if len(values) == 0:
        return 0, 0.0
    distinct, counts = np.unique(values, return_counts=True)
    top = int(np.argmax(counts))
    return int(distinct[top]), float(counts[top] / len(values))


def uncovered(segments: Segments) -> tuple[Int64Array, Int64Array]:
    """Starts and ends of byte ranges between the first and last data segment that no segment covers."""
    order = np.argsort(segments.start, kind="stable")
    start, end = segments.start[order], np.maximum.accumulate(segments.end[order])
    hole = np.flatnonzero(start[1:] > end[:-1])
    return end[hole], start[1:][hole]


@dataclass(frozen=True, slots=True)
class FoundShift:
    """What to add to the arrived segments' offsets, read off packets that look alike whatever their offsets."""

    sequence: int
    acknowledgement: int
    joined: int  # packets behind it
    share: float  # of those that agree on it


def shift_from_fields(emitted: Segments, arrived: Segments) -> FoundShift | None:
    """Offsets of the two captures against each other, by packets that look alike whatever their offsets.

    Packets are joined on timestamps and length, or on IP ID and length where hardly any have timestamps in both
    captures, if that combination is unique; None where hardly any can be joined.
    """
    out, into = emitted.take(emitted.has_timestamps), arrived.take(arrived.has_timestamps)
    by_stamps = _joined_shift(out, into, out.tsval * _MIX + out.tsecr, into.tsval * _MIX + into.tsecr)
    if by_stamps is not None or all(side.has_timestamps.all() for side in (emitted, arrived)):
        return by_stamps
    return _joined_shift(emitted, arrived, emitted.ip_id, arrived.ip_id)


def _joined_shift(
    emitted: Segments, arrived: Segments, emitted_key: Int64Array, arrived_key: Int64Array
) -> FoundShift | None:
    if len(emitted) == 0 or len(arrived) == 0:
        return None
    keys = [key * _MIX + side.length for key, side in ((emitted_key, emitted), (arrived_key, arrived))]
    distinct, first, counts = np.unique(keys[0], return_index=True, return_counts=True)
    place = np.minimum(np.searchsorted(distinct, keys[1]), len(distinct) - 1)
    # Alone in both: of two packets that look alike, one capture may lack the other.
    _, back, again = np.unique(keys[1], return_inverse=True, return_counts=True)
    joined = (distinct[place] == keys[1]) & (counts[place] == 1) & (again[back] == 1)
    partners = first[place[joined]]
    if len(partners) < FEWEST_JOINED:
        return None
    sequence, sequence_share = most_common(emitted.start[partners] - arrived.start[joined])
    acknowledgement, acknowledgement_share = most_common(
        emitted.acknowledgement[partners] - arrived.acknowledgement[joined]
    )
    return FoundShift(sequence, acknowledgement, len(partners), min(sequence_share, acknowledgement_share))


def fields_in_common(emitted: Segments, arrived: Segments) -> int:
    """Fields that agree between segments of the same extent, as the offsets of the two captures now lie.

    Where a capture lacks packets, those that look alike may lay the streams wrongly over each other; then the
    segments that meet agree in little else.
    """
    if len(emitted) == 0 or len(arrived) == 0:
        return 0
    keys = [side.start * _MIX + side.length for side in (emitted, arrived)]
    known, first = np.unique(keys[0], return_index=True)
    place = np.minimum(np.searchsorted(known, keys[1]), len(known) - 1)
    meets = known[place] == keys[1]
    left, came = emitted.take(first[place[meets]]), arrived.take(meets)
    stamped = left.has_timestamps & came.has_timestamps & (left.tsval == came.tsval) & (left.tsecr == came.tsecr)
    others = (left.ip_id == came.ip_id, left.push == came.push, left.window == came.window)
    return int(stamped.sum()) + sum(int(agrees.sum()) for agrees in others)
