"""Log-likelihoods of the exchanges of each member, or of each connection, by every hypothesis of the timing tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.timing_tables import (
    CLIENT_CLOSE,
    CLOSE,
    OPENING,
    Floats,
    TimingTables,
    excess_bin,
)
from detector.one_capture.members import Ints, numbered

#: Correlation of the log-likelihoods of two exchanges of one connection: n of them count as n / (1 + r (n - 1)).
CONNECTION_CORRELATION = 0.2

#: Exchanges that are looked up at once: some kilobytes each.
_TOGETHER = 1 << 13

#: Members with so many exchanges each, on average, have many of one bin, which are looked up once.
_MANY = 16


class ExchangeNats(Struct, frozen=True):
    """Sums by member (rows) and hypothesis of `TimingTables` (columns).

    `handshake` sums over TLS handshake flights, `application` over all other exchanges, `close` over closes that a
    split point may begin by itself, `client_close` over those that only the client can have begun.
    """

    handshake: Floats
    application: Floats
    close: Floats
    client_close: Floats

    @property
    def all(self) -> Floats:
        """Of all exchanges; closes are none."""
        return self.handshake + self.application

    @property
    def closes(self) -> Floats:
        """Of all closes."""
        return self.close + self.client_close

    def and_of(self, other: ExchangeNats) -> ExchangeNats:
        """With those of other exchanges of the same members."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in ExchangeNats.__struct_fields__]
        return ExchangeNats(*(own if more.strides[0] == 0 else own + more for own, more in pairs))

    def of(self, members: Ints) -> ExchangeNats:
        """The rows of some members."""
        return ExchangeNats(
            self.handshake[members], self.application[members], self.close[members], self.client_close[members]
        )


def exchange_nats(
    tables: TimingTables, member: Ints, kind: Ints, variation: Ints, excess_s: Floats, weight: Floats, members: int
) -> ExchangeNats:
    """Sums of log-likelihoods by member; `member` counts from 0 and ascends, all arrays have one length."""
    bins = excess_bin(excess_s)
    if len(member) > _MANY * members:
        member, kind, variation, bins, weight = _once(member, kind, variation, bins, weight)
    is_exchange = kind < CLOSE
    by_library = is_exchange & (kind % OPENING == 0)
    parts = (by_library, is_exchange & ~by_library, kind == CLOSE, kind == CLIENT_CLOSE)
    sums = [_zeros(members) if counted.any() else _no_sums(members) for counted in parts]
    for start in range(0, len(member), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        nats = _looked_up(tables, kind[part], variation[part], bins[part]) * weight[part, None]
        for table, counted in zip(sums, parts, strict=True):
            wanted = counted[part]
            if wanted.any():
                _add_by(table, member[part][wanted], nats[wanted])
    return ExchangeNats(*sums)


def _zeros(members: int) -> Floats:
    return np.zeros((members, TimingTables.HYPOTHESES))


def _no_sums(members: int) -> Floats:
    """Zeros for all members that take the room of one's, and cannot be written."""
    none: Floats = np.broadcast_to(np.zeros(TimingTables.HYPOTHESES), (members, TimingTables.HYPOTHESES))
    return none


def _once(
    member: Ints, kind: Ints, variation: Ints, bins: npt.NDArray[np.intp], weight: Floats
) -> tuple[Ints, Ints, Ints, npt.NDArray[np.intp], Floats]:
    """Exchanges of one member that are looked up alike as one, with the sum of their weights."""
    place, first = numbered([member, kind, variation, bins])
    summed: Floats = np.bincount(place, weights=weight).astype(np.float64)
    return member[first], kind[first], variation[first], bins[first], summed


def _looked_up(tables: TimingTables, kind: Ints, variation: Ints, bins: Ints) -> Floats:
    """A row an exchange."""
    nats = np.empty((len(kind), TimingTables.HYPOTHESES))
    classes = int(variation.max(initial=0)) + 1
    table = kind * classes + variation
    for number in np.flatnonzero(np.bincount(table)).tolist():
        rows = np.flatnonzero(table == number)
        nats[rows] = tables.rows(*divmod(number, classes), bins[rows])
    return nats


def _add_by(table: Floats, ascending: Ints, rows: Floats) -> None:
    first = np.flatnonzero(np.diff(ascending, prepend=-1))
    np.add.at(table, ascending[first], np.add.reduceat(rows, first, axis=0))


def connection_weights(connection: Ints) -> Floats:
    """The weight of each exchange, by how many its connection has; or of each close, by how many its member has."""
    count = np.bincount(connection)[connection]
    weight: Floats = 1.0 / (1.0 + CONNECTION_CORRELATION * (count.astype(np.float64) - 1.0))
    return weight
