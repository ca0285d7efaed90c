"""A corpus from sources to tables: surveyed, matched, judged, and resumed where it was interrupted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pepscope
from detector.corpora.imported import IMPORTED
from detector.corpora.judging import UnitOptions, UnitWork, judge_unit
from detector.corpora.marks import counts_of, remove_superseded
from detector.corpora.matching import match, read_manifest
from detector.corpora.sources import CaptureFile, Failure, find_captures
from detector.corpora.survey import Survey, survey
from detector.corpora.tables import IDENTITY, IDENTITY_FILE, UNITS, is_held, write_captures, write_errors
from detector.one_capture.networks import read_networks
from detector.options import DECISION_PROBABILITY
from pepscope._core import usable_processors
from pepscope.errors import PepscopeError, UsageError
from pepscope.extras import missing_package
from pepscope.processes.workers import PATIENCE_S, ClusterLostError, over_workers
from pepscope.results.verdicts import Verdict
from pepscope.whole_file import write_whole

Progress = Callable[[str, int, int], object]
Workers = Callable[..., Generator[tuple[int, Any], None, None]]


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """The result of an audit of a corpus, in numbers: of the `units`, `pairs` have two captures, and `resumed` had been
    judged before; `verdicts` count connections."""

    directory: str
    captures: int
    units: int
    pairs: int
    resumed: int
    connections: int
    verdicts: dict[str, int]
    errors: tuple[Failure, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the version of this form."""
        return {"schema": 1, **asdict(self)}


def audit_captures(
    sources: Sequence[str],
    output: str | Path,
    *,
    manifest: str | None = None,
    networks: str | None = None,
    least_probability: float = DECISION_PROBABILITY,
    memory_bytes: int | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    patience_s: float = PATIENCE_S,
    progress: Progress | None = None,
) -> CorpusSummary:
    """Judge every connection of many captures, and keep tables of them in the directory `output`.

    `sources` are files, directories, patterns, zip and tar archives, and addresses that fsspec knows. Parts of rotated
    series are read as one capture, and captures of two vantage points that share connections are judged together; a
    `manifest` (CSV: path, vantage, network, operator, notes) tells what names and content do not. Captures that the
    directory already has, with the same content, options and version, are not judged again.

    `scheduler` is the address of a Dask scheduler whose workers see the same paths; if it disappears, the call waits
    for it for `patience_s`. Without a scheduler, `processes` (default: one per usable core) share the work. `progress`
    is called with the name of the step, the work done and the work in all.

    Files that cannot be read and units that cannot be judged are rows of `errors.parquet`. Raises UsageError for
    sources that do not exist or hold no capture, options outside their range, and a directory that is of another
    version or cannot be written; ClusterLostError if the cluster does not come back. What was judged before an error
    is kept.
    """
    _needs_parquet()
    _check(sources, least_probability, processes)
    directory = Path(output)
    options = UnitOptions(least_probability, networks, memory_bytes)
    labels = {} if manifest is None else read_manifest(manifest)
    if networks is not None:
        read_networks(networks)  # workers read it again, but can no longer refuse it
    _claim(directory)
    workers = partial(
        over_workers, processes=processes or usable_processors(), scheduler=scheduler, patience_s=patience_s,
        imported=IMPORTED,
    )  # fmt: skip
    tell = progress or (lambda *_: None)
    try:
        shared = None if scheduler is None else directory
        (directory / UNITS).mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pepscope-", dir=shared) as scratch:
            files, failures = find_captures(sources, Path(scratch))
            if not files and not failures:
                raise UsageError(f"no capture in {', '.join(sources)}")
            surveys, unread = _surveyed(files, workers, tell)
            found, apart = match(surveys, labels)
            said = _of_options(options)
            work = [UnitWork(each.without_keys(), each.identity(said), options, str(directory)) for each in found]
            counts, resumed, unjudged = _judged(work, directory, workers, tell)
            remove_superseded({each.identity for each in work}, directory)
            failures = [*failures, *unread, *unjudged]
            write_captures(surveys, found, directory)
            write_errors(failures, directory)
    except OSError as error:
        raise UsageError(f"{directory} cannot be written: {error}") from None
    return CorpusSummary(
        directory=str(directory),
        captures=len(surveys),
        units=len(found),
        pairs=sum(each.second is not None for each in found),
        resumed=resumed,
        connections=sum(each.get("connections", 0) for each in counts),
        verdicts={kind.value: sum(each.get(kind.value, 0) for each in counts) for kind in Verdict},
        errors=tuple(failures),
        notes=_notes(apart),
    )


