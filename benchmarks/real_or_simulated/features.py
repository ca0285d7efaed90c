"""Numbers of a connection in one capture: those that `inspect` reports, and those of its packets.

Addresses, ports, initial sequence numbers, absolute times and what else names a run are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Mark, PacketColumns, TcpFlag

Floats = npt.NDArray[np.float64]

NOT_A_NUMBER = float("nan")
_DIRECTIONS = (("up", 0), ("down", 1))
#: Of a direction's summary, as `inspect --json` has them.
_COUNTS = (
    "packets", "payload_bytes", "data_packets", "pure_acknowledgements", "retransmitted_packets",
    "retransmitted_bytes", "reordered_packets", "duplicate_packets", "zero_windows", "window_min_bytes",
    "window_max_bytes", "round_trip_time_samples", "round_trip_time_min_ns", "round_trip_time_mean_ns",
    "round_trip_time_max_ns", "maximum_segment_size", "window_scale", "ttl",
)  # fmt: skip
_TIMES = ("first_data_time_ns", "last_data_time_ns", "fin_time_ns", "reset_time_ns")
_QUANTILES = (0.0, 0.1, 0.5, 0.9)
#: Gaps up to this are within a burst.
_BURST_NS = 200_000


def inspected(path: Path) -> dict[int, dict[str, float]]:
    """What `inspect` reports of each connection, by the client's port."""
    with_numbers = {}
    for connection in open_capture(str(path)).connections:
        values = {name: _number(getattr(connection, name)) for name in ("handshake_syn_ack_ns", "handshake_ack_ns")}
        values["duration_ns"] = float(connection.last_time_ns - connection.first_time_ns)
        for name, _ in _DIRECTIONS:
            flow = getattr(connection, name)
            values |= {f"{name} {field}": _number(getattr(flow, field)) for field in _COUNTS}
            for field in _TIMES:
                at_ns = getattr(flow, field)
                values[f"{name} {field}"] = NOT_A_NUMBER if at_ns is None else float(at_ns - connection.first_time_ns)
            options = flow.syn_options or b""
            values[f"{name} syn_options bytes"] = float(len(options))
        with_numbers[connection.client_port] = values
    return with_numbers


def is_time(name: str) -> bool:
    """Whether a number is a time in nanoseconds."""
    words = name.removeprefix("up ").removeprefix("down ")
    return name.endswith("_ns") or words.startswith(("gap ", "median gap", "answer after"))


def of_packets(path: Path) -> dict[int, dict[str, float]]:
    """Numbers of the packets of each connection, by the client's port."""
    capture = open_capture(str(path))
    return {connection.client_port: dict(_packet_numbers(capture, connection.id)) for connection in capture.connections}


def _packet_numbers(capture: Capture, connection_id: int) -> Iterator[tuple[str, float]]:
    packets = capture.packets(connection_id)
    yield from _opening(packets)
    for name, direction in _DIRECTIONS:
        rows = np.flatnonzero(packets.direction == direction)
        for field, value in _sent(packets, rows):
            yield f"{name} {field}", value
        for field, value in _answers(packets, direction):
            yield f"{name} {field}", value


def _opening(packets: PacketColumns) -> Iterator[tuple[str, float]]:
    """How the handshake ends and the first data begin."""
    up = np.flatnonzero(packets.direction == 0)
    down = np.flatnonzero(packets.direction == 1)
    has_third = len(up) > 1
    yield "third packet's payload bytes", float(packets.payload_bytes[up[1]]) if has_third else NOT_A_NUMBER
    yield "gap third to fourth", float(packets.time_ns[up[2]] - packets.time_ns[up[1]]) if len(up) > 2 else NOT_A_NUMBER
    for name, rows in (("up", up), ("down", down)):
        for number in range(4):
            window = float(packets.window_bytes[rows[number]]) if len(rows) > number else NOT_A_NUMBER
            yield f"{name} window {number}", window


