"""Payload fingerprints in NumPy: what the compiled ones are compared with."""

from __future__ import annotations

import numpy as np

from detector.streams.payload_fingerprints import (
    COMMON_PAIRS,
    DISTINCT_BYTES,
    SKETCH_SIZE,
    SPREAD_BYTES,
    Fingerprints,
    UInt64Array,
    Votes,
)
from pepscope.captures.packets import Int64Array, PayloadSample

WINDOW_BYTES = 16
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_HIGH = np.uint64(0xC2B2AE3D27D4EB4F)


def stream_fingerprints(sample: PayloadSample, most: int = SKETCH_SIZE) -> tuple[UInt64Array, Int64Array]:
    """Hashes and stream offsets of at most `most` fingerprints of one stream."""
    return _sketch(*all_fingerprints(sample), most)


def all_fingerprints(sample: PayloadSample) -> tuple[UInt64Array, Int64Array]:
    """Hashes and offsets of all fingerprints in the order of the pieces, repeats included."""
    sizes = np.array([len(piece) for piece in sample.pieces], np.int64)
    total = int(sizes.sum())
    if total < WINDOW_BYTES:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    text = b"".join(sample.pieces)
    words: UInt64Array = np.ndarray((total - 7,), np.dtype("<u8"), text, strides=(1,))
    with np.errstate(over="ignore"):
        value = (words[:-8] * _MIX) ^ (words[8:] * _MIX_HIGH)
        value ^= value >> np.uint64(29)
        value *= _MIX
        value ^= value >> np.uint64(32)
    piece = np.repeat(np.arange(len(sizes)), sizes)[: len(value)]
    ends = np.cumsum(sizes)
    at = np.flatnonzero((value & np.uint64(15)) == 0)
    at = at[at + WINDOW_BYTES <= ends[piece[at]]]
    raw = np.frombuffer(text, np.uint8)
    windows = np.sort(raw[at[:, None] + np.arange(WINDOW_BYTES)], axis=1)
    at = at[(np.diff(windows, axis=1) != 0).sum(axis=1) + 1 >= DISTINCT_BYTES]
    offset = sample.offsets[piece[at]] + at - (ends - sizes)[piece[at]]
    return value[at], offset


def _sketch(value: UInt64Array, offset: Int64Array, most: int) -> tuple[UInt64Array, Int64Array]:
    """Drop repeats (retransmissions keep one copy, repetitive content none) and keep the least hashes."""
    order = np.lexsort((offset, value))
    value, offset = value[order], offset[order]
    fresh = np.ones(len(value), np.bool_)
    fresh[1:] = (value[1:] != value[:-1]) | (offset[1:] != offset[:-1])
    value, offset = value[fresh], offset[fresh]
    _, first, counts = np.unique(value, return_index=True, return_counts=True)
    single = first[counts == 1][:most]
    return value[single], offset[single]


def vote(left: Fingerprints, right: Fingerprints) -> Votes:
    """Count common fingerprints of every pair of streams by their shift, in time near linear in the fingerprints."""
    order = np.argsort(right.value, kind="stable")
    sorted_right = right.value[order]
    first = np.searchsorted(sorted_right, left.value, side="left")
    matches = np.searchsorted(sorted_right, left.value, side="right") - first
    _, inverse, occurrences = np.unique(left.value, return_inverse=True, return_counts=True)
    matches = np.where(matches * occurrences[inverse] > COMMON_PAIRS, 0, matches)
    source = np.repeat(np.arange(len(matches)), matches)
    within = np.arange(len(source)) - np.repeat(np.cumsum(matches) - matches, matches)
    target = order[first[source] + within]
    table = np.stack([left.stream[source], right.stream[target], left.offset[source] - right.offset[target]], axis=1)
    if len(table) == 0:
        empty = np.zeros(0, np.int64)
        return Votes(empty, empty, empty, empty, empty)
    rows, row, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    place = np.stack([row.reshape(-1), left.offset[source] // SPREAD_BYTES], axis=1)
    places = np.bincount(np.unique(place, axis=0)[:, 0], minlength=len(rows))
    return Votes(rows[:, 0], rows[:, 1], rows[:, 2], count.astype(np.int64), places.astype(np.int64))
