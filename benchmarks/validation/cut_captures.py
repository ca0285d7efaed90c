"""Cut one capture of a pair, the other, or both to every length, and see that no verdict turns into its opposite.

`python -m benchmarks.validation.cut_captures` writes a table: for each length from the IP header on, how many flows are
still decided as they should be, how many become inconclusive, and how many are reversed (which fails the run).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.validation.score import CORPUS, Case, Score, score_files
from benchmarks.validation.variants import cut_behind_ip
from pepscope.errors import CaptureError
from tests.captures.containers import CaptureFile, read_capture, write_pcap

ENDS = ("mobile", "server")
#: Which captures are cut.
CUTS: dict[str, frozenset[str]] = {
    "mobile": frozenset({"mobile"}),
    "server": frozenset({"server"}),
    "both": frozenset(ENDS),
}
#: From the least that may hold a TCP header's beginning to where nothing but payload is cut.
LENGTHS = range(34, 121)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one flow: `right`, `inconclusive`, `reversed` into its opposite, or `refused` for want of TCP.

    `length` is what is left of packets: bytes from the IP header on.
    """

    run: str
    length: int
    cut: str
    truth: str
    result: str
    reason: str


def two_ended_runs(corpus: Path = CORPUS) -> list[dict[str, Any]]:
    """Runs of the corpus with a capture at each end."""
    runs: list[dict[str, Any]] = json.loads((corpus / "manifest.json").read_text())["runs"]
    return [run for run in runs if all(end in run["files"] for end in ENDS)]


def judge_cuts(run: dict[str, Any], lengths: Sequence[int], corpus: Path = CORPUS) -> list[Outcome]:
    """Judge a run with one or both of its captures cut to each of these lengths (bytes from the IP header on)."""
    whole = {end: corpus / run["files"][end]["name"] for end in ENDS}
    read = {end: read_capture(path) for end, path in whole.items()}
    with tempfile.TemporaryDirectory(prefix="pepscope-") as directory:
        return [outcome for length in lengths for outcome in _judge_length(run, length, whole, read, Path(directory))]


def _judge_length(
    run: dict[str, Any], length: int, whole: dict[str, Path], read: dict[str, CaptureFile], directory: Path
) -> Iterator[Outcome]:
    cut = {}
    for end, capture in read.items():
        made = cut_behind_ip(capture, length)
        cut[end] = directory / f"{end}.pcap"
        cut[end].write_bytes(write_pcap(made.frames, made.link_type))
    for name, ends in CUTS.items():
        paths = {end: str(cut[end] if end in ends else whole[end]) for end in ENDS}
        try:
            scores = score_files(Case(whole["mobile"].parent, run, f"cut to {length}"), paths)
        except CaptureError as error:
            yield from (Outcome(run["id"], length, name, flow["class"], "refused", str(error)) for flow in run["flows"])
        else:
            yield from (Outcome(run["id"], length, name, s.truth, _result(s), s.reason) for s in scores)


def _result(score: Score) -> str:
    if score.false_alarm or score.called_regular:
        return "reversed"
    return "right" if score.found else "inconclusive"


def table(outcomes: Sequence[Outcome]) -> str:
    """Lengths with the same counts in one row, for regular and split flows and each choice of what is cut."""
    head = ["bytes from IP"]
    for truth in ("regular", "split"):
        head += [f"{truth}, {cut} cut" for cut in CUTS]
    rows: list[tuple[int, int, list[str]]] = []
    for length in sorted({outcome.length for outcome in outcomes}):
        cells = [
            _cell([o for o in outcomes if o.length == length and o.cut == cut and (o.truth == "regular") == regular])
            for regular in (True, False)
            for cut in CUTS
        ]
        if rows and rows[-1][2] == cells and rows[-1][1] == length - 1:
            rows[-1] = (rows[-1][0], length, cells)
        else:
            rows.append((length, length, cells))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for first, last, cells in rows:
        lines.append(f"| {first if first == last else f'{first}-{last}'} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(outcomes: Sequence[Outcome]) -> str:
    """Right, inconclusive or refused, reversed."""
    counts = Counter(outcome.result for outcome in outcomes)
    return f"{counts['right']} / {counts['inconclusive'] + counts['refused']} / {counts['reversed']}"


def main() -> int:
    """Judge, print the table and every reversed verdict; fail where there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--only", help="only runs whose name holds this")
    parser.add_argument("--length", type=int, action="append", help="only these lengths")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    runs = [run for run in two_ended_runs(arguments.corpus) if arguments.only is None or arguments.only in run["id"]]
    lengths = arguments.length or LENGTHS
    with ProcessPoolExecutor(arguments.workers) as pool:
        found = pool.map(judge_cuts, runs, [lengths] * len(runs), [arguments.corpus] * len(runs))
        outcomes = [outcome for judged in found for outcome in judged]
    print("Right / inconclusive or refused / reversed.\n")
    print(table(outcomes))
    reversed_ones = [outcome for outcome in outcomes if outcome.result == "reversed"]
    for outcome in reversed_ones:
        print(f"{outcome.run}, {outcome.cut} cut to {outcome.length}: {outcome.truth} reversed: {outcome.reason}")
    print(f"\n{len(outcomes)} judgements, {len(reversed_ones)} reversed")
    return 1 if reversed_ones else 0


if __name__ == "__main__":
    sys.exit(main())
