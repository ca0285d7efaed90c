"""Two legs of one transfer of which one is encrypted: TLS that ends on the way, or a tunnel of streams.

Neither packets nor bytes are the same then. What is left is the shape: one leg is TLS or looks random, the other does
not; the encrypted one carries in both directions a little more, at the same time. That is too little for a pair, since
other transfers of that size may run at that time, unless the user gives `--same-transfers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct

from detector.clocks.start_offset import common_offset
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection, FlowSummary
from pepscope.captures.packets import Direction, PayloadSample

#: What encryption adds at most, per byte and once. TLS records of one packet each, in the costliest suites (header 5,
#: vector 16, MAC 32, padding 16 bytes of 1460; RFC 5246 section 6.2.3), add 5 %; AEAD suites and Shadowsocks add less.
#: A handshake with three RSA certificates of 1 to 1.5 kB each takes 3 to 6 kB; a few small records fill the rest.
MOST_SHARE = 0.05
MOST_BYTES = 8192

#: A tunnel of whole packets adds IP and TCP headers to each, acknowledgements included; a tunnel of streams does not.
HEADER_BYTES = 40

#: Inner bytes from which the sizes say more than what is added at most.
TELLING_BYTES = 2 * MOST_BYTES

#: Clocks that nothing relates may be wrong by this much; those that other connections relate, by what starts differ.
UNRELATED_SLACK_NS = 10_000_000_000
RELATED_SLACK_NS = 1_000_000_000

#: Legs of transfers in a row start at one distance of each other, give or take what setting up a leg takes.
START_SLACK_NS = 500_000_000

#: Random bytes looked at: of 64, some 57 are different ones, and fewer than 45 in one case in a million; some 25 would
#: do as text, and more than 44 in fewer than one case in a million. Eight bytes all text are text: random ones are so
#: in one case in two thousand.
RANDOM_BYTES = 64
LEAST_DIFFERENT = 45
MOST_TEXT = 44
LEAST_TEXT = 8

#: Unpaired connections of a capture beyond which sizes and times identify none of them.
MOST_UNPAIRED = 4096


class Guise(IntEnum):
    """What a stream looks like: what may carry another is greater."""

    UNKNOWN = 0  # too little was captured
    PLAIN = 1
    TLS = 2
    RANDOM = 3


class Legs(Struct, frozen=True):
    """Connection `first` of the first capture and `second` of the second, which may be legs of one transfer."""

    first: int
    second: int
    guises: tuple[Guise, Guise]
    start_gap_ns: int  # second's start minus first's
    telling: bool  # the sizes say much, and no tunnel of whole packets has them


class EncryptedLegs(Struct, frozen=True):
    """Candidates with more evidence than the time, and those of them that are unambiguous."""

    candidates: tuple[Legs, ...]
    assigned: tuple[Legs, ...]


def guise(payload: PayloadSample) -> Guise:
    """What the stream looks like, from the first bytes that were captured of it."""
    order = np.argsort(payload.offsets, kind="stable").tolist()
    opening = b"".join(payload.pieces[index] for index in order[:8])[:RANDOM_BYTES]
    first = payload.pieces[order[0]] if order else b""
    # Handshake or application data of TLS 1.x (RFC 8446 section 5.1).
    if len(first) >= 3 and first[0] in (0x16, 0x17) and first[1] == 3 and first[2] <= 4:
        return Guise.TLS
    text = sum(byte in b"\t\r\n" or 32 <= byte < 127 for byte in opening)
    if len(opening) < RANDOM_BYTES:
        return Guise.PLAIN if len(opening) >= LEAST_TEXT and text == len(opening) else Guise.UNKNOWN
    is_random = len(set(opening)) >= LEAST_DIFFERENT and text <= MOST_TEXT
    return Guise.RANDOM if is_random else Guise.PLAIN


def find_encrypted_legs(
    first: ConnectionSource, second: ConnectionSource, ones: Sequence[int], twos: Sequence[int], offset_ns: int | None
) -> EncryptedLegs:
    """Look among the unpaired connections of two captures for legs of which one is encrypted.

    `offset_ns` is the second capture's clock minus the first's, None where nothing relates them.
    """
    if not ones or not twos or max(len(ones), len(twos)) > MOST_UNPAIRED:
        return EncryptedLegs((), ())
    left, right = [first.connections[i] for i in ones], [second.connections[i] for i in twos]
    slack = UNRELATED_SLACK_NS if offset_ns is None else RELATED_SLACK_NS
    looks = (_Looks(first), _Looks(second))
    found = []
    for a, b in _at_one_time(left, right, offset_ns or 0, slack):
        outer_is_first = a.up.stream_bytes >= b.up.stream_bytes
        outer, inner = (a, b) if outer_is_first else (b, a)
        if not _fits(outer, inner):
            continue
        guises = looks[0].of(a.id), looks[1].of(b.id)
        around, inside = guises if outer_is_first else guises[::-1]
        if inside is not Guise.UNKNOWN and around > inside:
            gap = b.first_time_ns - a.first_time_ns
            found.append(Legs(a.id, b.id, guises, gap, _is_telling(outer, inner)))
    assigned = _assigned(found)
    return EncryptedLegs(tuple(legs for legs in found if legs.telling or legs in assigned), tuple(assigned))


class _Looks:
    """What clients' streams of one capture look like; each is read once."""

    def __init__(self, capture: ConnectionSource) -> None:
        self._capture = capture
        self._known: dict[int, Guise] = {}

    def of(self, connection: int) -> Guise:
        if connection not in self._known:
            self._known[connection] = guise(self._capture.payload(connection)[Direction.UP])
        return self._known[connection]


