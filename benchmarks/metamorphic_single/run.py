"""Many cases on several processes, written down as they are done."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TextIO

from benchmarks.metamorphic_single.captures import Source
from benchmarks.metamorphic_single.case import draw_case, judge_case, unchanged
from benchmarks.metamorphic_single.score import Judgement

#: Cases between two lines of progress, for each process.
_BATCH = 20


@dataclass(frozen=True, slots=True)
class Scored:
    """A case as it was judged. Number -1 is a capture as recorded."""

    number: int
    source: str
    changes: tuple[str, ...]
    judgements: tuple[Judgement, ...]

    def line(self) -> str:
        """One line of a results file."""
        return json.dumps([self.number, self.source, self.changes, [one.row() for one in self.judgements]])

    @classmethod
    def from_line(cls, line: str) -> Scored:
        """What `line` wrote."""
        number, source, changes, rows = json.loads(line)
        return cls(number, source, tuple(changes), tuple(map(Judgement.from_row, rows)))


def score(seed: str, sources: Sequence[Source], judgements: int, jobs: int, output: Path) -> list[Scored]:
    """Every source as recorded, then cases from number 0 on until there are so many judgements of changed captures.

    Where nothing of the sources as recorded can be judged, they are all there is.
    """
    scored: list[Scored] = []
    with ProcessPoolExecutor(jobs) as pool, output.open("w") as file:
        for one in pool.map(_recorded, sources, chunksize=4):
            _keep(one, scored, file)
        done = 0
        if not any(one.judgements for one in scored):
            return scored
        for numbers in _batches(_BATCH * jobs):
            for one in pool.map(partial(_changed, seed, tuple(sources)), numbers, chunksize=2):
                _keep(one, scored, file)
                done += len(one.judgements)
            file.flush()
            print(f"{done} of {judgements} judgements", file=sys.stderr, flush=True)
            if done >= judgements:
                return scored
    return scored


def _keep(one: Scored, scored: list[Scored], file: TextIO) -> None:
    scored.append(one)
    print(one.line(), file=file)


def _batches(size: int) -> Iterator[range]:
    return (range(first, first + size) for first in count(0, size))


def _recorded(source: Source) -> Scored:
    return Scored(-1, source.name, (), tuple(judge_case(unchanged(source))))


def _changed(seed: str, sources: Sequence[Source], number: int) -> Scored:
    case = draw_case(seed, number, sources)
    return Scored(number, case.source.name, tuple(name for name, _ in case.steps), tuple(judge_case(case)))
