"""From what a run recorded to a verdict a cell: the same code for a run just made and for an archive of years ago."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from pepscope.audit_results import AuditCell, AuditConnection, AuditFacts, AuditRun, NotMeasured
from pepscope.errors import PepscopeError
from pepscope.packets import Direction
from pepscope.results import Evidence
from prober.archive import Archive, Bounds
from prober.captured_flows import CapturedTask, judge_captures
from prober.cells import CellMaterial, judge_cell
from prober.errors import PlanError
from prober.experiment import Application, Experiment, Observation, Seen, Status, Task
from prober.experiments import experiment as find_experiment
from prober.plan import Plan

#: Work done and in all, in observations.
Progress = Callable[[int, int], object]

#: What a rule may stumble over in measurements that somebody made up, beside what it looks for itself.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_Place = tuple[Application | None, Direction | None]


def judge_run(archive: Archive, source: str, *, series: bool = False, progress: Progress | None = None) -> AuditRun:
    """Judge a run; `source` is what it is called. With `series` the connections carry what a page draws.

    What cannot be judged (a capture that cannot be read, a measurement that makes no sense) is left out and warned of.
    """
    plan = archive.manifest.plan
    work = _Work(archive, series=series, progress=progress)
    groups: dict[tuple[str, _Place], list[Observation]] = defaultdict(list)
    for observation in archive.observations:
        task = observation.task
        groups[task.experiment, (task.application, task.direction)].append(observation)
    for (name, place), observations in groups.items():
        work.judge_group(name, place, observations)
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
        facts=tuple(work.facts),
        circumstances={"run": archive.manifest.run_id, "version": archive.manifest.version, **archive.facts},
        warnings=tuple(dict.fromkeys((*_incomplete(archive), *work.warnings))),
        tasks_done=sum(item.status is Status.DONE for item in archive.observations),
        tasks=len(tasks),
    )


class _Work:
    """What has been found so far, by place in the matrix."""

    def __init__(self, archive: Archive, *, series: bool, progress: Progress | None) -> None:
        self.connections: dict[_Place, list[AuditConnection]] = defaultdict(list)
        self.active: dict[_Place, list[Evidence]] = defaultdict(list)
        self.facts: list[AuditFacts] = []
        self.warnings: list[str] = []
        self._archive = archive
        self._series = series
        self._progress = progress
        self._done = 0

    def judge_group(self, name: str, place: _Place, observations: Sequence[Observation]) -> None:
        """Judge the captures of one experiment at one place of the matrix, then apply the experiment's own rule."""
        experiment = find_experiment(name)
        if experiment is None:
            self.warnings.append(
                f"{name} is an experiment that this version does not know; what it measured is left out"
            )
        seen = [self._see(observation, place) for observation in observations if observation.status is Status.DONE]
        if experiment is not None and seen:
            self._examine(experiment, place, seen)

    def _see(self, observation: Observation, place: _Place) -> Seen:
        mobile = self._archive.captures.get(observation.mobile_capture)
        server = self._archive.captures.get(observation.server_capture)
        judged = judge_captures(CapturedTask(observation, mobile, server), series=self._series)
        self.connections[place] += judged.connections
        self.warnings += judged.warnings
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, len(self._archive.observations))
        return Seen(observation, judged.pairs, mobile, server)

    def _examine(self, experiment: Experiment, place: _Place, seen: Sequence[Seen]) -> None:
        try:
            self.active[place] += experiment.examine(seen)
            facts = experiment.facts(seen)
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
        if facts:
            application, direction = place
            name = None if application is None else application.value
            self.facts.append(AuditFacts(experiment.name, name, direction, facts))


def _cell(
    application: Application, direction: Direction, work: _Work, archive: Archive, tasks: Collection[Task]
) -> AuditCell:
    """What speaks of an application without a direction speaks of both."""
    places: tuple[_Place, ...] = ((application, direction), (application, None))
    own = [item for item in archive.observations if (item.task.application, item.task.direction) in places]
    lacking = [item.reason if item.status is not Status.DONE else item.capture_note for item in own]
    if not archive.manifest.complete:
        lacking.append(f"the run did not come to its end: {archive.manifest.reason}")
    return judge_cell(
        CellMaterial(
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
            yield from islice(experiment.tasks(plan), Bounds().members)
        except PlanError:
            continue
