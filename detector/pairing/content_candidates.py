"""Candidates for being one connection by what their payload has in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from detector.pairing.match import Candidate, Ground
from detector.pairing.packet_sketch import Connections
from detector.streams import payload_fingerprints
from detector.streams.payload_fingerprints import Fingerprints
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
    numbers = sorted(left), sorted(right)
    most = _fingerprints_of_a_stream(2 * max(map(len, numbers)), closely=closely)
    if most is None:
        return []
    ones, twos = (
        payload_fingerprints.gather([source.payload(number)[way] for number in own for way in Direction], most)
        for source, own in zip((first, second), numbers, strict=True)
    )
    sizes = _sizes(ones, numbers[0]), _sizes(twos, numbers[1])
    offered: dict[tuple[int, int], Candidate] = {}
    for (a, b, swapped), agreed in _agreed(ones, twos, *numbers, places=closely).items():
        one, two = left[a], right[b]
        if swapped and not (one.side_guessed or two.side_guessed):
            continue
        if not may_be_one(one, two):
            continue
        larger = [max(sizes[0][a][way], sizes[1][b][way ^ swapped]) for way in (0, 1)]
        least = PAYLOAD_FINGERPRINTS if closely else min(PAYLOAD_FINGERPRINTS, max(larger))
        if max(agreed) < least:
            continue
        candidate = Candidate(a, b, Ground.PAYLOAD, _nats(one, two, swapped, agreed, larger), swapped)
        if (a, b) not in offered or candidate.nats > offered[a, b].nats:
            offered[a, b] = candidate
    return list(offered.values())


def _fingerprints_of_a_stream(streams: int, *, closely: bool) -> int | None:
    """How many are kept of each of so many streams; None where more than usual are asked for and memory has no room."""
    usual = payload_fingerprints.SKETCH_SIZE
    if not closely:
        return usual
    most = payload_fingerprints.MOST_FINGERPRINTS // streams
    return most if most > usual else None


def _sizes(fingerprints: Fingerprints, numbers: Sequence[int]) -> dict[int, list[int]]:
    """How many fingerprints each connection has up and down; its streams stand one after the other."""
    sizes = np.bincount(fingerprints.stream, minlength=2 * len(numbers)).reshape(-1, 2)
    return dict(zip(numbers, sizes.tolist(), strict=True))


def _agreed(
    ones: Fingerprints, twos: Fingerprints, one_numbers: Sequence[int], two_numbers: Sequence[int], *, places: bool
) -> Mapping[tuple[int, int, bool], list[int]]:
    """How many fingerprints of the first connection's streams up and down agree with the second's, or in how many
    `places`; by both numbers, and whether what goes up in one goes down in the other."""
    votes = payload_fingerprints.vote(ones, twos)
    found = votes.places if places else votes.count
    agreed: dict[tuple[int, int, bool], list[int]] = defaultdict(lambda: [0, 0])
    for left, right, count in zip(votes.left.tolist(), votes.right.tolist(), found.tolist(), strict=True):
        both = agreed[one_numbers[left // 2], two_numbers[right // 2], left % 2 != right % 2]
        both[left % 2] = max(both[left % 2], count)
    return agreed


def _nats(one: Connection, two: Connection, swapped: bool, agreed: Sequence[int], sizes: Sequence[int]) -> float:
    """Weight of a candidate: how alike sizes, whole streams and fingerprints are; rounded, so that equal content leaves
    the choice to time."""
    shares = [count / size for count, size in zip(agreed, sizes, strict=True) if size]
    whole = sum(share >= WHOLE_STREAM for share in shares)
    nats = PAYLOAD_NATS + WHOLE_STREAM_NATS * whole
    return nats + SIZES_NATS * round(_likeness(one, two, swapped), 2) + FINGERPRINTS_NATS * round(max(shares), 1)


def _likeness(one: Connection, two: Connection, swapped: bool) -> float:
    """How alike the stream sizes are, 0 to 1."""
    up, down = (two.down, two.up) if swapped else (two.up, two.down)
    sizes = ((one.up.stream_bytes, up.stream_bytes), (one.down.stream_bytes, down.stream_bytes))
    total = sum(max(a, b) for a, b in sizes)
    return sum(min(a, b) for a, b in sizes) / total if total else 1.0
