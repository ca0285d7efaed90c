"""One unit of a corpus judged: the work that a process or a worker of a cluster does."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detector.corpora.joining import joined
from detector.corpora.judged_units import judged_from
from detector.corpora.marks import counts_of, write_mark
from detector.corpora.matching import Unit
from detector.corpora.tables import IDENTITY_FILE, write_unit
from detector.detection import detect, detect_vantage
from pepscope.errors import PepscopeError
from pepscope.results.attention import EndPoints
from pepscope.results.verdicts import DetectionResult


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """Options of `detect` that hold for a whole corpus."""

    least_probability: float
    networks: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class UnitWork:
    """A unit as a worker gets it: nothing but values."""

    unit: Unit
    identity: str
    options: UnitOptions
    directory: str


def judge_unit(work: UnitWork) -> dict[str, Any]:
    """Judge a unit and write its tables and, last, its mark; gives counts, or the `error` that made it impossible.

    What has a mark is not judged again: a scheduler gives work out anew when it did not learn that a worker finished
    it. Raises OSError where tables cannot be written.
    """
    directory = Path(work.directory)
    if (counted := counts_of(work.identity, directory)) is not None:
        return counted
    if not (directory / IDENTITY_FILE).is_file():
        return {"error": f"{socket.gethostname()} does not see {directory}: give a directory that all workers share"}
    try:
        with tempfile.TemporaryDirectory(prefix="pepscope-") if _needs_scratch(work.unit) else nullcontext() as scratch:
            series = [(each.name, [part.file.path for part in each.files]) for each in work.unit.series]
            result = judge_series(series, work.options, Path(scratch or "."))
    except (PepscopeError, OSError) as error:
        return {"error": str(error)}
    counts = write_unit(result, work.unit, work.identity, directory)
    write_mark(work.unit, work.identity, counts, judged_from(work), directory)
    return counts


def _needs_scratch(unit: Unit) -> bool:
    return any(len(series.files) > 1 for series in unit.series)


def judge_series(
    series: Sequence[tuple[str, Sequence[Path]]],
    options: UnitOptions,
    scratch: Path,
    *,
    connections: Sequence[EndPoints] = (),
) -> DetectionResult:
    """Judge the captures of one vantage point or two: names, and files that are parts of one series.

    `connections` get what a page draws of them. Raises PepscopeError, OSError.
    """
    joint = [joined(files, scratch / f"{number}.pcap") for number, (_, files) in enumerate(series)]
    drawn = bool(connections)
    if len(series) == 1 and joint[0] is None:
        return detect_vantage(
            [str(path) for path in series[0][1]], networks=options.networks,
            least_probability=options.least_probability, memory_bytes=options.memory_bytes,
            series=drawn, connections=connections,
        )  # fmt: skip
    if None in joint:
        names = " and ".join(name for name, _ in series)
        raise PepscopeError(
            f"{names}: the parts of a series differ in format or link type, so that they cannot be compared with "
            "another vantage point's"
        )
    return detect(
        *(str(path) for path in joint),
        networks=options.networks if len(joint) == 1 else None,
        least_probability=options.least_probability,
        memory_bytes=options.memory_bytes,
        series=drawn,
        connections=connections,
    )
