"""What a plan would do: bytes each way, time, and what cannot run here and why; with or without the server's word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from prober import abilities, devices
from prober.control_client import ControlClient
from prober.costs import fetched_capture_bytes
from prober.errors import ControlError, PlanError
from prober.experiment import Experiment, Json, Task, Want
from prober.plan import Plan
from prober.protocol import About
from prober.run import planned_tasks, wanted_of
from prober.server_address import connect, resolve

SCHEMA = "pepscope-dry-run-1"
#: A dry run does not wait for a path that is away.
PATIENCE_S = 5.0
#: Finishing and fetching both captures, asking for them, and the grace in between, beside the task itself.
_ROUND_TRIPS_A_TASK = 8
_GRACE_S = 0.5


@dataclass(frozen=True, slots=True)
class ExperimentCost:
    """What one experiment of the plan would do."""

    name: str
    summary: str
    tasks: int
    #: Of all its tasks, those that cannot run not counted.
    bytes_up: int
    bytes_down: int
    expected_s: float
    #: Why tasks cannot run, and how many.
    impossible: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a run of the plan would be."""

    server: str
    #: Whether the server was asked; else why not.
    asked_server: bool
    server_note: str
    experiments: tuple[ExperimentCost, ...]
    #: What is lacking for captures: tasks run without, and tell less.
    without_captures: Mapping[Want, str]

    @property
    def bytes_up(self) -> int:
        """To the server, headers included."""
        return sum(item.bytes_up for item in self.experiments)

    @property
    def bytes_down(self) -> int:
        """From the server, with its captures."""
        return sum(item.bytes_down for item in self.experiments)

    @property
    def expected_s(self) -> float:
        """At the plan's assumed rates."""
        return sum(item.expected_s for item in self.experiments)

    def to_mapping(self) -> dict[str, Json]:
        """As `--json` writes it."""
        return {
            "schema": SCHEMA,
            "server": self.server,
            "asked_server": self.asked_server,
            "server_note": self.server_note,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
            "expected_s": round(self.expected_s, 1),
            "without_captures": {want.value: reason for want, reason in self.without_captures.items()},
            "experiments": [
                {
                    "name": item.name,
                    "summary": item.summary,
                    "tasks": item.tasks,
                    "bytes_up": item.bytes_up,
                    "bytes_down": item.bytes_down,
                    "expected_s": round(item.expected_s, 1),
                    "impossible": dict(item.impossible),
                }
                for item in self.experiments
            ],
        }


def dry_run(plan: Plan) -> DryRun:
    """Tell what a run would do; nothing is measured. Raises PlanError."""
    tasks = planned_tasks(plan)
    about, address, note = _ask(plan)
    wanted = wanted_of(tasks)
    device = devices.device_of(devices.local_address_towards(address)) if address else None
    lacking = abilities.lacking_at_mobile(device, address, wanted) if address else {}
    lacking |= {} if about is None else abilities.lacking_at_server(about)
    captures = (Want.MOBILE_CAPTURE, Want.SERVER_CAPTURE)
    return DryRun(
        server=plan.server.host,
        asked_server=about is not None,
        server_note=note,
        experiments=tuple(_costs(plan, tasks, lacking)),
        without_captures={want: lacking[want] for want in captures if want in lacking and want in wanted},
    )


def _ask(plan: Plan) -> tuple[About | None, str, str]:
    """What the server says, its address, and a sentence where one of them cannot be had."""
    address = ""
    try:
        address = resolve(plan.server.host, 0.0)
        devices.local_address_towards(address)
        control: ControlClient
        with connect(plan, address, PATIENCE_S) as control:
            return control.about(), address, ""
    except (ControlError, PlanError) as error:
        return None, address, str(error)
    except OSError as error:
        return None, "", f"there is no way to {plan.server.host}: {error.strerror or error}"


def _costs(plan: Plan, tasks: list[tuple[Experiment, Task]], lacking: Mapping[Want, str]) -> list[ExperimentCost]:
    found = []
    for experiment in dict.fromkeys(experiment for experiment, _ in tasks):
        own = [task for owner, task in tasks if owner is experiment]
        reasons = Counter(reason for task in own if (reason := abilities.unmet(task.wants, lacking)))
        possible = [task for task in own if not abilities.unmet(task.wants, lacking)]
        fetched = [_fetched_bytes(plan, task, lacking) for task in possible]
        found.append(
            ExperimentCost(
                name=experiment.name,
                summary=experiment.summary,
                tasks=len(own),
                bytes_up=sum(task.bytes_up for task in possible),
                bytes_down=sum(task.bytes_down for task in possible) + sum(fetched),
                expected_s=sum(
                    task.expected_s + _overhead_s(plan, task, capture_bytes)
                    for task, capture_bytes in zip(possible, fetched, strict=True)
                ),
                impossible=dict(reasons),
            )
        )
    return found


def _fetched_bytes(plan: Plan, task: Task, lacking: Mapping[Want, str]) -> int:
    """Of the server's capture, which comes over the same path."""
    if not task.captured or Want.SERVER_CAPTURE in lacking:
        return 0
    return fetched_capture_bytes(task.bytes_up + task.bytes_down, plan.capture.snap_bytes)


def _overhead_s(plan: Plan, task: Task, capture_bytes: int) -> float:
    """What a task takes beside its measurement."""
    if not task.captured:
        return 0.0
    rates = plan.rates
    return _ROUND_TRIPS_A_TASK * rates.round_trip_time_s + _GRACE_S + capture_bytes * 8 / rates.down_bit_s
