"""Connections as a table for the terminal: 80 columns, what an engineer asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pepscope.captures.connections import Close, Connection
from pepscope.sizes import format_count
from pepscope.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.captures.capture import Capture

BOLD, DIM, RED, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[0m"

#: `255.255.255.255:65535`; longer end points get a line of their own.
_ENDPOINT_CELLS = 21
_HEAD = f"{'#':>5} {'client':<21} {'server':<21} {'up':>5} {'down':>5} {'rtt':>6} {'lost':>5} close"


def table_lines(capture: Capture, *, colour: bool = False) -> Iterator[str]:
    """Lines of at most 80 characters, without their ends (longer only where an IPv6 end point alone is).

    `up` and `down` are stream bytes from the client and from the server, `rtt` the least round-trip time from the
    capture point to the farther end, `lost` the retransmitted packets of both. `?` behind the number: no SYN was
    captured, so the sides are guessed.
    """
    yield from head_lines(capture, colour)
    yield painted(_HEAD, DIM, colour)
    for connection in capture.connections:
        yield from _row(connection, colour)


def head_lines(capture: Capture, colour: bool) -> Iterator[str]:
    """What stands above every table: the capture and its warnings."""
    count = len(capture.connections)
    connections = "1 TCP connection" if count == 1 else f"{count:,} TCP connections"
    yield painted(f"{printable(capture.path)}: {capture.packet_count:,} packets, {connections}", BOLD, colour)
    for warning in capture.warnings:
        yield painted(f"warning: {printable(warning)}", YELLOW, colour)
    yield ""


def _row(connection: Connection, colour: bool) -> Iterator[str]:
    number = f"{connection.id}{'?' if connection.side_guessed else ' '}"
    up, down = connection.up, connection.down
    minima_ns = [flow.round_trip_time_min_ns for flow in (up, down) if flow.round_trip_time_min_ns is not None]
    lost = up.retransmitted_packets + down.retransmitted_packets
    close = str(connection.close)
    if connection.close is Close.RESET:
        close = painted(close, RED, colour)
    figures = (
        f"{format_count(up.stream_bytes):>5} {format_count(down.stream_bytes):>5} "
        f"{time_text(max(minima_ns, default=None)):>6} {format_count(lost):>5} {close}"
    )
    client, server = connection.client, connection.server
    if max(len(client), len(server)) <= _ENDPOINT_CELLS:
        yield f"{number:>6}{client:<21} {server:<21} {figures}"
    else:
        yield f"{number:>6}{client} >"
        yield f"{'':6}{server}"
        yield f"{'':6}{'':<21} {'':<21} {figures}"


def time_text(time_ns: int | None) -> str:
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


def painted(text: str, colour: str, wanted: bool) -> str:
    """The text in this colour, an escape sequence of terminals, if wanted."""
    return f"{colour}{text}{PLAIN}" if wanted else text
