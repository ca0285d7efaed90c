"""The packets that show what was found on connections, named while judging has these in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from detector.clocks.clock_relation import ClockRelation
from detector.method import Observation
from detector.presentation.first_by_attention import FirstByAttention
from detector.presentation.requested import RequestedPackets
from detector.presentation.telling_packets.naming import ConnectionToName, PacketNames, was_judged_as_seen
from detector.presentation.telling_packets.observing import Observed
from detector.presentation.telling_packets.results import BY_EXCHANGES, can_be_named
from detector.presentation.telling_packets.telling import READ_FIGURES
from detector.verdict.together import LoadedTogether
from pepscope.captures.capture import Capture
from pepscope.captures.packets import Int64Array
from pepscope.results.attention import ATTENTION
from pepscope.results.pair_table import PairTable


class NamedWhileJudging:
    """Names packets of those of `count` connections that may be among the requested ones, by what was judged so far.

    Which connections deserve most attention is known in the end: `name_packets` names what is missing then, and takes
    away what is too much.
    """

    def __init__(self, captures: Sequence[Capture], requested: RequestedPackets, count: int) -> None:
        self._names = PacketNames({capture.path: capture for capture in captures})
        self._moments = requested.moments
        # Connections that a user picks are few, and known when all are judged.
        named = requested.moments and requested.choose is None and can_be_named(captures)
        self._connections = requested.connections if named else 0
        self._first = FirstByAttention(self._connections, count)

    def add(self, together: LoadedTogether, table: PairTable, rows: Int64Array) -> None:
        """Give connections that were judged just now their packets, in a table where they stand in `rows`."""
        if not self._connections:
            return
        chosen = self._chosen(table, rows, together.numbers)
        told = table.unworded_evidence(rows[chosen], READ_FIGURES)
        to_name: list[tuple[int, ConnectionToName]] = []
        for number, row, evidence in zip(chosen, rows[chosen].tolist(), told, strict=True):
            if any(item.method in BY_EXCHANGES for item in evidence):
                continue  # groups say from which side
            examined = together.observations[number]
            seen = Observation(together.pairs[number], place=examined.place)
            observed = Observed(examined, seen, partial(_clock, examined))
            if was_judged_as_seen(table.vantages(row), observed):
                to_name.append((row, ConnectionToName(evidence, observed)))
        named = self._names.named([each for _, each in to_name], self._moments)
        for (row, _), packets in zip(to_name, named, strict=True):
            table.add_packets(row, packets)

    def _chosen(self, table: PairTable, rows: Int64Array, places: Sequence[int]) -> list[int]:
        """Which of these connections may be among the requested ones, by their place among these."""
        ranks = np.array([ATTENTION[verdict] for verdict in table.verdicts(rows)], np.int64)
        chosen: list[int] = np.flatnonzero(self._first.among(np.asarray(places, np.int64), ranks)).tolist()
        return chosen


def _clock(observation: Observation) -> ClockRelation:
    return observation.clock
