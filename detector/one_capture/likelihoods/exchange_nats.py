"""Log-likelihoods of the exchanges of each member, or of each connection, by every hypothesis of the timing tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.timing_tables import OPENING, Floats, TimingTables, excess_bin

Ints = npt.NDArray[np.int64]

#: Correlation of the log-likelihoods of two exchanges of one connection: n of them count as n / (1 + r (n - 1)).
CONNECTION_CORRELATION = 0.3

#: Exchanges that are looked up at once.
_TOGETHER = 1 << 16


@dataclass(frozen=True, slots=True)
class ExchangeNats:
    """Sums by member (rows) and hypothesis of `TimingTables` (columns).

    `handshake` sums over TLS handshake flights, `application` over all other exchanges.
    """

    handshake: Floats
    application: Floats

    @property
    def all(self) -> Floats:
        """Of all exchanges."""
        return self.handshake + self.application

    def of(self, members: Ints) -> ExchangeNats:
        """The rows of some members."""
        return ExchangeNats(self.handshake[members], self.application[members])

    def by_group(self, group: Ints, groups: int) -> ExchangeNats:
        """Sums over the members of each group."""
        return ExchangeNats(_summed(self.handshake, group, groups), _summed(self.application, group, groups))


def exchange_nats(
    tables: TimingTables, member: Ints, kind: Ints, variation: Ints, excess_s: Floats, weight: Floats, members: int
) -> ExchangeNats:
    """Sums of log-likelihoods by member; `member` counts from 0 and ascends, all arrays have one length."""
    sums = np.zeros((2, members, TimingTables.HYPOTHESES))
    bins, by_library = excess_bin(excess_s), kind % OPENING == 0
    for start in range(0, len(member), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        nats = _looked_up(tables, kind[part], variation[part], bins[part]) * weight[part, None]
        for table, wanted in ((sums[0], by_library[part]), (sums[1], ~by_library[part])):
            if wanted.any():
                _add_by(table, member[part][wanted], nats[wanted])
    return ExchangeNats(sums[0], sums[1])


def _looked_up(tables: TimingTables, kind: Ints, variation: Ints, bins: Ints) -> Floats:
    """A row an exchange."""
    nats = np.empty((len(kind), TimingTables.HYPOTHESES))
    for key in np.unique(np.stack([kind, variation]), axis=1).T.tolist():
        rows = np.flatnonzero((kind == key[0]) & (variation == key[1]))
        nats[rows] = tables.nats(key[0], key[1])[bins[rows]]
    return nats


def _summed(rows: Floats, group: Ints, groups: int) -> Floats:
    table = np.zeros((groups, rows.shape[1]))
    _add_by(table, group, rows)
    return table


def _add_by(table: Floats, ascending: Ints, rows: Floats) -> None:
    first = np.flatnonzero(np.diff(ascending, prepend=-1))
    np.add.at(table, ascending[first], np.add.reduceat(rows, first, axis=0))


def connection_weights(connection: Ints) -> Floats:
    """The weight of each exchange, by how many its connection has."""
    _, place, count = np.unique(connection, return_inverse=True, return_counts=True)
    weight: Floats = 1.0 / (1.0 + CONNECTION_CORRELATION * (count[place].astype(np.float64) - 1.0))
    return weight
