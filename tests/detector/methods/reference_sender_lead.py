"""How far a sender is ahead, how early a FIN came, and the spans of a transfer, in NumPy: references of the crate's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.streams.curves import NEVER, ByteTimes, acknowledgements, sent_data
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, TcpFlag
from pepscope.results.verdicts import FloatArray
from tests.detector.streams.reference_curves import first_arrivals

#: Start, reference, offset and drift of each piece of a clock relation.
Lines = list[tuple[int, int, float, float]]


@dataclass(frozen=True)
class Captured:
    """One flow of a connection in two captures, with a clock relation."""

    direction: Direction
    sender: PacketColumns
    receiver: PacketColumns
    shift: int
    flow: _core.FlowTimes
    lines: Lines


def sender_lead(
    captured: Captured, clock_given: bool, error_ns: int, buffers: tuple[int, int, int, int, int], windows: bool
) -> tuple[int, ...] | None:
    """The numbers of a lead in the order of `SenderLead`."""
    flow, shift = captured.flow, captured.shift
    if len(flow.data_sent_ns) < 2 or len(flow.ack_seen_ns) < 2:
        return None
    held = first_arrivals(captured.receiver, captured.direction)
    order = np.argsort(held.time_ns, kind="stable")
    best = int((flow.data_sent_ns - _on_sender_clock(captured, flow.data_arrived_ns)).max())
    best = max(best, 0) if clock_given else best
    arrival = np.maximum.accumulate(_on_sender_clock(captured, held.time_ns[order]) + best)
    reached = np.maximum.accumulate(held.end[order]) + shift
    first = int(held.start.min()) + shift
    arrived = np.concatenate([[first], reached])
    total = int(max(flow.ack_value[-1], reached[-1])) - first
    at_ack = arrived[np.searchsorted(arrival, flow.ack_seen_ns + error_ns, side="right")]
    done = int(np.searchsorted(flow.ack_value, min(int(flow.ack_value[-1]), int(reached[-1])), side="left"))
    known = flow.arrival_ns != NEVER
    lead = (flow.ack_value - at_ack)[known]
    began = int(np.searchsorted(flow.ack_seen_ns, arrival[0], side="left"))
    beyond, capacity = 0, 0
    if windows and len(lead):
        fixed, segment, per_segment, first_window, per_read_byte = buffers
        delivered = np.maximum(at_ack[known] - first, 0)
        passed_on = fixed + per_segment * (delivered // segment)
        window, largest = _windows(captured, known)
        grown = np.minimum(2 * largest, per_read_byte * (delivered + passed_on))
        limits = passed_on + np.maximum(largest + first_window, grown) - window
        most = int(np.argmax(lead - limits))
        beyond, capacity = int(lead[most] - limits[most]), int(limits[most])
    return (
        total,
        int(lead.max()) if len(lead) else 0,
        int(at_ack[done]) - first,
        int(flow.ack_value[began - 1]) - first if began else 0,
        int(arrival[0] - flow.data_sent_ns[0]),
        int(flow.ack_seen_ns[done] - flow.data_sent_ns[0]),
        int(arrival[-1] - arrival[0]),
        beyond,
        capacity,
    )


def fin_lead_ns(captured: Captured, sent_ns: int, arrived_ns: int) -> float | None:
    """By how much a FIN against the flow came too early (ns)."""
    flow, lines = captured.flow, captured.lines
    ends = (flow.data_sent_ns, flow.data_arrived_ns)
    is_up = captured.direction is Direction.UP
    (x, there), (client, server) = (ends, (arrived_ns, sent_ns)) if is_up else (ends[::-1], (sent_ns, arrived_ns))
    starts = np.array([start for start, *_ in lines[1:]], np.int64)
    piece = np.searchsorted(starts, np.array([client]), side="right")
    alike = np.searchsorted(starts, x, side="right") == piece
    if not alike.any():
        return None
    room = (there - x - server_minus_client_ns(lines, x))[alike]
    fin = server - client - float(server_minus_client_ns(lines, np.array([client]))[0])
    return float(fin - room.min() if is_up else room.max() - fin)


def transfer_spans(captured: Captured, shortest_bytes: int) -> tuple[int, int, int] | None:
    """Nanoseconds that a common range took at the sender and at the receiver, and its bytes."""
    shift = captured.shift
    sent = sent_data(captured.sender, captured.direction).first_copies
    acks = acknowledgements(captured.sender, captured.direction)
    received = first_arrivals(captured.receiver, captured.direction)
    if min(len(sent.start), len(received.start), len(acks.value)) == 0:
        return None
    low = max(int(sent.start[0]), int(received.start[0]) + shift)
    high = min(int(sent.end[-1]), int(received.end[-1]) + shift, int(acks.value[-1]))
    if high - low < shortest_bytes:
        return None
    began, first = _earliest(sent, low, "right"), _earliest(received, low - shift, "right")
    acknowledged = int(acks.time_ns[np.searchsorted(acks.value, high) :].min())
    return acknowledged - began, _earliest(received, high - shift, "left") - first, high - low


def server_minus_client_ns(lines: Lines, client_ns: Int64Array) -> FloatArray:
    """The clock relation at client times."""
    result = np.zeros(len(client_ns), np.float64)
    for number, (start, reference, offset, drift) in enumerate(lines):
        inside = client_ns >= start if number else np.ones(len(client_ns), np.bool_)
        result[inside] = offset + drift * (client_ns[inside] - reference)
    return result


def _earliest(ranges: ByteTimes, offset: int, side: str) -> int:
    place = np.searchsorted(ranges.end, offset, side="right" if side == "right" else "left")
    return int(ranges.time_ns[place:].min())


def _on_sender_clock(captured: Captured, receiver_ns: Int64Array) -> Int64Array:
    if captured.direction is Direction.DOWN:
        return receiver_ns + np.rint(server_minus_client_ns(captured.lines, receiver_ns)).astype(np.int64)
    client = receiver_ns - round(captured.lines[0][2])
    return receiver_ns - np.rint(server_minus_client_ns(captured.lines, client)).astype(np.int64)


def _windows(captured: Captured, known: np.ndarray) -> tuple[Int64Array, Int64Array]:
    """At each acknowledgement the window that was advertised last, and the largest until then."""
    packets = captured.sender
    advertising = packets.going(captured.direction.reverse) & ~packets.flagged(TcpFlag.SYN)
    windows = packets.window_bytes[advertising].astype(np.int64)
    if len(windows) == 0:
        return np.zeros(int(known.sum()), np.int64), np.zeros(int(known.sum()), np.int64)
    place = np.searchsorted(packets.time_ns[advertising], captured.flow.ack_seen_ns[known], side="right") - 1
    place = np.maximum(place, 0)
    return windows[place], np.maximum.accumulate(windows)[place]
