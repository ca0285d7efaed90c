"""Counts over the segments of many connections as arrays, as `crates/evidence` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy.typing as npt
from msgspec import Struct

from pepscope import _core

#: Whole numbers, real ones and truth values, each an array with an element a comparison, or one number for all.
Integers: TypeAlias = Any
Reals: TypeAlias = Any
Truths: TypeAlias = Any


class FieldCounts(Struct, frozen=True):
    """Counts over one class of segments (data, or pure acknowledgements); `crates/evidence` says what each is."""

    arrived: Integers
    partners: Integers
    tsval_shift: Integers
    tsecr_shift: Integers
    stamped: Integers
    stamps_equal: Integers
    stamps_distinct: Integers
    stamps_known: Integers
    stamps_on_one_side: Integers
    stamps_added: Integers
    ip_ids_vary: Integers
    whole: Integers
    ip_ids_equal: Integers
    window_scale_shift: Integers
    windows_equal: Integers
    windows_narrowed: Integers
    windows_shrink: Integers
    windows_distinct: Integers
    hops: Integers
    push_clear: Integers
    push_equal: Integers
    push_set: Integers
    carried: Integers
    carried_elsewhere: Integers
    boundaries_equal: Integers
    held_whole: Integers
    longest: Integers


class PositionCounts(Struct, frozen=True):
    """Places of acknowledgements."""

    emitted: Integers
    possible: Integers
    arrived: Integers
    hits: Integers
    irregular: Integers


class SegmentCounts(Struct, frozen=True):
    """Counts over both directions (rows) of connections (columns)."""

    data: FieldCounts
    acknowledgements: FieldCounts
    of_data: FieldCounts
    positions: PositionCounts
    of_data_positions: PositionCounts
    emitted_acknowledgements: Reals
    acknowledged_at_both: Reals
    acknowledged_where_emitted: Reals
    acknowledged_where_arrived: Reals
    acknowledged_at_neither: Reals
    missed_acknowledgements: Reals
    acknowledged_ahead: Reals
    carried_places: Reals
    shown: Reals
    uncovered: Reals
    uncovered_reverse: Reals


_CLASSES = ("data", "acknowledgements", "of_data")
_PLACES = ("positions", "of_data_positions")


def segment_counts(compared: Sequence[_core.PairSegments], most_skipped: int) -> SegmentCounts:
    """The counts over these connections, taken in one call; `most_skipped` is the widest gap between two IP IDs in
    which a third shows that its host sent it."""
    found = _core.segment_counts(compared, most_skipped)
    classes = {name: FieldCounts(**found[name]) for name in _CLASSES}
    places = {name: PositionCounts(**found[name]) for name in _PLACES}
    return SegmentCounts(**{**found, **classes, **places})


def field_counts(columns: Mapping[str, npt.NDArray[Any]]) -> FieldCounts:
    """Counts by their names."""
    return FieldCounts(**columns)
