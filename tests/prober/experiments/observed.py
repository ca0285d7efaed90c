"""Observations made by hand, for the rules that read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pepscope.packets import Direction
from pepscope.results import PairResult
from prober.experiment import Application, Measurement, Observation, Seen, Status, Task


def seen(
    experiment: str,
    values: Mapping[str, Any],
    *,
    application: Application | None = Application.HTTP_DATA,
    direction: Direction | None = Direction.DOWN,
    pairs: tuple[PairResult, ...] = (),
) -> Seen:
    """A done observation with these values, which have gone through JSON as an archive's do."""
    task = Task(experiment, 1, application, direction)
    measurement = Measurement(json.loads(json.dumps(values)))
    return Seen(Observation(task, Status.DONE, "", 0, 1.0, measurement), pairs)
