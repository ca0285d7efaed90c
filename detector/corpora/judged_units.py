"""What was judged together, as the directory of an audit remembers it: so that a connection can be judged again."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detector.corpora.tables import CAPTURES_FILE, UNITS
from detector.options import DECISION_PROBABILITY
from pepscope.errors import CaptureError
from pepscope.results.attention import EndPoints
from pepscope.results.pair_table import PairTable

if TYPE_CHECKING:
    from detector.corpora.judging import UnitOptions, UnitWork
    from pepscope.results.verdicts import DetectionResult

DIGESTS = "digests"
_PARTS, _PROBABILITY, _NETWORKS, _MEMORY = "parts", "least_probability", "networks", "memory_bytes"

#: Parts of a series that a command still names one by one.
_MOST_PARTS = 4


def judged_from(work: UnitWork) -> dict[str, Any]:
    """What a unit was judged from, for its marker: the files of each vantage point, and options."""
    return {
        DIGESTS: work.unit.digests,
        _PARTS: [len(series.files) for series in work.unit.series],
        _PROBABILITY: work.options.least_probability,
        _NETWORKS: work.options.networks,
        _MEMORY: work.options.memory_bytes,
    }


@dataclass(frozen=True)
class JudgedUnit:
    """What was judged together: files of each vantage point by the names that their user knows, and options."""

    series: tuple[tuple[str, ...], ...]
    options: UnitOptions

    @cached_property
    def missing(self) -> str | None:
        """The first file that is not where it was, or lies in an archive or at an address; None where all are there."""
        return next((name for files in self.series for name in files if not Path(name).is_file()), None)

    def command(self, ends: EndPoints, page: str) -> str | None:
        """The command that judges the unit again and writes the page of one connection; None where one cannot be given
        in a line."""
        if self.missing is not None or any(len(files) > _MOST_PARTS for files in self.series):
            return None
        steps, captures = [], list[str]()
        for files, letter in zip(self.series, "ab", strict=False):
            if len(files) == 1 or len(self.series) == 1:
                captures += files
            else:
                steps.append(["mergecap", "-a", "-w", f"{letter}.pcap", *files])
                captures.append(f"{letter}.pcap")
        detect = ["pepscope", "detect", *captures]
        if len(self.series) == 1 and len(captures) > 1:
            detect.append("--one-vantage")
        if len(self.series) == 1 and self.options.networks is not None:
            detect += ["--networks", self.options.networks]
        if self.options.least_probability != DECISION_PROBABILITY:
            detect += ["--least-probability", str(self.options.least_probability)]
        steps.append([*detect, "--connection", *ends, "--html", page])
        return " && ".join(shlex.join(step) for step in steps)


class JudgedUnits:
    """The units of a directory of tables by identity."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._known: dict[str, JudgedUnit | None] = {}

    def __getitem__(self, identity: str) -> JudgedUnit | None:
        """A unit; None where the directory does not say what it was judged from."""
        if identity not in self._known:
            self._known[identity] = self._read(identity)
        return self._known[identity]

    @cached_property
    def _names(self) -> Mapping[str, str]:
        import pandas as pd

        captures = pd.read_parquet(self._directory / CAPTURES_FILE, columns=["digest", "capture"])
        return dict(zip(captures["digest"], captures["capture"], strict=True))

    def _read(self, identity: str) -> JudgedUnit | None:
        from detector.corpora.judging import UnitOptions

        try:
            kept = json.loads((self._directory / UNITS / f"{identity}.json").read_text(encoding="utf-8"))
            names = iter([self._names[digest] for digest in kept[DIGESTS]])
            series = tuple(tuple(next(names) for _ in range(count)) for count in kept[_PARTS])
            return JudgedUnit(series, UnitOptions(kept[_PROBABILITY], kept[_NETWORKS], kept[_MEMORY]))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            return None


def judge_again(unit: JudgedUnit, connections: Sequence[EndPoints]) -> DetectionResult:
    """Judge a unit as it was judged, with what pages of some of its connections draw.

    Raises CaptureError where a file is not there any more, and what `detect` raises.
    """
    from detector.corpora.judging import judge_series

    if unit.missing is not None:
        raise CaptureError(f"{unit.missing} is no file here, so that its connections cannot be judged again")
    series = [(files[0], [Path(name) for name in files]) for files in unit.series]
    with tempfile.TemporaryDirectory(prefix="pepscope-") as scratch:
        result = judge_series(series, unit.options, Path(scratch), connections=connections)
        return _renamed(
            result, {str(Path(scratch) / f"{at}.pcap"): _series_name(f) for at, f in enumerate(unit.series)}
        )


def _series_name(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} (+{len(files) - 1})"


def _renamed(result: DetectionResult, names: Mapping[str, str]) -> DetectionResult:
    """The same with the names of series in place of those of the files that they were joined into."""
    from dataclasses import replace

    captures = tuple(replace(each, path=names.get(each.path, each.path)) for each in result.captures)
    pairs = PairTable.of(result.pairs)
    for vantage in pairs.columns.vantages:
        vantage.capture.values[:] = [name if name is None else names.get(name, name) for name in vantage.capture.values]
    return replace(result, captures=captures, pairs=pairs)
