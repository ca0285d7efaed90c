"""Payload fingerprints: windows of a stream that two captures choose alike, whatever its segmentation and offsets.

A fingerprint is a window of 16 captured bytes whose hash falls into one of sixteen classes, so that the choice depends
on the content alone. A window that is monotonous or repeated within its stream is no fingerprint. The fingerprints with
the least hashes of a stream are kept (a bottom-k sketch, Broder 1997): memory is bounded, and equal streams keep equal
fingerprints.

Where the captures kept a few hundred bytes of each packet and a middlebox cut the stream into other segments (a proxy
that rewrites headers), both captures hold little of the same content, and the sketches may share no fingerprint. Then
more fingerprints must be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pepscope.captures.packets import Int64Array, PayloadSample

UInt64Array = npt.NDArray[np.uint64]

WINDOW_BYTES = 16

#: Fingerprints kept of one stream.
SKETCH_SIZE = 256

#: Fingerprints kept of all streams of a capture together where sketches found nothing; some tens of megabytes.
MOST_FINGERPRINTS = 1 << 20

#: Fingerprints of one segment or one header are no nearer than this to those of another.
SPREAD_BYTES = 512

#: A window with fewer different bytes (runs of blanks, zeros, rules) may occur in any stream.
DISTINCT_BYTES = 6

#: Fingerprints that occur in more than so many pairs of streams (a server's usual header) distinguish no pairs.
COMMON_PAIRS = 4096

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_HIGH = np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Fingerprints of many streams: hash, number of the stream that it is in, and stream offset."""

    value: UInt64Array
    stream: Int64Array
    offset: Int64Array


@dataclass(frozen=True, slots=True)
class Votes:
    """Stream pairs with fingerprints in common: stream numbers, `shift` = left offset - right offset, how many agree,
    and in how many places of the stream, counted in pieces of `SPREAD_BYTES`."""

    left: Int64Array
    right: Int64Array
    shift: Int64Array
    count: Int64Array
    places: Int64Array


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


def gather(samples: list[PayloadSample], most: int = SKETCH_SIZE) -> Fingerprints:
    """At most `most` fingerprints of each stream; a stream's number is its place in the list."""
    made = [stream_fingerprints(sample, most) for sample in samples]
    if not made:
        return Fingerprints(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Fingerprints(
        np.concatenate([value for value, _ in made]),
        np.repeat(np.arange(len(made)), [len(value) for value, _ in made]),
        np.concatenate([offset for _, offset in made]),
    )


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
