"""Packets in common: connections of two captures that share packets are one connection, whatever their numbers.

A middlebox may change a connection's addresses, ports or initial sequence numbers, but seldom the timestamps and the IP
identification of each packet. A packet's key is a hash of fields that such middleboxes leave unchanged. Of a
connection the least keys are kept (a bottom-k sketch, Broder 1997), so that two captures of the same packets keep the
same keys, cost is bounded, and what the captures have in common is a merge of sorted numbers.

Which fields: both stamps, length and IP ID; where IP IDs are absent or rewritten, both stamps and length; without
stamps, IP ID, length and place in both streams; where the captures missed the beginning, so that places are unknown,
IP ID, length and first bytes of a segment and of its direction's next one. Each form is looked at only for connections
that the one before found nothing for.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array
from pepscope.results.distinct import are_among

UInt64Array = npt.NDArray[np.uint64]

#: Keys kept of one connection. Where each of two captures lost 30 % of the packets, 54 % of all keys are in both, so
#: about 25 of 48 are shared; where they overlap in a tenth of the connection, about five.
SKETCH_SIZE = 48

#: Of so many connections, whose packets are gone through to make keys with IP IDs, those without are made at once: most
#: connections that come here are split, and need both. Keys of a connection take 1.2 kB.
MOST_KEPT = 10_000

Connections = Mapping[int, Connection]


class _Form(Struct, frozen=True):
    """What a form of key is made of, and worth.

    `fewest` shared keys make a candidate. `first_nats` is what finding the counters aligned at all is worth, and
    `next_nats` what each further shared key adds. `most_holders` connections of either capture may hold a key.
    """

    stamps: bool
    ip_id: bool
    places: bool
    fewest: int
    first_nats: float
    next_nats: float
    most_holders: int


class Form(Enum):
    """The fields that keys are made of, in the order in which they are tried."""

    # Linux starts IP IDs at random for every connection: two connections with one clock agree in 1 of 65536.
    STAMPS_AND_IP_ID = _Form(True, True, False, 2, 11.0, 1.0, 4)
    # Connections of two machines, or of one machine whose stack has one clock for all, share stamps by chance, each key
    # more often than not with several others: only keys of one connection count, and it takes some.
    STAMPS = _Form(True, False, False, 6, 2.0, 1.0, 1)
    # Two transfers cut alike agree where their IP IDs do: again in 1 of 65536.
    IP_ID_AND_PLACES = _Form(False, True, True, 4, 11.0, 1.0, 4)
    # The same for equal content, but content that repeats itself (zeros) agrees wherever the ranges of IP IDs overlap,
    # which those of two bulk transfers of L packets do in 2 L of 65536 cases.
    IP_ID_AND_BYTES = _Form(False, True, False, 6, 6.0, 0.5, 1)


class SharedPackets(Struct, frozen=True):
    """Connections `first` and `second` have `count` of the sketched packets in common; `sides_swapped`: packets
    that go up in one capture go down in the other. `nats` is the log-likelihood ratio against chance."""

    first: int
    second: int
    count: int
    sides_swapped: bool
    nats: float


@runtime_checkable
class _Partitioned(Protocol):
    def partition_of(self, connection_id: int, /) -> int:
        """Which partition holds the packets of a connection."""


class _Sketches(Struct, frozen=True):
    """Keys of connections, those of each ascending, with the ids of these and the directions of the packets."""

    value: UInt64Array
    holder: Int64Array
    direction: Int64Array

    def of(self, connections: Set[int]) -> _Sketches:
        """Those of some of the connections."""
        held = are_among(self.holder, np.array(sorted(connections), np.int64))
        return _Sketches(self.value[held], self.holder[held], self.direction[held])


#: Keys by form, made before they are asked for.
_Kept: TypeAlias = dict[Form, _Sketches]


def shared_packets(
    first: ConnectionSource, second: ConnectionSource, ones: Connections, twos: Connections
) -> list[SharedPackets]:
    """Pairs of connections, of these of each capture by id, that have packets in common."""
    left, right = dict(ones), dict(twos)
    kept: tuple[_Kept, _Kept] = {}, {}
    found: list[SharedPackets] = []
    for form in Form:
        if not left or not right or _has_no_candidates(form.value, left, right):
            continue
        sketches = _sketch_all(first, left, form, kept[0]), _sketch_all(second, right, form, kept[1])
        here = _shared(*sketches, form.value)
        if not form.value.stamps:
            # Where both captures hold stamps and these disagree, nothing else makes the packets the same.
            here = [pair for pair in here if not (_has_stamps(left[pair.first]) and _has_stamps(right[pair.second]))]
        found += here
        for pair in here:
            left.pop(pair.first, None)
            right.pop(pair.second, None)
    return found


def _has_no_candidates(form: _Form, left: Connections, right: Connections) -> bool:
    """Whether no pair could be found by keys without stamps, since all connections have some."""
    return not form.stamps and all(_has_stamps(each) for side in (left, right) for each in side.values())


def _sketch_all(source: ConnectionSource, connections: Connections, form: Form, kept: _Kept) -> _Sketches:
    """The keys of connections; those of a form that `kept` has are not made again.

    SYN and RST are left out: middleboxes answer with their own. A constant IP ID identifies no packet (RFC 6864 allows
    it for packets that are never fragmented).
    """
    if form in kept:
        return kept.pop(form).of(connections.keys())
    order = [number for number in sorted(connections) if _has_fields(connections[number], form.value)]
    if isinstance(source, _Partitioned):
        order.sort(key=source.partition_of)
    beside = (Form.STAMPS,) if form is Form.STAMPS_AND_IP_ID and len(connections) <= MOST_KEPT else ()
    asked = [(each.value.stamps, each.value.ip_id, each.value.places) for each in (form, *beside)]
    made, *others = (_Sketches(*keys) for keys in source.packet_keys(order, asked, SKETCH_SIZE))
    kept.update(zip(beside, others, strict=True))
    return made


def _has_fields(connection: Connection, form: _Form) -> bool:
    """Whether a connection has what keys of a form are made of."""
    return (not form.stamps or _has_stamps(connection)) and (not form.places or _has_places(connection))


def _has_stamps(connection: Connection) -> bool:
    return connection.up.timestamps and connection.down.timestamps


def _has_places(connection: Connection) -> bool:
    return None not in (connection.up.initial_sequence_number, connection.down.initial_sequence_number)


def _shared(left: _Sketches, right: _Sketches, form: _Form) -> list[SharedPackets]:
    """Pairs with enough keys in common; keys that too many connections of a capture hold identify none."""
    order = np.argsort(right.value, kind="stable")
    ordered = right.value[order]
    low = np.searchsorted(ordered, left.value, side="left")
    matches = np.searchsorted(ordered, left.value, side="right") - low
    _, inverse, holders = np.unique(left.value, return_inverse=True, return_counts=True)
    matches = np.where((matches > form.most_holders) | (holders[inverse] > form.most_holders), 0, matches)
    source = np.repeat(np.arange(len(matches)), matches)
    target = order[low[source] + np.arange(len(source)) - np.repeat(np.cumsum(matches) - matches, matches)]
    table = np.stack([left.holder[source], right.holder[target]], axis=1)
    if len(table) == 0:
        return []
    pairs, row, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    crossing = np.bincount(row.reshape(-1), left.direction[source] != right.direction[target], len(pairs))
    return [
        SharedPackets(a, b, n, 2 * crossed > n, form.first_nats + (n - 1) * form.next_nats)
        for (a, b), n, crossed in zip(pairs.tolist(), counts.tolist(), crossing.tolist(), strict=True)
        if n >= form.fewest
    ]
