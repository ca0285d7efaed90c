"""From what a run recorded to a verdict a cell: the same code for a run just made and for an archive of years ago."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pepscope.captures.direction import Direction
from pepscope.errors import PepscopeError
from pepscope.results.audits import AuditCell, AuditConnection, AuditMetrics, AuditRun, NotMeasured
from pepscope.results.verdicts import Evidence
from prober.archive.archive_file import Archive, Bounds, Manifest
from prober.audit.captured_flows import CapturedTask, judge_captures
from prober.audit.matrix import CellInput, judge_cell
from prober.errors import ArchiveError, PlanError
from prober.experiments.registry import experiment as find_experiment
from prober.experiments.registry import rule_for
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.task import Observation, Status, Task
from prober.plan import Plan
from prober.protocol.application import Application

#: Work done and in all, in observations.
Progress = Callable[[int, int], object]

#: What a rule may raise for made-up measurements beside ArchiveError.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_Place = tuple[Application | None, Direction | None]


def judge_run(archive: Archive, source: str, *, series: bool = False, progress: Progress | None = None) -> AuditRun:
    """Judge a run; `source` is what it is called. With `series` the connections carry what a page draws.

    What cannot be judged (a capture that cannot be read, a measurement that makes no sense) is left out and warned of.
    """
    plan = archive.manifest.plan
    work = _Work(archive, series=series, progress=progress)
    work.warnings += _unread(archive.manifest)
    groups: dict[tuple[str, int, _Place], list[Observation]] = defaultdict(list)
    for observation in archive.observations:
        task = observation.task
        groups[task.experiment, observation.experiment_version, (task.application, task.direction)].append(observation)
    for (name, version, place), observations in groups.items():
        work.judge_group(name, version, place, observations)
    planned = {task.key: task for task in _planned(plan)}
    tasks = {**planned, **{item.task.key: item.task for item in archive.observations}}
    places = {(task.application, task.direction) for task in tasks.values()}
    cells = tuple(
        _cell(application, direction, work, archive, tasks.values())
        for application in Application
        for direction in (Direction.DOWN, Direction.UP)
        if (application, direction) in places or ((application, None) in places and direction in plan.directions)
    )
    return AuditRun(
        source=source,
        started_unix_ns=archive.manifest.started_unix_ns,
        duration_s=max(0, archive.manifest.ended_unix_ns - archive.manifest.started_unix_ns) / 1e9,
        server=plan.server.host,
        plan_digest=plan.digest,
        cells=cells,
        not_measured=_not_measured(archive, planned),
        metrics=tuple(work.metrics),
        circumstances={"run": archive.manifest.run_id, "version": archive.manifest.version, **archive.metadata},
        warnings=tuple(dict.fromkeys((*_incomplete(archive), *work.warnings))),
        tasks_done=sum(item.status is Status.DONE for item in archive.observations),
        tasks=len(tasks),
        titles=_titles(tasks.values()),
    )


class _Work:
    """What has been found so far, by place in the matrix."""

    def __init__(self, archive: Archive, *, series: bool, progress: Progress | None) -> None:
        self.connections: dict[_Place, list[AuditConnection]] = defaultdict(list)
        self.active: dict[_Place, list[Evidence]] = defaultdict(list)
        self.metrics: list[AuditMetrics] = []
        self.warnings: list[str] = []
        self._archive = archive
        self._series = series
        self._progress = progress
        self._done = 0

    def judge_group(self, name: str, version: int, place: _Place, observations: Sequence[Observation]) -> None:
        """Judge the captures of one experiment at one place of the matrix, then apply the experiment's own rule."""
        experiment: Experiment[Any, Any] | None = None
        try:
            experiment = rule_for(name, version, self._archive.manifest.packages.get(name, ""))
        except ArchiveError as error:
            self.warnings.append(str(error))
        seen = [self._see(observation, place) for observation in observations if observation.status is Status.DONE]
        if experiment is not None and seen:
            self._examine(experiment, place, seen)

    def _see(self, observation: Observation, place: _Place) -> ObservedTask:
        mobile = self._archive.captures.get(observation.mobile_capture)
        server = self._archive.captures.get(observation.server_capture)
        judged = judge_captures(CapturedTask(observation, mobile, server), series=self._series)
        self.connections[place] += judged.connections
        self.warnings += judged.warnings
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, len(self._archive.observations))
        return ObservedTask(observation, judged.pairs, mobile, server)

    def _examine(self, experiment: Experiment[Any, Any], place: _Place, seen: Sequence[ObservedTask]) -> None:
        try:
            self.active[place] += experiment.examine(seen)
            metrics = experiment.metrics(seen)
        except PepscopeError as error:
            self.warnings.append(f"{experiment.name}: {error}")
            return
        except _NONSENSE as error:
            if os.environ.get("PEPSCOPE_DEBUG"):
                raise
            self.warnings.append(
                f"{experiment.name}: what was measured makes no sense to this version ({type(error).__name__}: {error})"
            )
            return
        if metrics:
            application, direction = place
            name = None if application is None else application.value
            self.metrics.append(AuditMetrics(experiment.name, name, direction, metrics))


