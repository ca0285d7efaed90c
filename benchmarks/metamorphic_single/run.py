"""Many cases on several processes, written down as they are done, so that a run that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.metamorphic.run import Work, run
from benchmarks.metamorphic_single.captures import Source
from benchmarks.metamorphic_single.case import draw_case, judge_case, unchanged
from benchmarks.metamorphic_single.score import Judgement


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


def score(
    seed: str, all_sources: Sequence[Source], judgements: int, jobs: int, output: Path, detector: str
) -> list[Scored]:
    """Every capture as recorded, then changed ones (`benchmarks.metamorphic.run`)."""
    return run(Work(_recorded, _changed, Scored.from_line), seed, all_sources, judgements, jobs, output, detector)


def _recorded(source: Source) -> Scored:
    return Scored(-1, source.name, (), tuple(judge_case(unchanged(source))))


def _changed(seed: str, number: int, sources: Sequence[Source]) -> Scored:
    case = draw_case(seed, number, sources)
    return Scored(number, case.source.name, tuple(name for name, _ in case.steps), tuple(judge_case(case)))
