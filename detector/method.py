"""What a detection method is: a name, a title, its findings, and one function of one context.

A context holds the connections that are examined together, so that a method can read the numbers of all of them as
columns. A method that examines one connection at a time is a function of one `Observation`, wrapped by
`by_connection`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import ClockRelation
from detector.clocks.relating import relate, relate_all
from detector.clocks.relation_columns import ClockRelations
from detector.other_transport.encrypted_legs import Guise
from detector.pair import Pair
from detector.streams.loaded import LoadedPairs, OnDemand
from detector.streams.sides import Sides
from detector.vantage.one_place import OnePlace
from detector.vantage.watching import Watched
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import EvidenceColumns, columns_of
from pepscope.results.finding import Finding
from pepscope.results.verdicts import Evidence


class Absent(Struct, frozen=True):
    """What is known of a connection that one of two captures lacks.

    - `watched`: whether that capture would hold the connection, if it had passed there.
    - `earlier`: pairs that got the same answer before, which a cache may have kept; `is_split` judges one of them.
    - `middlebox_certainty`: how certain other connections make it, from 0 (none shows it) to 1, that a middlebox splits
      connections to this server.
    - `arrives_whole`: whether another connection of this client to the server is end to end. Then the far capture may
      have been taken at one of several machines behind the server's address.
    """

    watched: Watched
    earlier: Sequence[Pair]
    is_split: Callable[[Pair], bool]
    middlebox_certainty: Callable[[], float]
    arrives_whole: Callable[[], bool]


class Observation(Struct, frozen=True, dict=True):
    """A connection as methods see it: its pair of vantages and, where a method needs it, what one capture tells of the
    other."""

    pair: Pair
    absent: Absent | None = None  # why one of two captures lacks the connection
    candidates: Sequence[tuple[Connection, Guise]] = ()  # what may be its other leg, encrypted
    place: OnePlace | None = None  # both captures were taken at one place, and the pair holds the richer one

    @cached_property
    def clock(self) -> ClockRelation:
        """The relation of the two captures' clocks, for a method that examines one connection at a time."""
        kept: tuple[ClockRelations, int] | None = vars(self).get("kept_clock")
        return relate(self.pair) if kept is None else kept[0][kept[1]]

    @property
    def has_clock(self) -> bool:
        """Whether the clock relation has been computed."""
        return not vars(self).keys().isdisjoint(("clock", "kept_clock"))

    def keep_clock(self, clocks: ClockRelations, row: int) -> None:
        """Keep the clock relation that was computed together with those of other connections: row `row` of `clocks`."""
        vars(self)["kept_clock"] = clocks, row


class LoadedObservations(OnDemand[Observation]):
    """Observations of pairs that were loaded together, about which the captures tell nothing beside the pairs."""

    def __init__(self, pairs: LoadedPairs) -> None:
        self.pairs = pairs
        self._clocks: ClockRelations | None = None
        super().__init__(len(pairs))

    def _make(self, row: int) -> Observation:
        seen = Observation(self.pairs[row])
        if self._clocks is not None:
            seen.keep_clock(self._clocks, row)
        return seen

    def keep_clocks(self, clocks: ClockRelations) -> None:
        """Keep the clock relations of all pairs, a row for each."""
        self._clocks = clocks
        for row, seen in self.made.items():
            seen.keep_clock(clocks, row)


