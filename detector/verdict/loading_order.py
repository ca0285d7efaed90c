"""In which order to judge connections whose packets are in temporary files, and by how many processes.

A capture in temporary files is loaded by partitions. Captures that show the same addresses are partitioned alike, so
that going through both side by side loads each partition once. Where addresses were translated, any partition of the
second capture may belong to one of the first: then as many partitions of the first as memory allows stay loaded while
those of the second pass by.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from detector.pairing.match import Match
from detector.verdict.together import PACKETS_TOGETHER
from pepscope.captures.capture import Capture

#: Packets of connections that are judged together where memory is not short: methods take longer for the first
#: connection than for some more of a thousand packets each.
MOST_PACKETS_TOGETHER = 1 << 18

#: What judging takes for each packet of a connection, in bytes: its columns, and what methods make of them.
WORK_BYTES_PER_PACKET = 250

#: Stretches for each process, where there are enough partitions: a process that finishes early takes another one.
_STRETCHES_EACH = 4


class LoadingOrder(Struct, frozen=True):
    """Places of the matches in the order of judging; stretches of so many places share partitions."""

    places: Sequence[int]
    stretches: Sequence[int] | None  # None where any process can judge any connection
    jobs: int
    packets_together: int
    fewest_places: int  # of a part of the work, unless processes would have nothing to do


def loading_order(
    captures: Sequence[Capture], matches: Sequence[Match], jobs: int, work_bytes: int | None
) -> LoadingOrder:
    """The order of judging by at most so many `jobs`, fewer where their partitions would not fit into the memory.

    `work_bytes` is what all processes together may take for the connections that they judge, None where there is no
    limit. Captures let go of what they have loaded.
    """
    partitioned = [place for place, capture in enumerate(captures) if capture.processes_at_most is not None]
    if not partitioned:
        together = _packets_together(jobs, work_bytes)
        fewest = _fewest_places(captures, matches, together)
        return LoadingOrder(_alike_together(matches), None, jobs, together, fewest)
    jobs = _jobs([captures[place] for place in partitioned], jobs, work_bytes)
    fewest = min(captures[place].partition_count for place in partitioned)
    sources = {place: _Source.of(captures[place], fewest, jobs) for place in partitioned}

    def order(number: int) -> tuple[int, ...]:
        ids = (matches[number].first, matches[number].second)
        ranks = {
            place: source.rank(connection)
            for place, source in sources.items()
            if (connection := ids[place]) is not None
        }
        if not ranks:
            return (-1, 0)
        lead = min(ranks)
        others = (rank for place, rank in ranks.items() if place != lead)
        return (lead, ranks[lead] // sources[lead].together, *others, ranks[lead])

    keys = [order(number) for number in range(len(matches))]
    places = sorted(range(len(matches)), key=keys.__getitem__)
    stretches = [len(list(stretch)) for _, stretch in groupby(places, lambda number: keys[number][:2])]
    return LoadingOrder(places, stretches, jobs, _packets_together(jobs, work_bytes), 1)


def _alike_together(matches: Sequence[Match]) -> Sequence[int]:
    """The places of all matches, first of those with rivals: these are judged several times, a few at a time, and are
    often rivals of each other. Then come those that are judged as objects, and all that are judged as columns."""
    if not any(match.rivals or not match.is_plain for match in matches):
        return range(len(matches))
    return sorted(range(len(matches)), key=lambda place: (not matches[place].rivals, matches[place].is_plain))


def _packets_together(jobs: int, work_bytes: int | None) -> int:
    """Packets of connections that each process judges together, within the memory for their work."""
    if work_bytes is None:
        return MOST_PACKETS_TOGETHER
    return max(PACKETS_TOGETHER, min(MOST_PACKETS_TOGETHER, work_bytes // (WORK_BYTES_PER_PACKET * jobs)))


def _fewest_places(captures: Sequence[Capture], matches: Sequence[Match], packets_together: int) -> int:
    """Matches that hold half the packets that are judged together: less is hardly worth what a part takes."""
    packets = sum(capture.packet_count for capture in captures)
    return packets_together // 2 * len(matches) // max(packets, 1)


def _jobs(captures: Sequence[Capture], jobs: int, work_bytes: int | None) -> int:
    fitting = [capture.processes_at_most or 1 for capture in captures]
    if work_bytes is not None:
        largest = sum(int(capture.connection_columns()["packets"].max(initial=0)) for capture in captures)
        fitting.append(work_bytes // (WORK_BYTES_PER_PACKET * max(largest, 1)))
    return max(1, min(jobs, *fitting))


class _Source(Struct, frozen=True):
    """A capture in partitions: their ranks, and how many are gone through together."""

    capture: Capture
    ranks: Sequence[int]
    together: int

    @staticmethod
    def of(capture: Capture, fewest: int, jobs: int) -> _Source:
        """Partitions that hold the same addresses in the capture with the `fewest` have neighbouring ranks."""
        count = capture.partition_count
        ranks = [0] * count
        for rank, partition in enumerate(sorted(range(count), key=lambda number: (number % fewest, number))):
            ranks[partition] = rank
        kept = capture.divide_memory(jobs)
        return _Source(capture, ranks, max(1, min(kept, count // (_STRETCHES_EACH * jobs))))

    def rank(self, connection: int) -> int:
        """The rank of the partition that holds a connection."""
        return self.ranks[self.capture.partition_of(connection)]
