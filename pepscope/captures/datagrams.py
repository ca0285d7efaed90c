"""UDP flows: datagrams between two end points, outside every tunnel that is known, as one capture saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pepscope.captures.packets import Int64Array


@dataclass(frozen=True, slots=True)
class DatagramFlow:
    """One UDP flow. Of each pair of values the first belongs to the side that sent the first datagram."""

    id: int  # rank by first datagram
    addresses: tuple[str, str]
    ports: tuple[int, int]
    first_time_ns: int
    last_time_ns: int
    datagrams: tuple[int, int]  # with payload
    payload_bytes: tuple[int, int]

    def end_point(self, side: int) -> str:
        """`address:port` of a side, IPv6 in brackets."""
        address, port = self.addresses[side], self.ports[side]
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@dataclass(frozen=True, slots=True)
class DatagramSample:
    """Datagrams that were kept of one side of a flow; all members have the same length.

    Kept are the first 64 datagrams whole, then beginnings of 320 bytes from ever sparser places, as of TCP streams.
    """

    rank: Int64Array  # among the datagrams of this side that have payload
    time_ns: Int64Array
    payload_bytes: Int64Array  # on the wire
    pieces: tuple[bytes, ...]  # the beginnings that were captured and kept
