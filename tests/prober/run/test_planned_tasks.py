"""Which tasks a plan makes."""

from __future__ import annotations

import pytest

from pepscope.captures.packets import Direction
from prober.errors import PlanError
from prober.protocol.application import Application
from prober.run.runner import planned_tasks
from tests.prober.runs_made_by_hand import plan


def test_plans_of_too_many_tasks_are_refused_without_making_them_all() -> None:
    with pytest.raises(PlanError, match="at most 5000 tasks"):
        planned_tasks(plan(experiments={"transfers": {"repeats": 10**12, "sizes_bytes": [1]}}))


def test_directions_and_applications_are_the_plans() -> None:
    experiments = {"transfers": {"sizes_bytes": [5_000], "repeats": 1}}
    tasks = [task for _, task in planned_tasks(plan(applications=["ftp"], directions=["up"], experiments=experiments))]
    assert {(task.application, task.direction) for task in tasks} == {(Application.FTP, Direction.UP)}