def _at_one_time(
    left: Sequence[Connection], right: Sequence[Connection], offset_ns: int, slack_ns: int
) -> Iterable[tuple[Connection, Connection]]:
    """Connections that exist at the same time."""
    begins = np.array([connection.first_time_ns for connection in right], np.int64) - offset_ns
    ends = np.array([connection.last_time_ns for connection in right], np.int64) - offset_ns
    for one in left:
        overlapping = (begins <= one.last_time_ns + slack_ns) & (ends >= one.first_time_ns - slack_ns)
        for place in np.flatnonzero(overlapping).tolist():
            yield one, right[place]


def _fits(outer: Connection, inner: Connection) -> bool:
    """Whether `outer` carries a little more than `inner`, in both directions."""
    return inner.up.stream_bytes + inner.down.stream_bytes > 0 and all(
        within.stream_bytes <= around.stream_bytes <= within.stream_bytes * (1 + MOST_SHARE) + MOST_BYTES
        for around, within in _flows(outer, inner)
    )


def _is_telling(outer: Connection, inner: Connection) -> bool:
    enough = inner.up.stream_bytes + inner.down.stream_bytes >= TELLING_BYTES
    return enough and any(
        around.stream_bytes - within.stream_bytes < HEADER_BYTES * within.packets
        for around, within in _flows(outer, inner)
    )


def _flows(outer: Connection, inner: Connection) -> Iterable[tuple[FlowSummary, FlowSummary]]:
    return (outer.up, inner.up), (outer.down, inner.down)


def _assigned(found: Sequence[Legs]) -> list[Legs]:
    """Legs that have no other candidate; at the start distance that most share, where sizes leave a choice."""
    telling = [legs for legs in found if legs.telling]
    sure = _unrivalled(telling)
    if len(sure) < len(telling):
        offset = common_offset([legs.start_gap_ns for legs in telling])
        sure = _unrivalled([legs for legs in telling if abs(legs.start_gap_ns - offset) <= START_SLACK_NS])
    if not sure:
        return []
    # What small transfers lack in size they must have in time, beside larger ones of which it is known.
    distance = int(np.median([legs.start_gap_ns for legs in sure]))
    taken = {legs.first for legs in sure}, {legs.second for legs in sure}
    rest = [
        legs
        for legs in found
        if legs.first not in taken[0]
        and legs.second not in taken[1]
        and abs(legs.start_gap_ns - distance) <= START_SLACK_NS
    ]
    return sure + _unrivalled(rest)


def _unrivalled(found: Sequence[Legs]) -> list[Legs]:
    ones, twos = Counter(legs.first for legs in found), Counter(legs.second for legs in found)
    return [legs for legs in found if ones[legs.first] == 1 and twos[legs.second] == 1]