def _check(sources: Sequence[str], least_probability: float, processes: int | None) -> None:
    """Raise UsageError for options outside their range."""
    if isinstance(sources, str):
        raise UsageError(f"sources must be a list, got the text {sources!r}")
    if not sources:
        raise UsageError("sources must name at least one file, directory, pattern or address, got none")
    if not 0.5 <= least_probability <= 1:
        raise UsageError(f"the least probability must be between 0.5 and 1, got {least_probability}")
    if processes is not None and processes < 1:
        raise UsageError(f"processes must be at least 1, got {processes}")


def _needs_parquet() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError(missing_package("pyarrow", extra="corpora")) from None


def _claim(directory: Path) -> None:
    """Make sure that what the directory holds, if anything, is a corpus of this version."""
    try:
        if is_held(directory):
            return
        if directory.is_dir() and any(not each.name.startswith(".") for each in directory.iterdir()):
            raise UsageError(f"{directory} holds other files: give an empty directory")
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / IDENTITY_FILE, json.dumps(IDENTITY) + "\n")
    except UsageError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory} cannot be used: {error}") from None


def _surveyed(files: Sequence[CaptureFile], workers: Workers, tell: Progress) -> tuple[list[Survey], list[Failure]]:
    """What the files hold, in their order; those that say what another one says, and what is no capture, fail."""
    found: dict[int, Survey] = {}
    failures = []
    for done, (place, outcome) in enumerate(workers(survey, files), start=1):
        tell("surveying", done, len(files))
        if isinstance(outcome, Survey):
            found[place] = outcome
        else:
            file = files[place]
            # A member of an archive is read from a temporary place, of which its user knows nothing.
            failures.append(Failure(file.name, _sentence(outcome).replace(str(file.path), file.name)))
    surveys: dict[str, Survey] = {}
    for place in sorted(found):
        each = found[place]
        first = surveys.setdefault(each.digest, each)
        if first is not each:
            failures.append(Failure(each.file.name, f"it is a copy of {first.file.name}"))
    return list(surveys.values()), sorted(failures, key=lambda failure: failure.name)


def _judged(
    work: Sequence[UnitWork], directory: Path, workers: Workers, tell: Progress
) -> tuple[list[dict[str, Any]], int, list[Failure]]:
    """Counts of all units, how many were there already, and what failed."""
    outcomes = {
        place: counts for place, each in enumerate(work) if (counts := counts_of(each.identity, directory)) is not None
    }
    resumed = len(outcomes)
    missing = [place for place in range(len(work)) if place not in outcomes]
    todo = [work[place] for place in missing]
    try:
        with closing(workers(judge_unit, todo, shared=directory / IDENTITY_FILE)) as judged:
            for at, outcome in judged:
                if isinstance(outcome, OSError):
                    raise outcome
                outcomes[missing[at]] = outcome if isinstance(outcome, dict) else {"error": _sentence(outcome)}
                tell("judging", len(outcomes), len(work))
    except ClusterLostError as error:
        raise ClusterLostError(
            f"{error}; of {len(work):,} units {len(outcomes):,} are done: the same command goes on from there"
        ) from None
    failures = [
        Failure(" and ".join(series.name for series in work[place].unit.series), outcomes[place]["error"])
        for place in sorted(outcomes)
        if "error" in outcomes[place]
    ]
    return [outcomes[place] for place in sorted(outcomes)], resumed, failures


def _notes(apart: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    if not apart:
        return ()
    one, other = apart[0]
    more = f", and so do {len(apart) - 1:,} more pairs" if len(apart) > 1 else ""
    sentence = (
        f"{one} and {other} share connections, but by their clocks they were taken more than an hour apart{more}: they "
        "were judged each alone; if one clock was wrong, shift its times (editcap -t SECONDS) and judge again"
    )
    return (sentence,)


def _of_options(options: UnitOptions) -> str:
    """What results depend on, besides content."""
    table = None if options.networks is None else Path(options.networks).read_text(encoding="utf-8", errors="replace")
    return json.dumps([pepscope.__version__, options.least_probability, table])


def _sentence(outcome: object) -> str:
    if isinstance(outcome, PepscopeError | OSError):
        return str(outcome)
    return f"it could not be judged: {type(outcome).__name__}: {outcome}"
