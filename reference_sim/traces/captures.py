"""The rate of a link that a download kept full, from a capture beside the mobile."""

from __future__ import annotations

from pathlib import Path

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from reference_sim.traces.rates import RateTrace, trace_of_deliveries

#: Beside payload: IPv4, TCP and timestamps.
_HEADER_BYTES = 52


def trace_of_capture(path: str | Path, interval_s: float, *, skip_s: float = 0.0) -> RateTrace:
    """What arrived of the connection with most data to its client, in intervals; `skip_s` of the beginning is left out.

    The rate is that of IP packets. Raises ScenarioError for less than an interval, CaptureError.
    """
    capture = open_capture(str(path))
    connection = max(capture.connections, key=lambda one: one.down.payload_bytes)
    packets = capture.packets(connection.id)
    is_data = (packets.direction == Direction.DOWN) & (packets.payload_bytes > 0)
    times_s = (packets.time_ns[is_data] * 1e-9).tolist()
    sizes = (packets.payload_bytes[is_data].astype("int64") + _HEADER_BYTES).tolist()
    return trace_of_deliveries(zip(times_s, sizes, strict=True), interval_s, skip_s=skip_s)
