"""A pair: one transfer as it was seen at one or two vantage points. Every method gets its connections as pairs.

At one of the two vantage points the transfer's bytes may travel in UDP datagrams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from detector.options import DetectOptions
from pepscope.captures.connections import Connection, FlowSummary
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, PayloadSample
from pepscope.captures.tables.texts import SlicedTexts
from pepscope.results.verdicts import VantageName

if TYPE_CHECKING:
    from pepscope.captures.datagrams import DatagramFlow

Made = TypeVar("Made")

# A pair compares directions some hundred times, and looking up an enum's member takes longer than everything else.
_UP = Direction.UP


class Vantage(Struct, frozen=True, dict=True):
    """One connection at one capture point."""

    capture: str
    connection: Connection
    packets: PacketColumns
    payload: dict[Direction, PayloadSample]
    clock_set_back: bool = False  # the capture's times fell back

    @cached_property
    def _made(self) -> dict[tuple[object, Direction], object]:
        return {}

    def derived(self, make: Callable[[PacketColumns, Direction], Made], direction: Direction) -> Made:
        """The result of `make` for this vantage's packets, computed only once for all methods."""
        key = (make, direction)
        if key not in self._made:
            self._made[key] = make(self.packets, direction)
        return cast("Made", self._made[key])

    @property
    def number(self) -> int:
        """The connection's number in its capture."""
        return self.connection.id

    @property
    def name(self) -> VantageName:
        """Where the connection was seen."""
        return VantageName(self.capture, self.connection.client, self.connection.server)

    def stream_bytes(self, direction: Direction) -> int:
        """Bytes of the stream in `direction`."""
        return self.flow(direction).stream_bytes

    def flow(self, direction: Direction) -> FlowSummary:
        """Summary of the flow in `direction`."""
        return self.connection.up if direction is _UP else self.connection.down


class SummaryTable(Protocol):
    """Summaries of some connections of one capture as columns.

    Arrays are named as in `Capture.connection_columns`; an unknown value is -2**63 in an array of integers, otherwise
    NaN.
    """

    @property
    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """An array with an element a connection for each field."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the connections in their capture."""

    @property
    def end_points(self) -> tuple[SlicedTexts, SlicedTexts]:
        """`ip:port` of clients and servers."""

    @property
    def syn_options(self) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """TCP option bytes of the first SYN up and down."""

    def connection(self, row: int) -> Connection:
        """The summary of one connection as an object."""


_given_connection = cast("Any", Vantage).connection


class LoadedVantage(Vantage, frozen=True, dict=True):
    """A vantage that was loaded with others: its summary is a row of columns, and becomes an object when it is read."""

    table: SummaryTable | None = None
    row: int = 0

    @property  # type: ignore[misc]  # msgspec keeps a field that a copy was given
    def connection(self) -> Connection:
        """The summary."""
        given: Connection | None = _given_connection.__get__(self)
        return self._connection if given is None else given

    @property
    def number(self) -> int:
        """The connection's number in its capture."""
        table = self._own_table
        return self.connection.id if table is None else table.numbers[self.row]

    @property
    def name(self) -> VantageName:
        """Where the connection was seen."""
        table = self._own_table
        if table is None:
            return VantageName(self.capture, self.connection.client, self.connection.server)
        clients, servers = table.end_points
        return VantageName(self.capture, clients[self.row], servers[self.row])

    def stream_bytes(self, direction: Direction) -> int:
        """Bytes of the stream in `direction`."""
        table = self._own_table
        if table is None:
            return self.flow(direction).stream_bytes
        name = "up_stream_bytes" if direction is _UP else "down_stream_bytes"
        return int(table.columns[name][self.row])

    @property
    def _own_table(self) -> SummaryTable | None:
        """The table whose row is its summary: a copy may have been given another one."""
        return self.table if _given_connection.__get__(self) is None else None

    @cached_property
    def _connection(self) -> Connection:
        assert self.table is not None
        return self.table.connection(self.row)


