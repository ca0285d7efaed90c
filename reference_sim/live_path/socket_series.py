"""TCP_INFO of the traffic's sockets, at the end and over time, joined with the series of the hops."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reference_sim.run import Float64Array, Quantity, Series

#: `struct tcp_info` of linux/tcp.h: name, offset and format; kernels append, so an older one ends sooner.
_FIELDS: Mapping[str, tuple[int, str]] = {
    "retransmission_timeout_us": (8, "=I"),
    "segment_bytes": (16, "=I"),
    "unacknowledged_segments": (24, "=I"),
    "smoothed_round_trip_time_us": (68, "=I"),
    "slow_start_threshold_segments": (76, "=I"),
    "window_segments": (80, "=I"),
    "retransmitted_segments": (100, "=I"),
    "acknowledged_bytes": (120, "=Q"),
    "segments_sent": (136, "=I"),
    "segments_received": (140, "=I"),
    "queued_bytes": (144, "=I"),
    "shortest_round_trip_time_us": (148, "=I"),
    "data_segments_received": (152, "=I"),
    "data_segments_sent": (156, "=I"),
    "payload_bytes_sent": (200, "=Q"),
    "retransmitted_bytes": (208, "=Q"),
    "duplicate_reports": (216, "=I"),
    "out_of_order_segments": (224, "=I"),
    "receive_window_bytes": (232, "=I"),
    "timeouts": (240, "=H"),
}
_MOST_INFO_BYTES = 1024
_NO_THRESHOLD = 0x7FFFFFFF
_NO_ROUND_TRIP = 0xFFFFFFFF
#: Totals that a simulation's truth has by the same names, and two that only a kernel counts.
_TOTALS = (
    "segments_sent", "segments_received", "data_segments_sent", "data_segments_received", "payload_bytes_sent",
    "retransmitted_segments", "retransmitted_bytes", "timeouts", "out_of_order_segments", "duplicate_reports",
)  # fmt: skip


def tcp_info(connection: socket.socket) -> dict[str, int]:
    """Fields of TCP_INFO by name, as far as this kernel's version has them. Raises OSError."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOST_INFO_BYTES)
    return {
        name: struct.unpack_from(form, raw, offset)[0]
        for name, (offset, form) in _FIELDS.items()
        if offset + struct.calcsize(form) <= len(raw)
    }


def tcp_totals(connection: socket.socket) -> dict[str, Any]:
    """The counts of a connection as truth.json has them. Raises OSError."""
    info = tcp_info(connection)
    shortest_us = info.get("shortest_round_trip_time_us", _NO_ROUND_TRIP)
    return {
        **{name: info[name] for name in _TOTALS if name in info},
        "smoothed_round_trip_time_s": info["smoothed_round_trip_time_us"] * 1e-6,
        "shortest_round_trip_time_s": None if shortest_us == _NO_ROUND_TRIP else shortest_us * 1e-6,
    }


def _quantities(info: Mapping[str, int]) -> Iterable[tuple[str, float]]:
    """By the names that a simulation uses."""
    segment_bytes = info["segment_bytes"]
    yield "retransmission_timeout_s", info["retransmission_timeout_us"] * 1e-6
    yield "smoothed_round_trip_time_s", info["smoothed_round_trip_time_us"] * 1e-6
    yield "congestion_window_bytes", info["window_segments"] * segment_bytes
    if info["slow_start_threshold_segments"] < _NO_THRESHOLD:
        yield "slow_start_threshold_bytes", info["slow_start_threshold_segments"] * segment_bytes
    yield "unacknowledged_bytes", info["unacknowledged_segments"] * segment_bytes
    for name in ("queued_bytes", "acknowledged_bytes", "receive_window_bytes"):
        if name in info:
            yield name, info[name]


class SocketSampler:
    """Samples sockets every `interval_s` of the path's time, on a thread of its own; a context manager."""

    def __init__(self, interval_s: float, started_ns: int) -> None:
        self._interval_s = interval_s
        self._started_ns = started_ns
        self._sockets: dict[tuple[str, int], tuple[socket.socket, Callable[[], int]]] = {}
        self._samples: dict[tuple[str, int, str], dict[int, float]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pepscope-series", daemon=True)

    def __enter__(self) -> SocketSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def add(self, place: str, flow: int, connection: socket.socket, read_bytes: Callable[[], int]) -> None:
        """Sample this one too; `read_bytes` is what its application has read."""
        self._sockets[place, flow] = connection, read_bytes

    def remove(self, place: str, flow: int) -> None:
        """To be called before it is closed."""
        self._sockets.pop((place, flow), None)

    def _run(self) -> None:
        while True:
            now_s = (time.monotonic_ns() - self._started_ns) * 1e-9
            number = int(now_s / self._interval_s) + 1
            if self._stopping.wait(number * self._interval_s - now_s):
                return
            for (place, flow), (connection, read_bytes) in list(self._sockets.items()):
                with contextlib.suppress(OSError):  # it was closed meanwhile
                    for name, value in (*_quantities(tcp_info(connection)), ("delivered_bytes", read_bytes())):
                        self._samples.setdefault((place, flow, name), {})[number] = value

    def quantities(self, times: int) -> list[Quantity]:
        """Columns of so many samples; not a number where there was none."""
        columns = []
        for (place, flow, name), samples in self._samples.items():
            values = np.full(times, np.nan)
            for number, value in samples.items():
                if number < times:
                    values[number] = value
            columns.append(Quantity(place, flow, name, values))
        return columns


def joined_series(hops: Sequence[tuple[Float64Array, Sequence[Any]]], sampler: SocketSampler | None) -> Series:
    """One series of those of the loops, times and columns each, and of the sockets, as long as the shortest loop's."""
    times = min((times for times, _ in hops), key=len, default=np.empty(0))
    quantities = [
        Quantity(place, flow, name, values[: len(times)])
        for _, columns in hops
        for place, flow, name, values in columns
    ]
    if sampler is not None:
        quantities += sampler.quantities(len(times))
    return Series(times, tuple(quantities))
