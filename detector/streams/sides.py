"""The connections of which both ends were captured, with the summaries of both sides as columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from detector.pair import Pair, StreamAlignment, Vantage
from detector.streams.known import UNKNOWN
from detector.streams.loaded import some_pairs, some_vantages
from detector.streams.summaries import Summaries
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray


class Sides(Struct, frozen=True, dict=True):
    """Those of some pairs that have both sides; `rows` are their places among the pairs, `pairs` themselves."""

    rows: Int64Array
    pairs: Sequence[Pair]
    clients: Sequence[Vantage]
    servers: Sequence[Vantage]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Sides:
        """Both sides, where there are two."""
        both = [
            (row, pair, client, server)
            for row, pair in enumerate(pairs)
            if (client := pair.client_side) is not None and (server := pair.server_side) is not None
        ]
        rows = np.array([row for row, *_ in both], np.int64)
        return cls(rows, [each[1] for each in both], [each[2] for each in both], [each[3] for each in both])

    @classmethod
    def of_vantages(cls, clients: Sequence[Vantage], servers: Sequence[Vantage]) -> Sides:
        """Vantages of which pairs are to be made."""
        return cls(np.arange(len(clients)), (), clients, servers)

    def with_pairs(self, pairs: Sequence[Pair], aligned: tuple[AlignmentColumns, AlignmentColumns]) -> Sides:
        """The same where pairs were made of the vantages, with their alignments up and down; what is known of the
        summaries stays known."""
        sides = Sides(self.rows, pairs, self.clients, self.servers)
        vars(sides).update(client=self.client, server=self.server, _aligned=aligned)
        return sides

    def at(self, rows: Int64Array) -> Sides:
        """Those of the pairs in some of `rows`, ascending."""
        if len(rows) == len(self):
            return self
        places = np.searchsorted(self.rows, rows)
        clients, servers = (some_vantages(side, places) for side in (self.clients, self.servers))
        some = Sides(rows, some_pairs(self.pairs, places), clients, servers)
        if "_aligned" in vars(self):
            vars(some)["_aligned"] = tuple([aligned.at(places) for aligned in self._aligned])
        return some

    def alone(self, rows: Int64Array) -> Sides:
        """Those of the pairs in some of `rows`, as if there were no other pairs."""
        if len(rows) == len(self):
            return self
        some = self.at(rows)
        alone = Sides(np.arange(len(rows)), some.pairs, some.clients, some.servers)
        vars(alone).update(vars(some))
        return alone

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def client(self) -> Summaries:
        """Summaries at the clients' sides."""
        return Summaries(self.clients)

    @cached_property
    def server(self) -> Summaries:
        """Summaries at the servers' sides."""
        return Summaries(self.servers)

    def sender(self, direction: Direction) -> Summaries:
        """Summaries at the senders of `direction`'s data."""
        return self.client if direction is Direction.UP else self.server

    def receiver(self, direction: Direction) -> Summaries:
        """Summaries at the receivers of `direction`'s data."""
        return self.server if direction is Direction.UP else self.client

    def began(self, direction: Direction) -> tuple[BoolArray, BoolArray]:
        """Of which connections the captures at the sender and at the receiver hold the beginning of a stream."""
        sender, receiver = self.sender(direction), self.receiver(direction)
        name = "initial_sequence_number"
        return sender.of_flow(direction, name) != UNKNOWN, receiver.of_flow(direction, name) != UNKNOWN

    def aligned(self, direction: Direction) -> AlignmentColumns:
        """How the streams of a direction lie over each other."""
        return self._aligned[direction]

    @cached_property
    def _aligned(self) -> tuple[AlignmentColumns, AlignmentColumns]:
        up, down = ([pair.alignment.get(direction) for pair in self.pairs] for direction in DIRECTIONS)
        return AlignmentColumns.of(up), AlignmentColumns.of(down)


class AlignmentColumns(NamedTuple):
    """Alignments of one direction of many connections as columns, by the names of `StreamAlignment`: zeros without."""

    is_known: BoolArray
    shift_bytes: Int64Array
    compared: Int64Array
    matched: FloatArray

    def at(self, places: Int64Array) -> AlignmentColumns:
        """Those of some of the connections."""
        is_known, shift_bytes, compared, matched = self
        return AlignmentColumns(is_known[places], shift_bytes[places], compared[places], matched[places])

    @classmethod
    def of(cls, alignments: Sequence[StreamAlignment | None]) -> AlignmentColumns:
        """The alignments as columns."""
        known = [_NONE if each is None else each for each in alignments]
        return cls(
            np.array([each is not None for each in alignments], np.bool_),
            np.array([each.shift_bytes for each in known], np.int64),
            np.array([each.compared for each in known], np.int64),
            np.array([each.matched for each in known], np.float64),
        )


_NONE = StreamAlignment(0, 0, 0.0)
