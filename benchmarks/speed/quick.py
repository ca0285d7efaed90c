"""The speed of `detect` and `inspect` beside tcptrace in five minutes: `make bench-quick`.

Captures are those of `make bench`, smaller. Each comparison has a goal, and the ratio that benchmarks/README.md
reports: the run fails where a ratio is more than 15 % below the lower of both, so that a change that makes something
slower is seen although not every goal is reached. Processor time counts, which other work on the machine changes least;
two processes are compared with one by wall time.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.speed import captures
from benchmarks.speed.bulk_capture import make_bulk
from benchmarks.speed.comparisons import pepscope
from benchmarks.speed.measure import Median, compare
from benchmarks.speed.mixed_capture import make_mixed
from benchmarks.speed.split_capture import make_split
from benchmarks.speed.web_capture import make_web, make_web_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Below this share of the ratio that must hold, a comparison fails.
TOLERATED = 0.85

BULK_PACKETS = 4_000_000
SPLIT_CONNECTIONS = 300
MIXED_CONNECTIONS = 150
WEB_CONNECTIONS, WEB_PACKETS = 47_000, 1_000_000
PAIR_CONNECTIONS, PAIR_PACKETS = 10_000, 212_500


@dataclass(frozen=True, slots=True)
class Comparison:
    """A command beside its peer: how many times as fast it is to be, and was when benchmarks/README.md was written."""

    name: str
    command: Sequence[object]
    peer: Sequence[object]
    goal: float
    reported: float
    on_all_cores: bool = False  # then wall time is compared

    @property
    def least(self) -> float:
        """The ratio below which the run fails."""
        return TOLERATED * min(self.goal, self.reported)


def comparisons(work: Path) -> list[Comparison]:
    """What is compared, on the captures in `work`."""
    bulk = work / "bulk.sender.pcap", work / "bulk.receiver.pcap"
    split = work / "split.server.pcap", work / "split.mobile.pcap"
    mixed = work / "mixed.server.pcap", work / "mixed.mobile.pcap"
    web = work / "web.client.pcap", work / "web.server.pcap"
    short = work / "web.pcap"
    parquet = pepscope("detect", "--parquet", work / "web.parquet", *web)
    return [
        Comparison("inspect, 16 connections", pepscope("inspect", "--json", bulk[0]), tcptrace(bulk[0]), 5.0, 4.2),
        Comparison("inspect, 47,000 connections", pepscope("inspect", "--json", short), tcptrace(short), 25.0, 12.0),
        Comparison("detect a pair, 16 connections", pepscope("detect", "--json", *bulk), tcptrace(*bulk), 3.0, 0.65),
        Comparison("detect a pair, 300 split", pepscope("detect", "--json", *split), tcptrace(*split), 1.0, 0.41),
        Comparison("detect a pair, 150 mixed", pepscope("detect", "--json", *mixed), tcptrace(*mixed), 1.0, 0.14),
        Comparison("detect one, 10,000 connections", pepscope("detect", "--json", web[0]), tcptrace(web[0]), 5.0, 1.3),
        Comparison("detect one, 47,000 connections", pepscope("detect", "--json", short), tcptrace(short), 5.0, 2.5),
        Comparison("the same, groups alone", pepscope("detect", short), tcptrace(short), 5.0, 3.5),
        Comparison("detect a pair, 10,000 connections", pepscope("detect", "--json", *web), tcptrace(*web), 1.0, 0.7),
        Comparison("the same to Parquet", parquet, tcptrace(*web), 3.0, 0.63),
        Comparison(
            "two processes beside one", pepscope("detect", "--json", "--jobs", 2, *web),
            pepscope("detect", "--json", "--jobs", 1, *web), 1.7, 1.1, on_all_cores=True,
        ),
    ]  # fmt: skip


def tcptrace(*files: Path) -> list[object]:
    """The peer, reading these files without asking for names."""
    return ["tcptrace", "-n", "-lr", *files]


def prepare(work: Path) -> None:
    """Make the captures that are not there yet."""
    work.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], object]] = {
        "bulk.receiver.pcap": lambda: make_bulk(work, BULK_PACKETS),
        "split.mobile.pcap": lambda: make_split(work, SPLIT_CONNECTIONS),
        "mixed.mobile.pcap": lambda: make_mixed(work, MIXED_CONNECTIONS),
        "web.server.pcap": lambda: make_web_pair(work, PAIR_PACKETS, PAIR_CONNECTIONS),
        "web.pcap": lambda: make_web(work, WEB_PACKETS, WEB_CONNECTIONS),
    }
    for name, make in makers.items():
        if not (work / name).exists():
            make()


def measured(comparison: Comparison, repetitions: int) -> tuple[float, dict[str, Median]]:
    """How many times as fast as its peer the command is, and the medians of both."""
    available = sorted(os.sched_getaffinity(0))
    allowed = available if comparison.on_all_cores else available[:1]
    commands = {"ours": comparison.command, "peer": comparison.peer}
    medians = compare(
        {name: [str(word) for word in command] for name, command in commands.items()},
        repetitions,
        ",".join(map(str, allowed)),
    )
    ours, peer = medians["ours"], medians["peer"]
    ratio = peer.wall_s / ours.wall_s if comparison.on_all_cores else peer.processor_s / ours.processor_s
    return ratio, medians


def main() -> int:
    """Compare all, print one table; 1 where a ratio fell behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of comparisons (default: all)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work", type=Path, default=captures.WORK / "quick")
    arguments = parser.parse_args()
    prepare(arguments.work)
    chosen = [
        each
        for each in comparisons(arguments.work)
        if not arguments.names or any(name in each.name for name in arguments.names)
    ]
    print(f"{'comparison':34} {'ratio':>7} {'goal':>6} {'least':>6}  {'ours, s':>8} {'peer, s':>8} {'peak, MiB':>9}")
    fallen = []
    for each in chosen:
        ratio, medians = measured(each, arguments.repetitions)
        ours, peer = medians["ours"], medians["peer"]
        state = "" if ratio >= each.goal else "goal missed" if ratio >= each.least else "FELL BEHIND"
        if ratio < each.least:
            fallen.append(each.name)
        print(
            f"{each.name:34} {ratio:7.2f} {each.goal:6g} {each.least:6.2f}  {ours.processor_s:8.2f} "
            f"{peer.processor_s:8.2f} {ours.peak_bytes / 2**20:9.0f}  {state}",
            flush=True,
        )
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
