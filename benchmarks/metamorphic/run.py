"""Many cases on several processes, written down as they are done, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TextIO, TypeVar

from benchmarks.metamorphic.case import draw_case, judge_case, unchanged
from benchmarks.metamorphic.score import Judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.metamorphic.pairs import Source

ROOT = Path(__file__).parents[2]

#: Cases that a process does before it reports: a second or two.
_BATCH = 40


class Named(Protocol):
    """What captures are read from, by its name in results."""

    @property
    def name(self) -> str: ...


class AnyJudgement(Protocol):
    """A judgement, as far as runs count it."""

    @property
    def false_alarm(self) -> bool: ...
    @property
    def called_regular(self) -> bool: ...
    @property
    def crashed(self) -> bool: ...


class AnyScored(Protocol):
    """A case as it was judged. Number -1 is a source as recorded."""

    @property
    def number(self) -> int: ...
    @property
    def source(self) -> str: ...
    @property
    def judgements(self) -> Sequence[AnyJudgement]: ...
    def line(self) -> str: ...


SourceT = TypeVar("SourceT", bound=Named)
ScoredT = TypeVar("ScoredT", bound=AnyScored)


@dataclass(frozen=True, slots=True)
class Work(Generic[SourceT, ScoredT]):
    """What processes do with sources as `recorded`, and with the cases of a seed that are drawn from all of them; and
    how a line of results is `read`."""

    recorded: Callable[[SourceT], ScoredT]
    changed: Callable[[str, int, Sequence[SourceT]], ScoredT]
    read: Callable[[str], ScoredT]

    def all_recorded(self, batch: Sequence[SourceT]) -> list[ScoredT]:
        """The sources of one batch."""
        return [self.recorded(source) for source in batch]

    def all_changed(self, batch: tuple[str, Sequence[int], Sequence[SourceT]]) -> list[ScoredT]:
        """The cases of one batch: seed, numbers and all sources."""
        seed, numbers, sources = batch
        return [self.changed(seed, number, sources) for number in numbers]


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
    """Every pair as recorded, then changed ones (`run`)."""
    return run(Work(_recorded, _changed, Scored.from_line), seed, all_sources, judgements, jobs, output, detector)


def _recorded(source: Source) -> Scored:
    return Scored(-1, source.name, (), tuple(judge_case(unchanged(source))))


def _changed(seed: str, number: int, sources: Sequence[Source]) -> Scored:
    case = draw_case(seed, number, sources)
    return Scored(number, case.source.name, tuple(case.changes), tuple(judge_case(case)))


def run(
    work: Work[SourceT, ScoredT],
    seed: str,
    all_sources: Sequence[SourceT],
    judgements: int,
    jobs: int,
    output: Path,
    detector: str,
) -> list[ScoredT]:
    """Every source as recorded, then cases from number 0 on until there are so many judgements of changed captures.

    Results are appended to `output`, whose first line says what they belong to; what it holds is not done again. Where
    nothing of the sources as recorded can be judged, they are all there is.

    Raises ValueError where `output` belongs to other sources, another seed or another detector.
    """
    head = {"seed": seed, "sources": [source.name for source in all_sources], "detector": detector}
    done = _read(output, head, work.read)
    if not done:
        output.write_text(json.dumps(head) + "\n")
    count = _Count(judgements, done)
    with ProcessPoolExecutor(jobs) as pool, output.open("a") as file:
        recorded = {one.source for one in done if one.number < 0}
        missing = [source for source in all_sources if source.name not in recorded]
        for batch in pool.map(work.all_recorded, _batches(missing)):
            done += _written(batch, file)
        if not any(one.judgements for one in done):
            return done
        first = max((one.number for one in done), default=-1) + 1
        while not count.reached(done):
            numbers = range(first, first + _BATCH * jobs)
            batches = [(seed, tuple(part), tuple(all_sources)) for part in _batches(list(numbers))]
            for batch in pool.map(work.all_changed, batches):
                done += _written(batch, file)
                count.show(done)
            first = numbers.stop
    return done


def _read(output: Path, head: dict[str, Any], read: Callable[[str], ScoredT]) -> list[ScoredT]:
    if not output.exists():
        return []
    with output.open() as file:
        if json.loads(file.readline()) != head:
            raise ValueError(f"{output} must hold results of these sources, this seed and this detector; it does not")
        return [read(line) for line in file]


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def _written(batch: list[ScoredT], file: TextIO) -> list[ScoredT]:
    file.write("".join(one.line() + "\n" for one in batch))
    file.flush()
    return batch


class _Count:
    """How many judgements there are, and at what rate they come."""

    def __init__(self, wanted: int, before: Sequence[AnyScored]) -> None:
        self._wanted, self._begun, self._shown = wanted, time.monotonic(), 0.0
        self._before = self._judgements(before)

    @staticmethod
    def _judgements(scored: Sequence[AnyScored]) -> int:
        return sum(len(one.judgements) for one in scored if one.number >= 0)

    def reached(self, scored: Sequence[AnyScored]) -> bool:
        return self._judgements(scored) >= self._wanted

    def show(self, scored: Sequence[AnyScored]) -> None:
        now = time.monotonic()
        if now - self._shown < 5:
            return
        self._shown, count = now, self._judgements(scored)
        rate = (count - self._before) / (now - self._begun)
        wrong = sum(j.false_alarm or j.called_regular or j.crashed for one in scored for j in one.judgements)
        print(f"{count} of {self._wanted} judgements, {rate:.0f} a second, {wrong} wrong", file=sys.stderr, flush=True)


def scored_detector() -> str:
    """Which detector is scored: the last commit to it, and whether it was changed since."""
    rooms = ("detector", "pepscope", "crates")
    commit, changed = (
        subprocess.run(["git", "-C", str(ROOT), *command, "--", *rooms], capture_output=True, text=True, check=False)
        for command in (("log", "-1", "--format=%h"), ("status", "--porcelain"))
    )
    return (commit.stdout.strip() or "unknown") + ("-changed" if changed.stdout.strip() else "")