def _sent(packets: PacketColumns, rows: npt.NDArray[np.intp]) -> Iterator[tuple[str, float]]:
    """Of what one end sends, or the path delivers of it."""
    flags, payload = packets.flags[rows], packets.payload_bytes[rows].astype(float)
    data = rows[payload > 0]
    pushed = (packets.flags[data] & TcpFlag.PSH) > 0
    yield "share of data pushed", _share(pushed)
    full = packets.payload_bytes[data] == (packets.payload_bytes[data].max() if len(data) else 0)
    yield "share of data of full size", _share(full)
    yield "share of full data pushed", _share(pushed[full])
    gaps = np.diff(packets.time_ns[rows]).astype(float)
    yield "share of gaps of zero", _share(gaps == 0)
    yield "share of gaps in a burst", _share(gaps < _BURST_NS)
    for share in _QUANTILES:
        yield f"gap quantile {share:g}", float(np.quantile(gaps, share)) if len(gaps) else NOT_A_NUMBER
    within = gaps[(gaps > 0) & (gaps < _BURST_NS)]
    yield "median gap in a burst", float(np.median(within)) if len(within) else NOT_A_NUMBER
    windows = packets.window_bytes[rows[1:]].astype(float)
    yield "distinct windows", float(len(np.unique(windows)))
    yield "window rises", float(np.count_nonzero(np.diff(windows) > 0))
    yield "window falls", float(np.count_nonzero(np.diff(windows) < 0))
    yield "last window of first", float(windows[-1] / windows[0]) if len(windows) and windows[0] else NOT_A_NUMBER
    steps = np.mod(np.diff(packets.ip_id[rows].astype(np.int64)), 65_536)
    yield "share of identifications that step by one", _share(steps == 1)
    yield "share of identifications of zero", _share(packets.ip_id[rows] == 0)
    yield "share of payload in packets with FIN", _share(payload[(flags & TcpFlag.FIN) > 0] > 0)
    yield "pure acknowledgements beside FIN", float(np.count_nonzero((payload == 0) & ((flags & TcpFlag.FIN) > 0)))
    yield "window updates", float(np.count_nonzero(packets.marks[rows] & Mark.WINDOW_UPDATE))
    yield "duplicate acknowledgements", float(np.count_nonzero(packets.marks[rows] & Mark.DUPLICATE_ACK))


def _answers(packets: PacketColumns, direction: int) -> Iterator[tuple[str, float]]:
    """How the end that receives `direction` answers it, as this capture sees it."""
    is_data = (packets.direction == direction) & (packets.payload_bytes > 0)
    is_answer = (packets.direction != direction) & (packets.payload_bytes == 0)
    answered, waited = 0, []
    last = None
    for row in np.flatnonzero(is_data | is_answer):
        if is_data[row]:
            last = row
        elif last is not None:
            waited.append(float(packets.time_ns[row] - packets.time_ns[last]))
            answered, last = answered + 1, None
    count = int(np.count_nonzero(is_data))
    yield "answers of data packets", answered / count if count else NOT_A_NUMBER
    for share in _QUANTILES:
        yield f"answer after quantile {share:g}", float(np.quantile(waited, share)) if waited else NOT_A_NUMBER
    sent = np.flatnonzero(packets.direction == 1 - direction)
    reached = np.diff(packets.acknowledgement_offset[sent].astype(float))
    steps = reached[(reached > 0) & (reached < 1 << 30)]
    yield "median acknowledged bytes", float(np.median(steps)) if len(steps) else NOT_A_NUMBER
    yield "most acknowledged bytes", float(steps.max()) if len(steps) else NOT_A_NUMBER
    first = np.flatnonzero(is_data)[:12]
    near = float(np.count_nonzero(_near(packets.time_ns[first])))
    yield "packets of the first burst", near if len(first) else NOT_A_NUMBER


def _near(times_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Those that stand in the first burst."""
    gaps = np.diff(times_ns)
    ends = np.flatnonzero(gaps > 2_000_000)
    return np.arange(len(times_ns)) <= (ends[0] if len(ends) else len(times_ns))


def _share(chosen: npt.NDArray[np.bool_]) -> float:
    return float(np.mean(chosen)) if len(chosen) else NOT_A_NUMBER


def _number(value: Any) -> float:
    return NOT_A_NUMBER if value is None else float(value)
