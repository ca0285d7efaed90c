"""How long packets take between the captures at both ends beyond the path's own delay, which is known.

In an empty line it is all that a packet takes, in a busy one how much later it leaves than the line would have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.real_or_simulated.runs import Captures
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Mark, PacketColumns, TcpFlag

#: The direction in which each end sends, as columns and as scenarios have it.
SENT = {"server": (1, "down"), "mobile": (0, "up")}
#: The line must have been empty so long when a packet enters it, or busy.
_EMPTY_S = 2e-4
_BUSY_S = 5e-5
#: Beyond this a packet waited in the path: what is known of it was wrong.
_MOST_CROSSING_S = 2e-3
_IP_BYTES = {4: 20, 6: 40}
_TCP_BYTES, _TCP_SYN_BYTES = 32, 40

#: A share of the line's time for a packet that it cannot have taken.
_SOONER = 0.5

_Key = tuple[int, ...]
#: Of a key.
_PAYLOAD_BYTES = 4


@dataclass(slots=True)
class Passages:
    """Of packets that one end sent, in seconds."""

    #: How long they took beyond the line's time, where it was empty, and the pauses before them.
    entering: list[tuple[float, float]] = field(default_factory=list)
    #: How much later they left than the one before, beyond the line's time, where it was busy.
    late_s: list[float] = field(default_factory=list)
    #: Times between two that arrived sooner after one another than the line brings them: the second one had waited.
    apart_s: list[float] = field(default_factory=list)


class _Packet(NamedTuple):
    key: _Key
    #: Since a time that both captures share.
    at_s: float
    is_sent: bool
    tcp_bytes: int
    payload_bytes: int
    #: Its TCP header has the usual length.
    is_usual: bool


def passages(end: str, set_up: Mapping[str, Any], run: Captures) -> Passages:
    """What the captures of a run say of packets that `end` sent."""
    way, _ = SENT[end]
    line, version = set_up["path"][0]["down"], set_up["traffic"][0]["ip_version"]
    here, there = (open_capture(str(run[place])) for place in (end, "mobile" if end == "server" else "server"))
    base_ns = min(connection.first_time_ns for connection in here.connections)
    departed = list(_in_order(here, way, base_ns))
    arrivals = _arrivals(there, way, base_ns)
    departures = Counter(packet.key for packet in departed if packet.is_sent)
    found = Passages()
    found.apart_s = _caught_up(arrivals, line["rate_bit_s"], _IP_BYTES[version] + _TCP_BYTES)
    free_s, last_s = 0.0, -1.0
    before_s: float | None = None
    for packet in departed:
        pause_s, last_s = (packet.at_s - last_s if last_s >= 0 else -1.0), packet.at_s
        if not packet.is_sent:
            continue
        length = _IP_BYTES[version] + packet.tcp_bytes + packet.payload_bytes
        serialisation_s = 8 * length / line["rate_bit_s"]
        empty_s = packet.at_s - free_s
        free_s = max(free_s, packet.at_s) + serialisation_s
        arrival_s = arrivals.get(packet.key) if packet.is_usual and departures[packet.key] == 1 else None
        if arrival_s is not None and empty_s > _EMPTY_S:
            taken_s = arrival_s - packet.at_s - line["delay_s"] - serialisation_s
            if 0 < taken_s < _MOST_CROSSING_S:
                found.entering.append((taken_s, pause_s))
        elif arrival_s is not None and before_s is not None and empty_s < -_BUSY_S:
            found.late_s.append(arrival_s - before_s - serialisation_s)
        before_s = arrival_s
    return found


def _caught_up(arrivals: Mapping[_Key, float], rate_bit_s: float, header_bytes: int) -> list[float]:
    in_order = sorted(arrivals.items(), key=lambda item: item[1])
    gaps = (
        (then_s - before_s, 8 * (header_bytes + key[_PAYLOAD_BYTES]) / rate_bit_s)
        for (_, before_s), (key, then_s) in pairwise(in_order)
    )
    return [gap_s for gap_s, serialisation_s in gaps if gap_s < _SOONER * serialisation_s]


def _arrivals(capture: Capture, way: int, base_ns: int) -> dict[_Key, float]:
    """When packets that nothing else looks like passed a capture."""
    passed: dict[_Key, list[float]] = {}
    for packet in _in_order(capture, way, base_ns):
        if packet.is_sent:
            passed.setdefault(packet.key, []).append(packet.at_s)
    return {key: times[0] for key, times in passed.items() if len(times) == 1}


def _in_order(capture: Capture, way: int, base_ns: int) -> Iterator[_Packet]:
    rows = []
    for connection in capture.connections:
        packets = capture.packets(connection.id)
        for row in range(len(packets)):
            rows.append((int(packets.time_ns[row]), connection.client_port, packets, row))
    rows.sort(key=lambda one: one[0])
    for time_ns, port, packets, row in rows:
        yield _Packet(
            key=_key(port, packets, row),
            at_s=(time_ns - base_ns) * 1e-9,
            is_sent=int(packets.direction[row]) == way,
            tcp_bytes=_TCP_SYN_BYTES if int(packets.flags[row]) & TcpFlag.SYN else _TCP_BYTES,
            payload_bytes=int(packets.payload_bytes[row]),
            is_usual=not int(packets.marks[row]) & Mark.HAS_SACK,
        )


def _key(port: int, packets: PacketColumns, row: int) -> _Key:
    columns = (
        packets.direction, packets.sequence_offset, packets.acknowledgement_offset, packets.payload_bytes,
        packets.flags, packets.tsval, packets.tsecr, packets.ip_id,
    )  # fmt: skip
    return (port, *(int(column[row]) for column in columns))
