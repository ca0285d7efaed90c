"""Running a campaign: over processes or a cluster, resumed where it was interrupted."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pepscope
from pepscope._core import usable_processors
from pepscope.errors import UsageError
from pepscope.extras import needed
from pepscope.processes.workers import over_workers
from pepscope.whole_file import write_whole
from reference_sim.intervals import mean_interval
from reference_sim.measures import measure
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reference_sim.sweep import Campaign, Point

if TYPE_CHECKING:
    import pandas as pd

#: Numbers by name of a run; None where one does not apply.
MeasureRun: TypeAlias = Callable[[Run], Mapping[str, float | None]]

_RUNS = "runs"
_IDENTITY = "campaign.json"
RESULTS_FILE = "results.csv"
SUMMARY_FILE = "summary.csv"


@dataclass(frozen=True, slots=True)
class Job:
    """One run, as a worker gets it: nothing but values."""

    index: int
    scenario: str
    #: Where captures and truth go; None writes neither.
    directory: str | None
    #: Stored numbers of the run; a function of a module, which another process finds by its name.
    measure: MeasureRun = measure


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """Every run of a campaign and the means over its repeats."""

    campaign: Campaign
    #: One row a run: `index`, `scenario`, `variant`, `repeat`, `seed`, the varied fields and the measures.
    runs: pd.DataFrame
    #: One row a point: the varied fields, `runs`, and `MEASURE` with `MEASURE.half_width` (95 %) for each measure.
    summary: pd.DataFrame


def run_job(job: Job) -> dict[str, float | None]:
    """Run one job and measure it."""
    scenario = Scenario.from_mapping(json.loads(job.scenario))
    return dict(job.measure(simulate(scenario, job.directory, captures=job.directory is not None)))


def run_campaign(
    campaign: Campaign,
    directory: str | Path,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], object] | None = None,
    measure: MeasureRun = measure,
) -> CampaignResult:
    """Run what of a campaign is not there yet, and write `results.csv` and `summary.csv` into `directory`.

    Each run's measures are a file of their own under `runs/`, whole or not there: an interrupted campaign goes on where
    it was. `scheduler` is the address of a Dask scheduler; otherwise `processes` (default: one a usable core) share the
    work. The results do not depend on the process that computed them. `progress` gets the finished runs and all runs.
    `measure` returns what is stored of a run; it must be a function of a module, since other processes look it up
    there.

    Raises ScenarioError for points that cannot be run, SimulationError for a run that failed, UsageError for a
    directory that holds another campaign, MissingPackageError without pandas.
    """
    with needed("simulate"):  # before hours of runs, whose table needs it
        import pandas as pd  # noqa: F401
    directory = Path(directory)
    points = list(campaign.points())
    _claim(directory, points, campaign.captures, measure)
    done = {point.index for point in points if _measures_path(directory, point.index).is_file()}
    missing = [_job(point, directory, campaign.captures, measure) for point in points if point.index not in done]
    shared = (directory / _IDENTITY).resolve() if campaign.captures else None
    with contextlib.closing(_run_all(missing, processes, scheduler, shared)) as results:
        for count, (index, measures) in enumerate(results, start=len(done) + 1):
            write_whole(_measures_path(directory, index), json.dumps(measures, sort_keys=True) + "\n")
            if progress is not None:
                progress(count, len(points))
    result = _collect(campaign, points, directory)
    write_whole(directory / RESULTS_FILE, result.runs.to_csv(index=False))
    write_whole(directory / SUMMARY_FILE, result.summary.to_csv(index=False))
    return result


def _job(point: Point, directory: Path, captures: bool, measure: MeasureRun) -> Job:
    place = directory.resolve() / _RUNS / f"{point.index:06d}"
    return Job(point.index, point.scenario.to_json(), str(place) if captures else None, measure)


def _measures_path(directory: Path, index: int) -> Path:
    return directory / _RUNS / f"{index:06d}.json"


def _claim(directory: Path, points: list[Point], captures: bool, measure: MeasureRun) -> None:
    """Make sure that what the directory holds, if anything, belongs to these very runs."""
    digest = hashlib.sha256()
    for point in points:
        digest.update(point.scenario.to_json().encode())
    identity = {
        "form": 1, "version": pepscope.__version__, "runs": len(points), "captures": captures,
        "sha256": digest.hexdigest(), "measure": f"{measure.__module__}.{measure.__qualname__}",
    }  # fmt: skip
    path = directory / _IDENTITY
    if path.is_file():
        held = json.loads(path.read_text(encoding="utf-8"))
        if {**held, "version": identity["version"]} != identity:
            raise UsageError(f"{directory} holds the runs of another campaign: give another directory")
        if held != identity:
            raise UsageError(
                f"{directory} holds runs of pepscope {held.get('version', 'before 0.1.0')}, this is "
                f"{identity['version']}: give another directory"
            )
        return
    (directory / _RUNS).mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(identity, indent=1) + "\n")


def _run_all(
    jobs: list[Job], processes: int | None, scheduler: str | None, shared: Path | None
) -> Generator[tuple[int, dict[str, float | None]], None, None]:
    """The index and the measures of each run, as they end; `shared` is a file that all workers must see."""
    workers = min(processes or usable_processors(), max(1, len(jobs)))
    if workers == 1 and scheduler is None:
        yield from ((job.index, run_job(job)) for job in jobs)
        return
    with contextlib.closing(
        over_workers(run_job, jobs, processes=workers, scheduler=scheduler, shared=shared)
    ) as outcomes:
        for place, outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
            yield jobs[place].index, outcome


def _collect(campaign: Campaign, points: list[Point], directory: Path) -> CampaignResult:
    import pandas as pd

    rows = []
    for point in points:
        measures = json.loads(_measures_path(directory, point.index).read_text(encoding="utf-8"))
        rows.append({**_labels(point), **measures})
    runs = pd.DataFrame(rows)
    return CampaignResult(campaign, runs, pd.DataFrame(_summary(campaign, rows)))


def _labels(point: Point) -> dict[str, Any]:
    return {
        "index": point.index,
        "scenario": point.scenario_name,
        "variant": point.variant,
        "repeat": point.repeat,
        "seed": point.scenario.seed,
        **{
            name: value if isinstance(value, str | int | float) else json.dumps(value)
            for name, value in point.values.items()
        },
    }


def _summary(campaign: Campaign, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Means over the repeats of each point, in order."""
    labels = ("scenario", "variant", *campaign.fields)
    for start in range(0, len(rows), campaign.repeats):
        group = rows[start : start + campaign.repeats]
        row: dict[str, Any] = {label: group[0][label] for label in labels}
        row["runs"] = len(group)
        names = [name for name in group[0] if name not in {*labels, "index", "repeat", "seed"}]
        for name in names:
            values = [run[name] for run in group if run.get(name) is not None]
            interval = mean_interval(values) if values else None
            row[name] = interval.mean if interval else None
            row[f"{name}.half_width"] = interval.half_width if interval else None
        yield row
