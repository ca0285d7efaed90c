"""Pairing a TCP connection of one capture with a UDP flow of the other that carries the same bytes.

A provider may split connections and use UDP, behind a header of its own, on the mobile leg (Wei et al., section IV-A).
What protects against chance and against the same object fetched by two protocols:

- at least three datagrams with places in the stream that their fingerprints agree on, all of the same bytes, spread
  over more than half of the stream's payload sample;
- the other direction must be there too, wherever the TCP connection has payload in it: a request to another protocol
  is another request;
- the datagrams must be captured while the connection lives (under the offset between the clocks, where other traffic
  gives it, else by the clocks as they are);
- the flow must be in one capture only: one that both captures hold crosses whole, and a host may send the same by two
  ways at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from detector.other_transport.stream_in_datagrams import FEWEST_DATAGRAMS, SHORT_BYTES, as_stream, carried
from detector.pair import CarriedStream, DatagramLeg
from detector.streams import payload_fingerprints
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.datagrams import DatagramFlow
from pepscope.captures.packets import Direction

#: Share of the stream's payload sample that located datagrams must touch.
FEWEST_COVERAGE = 0.5

#: Datagrams needed where no other direction confirms.
FEWEST_DATAGRAMS_ALONE = 8

#: Captured clocks that nothing relates may be wrong by this much before what overlaps seems not to.
CLOCK_SLACK_NS = 1_000_000_000


class FoundLeg(Struct, frozen=True):
    """A connection and the UDP flow of the other capture that carries its bytes."""

    connection: int
    leg: DatagramLeg


def flow_clock_offset(first: ConnectionSource, second: ConnectionSource) -> int | None:
    """Second capture's clock minus the first's (ns), from UDP flows that both hold; None where there are none."""
    starts = {_ends(flow): flow.first_time_ns for flow in second.datagram_flows}
    common = [starts[_ends(f)] - f.first_time_ns for f in first.datagram_flows if _ends(f) in starts]
    return int(np.median(np.array(common, np.int64))) if common else None


def find_legs(
    source: ConnectionSource,
    connections: Iterable[Connection],
    other: ConnectionSource,
    offset_ns: int | None,
) -> list[FoundLeg]:
    """UDP flows of `other` that carry connections of `source`; `offset_ns` is other's clock minus source's."""
    own = source.datagram_flows
    crossing = {_ends(flow) for flow in own}
    flows = [f for f in other.datagram_flows if max(f.datagrams) >= FEWEST_DATAGRAMS and _ends(f) not in crossing]
    talking = [c for c in connections if c.up.stream_bytes + c.down.stream_bytes > 0]
    if not flows or not talking:
        return []
    found = []
    for connection, candidates in _candidates(source, talking, other, flows):
        legs = [
            leg
            for flow, client in candidates
            if (leg := _examine(source, connection, other, flow, client, offset_ns)) is not None
        ]
        if len(legs) == 1 and not _sent_twice(source, connection, own):
            found.append(FoundLeg(connection.id, legs[0]))
    return found


def _candidates(
    source: ConnectionSource, connections: list[Connection], other: ConnectionSource, flows: list[DatagramFlow]
) -> list[tuple[Connection, list[tuple[DatagramFlow, int]]]]:
    """For each connection the flows, and their client sides, that share places with one of its streams."""
    streams = payload_fingerprints.gather(
        [source.payload(connection.id)[d] for connection in connections for d in Direction]
    )
    sides = payload_fingerprints.gather(
        [as_stream(sample) for flow in flows for sample in other.datagram_samples(flow.id)]
    )
    votes = payload_fingerprints.vote(streams, sides)
    places: dict[tuple[int, int], int] = defaultdict(int)
    for stream, side in zip(votes.left.tolist(), votes.right.tolist(), strict=True):
        # Each shift is one datagram's.
        places[stream, side] += 1
    chosen: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for (stream, side), count in places.items():
        if count >= FEWEST_DATAGRAMS:
            client = side % 2 if stream % 2 == Direction.UP else 1 - side % 2
            chosen[stream // 2].add((side // 2, client))
    return [
        (connections[number], [(flows[flow], client) for flow, client in sorted(pairs)])
        for number, pairs in sorted(chosen.items())
    ]


def _examine(
    source: ConnectionSource,
    connection: Connection,
    other: ConnectionSource,
    flow: DatagramFlow,
    client: int,
    offset_ns: int | None,
) -> DatagramLeg | None:
    """The flow as a leg of the connection, if all of the protections let it pass."""
    payload, samples = source.payload(connection.id), other.datagram_samples(flow.id)
    streams: dict[Direction, CarriedStream] = {}
    for direction in Direction:
        sent = connection.up if direction is Direction.UP else connection.down
        side = client if direction is Direction.UP else 1 - client
        if payload[direction].pieces:
            stream = carried(payload[direction], samples[side], sent.initial_sequence_number)
            if stream is not None:
                streams[direction] = stream
            elif max(len(piece) for piece in payload[direction].pieces) >= SHORT_BYTES:
                return None
    if not streams:
        return None
    strongest = max(streams.values(), key=lambda stream: stream.located)
    needed = FEWEST_DATAGRAMS if len(streams) == len(Direction) else FEWEST_DATAGRAMS_ALONE
    if strongest.located < needed or any(stream.coverage < FEWEST_COVERAGE for stream in streams.values()):
        return None
    if not _at_the_same_time(connection, streams.values(), offset_ns):
        return None
    return DatagramLeg(other.path, flow, client, streams, offset_ns)


def _at_the_same_time(connection: Connection, streams: Iterable[CarriedStream], offset_ns: int | None) -> bool:
    offset = offset_ns or 0
    first = min(int(stream.time_ns.min()) for stream in streams) - offset
    last = max(int(stream.time_ns.max()) for stream in streams) - offset
    return first <= connection.last_time_ns + CLOCK_SLACK_NS and last >= connection.first_time_ns - CLOCK_SLACK_NS


def _sent_twice(source: ConnectionSource, connection: Connection, own: Sequence[DatagramFlow]) -> bool:
    """Whether the connection's own capture holds its bytes in UDP, too: then both ways exist beside each other."""
    return bool(own) and bool(_candidates(source, [connection], source, list(own)))


def _ends(flow: DatagramFlow) -> frozenset[tuple[str, int]]:
    return frozenset(zip(flow.addresses, flow.ports, strict=True))
