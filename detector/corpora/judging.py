"""One unit of a corpus judged: the work that a process or a worker of a cluster does."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detector.corpora.joining import joined
from detector.corpora.matching import Series, Unit
from detector.corpora.tables import write_unit
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
    """Judge a unit and write its tables; gives counts, or the `error` that made it impossible."""
    directory = Path(work.directory)
    try:
        if all(len(series.files) == 1 for series in work.unit.series):
            return write_unit(_judged(work.unit, work.options, directory), work.unit, work.identity, directory)
        with tempfile.TemporaryDirectory(prefix="pepscope-") as scratch:
            result = _judged(work.unit, work.options, Path(scratch))
            return write_unit(result, work.unit, work.identity, directory)
    except (PepscopeError, OSError) as error:
        return {"error": str(error)}


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
