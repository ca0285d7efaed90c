"""What all matches of two captures say together, by when their connections began.

Sequence numbers at another time may be of one making; equal lengths may be told by their starts; and pairs that have
content as their only ground may be strangers'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice

import numpy as np
from msgspec.structs import replace

from detector.clocks.start_offset import agreed_offset
from detector.pairing.candidates import TELLING_BYTES, lengths
from detector.pairing.confidence import CONTENT, STARTS_AGREE_NATS
from detector.pairing.match import IDENTITY, Ground, Match
from detector.pairing.starts.agreement import agreement_nats, first_data_ns
from detector.pairing.starts.clock_bounds import Clocks, narrowed
from detector.pairing.starts.one_clock import one_transfer_nats
from detector.pairing.starts.times import CLOCK_DRIFT, CLOCK_SLACK_NS, KNOWN_CLOCK_SLACK_NS
from detector.pairing.summary_columns import SummaryColumns
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection

#: So many connections that are surely one relate the clocks.
_MOST_SURE = 512

#: Grounds that are no more than equal lengths.
_EQUAL_LENGTHS = (Ground.LENGTHS, Ground.LENGTHS_OTHER_TIME)


class StartsTogether:
    """Matches of two captures, and what these hold besides.

    `rest` are the connections that nothing matched. `are_clocks_known`: matched connections relate the clocks;
    `same_clock`: the user says that they are synchronised.
    """

    def __init__(
        self,
        captures: tuple[ConnectionSource, ConnectionSource],
        summaries: tuple[SummaryColumns, SummaryColumns],
        rest: tuple[Collection[Connection], Collection[Connection]],
        matches: Sequence[Match],
        *,
        are_clocks_known: bool,
        same_clock: bool,
    ) -> None:
        self._captures = captures
        self._summaries = summaries
        self._rest = rest
        self._matches = list(matches)
        self._are_clocks_known = are_clocks_known
        self._same_clock = same_clock
        self._drift_ns = CLOCK_DRIFT * max(summary.span_ns for summary in summaries)
        #: Second capture's clock minus the first's (ns) by sequence numbers; None where these do not agree.
        self._offset: int | None = None

    def judged(self) -> list[Match]:
        """The matches, with grounds raised and lowered."""
        self._doubt_other_times()
        self._compare_starts()
        self._compare_times()
        self._look_for_strangers()
        return self._matches

    def _doubt_other_times(self) -> None:
        """Mark what has the same sequence numbers at another time, unless two or more show how far the clocks differ.

        One pair that the clocks set apart may be two connections with numbers of one making.
        """
        same = [place for place, match in enumerate(self._matches) if match.ground is Ground.SEQUENCE_NUMBERS]
        one, two = (
            np.array([getattr(self._matches[place], name) for place in same], np.int64) for name in ("first", "second")
        )
        ones, twos = self._summaries
        starts = ones.first_time_ns[one], twos.first_time_ns[two]
        ends = ones.last_time_ns[one], twos.last_time_ns[two]
        self._offset = agreed_offset(starts[1] - starts[0])
        slack_ns = CLOCK_SLACK_NS if self._offset is None else KNOWN_CLOCK_SLACK_NS + self._drift_ns
        offset = self._offset or 0
        gaps = np.maximum(starts[0] + offset - ends[1], starts[1] - ends[0] - offset)
        for place in np.flatnonzero(gaps > slack_ns).tolist():
            match = self._matches[same[place]]
            self._matches[same[place]] = replace(match, ground=Ground.SEQUENCE_NUMBERS_OTHER_TIME)

    def _both(self, match: Match) -> tuple[Connection, Connection] | None:
        """The two connections of a match."""
        if match.first is None or match.second is None:
            return None
        first, second = self._captures
        return first.connections[match.first], second.connections[match.second]

    def _compare_starts(self) -> None:
        """Identify pairs with only equal lengths by their starts together."""
        equal = [place for place, m in enumerate(self._matches) if m.ground in _EQUAL_LENGTHS]
        pairs = [pair for place in equal if (pair := self._both(self._matches[place]))]
        alike = {lengths(connection) for pair in pairs for connection in pair}
        left = [sum(lengths(connection) in alike for connection in rest) for rest in self._rest]
        starts = [(first_data_ns(one), first_data_ns(two)) for one, two in pairs]
        for place, nats in zip(equal, agreement_nats(starts, len(pairs) + max(left)), strict=True):
            if nats >= STARTS_AGREE_NATS:
                self._matches[place] = replace(self._matches[place], ground=Ground.LENGTHS_AND_STARTS)

    def _compare_times(self) -> None:
        """Mark pairs of equal lengths whose first data pass at one time, by clocks that nothing else contradicts.

        Clocks that are wrong bring two transfers of one object so near only by chance, one in fifty if they may be
        wrong by `CLOCK_SLACK_NS` either way; and no other connection of these lengths is within as much.
        """
        if not any(match.ground is Ground.LENGTHS for match in self._matches):
            return
        alike: dict[object, list[Connection]] = defaultdict(list)
        for connection in chain.from_iterable(capture.connections for capture in self._captures):
            alike[lengths(connection)].append(connection)
        self._matches = [
            replace(m, ground=Ground.LENGTHS_AND_TIME)
            if m.ground is Ground.LENGTHS and (pair := self._both(m)) and self._at_one_time(*pair, alike)
            else m
            for m in self._matches
        ]

    def _at_one_time(self, one: Connection, two: Connection, alike: Mapping[object, Sequence[Connection]]) -> bool:
        began, offset = first_data_ns(one), self._offset or 0
        telling = one.up.stream_bytes + one.down.stream_bytes >= TELLING_BYTES and one.server == two.server
        near = abs(first_data_ns(two) - began - offset) <= KNOWN_CLOCK_SLACK_NS
        whole = all(flow.syn_count for connection in (one, two) for flow in (connection.up, connection.down))
        if not (telling and near and whole):
            return False
        near_ns = CLOCK_SLACK_NS + abs(offset)
        return sum(abs(first_data_ns(other) - began) <= near_ns for other in alike[lengths(one)]) == 2

    def _look_for_strangers(self) -> None:
        """Ask of pairs that have content in common whether their connections have one clock relation."""
        places = [place for place, match in enumerate(self._matches) if match.ground in CONTENT and self._both(match)]
        if not places:
            return
        pairings = [
            [pair for match in (self._matches[place], *self._matches[place].rivals) if (pair := self._both(match))]
            for place in places
        ]
        known = self._are_clocks_known and not self._same_clock
        offset = self._offset if known and self._offset is not None else 0
        ones, twos = self._summaries
        spans = ones.first_time_ns.min(), ones.last_time_ns.max()
        others = twos.first_time_ns.min() - offset, twos.last_time_ns.max() - offset
        ran = int(max(spans[0], others[0])), int(min(spans[1], others[1]))
        slack_ns, drift_ns = KNOWN_CLOCK_SLACK_NS if known else CLOCK_SLACK_NS, self._drift_ns
        if self._same_clock:
            slack_ns = drift_ns = 0
        sure = (pair for match in self._matches if match.ground in IDENTITY and (pair := self._both(match)))
        clocks = narrowed(Clocks(offset, slack_ns, drift_ns, *ran), list(islice(sure, _MOST_SURE)))
        nats = one_transfer_nats(pairings, self._rest, clocks)
        for place, each in zip(places, nats, strict=True):
            self._matches[place] = replace(self._matches[place], one_transfer_nats=each)
