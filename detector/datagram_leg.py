"""A vantage at which a connection's bytes travel in UDP datagrams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pepscope.datagrams import DatagramFlow
from pepscope.packets import Direction, Int64Array


@dataclass(frozen=True, slots=True)
class CarriedStream:
    """One direction's TCP stream as it was found in one side's datagrams.

    The arrays have one element for each datagram whose place in the stream is known, in the order of capture: when it
    was captured and where its part of the stream begins. `compared` of them overlap captured TCP payload, `agreeing`
    of these have the same bytes there. `coverage` is the share of the TCP payload sample, in equal parts, that
    located datagrams touch.
    """

    time_ns: Int64Array
    stream_offset: Int64Array
    compared: int
    agreeing: int
    coverage: float
    offset_in_datagram: int  # bytes of something else before the stream's
    holds_segments: bool  # what precedes the bytes is the connection's own TCP header

    @property
    def located(self) -> int:
        """Datagrams whose place in the stream is known."""
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class DatagramLeg:
    """A UDP flow that carries a TCP connection's bytes; `client` is the side (0 or 1) that sends the client's."""

    capture: str
    flow: DatagramFlow
    client: int
    streams: Mapping[Direction, CarriedStream]
    clock_offset_ns: int | None  # this capture's clock minus the connection's, by other traffic; None if none told

    @property
    def clock_known(self) -> bool:
        """Whether other traffic told the offset between the capture clocks."""
        return self.clock_offset_ns is not None

    @property
    def client_end_point(self) -> str:
        """`address:port` of the side that sends the client's bytes."""
        return self.flow.end_point(self.client)

    @property
    def server_end_point(self) -> str:
        """`address:port` of the side that sends the server's bytes."""
        return self.flow.end_point(1 - self.client)