def rows_of(vantages: Sequence[Vantage]) -> tuple[Sequence[SummaryTable | None], Int64Array]:
    """Which table has the summary of each vantage, and in which row; None where it is an object of its own."""
    kinds = set(map(type, vantages))
    if kinds == {LoadedVantage} and not any(map(_given_connection.__get__, vantages)):
        loaded = cast("Sequence[LoadedVantage]", vantages)
        return [each.table for each in loaded], np.array([each.row for each in loaded], np.int64)
    tables: list[SummaryTable | None] = []
    rows = np.zeros(len(vantages), np.int64)
    for place, vantage in enumerate(vantages):
        # A copy may have been given another summary than the row of its table.
        is_row = isinstance(vantage, LoadedVantage) and _given_connection.__get__(vantage) is None
        tables.append(vantage.table if isinstance(vantage, LoadedVantage) and is_row else None)
        rows[place] = vantage.row if isinstance(vantage, LoadedVantage) else 0
    return tables, rows


class CarriedStream(Struct, frozen=True):
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


class DatagramLeg(Struct, frozen=True):
    """A UDP flow that carries a TCP connection's bytes; `client` is the side (0 or 1) that sends the client's."""

    capture: str
    flow: DatagramFlow
    client: int
    streams: Mapping[Direction, CarriedStream]
    clock_offset_ns: int | None  # this capture's clock minus the connection's, from other traffic; None without any

    @property
    def clock_known(self) -> bool:
        """Whether other traffic gave the offset between the capture clocks."""
        return self.clock_offset_ns is not None

    @property
    def client_end_point(self) -> str:
        """`address:port` of the side that sends the client's bytes."""
        return self.flow.end_point(self.client)

    @property
    def server_end_point(self) -> str:
        """`address:port` of the side that sends the server's bytes."""
        return self.flow.end_point(1 - self.client)


class StreamAlignment(Struct, frozen=True):
    """Alignment of one direction's streams at the two vantage points.

    Byte x of the client side's stream is byte x + `shift_bytes` of the server side's stream (not 0 where a SYN is
    missing or a proxy rewrote headers). `matched` is the share of comparable payload pieces that agree, `compared`
    how many were compared; 0 compared means that only lengths and timing are evidence.
    """

    shift_bytes: int
    compared: int
    matched: float


class Pair(Struct, frozen=True):
    """A connection at the client's side and/or the server's side; at least one is present.

    With one side only, `datagram_leg` may say that its bytes travel in UDP at the other.
    """

    client_side: Vantage | None
    server_side: Vantage | None
    alignment: dict[Direction, StreamAlignment]
    pairing_confidence: float  # 0..1; 1 where only one vantage exists
    options: DetectOptions = field(default_factory=DetectOptions)
    datagram_leg: DatagramLeg | None = None
    pairing_ground: str = ""  # what the pairing was made on, in words
    encrypted: bool = False  # one side is encrypted and the other is not: nothing aligns, and no packets are compared

    @property
    def vantages(self) -> tuple[Vantage, ...]:
        """The TCP vantages that exist, client side first."""
        client, server = self.client_side, self.server_side
        if client is not None and server is not None:
            return client, server
        return tuple([vantage for vantage in (client, server) if vantage is not None])

    @property
    def names(self) -> tuple[VantageName, ...]:
        """Where the connection was seen, client side first, in whatever transport."""
        tcp = [vantage.name for vantage in self.vantages]
        if self.datagram_leg is None:
            return tuple(tcp)
        leg = self.datagram_leg
        udp = VantageName(leg.capture, leg.client_end_point, leg.server_end_point, "udp")
        return (*tcp, udp) if self.server_side is None else (udp, *tcp)

    def sender(self, direction: Direction) -> Vantage | None:
        """The vantage at the sender of `direction`'s data."""
        return self.client_side if direction is _UP else self.server_side

    def receiver(self, direction: Direction) -> Vantage | None:
        """The vantage at the receiver of `direction`'s data."""
        return self.server_side if direction is _UP else self.client_side

    def receiver_shift(self, direction: Direction) -> int:
        """What to add to a receiver-side stream offset to get the sender-side offset."""
        shift = self.alignment[direction].shift_bytes
        return -shift if direction is _UP else shift
