"""Many cases on several processes, written down as they are done, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.metamorphic.case import draw_case, judge_case, unchanged
from benchmarks.metamorphic.score import Judgement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.metamorphic.pairs import Source

#: Cases that a process does before it reports: a second or two.
_BATCH = 40


@dataclass(frozen=True, slots=True)
class Scored:
    """A case as it was judged. Number -1 is a pair as recorded."""

    number: int
    source: str
    changes: tuple[tuple[str, str], ...]
    judgements: tuple[Judgement, ...]

    def line(self) -> str:
        """One line of a results file."""
        return json.dumps([self.number, self.source, self.changes, [one.row() for one in self.judgements]])

    @classmethod
    def from_line(cls, line: str) -> Scored:
        """What `line` wrote."""
        number, source, changes, rows = json.loads(line)
        return cls(number, source, tuple(map(tuple, changes)), tuple(map(Judgement.from_row, rows)))


def score(
    seed: str, all_sources: Sequence[Source], judgements: int, jobs: int, output: Path, detector: str
) -> list[Scored]:
    """Every source as recorded, then cases from number 0 on until there are so many judgements of changed captures.

    Results are appended to `output`, whose first line says what they belong to; what it holds is not done again.

    Raises ValueError where `output` belongs to other sources, another seed or another detector.
    """
    head = {"seed": seed, "sources": [source.name for source in all_sources], "detector": detector}
    done = _read(output, head)
    if not done:
        output.write_text(json.dumps(head) + "\n")
    count = _Count(judgements, done)
    with ProcessPoolExecutor(jobs) as pool, output.open("a") as file:
        if not any(one.number < 0 for one in done):
            for batch in pool.map(_score_recorded, _batches(list(all_sources))):
                done += _written(batch, file)
        first = max((one.number for one in done), default=-1) + 1
        while not count.reached(done):
            numbers = range(first, first + _BATCH * jobs)
            work = [(seed, tuple(part), tuple(all_sources)) for part in _batches(list(numbers))]
            for batch in pool.map(_score_numbers, work):
                done += _written(batch, file)
                count.show(done)
            first = numbers.stop
    return done


def _read(output: Path, head: dict[str, Any]) -> list[Scored]:
    if not output.exists():
        return []
    with output.open() as file:
        if json.loads(file.readline()) != head:
            raise ValueError(f"{output} must hold results of these sources, this seed and this detector; it does not")
        return [Scored.from_line(line) for line in file]


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def _written(batch: list[Scored], file: Any) -> list[Scored]:
    file.write("".join(one.line() + "\n" for one in batch))
    file.flush()
    return batch


def _score_recorded(batch: list[Source]) -> list[Scored]:
    return [Scored(-1, source.name, (), tuple(judge_case(unchanged(source)))) for source in batch]


def _score_numbers(work: tuple[str, tuple[int, ...], tuple[Source, ...]]) -> list[Scored]:
    seed, numbers, all_sources = work
    cases = [draw_case(seed, number, all_sources) for number in numbers]
    return [Scored(one.number, one.source.name, tuple(one.changes), tuple(judge_case(one))) for one in cases]


class _Count:
    """How many judgements there are, and at what rate they come."""

    def __init__(self, wanted: int, before: list[Scored]) -> None:
        self._wanted, self._begun, self._shown = wanted, time.monotonic(), 0.0
        self._before = self._judgements(before)

    @staticmethod
    def _judgements(scored: list[Scored]) -> int:
        return sum(len(one.judgements) for one in scored if one.number >= 0)

    def reached(self, scored: list[Scored]) -> bool:
        return self._judgements(scored) >= self._wanted

    def show(self, scored: list[Scored]) -> None:
        now = time.monotonic()
        if now - self._shown < 5:
            return
        self._shown, count = now, self._judgements(scored)
        rate = (count - self._before) / (now - self._begun)
        wrong = sum(j.false_alarm or j.called_regular or j.crashed for one in scored for j in one.judgements)
        print(f"{count} of {self._wanted} judgements, {rate:.0f} a second, {wrong} wrong", file=sys.stderr, flush=True)
