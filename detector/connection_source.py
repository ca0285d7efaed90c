"""What pairing and the methods behind it need of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pepscope.connections import Connection
from pepscope.packets import Direction, PacketColumns, PayloadSample


class ConnectionSource(Protocol):
    """What pairing needs of a capture (`pepscope.capture.Capture` has it)."""

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
