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

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope import _core
from pepscope.captures.packets import Int64Array, PayloadSample

UInt64Array = npt.NDArray[np.uint64]

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


class Fingerprints(Struct, frozen=True):
    """Fingerprints of many streams: hash, number of the stream that it is in, and stream offset."""

    value: UInt64Array
    stream: Int64Array
    offset: Int64Array


class Votes(Struct, frozen=True):
    """Stream pairs with fingerprints in common: stream numbers, `shift` = left offset - right offset, how many agree,
    and in how many places of the stream, counted in pieces of `SPREAD_BYTES`."""

    left: Int64Array
    right: Int64Array
    shift: Int64Array
    count: Int64Array
    places: Int64Array


def stream_fingerprints(sample: PayloadSample, most: int = SKETCH_SIZE) -> tuple[UInt64Array, Int64Array]:
    """Hashes and stream offsets of at most `most` fingerprints of one stream.

    Of repeats, retransmissions keep one copy, repetitive content none.
    """
    return _core.sketch(sample, DISTINCT_BYTES, most)


def all_fingerprints(sample: PayloadSample) -> tuple[UInt64Array, Int64Array]:
    """Hashes and offsets of all fingerprints in the order of the pieces, repeats included."""
    return _core.fingerprints(sample, DISTINCT_BYTES)


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
    return Votes(*_core.vote(left, right, COMMON_PAIRS, SPREAD_BYTES))


def voted_shifts(left: PayloadSample, right: PayloadSample, fingerprints: int, most: int) -> list[int]:
    """The `most` shifts, right offset minus left offset, on which most of the fingerprints agree, best first; so many
    `fingerprints` are taken of each stream."""
    return _core.voted_shifts(left, right, DISTINCT_BYTES, fingerprints, COMMON_PAIRS, most)