class Context(Struct, frozen=True, dict=True):
    """The connections that are examined together."""

    observations: Sequence[Observation]
    known_sides: Sides | None = None  # if they have been computed before

    @property
    def are_plain(self) -> bool:
        """Whether every pair has both sides in TCP, none of them encrypted, and nothing else is known about any."""
        return isinstance(self.observations, LoadedObservations)

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The pairs, in the order of the observations."""
        observations = self.observations
        if isinstance(observations, LoadedObservations):
            return observations.pairs
        return [observation.pair for observation in observations]

    @cached_property
    def seen_once(self) -> Int64Array:
        """Places of the connections of which not both sides were captured in TCP."""
        seen_once = np.ones(len(self.observations), np.bool_)
        seen_once[self.sides.rows] = False
        return np.flatnonzero(seen_once)

    @cached_property
    def sides(self) -> Sides:
        """The connections whose two sides were captured, with the summaries of both sides as columns."""
        return Sides.of(self.pairs) if self.known_sides is None else self.known_sides

    @cached_property
    def clocks(self) -> ClockRelations:
        """The relation of the two captures' clocks for each connection; computed when the first method needs it, and
        then kept by the observations."""
        observations = self.observations
        if isinstance(observations, LoadedObservations):
            related = relate_all(observations.pairs, self.sides)
            observations.keep_clocks(related)
            return related
        unknown = [observation for observation in self.observations if not observation.has_clock]
        are_all = len(unknown) == len(self.observations)
        related = relate_all([observation.pair for observation in unknown], self.sides if are_all else None)
        for row, observation in enumerate(unknown):
            observation.keep_clock(related, row)
        return related if are_all else ClockRelations.of([observation.clock for observation in self.observations])


class Findings(Struct, frozen=True):
    """A method's evidence on the connections of a context, at most one piece each.

    `evidence` already has its sentences; it is in the order of the context, with None for connections without evidence.
    `columns` hold figures instead: results word their sentences when a report or a reader asks for one.
    """

    evidence: Sequence[Evidence | None] = ()
    columns: Sequence[EvidenceColumns] = ()

    @classmethod
    def of_rows(cls, evidence: Mapping[int, Evidence], columns: Sequence[EvidenceColumns]) -> Findings:
        """Findings on connections, some of which, by their rows, have evidence in words."""
        rows = sorted(evidence)
        in_words = columns_of([evidence[row] for row in rows])
        places = np.array(rows, np.int64)
        return cls((), [*columns, *(part.at(places) for part in in_words)])

    def as_columns(self) -> list[EvidenceColumns]:
        """All evidence as columns."""
        return [*self.columns, *columns_of(self.evidence)]

    def on(self, row: int) -> Evidence | None:
        """The evidence on one connection of the context."""
        for columns in self.as_columns():
            places = (columns.rows == row).nonzero()[0].tolist()
            if places:
                return columns.evidence(places[0])
        return None


def by_connection(examine: Callable[[Observation], Evidence | None]) -> Callable[[Context], Findings]:
    """A method's function that examines each connection of a context by itself."""
    return lambda context: Findings([examine(observation) for observation in context.observations])


def compares_streams(observation: Observation) -> bool:
    """Whether the streams of the two captures can be compared byte by byte, as most methods need."""
    return not observation.pair.encrypted


class Method(Struct, frozen=True):
    """A detection method.

    - `name` appears in JSON and `title` on pages; several entries of the registry may be parts of one method and share
      both.
    - `examine` is called with the connections for which `applies` is true.
    - `reads_datagrams`: if one end of a connection is a UDP flow, the evidence of this method counts even if it does
      not decide.
    - `judges_plain`: False if the method finds nothing on plain connections (`Context.are_plain`), which then need not
      be tested one by one.
    """

    name: str
    title: str
    findings: tuple[type[Finding], ...]
    examine: Callable[[Context], Findings]
    applies: Callable[[Observation], bool] = compares_streams
    reads_datagrams: bool = False
    judges_plain: bool = True

    def rows(self, observations: Sequence[Observation]) -> Sequence[int]:
        """The connections to which it applies."""
        if isinstance(observations, LoadedObservations) and self.applies is compares_streams:
            return range(len(observations))
        return [row for row, observation in enumerate(observations) if self.applies(observation)]

    def alone(self, observation: Observation) -> Evidence | None:
        """What it finds on one connection that is examined by itself."""
        return self.examine(Context([observation])).on(0)
