"""Segments of one packet direction at both vantages in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from detector.methods.identity.segments import FEWEST_JOINED
from pepscope.captures.packets import (
    NO_ACKNOWLEDGEMENT,
    BoolArray,
    Direction,
    Int64Array,
    Mark,
    PacketColumns,
    TcpFlag,
)

#: Packets, and by direction the powers of two by which windows are divided, and when the sender reset the connection.
VantageColumns = tuple[PacketColumns, tuple[int, int], tuple[int | None, int | None]]

_REGION_BITS = 16
#: As plain numbers, which NumPy takes faster than members of an enum.
_PUSH = TcpFlag.PSH.value
_SYN_OR_RESET = (TcpFlag.SYN | TcpFlag.RST).value
_HAS_TIMESTAMPS, _RETRANSMISSION, _DUPLICATE, _OPTIONS_TRUNCATED = (
    mark.value for mark in (Mark.HAS_TIMESTAMPS, Mark.RETRANSMISSION, Mark.DUPLICATE, Mark.OPTIONS_TRUNCATED)
)
_MIX = np.int64(-7046029254386353131)  # odd, from the golden ratio: spreads keys over 64 bits


class Segments:
    """Segments of one packet direction; offsets in the emitting side's stream coordinates.

    Timestamps are present, absent, or not captured: absent only where `stamps_captured` without `has_timestamps`.
    All numbers are rows of one table, and all flags of another: most connections have few packets, and taking some of
    them costs as much for one column as for eight.
    """

    NUMBERS = ("start", "length", "acknowledgement", "window", "tsval", "tsecr", "ip_id", "ttl")
    FLAGS = ("push", "first_copy", "has_timestamps", "stamps_captured")
    __slots__ = (*NUMBERS, *FLAGS, "_flags", "_numbers")

    start: Int64Array
    length: Int64Array
    acknowledgement: Int64Array
    window: Int64Array
    tsval: Int64Array
    tsecr: Int64Array
    ip_id: Int64Array
    ttl: Int64Array
    push: BoolArray
    first_copy: BoolArray
    has_timestamps: BoolArray
    stamps_captured: BoolArray

    def __init__(self, numbers: Int64Array, flags: BoolArray) -> None:
        self._numbers, self._flags = numbers, flags
        self.start, self.length, self.acknowledgement, self.window, *others = numbers
        self.tsval, self.tsecr, self.ip_id, self.ttl = others
        self.push, self.first_copy, self.has_timestamps, self.stamps_captured = flags

    @classmethod
    def of(cls, **columns: npt.NDArray[Any]) -> Segments:
        """Segments of these columns, all of `NUMBERS` and `FLAGS`."""
        numbers, flags = ([columns[name] for name in names] for names in (cls.NUMBERS, cls.FLAGS))
        return cls(np.array(numbers, np.int64), np.array(flags, np.bool_))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Int64Array:
        """Offset after the last payload byte."""
        return self.start + self.length

    def take(self, which: BoolArray | Int64Array) -> Segments:
        """The segments at these places."""
        places = which.nonzero()[0] if which.dtype == np.bool_ else which
        return Segments(self._numbers.take(places, axis=1), self._flags.take(places, axis=1))

    def replaced(self, **columns: npt.NDArray[Any]) -> Segments:
        """The same segments with other values in these columns."""
        return Segments.of(**{name: getattr(self, name) for name in (*self.NUMBERS, *self.FLAGS)} | columns)


def read_segments(
    columns: VantageColumns, shifts: Mapping[Direction, int], thinning: int = 1, fewest_sampled: int = 0
) -> dict[Direction, Segments]:
    """Read the segments of both directions without SYN and RST (those are made or changed by all kinds of middleboxes)
    and without packets that were captured again.

    `shifts` are added to the offsets of each stream. With `thinning` m > 1 only every m-th region of 64 KiB of a stream
    is kept, the same ones at both vantages: data by its own offset, pure acknowledgements by what they acknowledge.
    """
    packets, window_shifts, reset_times_ns = columns
    wanted = (packets.flags & _SYN_OR_RESET) == 0
    wanted &= packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT
    wanted &= (packets.marks & _DUPLICATE) == 0
    wanted &= ~_after_abort(packets, reset_times_ns)
    if thinning > 1:
        kept = _sampled(packets, shifts, thinning)
        if np.count_nonzero(wanted & kept) >= fewest_sampled:
            wanted &= kept
    at = np.flatnonzero(wanted)
    down = packets.going(Direction.DOWN)[at]
    places = {Direction.UP: at[~down], Direction.DOWN: at[down]}
    return {d: _segments(packets, places[d], shifts[d], shifts[d.reverse], window_shifts[d]) for d in Direction}


def about_one_stream(segments: Mapping[Direction, Segments], stream: Direction) -> dict[Direction, Segments]:
    """The data segments of one stream and the pure acknowledgements of it; where in the other stream these stand, and
    what the data acknowledge of it, is left out."""
    forth, back = segments[stream], segments[stream.reverse]
    data, acknowledgements = forth.take(forth.length > 0), back.take(back.length == 0)
    return {
        stream: data.replaced(acknowledgement=np.zeros_like(data.acknowledgement)),
        stream.reverse: acknowledgements.replaced(start=np.zeros_like(acknowledgements.start)),
    }


def _after_abort(packets: PacketColumns, reset_times_ns: tuple[int | None, int | None]) -> BoolArray:
    """Packets towards a host that has sent RST: it has no connection any more, and they say nothing of the others.

    After an abort a split point's machine may route what is still in flight past itself, straight from the far end.
    """
    late = np.zeros(len(packets), dtype=np.bool_)
    for direction in Direction:
        reset_ns = reset_times_ns[direction.reverse]
        if reset_ns is not None:
            late |= packets.going(direction) & (packets.time_ns > reset_ns)
    return late


def _sampled(packets: PacketColumns, shifts: Mapping[Direction, int], thinning: int) -> BoolArray:
    """Packets whose data, or whose acknowledgement, lies in a region that is kept."""
    data = packets.payload_bytes > 0
    place = np.where(data, packets.sequence_offset, packets.acknowledgement_offset)
    if any(shifts.values()):
        of_down = data == packets.going(Direction.DOWN)
        place += np.where(of_down, shifts[Direction.DOWN], shifts[Direction.UP])
    place >>= _REGION_BITS
    place *= _MIX
    # The top bits of the product are as good as random: compare instead of dividing.
    return np.asarray(place.view(np.uint64) < np.uint64((1 << 64) // thinning))


def _segments(
    packets: PacketColumns, at: Int64Array, sequence_shift: int, acknowledgement_shift: int, window_shift: int
) -> Segments:
    flags, marks = packets.flags[at], packets.marks[at]
    stamped = (marks & _HAS_TIMESTAMPS) != 0
    return Segments.of(
        start=packets.sequence_offset[at] + sequence_shift,
        length=packets.payload_bytes[at],
        acknowledgement=packets.acknowledgement_offset[at] + acknowledgement_shift,
        window=packets.window_bytes[at] >> window_shift,
        tsval=packets.tsval[at] * stamped,
        tsecr=packets.tsecr[at] * stamped,
        ip_id=packets.ip_id[at],
        ttl=packets.ttl[at],
        push=(flags & _PUSH) != 0,
        first_copy=(marks & _RETRANSMISSION) == 0,
        has_timestamps=stamped,
        stamps_captured=stamped | ((marks & _OPTIONS_TRUNCATED) == 0),
    )


def most_common(values: Int64Array) -> tuple[int, float]:
    """The most common value and its share; (0, 0.0) of nothing."""
    if len(values) == 0:
        return 0, 0.0
    if (values == values[0]).all():
        return int(values[0]), 1.0
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
