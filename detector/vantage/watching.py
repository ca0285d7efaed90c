"""Whether the other capture was watching: what it lacks means something only where it would have held it.

A capture proves that it ran between the first and the last packet that it holds, of whatever kind. A connection that
only one capture holds lived between two times of that capture's clock. Data relate the clocks: a datum reaches the
receiver after it left the sender, with or without a middlebox, so the first and the last data of every connection that
both captures hold bound the offset from both sides, and drift widens the bounds with the distance in time. The other
capture was running only where under no admissible offset the connection begins before it or ends after it; connections
that both captures hold, one before and one after, prove the same without any clock.

It must also have been able to hold the packets: it shows the same server and port, and this client or several, in both
directions; and neither what it lost of other connections nor what of it cannot be read is as much as this connection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.streams.known import are_known
from pepscope.captures.connections import Connection, address_of
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

#: The longest IP packet (RFC 791; offloads hand longer streams to a capture in pieces of this size).
LONGEST_PACKET_BYTES = 65_535

#: Packets of which a connection has at least one each: SYN, SYN-ACK, the client's ACK.
HANDSHAKE_PACKETS = 3


class Watched(Struct, frozen=True):
    """Whether it is proven that a capture would hold a connection, and the sentence that explains why (not)."""

    proven: bool
    why: str


class SeenConnections(Struct, frozen=True):
    """Some connections as one capture shows them.

    `columns` are named as in `Capture.connection_columns`, with `UNKNOWN` for what was not seen; `clients` and
    `servers` are their end points, as `ip:port`.
    """

    columns: Mapping[str, npt.NDArray[Any]]
    clients: Sequence[str]
    servers: Sequence[str]

    def flow(self, direction: Direction, name: str) -> npt.NDArray[Any]:
        """A column of the flow in `direction`."""
        return self.columns[f"{direction.name.lower()}_{name}"]


class _Bounds(Struct, frozen=True):
    """Bounds of the offset (this clock minus the asking one's), and when they were taken by the asking clock."""

    time_ns: Int64Array
    bound_ns: Int64Array

    @classmethod
    def joined(cls, parts: Sequence[_Bounds]) -> _Bounds:
        """The bounds of all parts."""
        nothing = np.empty(0, np.int64)
        return cls(
            np.concatenate([nothing, *(part.time_ns for part in parts)]),
            np.concatenate([nothing, *(part.bound_ns for part in parts)]),
        )


class Watch:
    """When one capture ran and what it showed, asked about connections of the other."""

    def __init__(
        self,
        span_ns: tuple[int, int] | None,
        shared: Iterable[tuple[SeenConnections, SeenConnections]],
        *,
        asker_at_client: bool,
        unreadable: int = 0,
        filtered_out: int = 0,
        drift_limit: float = 500e-6,
        same_clock: bool = False,
    ) -> None:
        """`span_ns` are the times of the first and last packet of any kind, by this capture's clock.

        `shared` are the connections that both captures hold, some at a time, as the asking capture and as this one
        shows them.
        `asker_at_client` means that the other capture is the one nearer to the clients. `unreadable` and `filtered_out`
        count packets of this capture that could not be read, or that the user's filter removed. `drift_limit` is the
        fastest drift between the clocks (s/s); `same_clock` means that the user declared the clocks synchronised.
        """
        self._span_ns = span_ns
        self._unreadable = unreadable
        self._filtered_out = filtered_out
        self._drift_limit = drift_limit
        self._same_clock = same_clock
        self._clients: dict[str, set[str]] = defaultdict(set)  # by server and port, named as the asking capture does
        self._one_way: set[str] = set()
        self._missed_bytes = 0
        self._ended_first_ns: int | None = None
        self._began_last_ns: int | None = None
        ways = (Direction.DOWN, Direction.UP) if asker_at_client else (Direction.UP, Direction.DOWN)
        bounds: tuple[list[_Bounds], list[_Bounds]] = ([], [])
        for near, far in shared:
            if len(near.clients):
                self._learn(near, far)
                bounds[0].append(_bounds(near, far, ways[0], sent_by_asker=False))
                bounds[1].append(_bounds(near, far, ways[1], sent_by_asker=True))
        self._low, self._high = map(_Bounds.joined, bounds)

    def _learn(self, near: SeenConnections, far: SeenConnections) -> None:
        """Take note of which servers and clients this capture shows, what it lacks of them, and when they were."""
        one_way = (far.flow(Direction.UP, "packets") == 0) | (far.flow(Direction.DOWN, "packets") == 0)
        self._one_way.update(near.servers[row] for row in np.flatnonzero(one_way).tolist())
        for server, client in set(zip(near.servers, map(address_of, near.clients), strict=True)):
            self._clients[server].add(client)
        self._missed_bytes += sum(int(far.flow(direction, "missed_bytes").sum()) for direction in DIRECTIONS)
        ended, began = int(near.columns["last_time_ns"].min()), int(near.columns["first_time_ns"].max())
        self._ended_first_ns = ended if self._ended_first_ns is None else min(self._ended_first_ns, ended)
        self._began_last_ns = began if self._began_last_ns is None else max(self._began_last_ns, began)

    @property
    def ran(self) -> str:
        """When this capture ran, in words."""
        if self._span_ns is None:
            return "The other capture has no packet times"
        first, last = (_clock_time(time_ns) for time_ns in self._span_ns)
        return f"The other capture ran from {first} to {last} by its clock"

    def was_watching(self, connection: Connection) -> Watched:
        """Whether this capture would hold `connection`, which the asking capture holds, had it passed."""
        questions: Sequence[Callable[[Connection], str]] = (self._not_throughout, self._not_held)
        for question in questions:
            if why := question(connection):
                return Watched(False, why)
        return Watched(True, f"{self.ran} and shows other connections to {connection.server}.")

    def offset_bounds_ns(self, connection: Connection) -> tuple[float, float]:
        """Least and greatest admissible offset (this clock minus the asking one's) while `connection` lives."""
        if self._same_clock:
            return 0.0, 0.0
        lows = self._low.bound_ns - self._drift_ns(self._low, connection)
        highs = self._high.bound_ns + self._drift_ns(self._high, connection)
        low, high = float(lows.max(initial=-np.inf)), float(highs.min(initial=np.inf))
        if low <= high:
            return low, high
        # A clock step, or a pair that is none: what any of them allows is not excluded.
        return min(float(lows.min()), float(highs.min())), max(float(lows.max()), float(highs.max()))

    def _drift_ns(self, bounds: _Bounds, connection: Connection) -> FloatArray:
        """How far the clocks may have drifted between each bound and the farther end of the connection's life."""
        since = np.maximum(
            np.abs(bounds.time_ns - connection.first_time_ns), np.abs(bounds.time_ns - connection.last_time_ns)
        )
        return since * self._drift_limit

    def _not_throughout(self, connection: Connection) -> str:
        """Why it is not proven that this capture ran while `connection` lived; empty where it is."""
        if self._is_bracketed(connection):
            return ""
        if self._span_ns is None:
            return f"{self.ran}, so it is unknown whether it ran during this connection."
        low, high = self.offset_bounds_ns(connection)
        (first, last), nothing = self._span_ns, "its lack of this connection is no evidence."
        if connection.first_time_ns + low > last:
            before = _certainly(connection.first_time_ns + low - last, "before")
            return f"{self.ran}, which ends {before} the beginning of this connection: {nothing}"
        if connection.last_time_ns + high < first:
            after = _certainly(first - connection.last_time_ns - high, "after")
            return f"{self.ran}, which begins {after} the end of this connection: {nothing}"
        if not (np.isfinite(low) and np.isfinite(high)):
            return f"{self.ran}, and the clock offset is unknown: it may not have run during this connection."
        if connection.first_time_ns + low < first:
            after = _certainly(first - connection.first_time_ns - high, "after")
            return f"{self.ran}, which begins {after} the beginning of this connection: {nothing}"
        if connection.last_time_ns + high > last:
            before = _certainly(connection.last_time_ns + low - last, "before")
            return f"{self.ran}, which ends {before} the end of this connection: {nothing}"
        return ""

    def _is_bracketed(self, connection: Connection) -> bool:
        """Whether both captures hold a connection that ended before `connection` began, and one that began after."""
        if self._ended_first_ns is None or self._began_last_ns is None:
            return False
        before = self._ended_first_ns <= connection.first_time_ns
        return before and self._began_last_ns >= connection.last_time_ns

    def _not_held(self, connection: Connection) -> str:
        """Why this capture need not hold `connection` although it ran; empty where it must."""
        clients = self._clients.get(connection.server)
        own_bytes = connection.up.stream_bytes + connection.down.stream_bytes
        why = ""
        if self._filtered_out:
            why = f"the filter removed {self._filtered_out} packets of it, perhaps this connection's"
        elif clients is None:
            why = f"it shows no connection to {connection.server}, so it may have been taken elsewhere"
        elif connection.client_address not in clients and len(clients) == 1:
            why = f"it shows connections of {next(iter(clients))} only, and may lack those of other clients"
        elif connection.server in self._one_way:
            why = "it lacks one direction of other connections to the same server"
        elif self._missed_bytes >= max(own_bytes, 1):
            why = f"it lost {self._missed_bytes:,} bytes of connections that it holds, and may have lost this one"
        elif self._unreadable >= HANDSHAKE_PACKETS + own_bytes // LONGEST_PACKET_BYTES:
            why = f"{self._unreadable} packets in it cannot be read, perhaps this connection's"
        return f"{self.ran}, but {why}." if why else ""


def _bounds(near: SeenConnections, far: SeenConnections, direction: Direction, *, sent_by_asker: bool) -> _Bounds:
    """What the first and the last data of `direction` allow: they arrive after they left."""
    sent_ns, arrived_ns = _crossings(*((near, far) if sent_by_asker else (far, near)), direction)
    if sent_by_asker:
        return _Bounds(sent_ns, arrived_ns - sent_ns)
    return _Bounds(arrived_ns, sent_ns - arrived_ns)


def _crossings(
    sender: SeenConnections, receiver: SeenConnections, direction: Direction
) -> tuple[Int64Array, Int64Array]:
    """Times of data at the sender's and at the receiver's capture of which the first is certainly no later.

    The first data, where the sender's capture holds the beginning: what it lacks left earlier. The last data, where
    both hold the end and nothing was sent twice. Where the receiver's holds the end, any data left before its last.
    """
    sides = (sender, receiver)
    first_ns, begun_ns = (side.flow(direction, "first_data_time_ns") for side in sides)
    last_ns, ended_ns = (side.flow(direction, "last_data_time_ns") for side in sides)
    is_whole = [side.flow(direction, "missed_bytes") == 0 for side in sides]
    has_end = [are_known(side.flow(direction, "fin_time_ns")) for side in sides]
    once = [side.flow(direction, "retransmitted_packets") == 0 for side in sides]
    have_data = are_known(first_ns, last_ns, begun_ns, ended_ns)
    opened = have_data & are_known(sender.flow(direction, "initial_sequence_number")) & is_whole[0]
    ended = have_data & has_end[1]
    ended_alike: BoolArray = np.logical_and.reduce([ended, *has_end, *once, *is_whole])
    return (
        np.concatenate([first_ns[opened], first_ns[ended], last_ns[ended_alike]]),
        np.concatenate([begun_ns[opened], ended_ns[ended], ended_ns[ended_alike]]),
    )


def _clock_time(time_ns: int) -> str:
    whole, part = divmod(time_ns // 1_000_000, 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%d %H:%M:%S}.{part:03} UTC"


def _certainly(least_ns: float, order: str) -> str:
    """How long before or after, at the least; only possibly where that may be nothing."""
    seconds = least_ns / 1e9
    if seconds <= 0:
        return f"possibly {order}"
    return f"{f'{seconds:.3g}' if seconds < 100 else f'{seconds:.0f}'} s {order}"
