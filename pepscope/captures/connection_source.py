"""What reading the connections of a capture takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pepscope.captures.connections import Connection
from pepscope.captures.datagrams import DatagramFlow, DatagramSample
from pepscope.captures.packets import Direction, PacketColumns, PayloadSample


class ConnectionSource(Protocol):
    """A capture's connections and UDP flows (`pepscope.captures.capture.Capture` has them)."""

    @property
    def path(self) -> str:
        """Path as the user gave it."""

    @property
    def connections(self) -> Sequence[Connection]:
        """Summaries; the connection with id i stands at place i."""

    def packets(self, connection_id: int, /) -> PacketColumns:
        """Columns of one connection."""

    def payload(self, connection_id: int, /) -> dict[Direction, PayloadSample]:
        """Payload samples of one connection."""

    @property
    def datagram_flows(self) -> Sequence[DatagramFlow]:
        """UDP flows; the one with id i stands at place i."""

    def datagram_samples(self, flow_id: int, /) -> tuple[DatagramSample, DatagramSample]:
        """Datagrams kept of both sides."""
