"""Connections as a table for the terminal: 80 columns, what an engineer asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pepscope.captures.connections import Close, Connection
from pepscope.sizes import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.captures.capture import Capture

_BOLD, _DIM, _RED, _YELLOW, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[0m"

#: `255.255.255.255:65535`; longer end points get a line of their own.
_ENDPOINT_CELLS = 21
_HEAD = f"{'#':>5} {'client':<21} {'server':<21} {'up':>5} {'down':>5} {'rtt':>6} {'lost':>5} close"


def table_lines(capture: Capture, *, colour: bool = False) -> Iterator[str]:
    """Lines of at most 80 characters, without their ends (longer only where an IPv6 end point alone is).

    `up` and `down` are stream bytes from the client and from the server, `rtt` the least round-trip time from the
    capture point to the farther end, `lost` the retransmitted packets of both. `?` behind the number: no SYN was
    captured, so the sides are guessed.
    """
    count = len(capture.connections)
    connections = "1 TCP connection" if count == 1 else f"{count} TCP connections"
    yield _paint(f"{capture.path}: {capture.packet_count} packets, {connections}", _BOLD, colour)
    for warning in capture.warnings:
        yield _paint(f"warning: {warning}", _YELLOW, colour)
    yield ""
    yield _paint(_HEAD, _DIM, colour)
    for connection in capture.connections:
        yield from _row(connection, colour)


def _row(connection: Connection, colour: bool) -> Iterator[str]:
    number = f"{connection.id}{'?' if connection.side_guessed else ' '}"
    up, down = connection.up, connection.down
    minima_ns = [flow.round_trip_time_min_ns for flow in (up, down) if flow.round_trip_time_min_ns is not None]
    lost = up.retransmitted_packets + down.retransmitted_packets
    close = str(connection.close)
    if connection.close is Close.RESET:
        close = _paint(close, _RED, colour)
    figures = (
        f"{format_count(up.stream_bytes):>5} {format_count(down.stream_bytes):>5} "
        f"{_milliseconds(max(minima_ns, default=None)):>6} {format_count(lost):>5} {close}"
    )
    client, server = connection.client, connection.server
    if max(len(client), len(server)) <= _ENDPOINT_CELLS:
        yield f"{number:>6}{client:<21} {server:<21} {figures}"
    else:
        yield f"{number:>6}{client} >"
        yield f"{'':6}{server}"
        yield f"{'':6}{'':<21} {'':<21} {figures}"


def _milliseconds(time_ns: int | None) -> str:
    """A time in at most six characters, such as `12.3ms` or `4.56s`."""
    if time_ns is None:
        return "-"
    if time_ns < 999_500:
        return f"{time_ns / 1e3:.0f}us"
    if time_ns < 9_995_000:
        return f"{time_ns / 1e6:.2f}ms"
    if time_ns < 99_950_000:
        return f"{time_ns / 1e6:.1f}ms"
    if time_ns < 999_500_000:
        return f"{time_ns / 1e6:.0f}ms"
    return f"{time_ns / 1e9:.4g}s"


def _paint(text: str, colour: str, wanted: bool) -> str:
    return f"{colour}{text}{_PLAIN}" if wanted else text
