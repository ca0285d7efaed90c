"""The transport protocol changed on the way: TCP at one end, UDP with the same bytes at the other.

Part of identity (its `method` is `identity`): the segments that left cannot be what arrives. One provider's Split-TCP
runs so (Wei et al., section IV-A, CDMA-II). Whether the split relays or stores is read off the two directions' delays,
which bound the offset between the clocks, and off the offset that other traffic shows.
"""

from __future__ import annotations

from enum import Enum, auto

import numpy as np
from msgspec import Struct

from detector.method import Observation
from detector.methods.identity.findings import NAME
from detector.other_transport.datagram_pairing import CLOCK_SLACK_NS
from detector.pair import CarriedStream, DatagramLeg, Vantage
from detector.streams.curves import NEVER, first_arrivals, sent_data
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.finding import CERTAIN, Finding, Weight, inapplicable, split
from pepscope.results.verdicts import Evidence, Mechanism, Number


class _Order(Enum):
    """The order in time of the two legs' data phases."""

    UNKNOWN = auto()
    RELAYED = auto()
    STORED = auto()


class TransportFinding(Finding):
    """The transport protocol changed; the order of the two legs' data shows the mechanism."""

    TRANSPORT_CHANGED = split(
        "transport-changed",
        Weight(
            "identity", CERTAIN, 0.0, 0.0, CERTAIN, "UDP carries the same bytes at the other end.", Mechanism.TUNNEL
        ),
    )
    TRANSPORT_CHANGED_RELAYED = split(
        "transport-changed-relayed",
        Weight(
            "identity", CERTAIN, 0.0, -4.0, CERTAIN,
            "UDP carries the same bytes at the other end, while TCP still carried data.", Mechanism.TUNNEL,
        ),
    )  # fmt: skip
    TRANSPORT_CHANGED_STORED = split(
        "transport-changed-stored",
        Weight(
            "identity", CERTAIN, -4.0, 0.0, CERTAIN,
            "UDP carries the same bytes at the other end, after TCP had carried all data.", Mechanism.TUNNEL,
        ),
    )  # fmt: skip
    SEGMENTS_IN_UDP = inapplicable("segments-in-udp", is_missing=True)


_FINDINGS = {
    _Order.UNKNOWN: (TransportFinding.TRANSPORT_CHANGED, ""),
    _Order.RELAYED: (TransportFinding.TRANSPORT_CHANGED_RELAYED, "; the first came while TCP still carried data"),
    _Order.STORED: (TransportFinding.TRANSPORT_CHANGED_STORED, "; the first came after TCP had carried all data"),
}


class _Delays(Struct, frozen=True):
    """Datagram's time minus the same bytes' time in TCP (ns), and whether TCP is where the bytes come from."""

    value: Int64Array
    time_ns: Int64Array  # of the datagrams
    forward: bool


def examine(observation: Observation) -> Evidence | None:
    """Compare a connection with the UDP flow that carries its bytes at the other end; None where TCP runs at both."""
    pair = observation.pair
    leg, vantages = pair.datagram_leg, pair.vantages
    if leg is None or not vantages:
        return None
    numbers = _numbers(leg)
    if any(stream.holds_segments for stream in leg.streams.values()):
        return TransportFinding.SEGMENTS_IN_UDP.undecided(
            NAME,
            "UDP at one end carries this connection's own segments, sequence numbers and all: a tunnel whose header "
            "is not known, so the segments cannot be compared one by one.", numbers,
        )  # fmt: skip
    order = _order(leg, vantages[0], at_client=pair.client_side is not None)
    finding, how = _FINDINGS[order]
    located = sum(stream.located for stream in leg.streams.values())
    return finding.evidence(
        NAME, pair.pairing_confidence,
        "The transport protocol changed on the way: TCP at one end, UDP at the other "
        f"({located} datagrams of {leg.client_end_point} and {leg.server_end_point} carry the same bytes){how}.",
        numbers,
        (
            "A tunnel that compresses TCP headers, or an application that sends the same by UDP, looks the same.",
            *(() if leg.clock_known else ("Only the capture clocks show that both were at the same time.",)),
        ),
    )  # fmt: skip


def _numbers(leg: DatagramLeg) -> dict[str, Number]:
    numbers: dict[str, Number] = {"udp_client": leg.client_end_point, "udp_server": leg.server_end_point}
    for direction, stream in leg.streams.items():
        name = direction.name.lower()
        numbers |= {
            f"{name}_datagrams_located": stream.located,
            f"{name}_datagrams_compared": stream.compared,
            f"{name}_datagrams_equal": stream.agreeing,
            f"{name}_offset_in_datagram_bytes": stream.offset_in_datagram,
            f"{name}_sample_covered": stream.coverage,
        }
    return numbers


def _order(leg: DatagramLeg, tcp: Vantage, *, at_client: bool) -> _Order:
    """Whether both legs carried data at once.

    With delay d = datagram's time - TCP time and unknown clock offset c: bytes that TCP brought first have d >= c,
    bytes that UDP brought first have d <= c. So c is at least the greatest d of the latter, and a datagram of the
    former came no later (by TCP's clock) than its time less that. No such bound proves that it came late: for that,
    other traffic must have shown the offset.
    """
    delays = {direction: _delays(stream, tcp, direction, at_client) for direction, stream in leg.streams.items()}
    bulk = max(leg.streams, key=lambda direction: leg.streams[direction].located)
    if not delays[bulk].forward or not len(delays[bulk].value):
        return _Order.UNKNOWN
    first_in_udp, last_in_tcp = int(delays[bulk].time_ns.min()), _last_data(tcp, bulk)
    if leg.clock_offset_ns is not None and first_in_udp - leg.clock_offset_ns > last_in_tcp + CLOCK_SLACK_NS:
        return _Order.STORED
    backward = [item.value.max() for item in delays.values() if not item.forward and len(item.value)]
    if backward and max(backward) <= delays[bulk].value.min() and first_in_udp - int(max(backward)) < last_in_tcp:
        return _Order.RELAYED
    return _Order.UNKNOWN


def _delays(stream: CarriedStream, tcp: Vantage, direction: Direction, at_client: bool) -> _Delays:
    # At the client's side TCP is where the client's bytes come from.
    forward = at_client is (direction is Direction.UP)
    held = tcp.derived(sent_data, direction).first_copies if forward else tcp.derived(first_arrivals, direction)
    before = held.at(np.maximum(stream.stream_offset, 0))
    known = before != NEVER
    times = stream.time_ns[known]
    return _Delays(times - before[known], times, forward)


def _last_data(tcp: Vantage, direction: Direction) -> int:
    held = tcp.derived(sent_data, direction).first_copies
    return int(held.time_ns.max()) if len(held.time_ns) else tcp.connection.last_time_ns
