"""What a detection method is: a name, a title, its findings, and one function of one context.

A context holds the connections that are examined together, so that a method may read numbers of all of them as
columns. A method that looks at one connection after the other is written as a function of one `Observation` and
wrapped by `by_connection`.
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

    `watched`: whether that capture would hold it; `earlier` are pairs that got the same answer before, and
    `is_split` judges one of them. `middlebox_certainty` is how sure other connections make it that a middlebox splits
    connections to this server: 0 means that none does. `arrives_whole`: another connection of this client to it is end
    to end, so that one of several machines behind the server's address may have been captured.
    """

    watched: Watched
    earlier: Sequence[Pair]
    is_split: Callable[[Pair], bool]
    middlebox_certainty: Callable[[], float]
    arrives_whole: Callable[[], bool]


class Observation(Struct, frozen=True, dict=True):
    """What the captures show of one connection: the pair, and what they say about each other where that matters."""

    pair: Pair
    absent: Absent | None = None  # why one of two captures lacks the connection
    candidates: Sequence[tuple[Connection, Guise]] = ()  # what may be its other leg, encrypted
    place: OnePlace | None = None  # both captures were taken at one place, and the pair holds the richer one

    @cached_property
    def clock(self) -> ClockRelation:
        """How the clocks of the two captures are related, for a method that looks at this connection alone."""
        kept: tuple[ClockRelations, int] | None = vars(self).get("kept_clock")
        return relate(self.pair) if kept is None else kept[0][kept[1]]

    @property
    def has_clock(self) -> bool:
        """Whether it is known already how the clocks are related."""
        return not vars(self).keys().isdisjoint(("clock", "kept_clock"))

    def keep_clock(self, clocks: ClockRelations, row: int) -> None:
        """Have how the clocks are related, computed with those of other connections, so that it is computed once."""
        vars(self)["kept_clock"] = clocks, row


class LoadedObservations(OnDemand[Observation]):
    """Pairs that were loaded together, of which the captures show nothing else that matters."""

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
        """Have how the clocks of all are related."""
        self._clocks = clocks
        for row, seen in self.made.items():
            seen.keep_clock(clocks, row)


class Context(Struct, frozen=True, dict=True):
    """The connections that are examined together."""

    observations: Sequence[Observation]
    known_sides: Sides | None = None  # where they were made before

    @property
    def are_plain(self) -> bool:
        """Whether all have both sides in TCP, not encrypted, and nothing else is known of them."""
        return isinstance(self.observations, LoadedObservations)

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The pair of each."""
        observations = self.observations
        if isinstance(observations, LoadedObservations):
            return observations.pairs
        return [observation.pair for observation in observations]

    @cached_property
    def seen_once(self) -> Int64Array:
        """Places of the connections that do not have both sides in TCP."""
        seen_once = np.ones(len(self.observations), np.bool_)
        seen_once[self.sides.rows] = False
        return np.flatnonzero(seen_once)

    @cached_property
    def sides(self) -> Sides:
        """Those of which both ends were captured, with the summaries of both sides as columns."""
        return Sides.of(self.pairs) if self.known_sides is None else self.known_sides

    @cached_property
    def clocks(self) -> ClockRelations:
        """How the clocks of the two captures of each are related; computed when the first method asks, and known to the
        observations from then on."""
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

    `evidence` is in words already and in the order of the context, None where there is none; `columns` are evidence
    that is put into words when it is read.
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
        """All of it as columns."""
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
    """Whether the streams of the two captures can be laid over each other, as most methods need."""
    return not observation.pair.encrypted


class Method(Struct, frozen=True):
    """A detection method.

    `name` stands in JSON and `title` on pages; several entries of the registry may be parts of one method and share
    both. `examine` is called for connections of which `applies` is true. A method that `reads_datagrams` is heard where
    one end of a connection is a UDP flow even if it could not decide. Where it can find nothing on connections with
    both sides in TCP of which nothing else is known (`Context.are_plain`), `judges_plain` spares asking it of each.
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
