"""Observations made by hand, for the rules that read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pepscope.captures.packets import Direction
from pepscope.results.verdicts import PairResult
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.plan import Plan
from prober.protocol.application import Application


def seen(
    experiment: str,
    values: Mapping[str, Any],
    *,
    application: Application | None = Application.HTTP_DATA,
    direction: Direction | None = Direction.DOWN,
    pairs: tuple[PairResult, ...] = (),
) -> ObservedTask:
    """A done observation with these values, which have gone through JSON as an archive's do."""
    task = Task(experiment, 1, application, direction)
    measurement = Measurement(json.loads(json.dumps(values)))
    return ObservedTask(Observation(task, Status.DONE, "", 0, 1.0, measurement), pairs)


def tasks_of(experiment: Experiment[Any, Any], plan: Plan) -> list[Task]:
    """The tasks of one experiment of a plan."""
    return list(experiment.tasks(plan.experiments[experiment.name], plan))


def plan_of(experiment: Experiment[Any, Any], **options: Any) -> Plan:
    """A plan of this experiment alone, with these of its options changed."""
    return Plan(experiments={experiment.name: experiment.options(**options)})