def _titles(tasks: Iterable[Task]) -> Mapping[str, str]:
    names = dict.fromkeys(task.experiment for task in tasks)
    return {name: known.title for name in names if (known := find_experiment(name)) is not None}


def _cell(
    application: Application, direction: Direction, work: _Work, archive: Archive, tasks: Collection[Task]
) -> AuditCell:
    """The directions that a finding concerns: both if it names only the application."""
    places: tuple[_Place, ...] = ((application, direction), (application, None))
    own = [item for item in archive.observations if (item.task.application, item.task.direction) in places]
    lacking = [item.reason if item.status is not Status.DONE else item.capture_note for item in own]
    if not archive.manifest.complete:
        lacking.append(f"the run did not come to its end: {archive.manifest.reason}")
    return judge_cell(
        CellInput(
            application=application.value,
            direction=direction,
            connections=tuple(item for place in places for item in work.connections[place]),
            active=tuple(item for place in places for item in work.active[place]),
            tasks_done=sum(item.status is Status.DONE for item in own),
            tasks=sum((task.application, task.direction) in places for task in tasks),
            lacking=_by_frequency(lacking),
        )
    )


def _by_frequency(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for text, _ in Counter(text for text in sentences if text).most_common())


def _incomplete(archive: Archive) -> tuple[str, ...]:
    manifest = archive.manifest
    return () if manifest.complete else (f"The run did not come to its end: {manifest.reason or 'no reason given'}",)


def _unread(manifest: Manifest) -> Iterator[str]:
    """What cannot be read of the plan, one sentence an experiment: how many tasks it planned is not known then."""
    for name, table in manifest.plan.unread.items():
        if find_experiment(name) is not None:
            yield f"tasks of {name} that never ran are not counted, because its plan is of another version: {table.why}"
            continue
        try:
            rule_for(name, 1, manifest.packages.get(name, ""))
        except ArchiveError as error:
            yield str(error)


def _not_measured(archive: Archive, planned: Mapping[str, Task]) -> tuple[NotMeasured, ...]:
    """What did not run and why, equal reasons together; tasks of the plan that a run never came to are missing."""
    counts: Counter[tuple[str, _Place, str, str]] = Counter()
    for item in archive.observations:
        if item.status is not Status.DONE:
            place = (item.task.application, item.task.direction)
            counts[item.task.experiment, place, item.status.value, item.reason] += 1
    known = {item.task.key for item in archive.observations}
    for key, task in planned.items():
        if key not in known:
            place = (task.application, task.direction)
            counts[task.experiment, place, "missing", "the run ended before this task"] += 1
    return tuple(
        NotMeasured(name, None if place[0] is None else place[0].value, place[1], status, reason, count)
        for (name, place, status, reason), count in counts.items()
    )


def _planned(plan: Plan) -> Iterator[Task]:
    """The plan's tasks, as far as an archive could hold them; none of an experiment whose settings make no sense."""
    for name in plan.experiments:
        experiment = find_experiment(name)
        if experiment is None:
            continue
        try:
            yield from islice(experiment.tasks(plan.experiments[name], plan), Bounds().members)
        except PlanError:
            continue
