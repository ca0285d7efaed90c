"""What reading the connections of a capture takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pepscope.captures.connections import Connection
from pepscope.captures.datagrams import DatagramFlow, DatagramSample
from pepscope.captures.packets import Direction, PacketColumns, PayloadSample

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Whether stamps, IP IDs and places are in a key.
KeyForm: TypeAlias = tuple[bool, bool, bool]

#: Keys of connections, the ids of these and the directions of the packets, as columns of one length.
HeldKeys: TypeAlias = "tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]"


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

    def packet_keys(self, connection_ids: Sequence[int], forms: Sequence[KeyForm], most: int, /) -> list[HeldKeys]:
        """The `most` least keys (`pepscope._core.packet_keys`) of each of some connections in their order, for one form
        or two. Raises ValueError for more."""

    def payload(self, connection_id: int, /) -> dict[Direction, PayloadSample]:
        """Payload samples of one connection."""

    @property
    def datagram_flows(self) -> Sequence[DatagramFlow]:
        """UDP flows; the one with id i stands at place i."""

    def datagram_samples(self, flow_id: int, /) -> tuple[DatagramSample, DatagramSample]:
        """Datagrams kept of both sides."""
