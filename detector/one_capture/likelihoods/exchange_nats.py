"""Log-likelihoods of the exchanges of each member, or of each connection, by every hypothesis of the timing tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.likelihoods.timing_tables import (
    CLASSES,
    CLIENT_CLOSE,
    CLOSE,
    OPENING,
    Floats,
    TimingRows,
    TimingTables,
)
from detector.one_capture.members import Ints, numbered

#: Correlation of the log-likelihoods of two exchanges of one connection: n of them count as n / (1 + r (n - 1)).
CONNECTION_CORRELATION = 0.2

#: Exchanges that are looked up at once: some kilobytes each.
_TOGETHER = 1 << 13

#: Members with so many exchanges each, on average, have many of one bin, which are looked up once.
_MANY = 16

#: Classes of exchanges of TLS and HTTP.
_WEB = [CLASSES.index(name) for name in ("handshake", "http", "encrypted")]


class ExchangeNats(Struct, frozen=True):
    """Sums by member (rows) and hypothesis of `TimingTables` (columns), or of those of hidden legs alone (`behind`).

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
        return _added(self.handshake, self.application)

    @property
    def closes(self) -> Floats:
        """Of all closes."""
        return _added(self.close, self.client_close)

    @property
    def shakes_hands(self) -> npt.NDArray[np.bool_]:
        """Whether members answered TLS handshakes."""
        shakes: npt.NDArray[np.bool_] = np.any(self.handshake != 0, axis=1)
        return shakes

    @property
    def behind(self) -> ExchangeNats:
        """Those of hidden legs alone."""
        return ExchangeNats(*(getattr(self, name)[:, TimingTables.HIDDEN] for name in ExchangeNats.__struct_fields__))

    def and_of(self, other: ExchangeNats) -> ExchangeNats:
        """With those of other exchanges of the same members."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in ExchangeNats.__struct_fields__]
        return ExchangeNats(*(_added(own, more) for own, more in pairs))

    def by_either(self, other: ExchangeNats) -> ExchangeNats:
        """With exchanges that take as long as hidden legs as these say, or as `other` ones `behind` do: one as probable
        as the other, for all exchanges of a member."""
        found = []
        for own, more in ((self.handshake, other.handshake), (self.application, other.application)):
            either = own.copy()
            either[:, TimingTables.HIDDEN] = np.logaddexp(own[:, TimingTables.HIDDEN], more) - np.log(2.0)
            found.append(either)
        return replace(self, handshake=found[0], application=found[1])

    def of(self, members: Ints) -> ExchangeNats:
        """The rows of some members."""
        return ExchangeNats(
            self.handshake[members], self.application[members], self.close[members], self.client_close[members]
        )


class BinnedExchanges(Struct, frozen=True):
    """Exchanges and closes, whose excess is in one of the `bins` of `TimingTables`, of so many `members`; `member`
    counts from 0 and ascends. The other arrays have the same length."""

    member: Ints
    kind: Ints
    variation: Ints
    bins: npt.NDArray[np.intp]
    weight: Floats
    members: int

    def of(self, which: npt.NDArray[Any]) -> BinnedExchanges:
        """Some of them, by mask or by place in ascending order."""
        return BinnedExchanges(
            self.member[which], self.kind[which], self.variation[which], self.bins[which], self.weight[which],
            self.members,
        )  # fmt: skip

    @property
    def speaks_web(self) -> npt.NDArray[np.bool_]:
        """Whether each member speaks TLS or HTTP."""
        return speaks_web(self.kind, self.member, self.members)

    def once(self) -> BinnedExchanges:
        """The same where those of one member that are looked up alike are one, with the sum of their weights."""
        if len(self.member) <= _MANY * self.members:
            return self
        place, first = numbered([self.member, self.kind, self.variation, self.bins])
        summed: Floats = np.bincount(place, weights=self.weight).astype(np.float64)
        return replace(self.of(first), weight=summed)

    def nats(self, tables: TimingRows) -> ExchangeNats:
        """Sums of log-likelihoods by member."""
        is_exchange = self.kind < CLOSE
        by_library = is_exchange & (self.kind % OPENING == 0)
        parts = (by_library, is_exchange & ~by_library, self.kind == CLOSE, self.kind == CLIENT_CLOSE)
        shape = self.members, tables.columns
        sums = [np.zeros(shape) if counted.any() else _no_sums(*shape) for counted in parts]
        for start in range(0, len(self.member), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            nats = _looked_up(tables, self.kind[part], self.variation[part], self.bins[part]) * self.weight[part, None]
            for table, counted in zip(sums, parts, strict=True):
                wanted = counted[part]
                if wanted.all():
                    _add_by(table, self.member[part], nats)
                elif wanted.any():
                    _add_by(table, self.member[part][wanted], nats[wanted])
        return ExchangeNats(*sums)


def speaks_web(kind: Ints, unit: Ints, units: int) -> npt.NDArray[np.bool_]:
    """By unit, whether an exchange is of TLS or HTTP; `kind` and `unit` are those of each exchange or close."""
    of_web = (kind < CLOSE) & np.isin(kind % OPENING, _WEB)
    return np.asarray(np.bincount(unit[of_web], minlength=units) > 0)


def _no_sums(members: int, columns: int) -> Floats:
    """Zeros for all members that take the room of one's, and cannot be written."""
    none: Floats = np.broadcast_to(np.zeros(columns), (members, columns))
    return none


def _added(own: Floats, more: Floats) -> Floats:
    """The sum of both; members mostly answer in one way or two, and of the others `_no_sums` are large rows of nothing
    to add."""
    return own if are_none(more) else own + more


def are_none(sums: Floats) -> bool:
    """Whether these are sums over nothing, of no member."""
    return sums.strides[0] == 0


def _looked_up(tables: TimingRows, kind: Ints, variation: Ints, bins: Ints) -> Floats:
    """A row an exchange."""
    classes = int(variation.max(initial=0)) + 1
    table = kind * classes + variation
    asked = np.flatnonzero(np.bincount(table)).tolist()
    if len(asked) == 1:
        return tables.rows(*divmod(asked[0], classes), bins)
    nats = np.empty((len(kind), tables.columns))
    for number in asked:
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
