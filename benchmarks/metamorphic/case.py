"""One case: a labelled pair, one to three changes drawn for it, and the detector's verdict on the result."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.metamorphic.changes import CHANGES, Step, applied, drawn
from benchmarks.metamorphic.pairs import SIDES, LabelledPair, Source
from benchmarks.metamorphic.score import Answer, Judgement, judged
from benchmarks.metamorphic.writing import write
from pepscope import detect
from pepscope.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How many changes a case has: 4, 3 and 3 in ten.
COUNTS = (1, 1, 1, 1, 2, 2, 2, 3, 3, 3)


@dataclass(frozen=True, slots=True)
class Case:
    """What is changed how. It depends on the seed, its number and the sources, on nothing else."""

    number: int
    source: Source
    steps: tuple[Step, ...]

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Name and place (`server`, `mobile`, `both`, `pair`) of each change, in order."""
        places: dict[str, str] = {}
        for step in self.steps:
            places[step.change] = "both" if step.change in places else step.place
        return list(places.items())


def draw_case(seed: str, number: int, all_sources: Sequence[Source]) -> Case:
    """The case of this number."""
    chance = random.Random(f"{seed}/{number}")
    source = chance.choice(all_sources)
    others = [other for other in all_sources if other != source]
    steps = [
        step
        for change in chance.sample(CHANGES, chance.choice(COUNTS))
        for step in drawn(change, chance.choice(change.places), chance, others)
    ]
    return Case(number, source, tuple(steps))


def unchanged(source: Source) -> Case:
    """The pair as recorded."""
    return Case(-1, source, ())


def judge_case(case: Case, directory: Path | None = None) -> list[Judgement]:
    """Change, write, detect and compare; the captures stay in `directory`, where one is given."""
    pair = applied(case.source.read(), case.steps)
    if directory is not None:
        return judged(pair, _answer(pair, directory))
    with tempfile.TemporaryDirectory(prefix="pepscope-", dir=in_memory()) as scratch:
        return judged(pair, _answer(pair, Path(scratch)))


def in_memory() -> str | None:
    """Memory where there is a file system in it: captures are read once."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _answer(pair: LabelledPair, directory: Path) -> Answer:
    paths = {side: str(directory / f"{side}.pcap") for side in SIDES}
    for side in SIDES:
        write(Path(paths[side]), pair.records[side], pair.links[side])
    order = (pair.first, *(side for side in SIDES if side != pair.first))
    try:
        result = detect(*(paths[side] for side in order), packets=1)  # naming packets must not fail either
    except CaptureError as error:
        return Answer((), {path: side for side, path in paths.items()}, refusal=str(error))
    except Exception as error:
        return Answer((), {path: side for side, path in paths.items()}, crash=f"{type(error).__name__}: {error}")
    return Answer(tuple(result.pairs), {path: side for side, path in paths.items()})
