"""Candidates for being one connection by what their payload has in common."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from detector.pairing.match import Candidate, Ground
from detector.pairing.packet_sketch import Connections
from detector.streams import payload_fingerprints
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Direction

#: Fingerprints that must agree before payload alone makes a pair: one may be a common phrase.
PAYLOAD_FINGERPRINTS = 3

#: Share of a stream's fingerprints that agree from which the whole stream does: captures rarely miss more.
WHOLE_STREAM = 0.9

#: What payload in common is worth by itself: far more than any start difference takes away, less than packets.
PAYLOAD_NATS = 25.0
#: A stream that agrees as a whole: the same answer to another request is another transfer.
WHOLE_STREAM_NATS = 5.0
#: Sizes that agree, and fingerprints of the better stream that agree, from none to all.
SIZES_NATS = 30.0
FINGERPRINTS_NATS = 5.0


def by_payload(
    first: ConnectionSource,
    second: ConnectionSource,
    left: Connections,
    right: Connections,
    may_be_one: Callable[[Connection, Connection], bool],
    *,
    closely: bool = False,
) -> list[Candidate]:
    """Pairs whose streams have payload fingerprints in common and that `may_be_one`.

    `closely` compares all captured payload, as far as memory allows: the captures may have only a few parts of the
    stream in common. Fewer common fingerprints must be in several places of it, since a header may also be common.
    """
    if not left or not right:
        return []
    one_ids, two_ids = sorted(left), sorted(right)
    streams = 2 * max(len(one_ids), len(two_ids))
    most = (
        max(payload_fingerprints.SKETCH_SIZE, payload_fingerprints.MOST_FINGERPRINTS // streams)
        if closely
        else payload_fingerprints.SKETCH_SIZE
    )
    if closely and most == payload_fingerprints.SKETCH_SIZE:
        return []
    ones = payload_fingerprints.gather([first.payload(i)[d] for i in one_ids for d in Direction], most)
    twos = payload_fingerprints.gather([second.payload(i)[d] for i in two_ids for d in Direction], most)
    votes = payload_fingerprints.vote(ones, twos)
    found = (votes.places if closely else votes.count).tolist()
    one_sizes = np.bincount(ones.stream, minlength=2 * len(one_ids))
    two_sizes = np.bincount(twos.stream, minlength=2 * len(two_ids))
    table: dict[tuple[int, int, bool], dict[int, int]] = defaultdict(lambda: {0: 0, 1: 0})
    for a, b, count in zip(votes.left.tolist(), votes.right.tolist(), found, strict=True):
        agreed = table[one_ids[a // 2], two_ids[b // 2], a % 2 != b % 2]
        agreed[a % 2] = max(agreed[a % 2], count)
    offered: dict[tuple[int, int], Candidate] = {}
    for (a, b, swapped), counts in table.items():
        one, two = left[a], right[b]
        if swapped and not (one.side_guessed or two.side_guessed):
            continue
        if not may_be_one(one, two):
            continue
        place_a, place_b = 2 * bisect_left(one_ids, a), 2 * bisect_left(two_ids, b)
        sizes = [int(max(one_sizes[place_a + d], two_sizes[place_b + (d ^ swapped)])) for d in (0, 1)]
        least = PAYLOAD_FINGERPRINTS if closely else min(PAYLOAD_FINGERPRINTS, max(sizes))
        if max(counts.values()) < least:
            continue
        candidate = Candidate(a, b, Ground.PAYLOAD, _nats(one, two, swapped, counts, sizes), swapped)
        if (a, b) not in offered or candidate.nats > offered[a, b].nats:
            offered[a, b] = candidate
    return list(offered.values())


def _nats(one: Connection, two: Connection, swapped: bool, counts: dict[int, int], sizes: list[int]) -> float:
    """Weight of a candidate: how alike sizes, whole streams and fingerprints are; rounded, so that equal content leaves
    the choice to time."""
    shares = [counts[d] / sizes[d] for d in (0, 1) if sizes[d]]
    whole = sum(share >= WHOLE_STREAM for share in shares)
    nats = PAYLOAD_NATS + WHOLE_STREAM_NATS * whole
    return nats + SIZES_NATS * round(_likeness(one, two, swapped), 2) + FINGERPRINTS_NATS * round(max(shares), 1)


def _likeness(one: Connection, two: Connection, swapped: bool) -> float:
    """How alike the stream sizes are, 0 to 1."""
    up, down = (two.down, two.up) if swapped else (two.up, two.down)
    sizes = ((one.up.stream_bytes, up.stream_bytes), (one.down.stream_bytes, down.stream_bytes))
    total = sum(max(a, b) for a, b in sizes)
    return sum(min(a, b) for a, b in sizes) / total if total else 1.0
