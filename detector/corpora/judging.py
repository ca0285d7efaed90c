"""One unit of a corpus judged: the work that a process or a worker of a cluster does."""

from __future__ import annotations

import socket
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detector.corpora.joining import joined
from detector.corpora.marks import counts_of, write_mark
from detector.corpora.matching import Series, Unit
from detector.corpora.tables import IDENTITY, write_unit
from detector.detection import detect, detect_vantage
from pepscope.errors import PepscopeError
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

    What has a mark is not judged again: the work is given out anew where nobody heard of its end. Raises OSError where
    tables cannot be written.
    """
    directory = Path(work.directory)
    if (counted := counts_of(work.identity, directory)) is not None:
        return counted
    if not (directory / IDENTITY).is_file():
        return {"error": f"{socket.gethostname()} does not see {directory}: give a directory that all workers share"}
    try:
        with tempfile.TemporaryDirectory(prefix="pepscope-") if _needs_scratch(work.unit) else nullcontext() as scratch:
            result = _judged(work.unit, work.options, Path(scratch or "."))
    except (PepscopeError, OSError) as error:
        return {"error": str(error)}
    counts = write_unit(result, work.unit, work.identity, directory)
    write_mark(work.unit, work.identity, counts, directory)
    return counts


def _needs_scratch(unit: Unit) -> bool:
    return any(len(series.files) > 1 for series in unit.series)


def _judged(unit: Unit, options: UnitOptions, scratch: Path) -> DetectionResult:
    paths = [_joined(series, scratch / f"{number}.pcap") for number, series in enumerate(unit.series)]
    first = paths[0]
    if len(paths) == 1 and isinstance(first, list):
        return detect_vantage(
            [str(path) for path in first], networks=options.networks, least_probability=options.least_probability,
            memory_bytes=options.memory_bytes,
        )  # fmt: skip
    if any(isinstance(path, list) for path in paths):
        names = " and ".join(series.name for series in unit.series)
        raise PepscopeError(
            f"{names}: the parts of a series differ in format or link type, so that they cannot be compared with "
            "another vantage point's"
        )
    return detect(
        *(str(path) for path in paths),
        networks=options.networks if len(paths) == 1 else None,
        least_probability=options.least_probability,
        memory_bytes=options.memory_bytes,
    )


def _joined(series: Series, target: Path) -> Path | list[Path]:
    """One file; or the files themselves where they cannot be joined."""
    files = [each.file.path for each in series.files]
    return joined(files, target) or files
