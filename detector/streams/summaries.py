"""Summaries of the connections of many vantages as columns, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from detector.pair import SummaryTable, Vantage, rows_of
from detector.streams.known import UNKNOWN
from detector.streams.loaded import LoadedVantages
from pepscope.captures.connections import MISSING_PACKETS, Connection, FlowSummary, MissingPackets
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray

_PREFIX = ("up_", "down_")
_CODE = {kind: code for code, kind in enumerate(MISSING_PACKETS)}
#: The code of a flow that lacks nothing.
COMPLETE = _CODE[MissingPackets.NONE]


class Summaries:
    """Fields of `Connection` and `FlowSummary` of many vantages.

    A whole number that is None in an object is `UNKNOWN` in a column; what a flow lacks is a place in
    `MISSING_PACKETS`. Vantages that were loaded together share columns, so that no object is made of any.
    """

    def __init__(self, vantages: Sequence[Vantage]) -> None:
        self._count = len(vantages)
        self._tables: list[tuple[SummaryTable, Int64Array, Int64Array]] = []  # each with places, and rows of the table
        self._objects: list[tuple[int, Vantage]] = []
        self._whole: SummaryTable | None = None  # where the vantages are all the rows of one table, in order
        self._made: dict[str, npt.NDArray[Any]] = {}
        if isinstance(vantages, LoadedVantages):
            if vantages.rows is None:
                self._whole = vantages.table
            else:
                self._tables = [(vantages.table, np.arange(self._count), vantages.rows)]
            return
        tables, rows = rows_of(vantages)
        known = {id(table): table for table in set(tables)}
        of_place = np.fromiter(map(id, tables), np.int64, self._count) if len(known) > 1 else None
        for number, table in known.items():
            places = np.arange(self._count) if of_place is None else np.flatnonzero(of_place == number)
            if table is None:
                self._objects = [(place, vantages[place]) for place in places.tolist()]
                continue
            self._tables.append((table, places, rows[places]))
            if len(table.numbers) == self._count and np.array_equal(rows, places):
                self._whole = table

    @classmethod
    def of_table(cls, table: SummaryTable) -> Summaries:
        """Those of all connections of a table, in its order."""
        made = cls(())
        made._count, made._whole = len(table.numbers), table
        return made

    def __len__(self) -> int:
        return self._count

    def numbers(self, name: str) -> Int64Array:
        """A whole number of each connection."""
        return self._column(name, np.int64, lambda connection: getattr(connection, name))

    def are(self, name: str) -> BoolArray:
        """A truth of each connection."""
        return self._column(name, np.bool_, lambda connection: getattr(connection, name))

    def of_flow(self, direction: Direction, name: str) -> Int64Array:
        """A whole number of the flow in `direction` of each connection."""
        return self._column(
            _PREFIX[direction] + name, np.int64, lambda connection: _number(_flow(connection, direction), name)
        )

    def are_of_flow(self, direction: Direction, name: str) -> BoolArray:
        """A truth of the flow in `direction` of each connection."""
        return self._column(
            _PREFIX[direction] + name, np.bool_, lambda connection: getattr(_flow(connection, direction), name)
        )

    def figures(self, name: str) -> FloatArray:
        """A number of flows (rows: up, down), NaN where it is not known. Counts are exact, being below 2**53."""
        rows = [self.of_flow(direction, name) for direction in DIRECTIONS]
        return np.array([np.where(row == UNKNOWN, np.nan, row) for row in rows], np.float64)

    def truths(self, name: str) -> FloatArray:
        """A truth of flows (rows: up, down) as 0 and 1."""
        return np.array([self.are_of_flow(direction, name) for direction in DIRECTIONS], np.float64)

    def end_points(self) -> tuple[Sequence[str], Sequence[str]]:
        """`ip:port` of clients and servers."""
        if self._whole is not None:
            return self._whole.end_points
        if len(self._tables) == 1 and not self._objects:
            table, _, rows = self._tables[0]
            of_clients, of_servers = table.end_points
            return of_clients.at(rows), of_servers.at(rows)
        clients, servers = [""] * self._count, [""] * self._count
        for table, places, rows in self._tables:
            of_clients, of_servers = table.end_points
            for place, client, server in zip(places.tolist(), of_clients.at(rows), of_servers.at(rows), strict=True):
                clients[place], servers[place] = client, server
        for place, vantage in self._objects:
            clients[place], servers[place] = vantage.connection.client, vantage.connection.server
        return clients, servers

    def syn_options(self, direction: Direction) -> Sequence[bytes]:
        """TCP option bytes of the first SYN of a direction."""
        if self._whole is not None:
            return self._whole.syn_options[direction]
        octets = [b""] * self._count
        for table, places, rows in self._tables:
            of_flows = table.syn_options[direction]
            for place, row in zip(places.tolist(), rows.tolist(), strict=True):
                octets[place] = of_flows[row]
        for place, vantage in self._objects:
            octets[place] = vantage.flow(direction).syn_options
        return octets

    def _column(self, name: str, kind: type[np.generic], number: Callable[[Connection], Any]) -> npt.NDArray[Any]:
        made = self._made.get(name)
        if made is None and self._whole is not None:
            made = self._made[name] = self._whole.columns[name].astype(kind, copy=False).view()
            made.flags.writeable = False  # others read the table's column, too
        elif made is None:
            made = self._made[name] = np.empty(self._count, kind)
            for table, places, rows in self._tables:
                made[places] = table.columns[name][rows]
            for place, vantage in self._objects:
                value = number(vantage.connection)
                made[place] = UNKNOWN if value is None else value
        return made


def _flow(connection: Connection, direction: Direction) -> FlowSummary:
    return connection.up if direction is Direction.UP else connection.down


def _number(flow: FlowSummary, name: str) -> int | None:
    value = getattr(flow, name)
    return _CODE[value] if isinstance(value, MissingPackets) else cast("int | None", value)
