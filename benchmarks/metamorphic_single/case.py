"""One case: a labelled capture, one to three changes drawn for it, and the detector's verdicts on the result."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.metamorphic.case import COUNTS, in_memory
from benchmarks.metamorphic.writing import write
from benchmarks.metamorphic_single.captures import LabelledCapture, Source
from benchmarks.metamorphic_single.changes import BY_NAME, CHANGES
from benchmarks.metamorphic_single.score import Judgement, judged
from detector.detection import detect, detect_vantage
from pepscope.errors import PepscopeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.metamorphic.changes import Parameters


@dataclass(frozen=True, slots=True)
class Case:
    """What is changed how. It depends on the seed, its number and the sources, on nothing else."""

    number: int
    source: Source
    steps: tuple[tuple[str, Parameters], ...]


def draw_case(seed: str, number: int, sources: Sequence[Source]) -> Case:
    """The case of this number."""
    chance = random.Random(f"one capture/{seed}/{number}")
    source = chance.choice(sources)
    others = [other for other in sources if other != source]
    changes = chance.sample(CHANGES, chance.choice(COUNTS))
    return Case(number, source, tuple((change.name, change.draw(chance, others)) for change in changes))


def unchanged(source: Source) -> Case:
    """The capture as recorded."""
    return Case(-1, source, ())


def applied(capture: LabelledCapture, steps: Sequence[tuple[str, Parameters]]) -> LabelledCapture:
    """The capture after all steps, in their order."""
    for name, parameters in steps:
        capture = BY_NAME[name].apply(capture, parameters)
    return capture


def judge_case(case: Case, directory: Path | None = None) -> list[Judgement]:
    """Change, write, detect and compare; the files stay in `directory`, where one is given."""
    capture = applied(case.source.read(), case.steps)
    if directory is not None:
        return _judged(capture, directory)
    with tempfile.TemporaryDirectory(prefix="pepscope-", dir=in_memory()) as scratch:
        return _judged(capture, Path(scratch))


def _judged(capture: LabelledCapture, directory: Path) -> list[Judgement]:
    paths = []
    for number, records in enumerate(capture.files):
        paths.append(str(directory / f"{number}.pcap"))
        write(Path(paths[-1]), records, capture.link)
    try:
        result = detect(paths[0], packets=1) if len(paths) == 1 else detect_vantage(paths, packets=1)
    except PepscopeError as error:
        return judged(capture, None, f"refused: {error}")
    except Exception as error:
        return judged(capture, None, f"crash: {type(error).__name__}: {error}")
    return judged(capture, result, "")
