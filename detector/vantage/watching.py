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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from pepscope.captures.connections import Connection, FlowSummary
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray

#: The longest IP packet (RFC 791; offloads hand longer streams to a capture in pieces of this size).
LONGEST_PACKET_BYTES = 65_535

#: Packets of which a connection has at least one each: SYN, SYN-ACK, the client's ACK.
HANDSHAKE_PACKETS = 3


@dataclass(frozen=True, slots=True)
class Watched:
    """Whether it is proven that a capture would hold a connection, and the sentence that explains why (not)."""

    proven: bool
    why: str


@dataclass(frozen=True, slots=True)
class _Server:
    """What the capture shows of one server and port, named as the other capture names them."""

    clients: frozenset[str]
    one_way: bool


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of the offset (this clock minus the asking one's), and when they were taken by the asking clock."""

    time_ns: Int64Array
    bound_ns: Int64Array


class Watch:
    """When one capture ran and what it showed, asked about connections of the other."""

    def __init__(
        self,
        span_ns: tuple[int, int] | None,
        shared: Iterable[tuple[Connection, Connection]],
        *,
        asker_at_client: bool,
        unreadable: int = 0,
        filtered_out: int = 0,
        drift_limit: float = 500e-6,
        same_clock: bool = False,
    ) -> None:
        """`span_ns` are the times of the first and last packet of any kind, by this capture's clock.

        `shared` are connections that both captures hold, as the asking capture and as this one shows them.
        `asker_at_client` means that the other capture is the one nearer to the clients. `unreadable` and `filtered_out`
        count packets of this capture that could not be read, or that the user's filter removed. `drift_limit` is the
        fastest drift between the clocks (s/s); `same_clock` means that the user declared the clocks synchronised.
        """
        pairs = list(shared)
        self._span_ns = span_ns
        self._unreadable = unreadable
        self._filtered_out = filtered_out
        self._drift_limit = drift_limit
        self._same_clock = same_clock
        self._servers = _servers(pairs)
        self._missed_bytes = sum(far.up.missed_bytes + far.down.missed_bytes for _, far in pairs)
        self._ended_first_ns = min((near.last_time_ns for near, _ in pairs), default=None)
        self._began_last_ns = max((near.first_time_ns for near, _ in pairs), default=None)
        self._low = _bounds(pairs, Direction.DOWN if asker_at_client else Direction.UP, sent_by_asker=False)
        self._high = _bounds(pairs, Direction.UP if asker_at_client else Direction.DOWN, sent_by_asker=True)

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
        server = self._servers.get(connection.server)
        own_bytes = connection.up.stream_bytes + connection.down.stream_bytes
        why = ""
        if self._filtered_out:
            why = f"the filter removed {self._filtered_out} packets of it, perhaps this connection's"
        elif server is None:
            why = f"it shows no connection to {connection.server}, so it may have been taken elsewhere"
        elif connection.client_address not in server.clients and len(server.clients) == 1:
            why = f"it shows connections of {next(iter(server.clients))} only, and may lack those of other clients"
        elif server.one_way:
            why = "it lacks one direction of other connections to the same server"
        elif self._missed_bytes >= max(own_bytes, 1):
            why = f"it lost {self._missed_bytes} bytes of connections that it holds, and may have lost this one"
        elif self._unreadable >= HANDSHAKE_PACKETS + own_bytes // LONGEST_PACKET_BYTES:
            why = f"{self._unreadable} packets in it cannot be read, perhaps this connection's"
        return f"{self.ran}, but {why}." if why else ""


def _servers(pairs: Sequence[tuple[Connection, Connection]]) -> dict[str, _Server]:
    clients: dict[str, set[str]] = defaultdict(set)
    one_way: set[str] = set()
    for near, far in pairs:
        clients[near.server].add(near.client_address)
        if not (far.up.packets and far.down.packets):
            one_way.add(near.server)
    return {name: _Server(frozenset(seen), name in one_way) for name, seen in clients.items()}


def _bounds(pairs: Sequence[tuple[Connection, Connection]], direction: Direction, *, sent_by_asker: bool) -> _Bounds:
    """What the first and the last data of `direction` allow: they arrive after they left."""
    times, bounds = [], []
    for near, far in pairs:
        here, there = _flow(near, direction), _flow(far, direction)
        for sent_ns, arrived_ns in _crossings(here, there) if sent_by_asker else _crossings(there, here):
            times.append(sent_ns if sent_by_asker else arrived_ns)
            bounds.append(arrived_ns - sent_ns if sent_by_asker else sent_ns - arrived_ns)
    return _Bounds(np.array(times, np.int64), np.array(bounds, np.int64))


def _crossings(sent: FlowSummary, arrived: FlowSummary) -> Iterable[tuple[int, int]]:
    """Times of data at the sender's and at the receiver's capture of which the first is certainly no later.

    The first data, where the sender's capture holds the beginning: what it lacks left earlier. The last data, where
    both hold the end and nothing was sent twice. Where the receiver's holds the end, any data left before its last.
    """
    first_ns, last_ns = sent.first_data_time_ns, sent.last_data_time_ns
    begun_ns, ended_ns = arrived.first_data_time_ns, arrived.last_data_time_ns
    if first_ns is None or last_ns is None or begun_ns is None or ended_ns is None:
        return
    if sent.initial_sequence_number is not None and not sent.missed_bytes:
        yield first_ns, begun_ns
    if arrived.fin_time_ns is not None:
        yield first_ns, ended_ns
        once = not (sent.retransmitted_packets or arrived.retransmitted_packets)
        if sent.fin_time_ns is not None and once and not (sent.missed_bytes or arrived.missed_bytes):
            yield last_ns, ended_ns


def _flow(connection: Connection, direction: Direction) -> FlowSummary:
    return connection.up if direction is Direction.UP else connection.down


def _clock_time(time_ns: int) -> str:
    whole, part = divmod(time_ns // 1_000_000, 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%d %H:%M:%S}.{part:03} UTC"


def _certainly(least_ns: float, order: str) -> str:
    """How long before or after, at the least; only possibly where that may be nothing."""
    seconds = least_ns / 1e9
    if seconds <= 0:
        return f"possibly {order}"
    return f"{f'{seconds:.3g}' if seconds < 100 else f'{seconds:.0f}'} s {order}"
