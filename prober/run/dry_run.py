"""What a plan would do: bytes each way, time, and what cannot run here and why; with or without the server's word."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prober.client import capabilities
from prober.client.capabilities import Capability
from prober.client.control_client import ControlClient
from prober.errors import ControlError, PlanError, UnreachableError
from prober.host import network_devices
from prober.measurement.cost_estimate import fetched_capture_bytes
from prober.measurement.experiment import Experiment
from prober.measurement.task import Task
from prober.plan import Plan
from prober.protocol.control_messages import About
from prober.protocol.json_documents import Json
from prober.run.runner import planned_tasks, required_capabilities
from prober.run.server_address import CONTACT_S, connect, plan_key, reach, resolve

SCHEMA = "pepscope-dry-run-1"
#: What an answer may take at least, of a server that took long to connect to.
_LEAST_ANSWER_S = 1.0
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
    connections: int
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
    #: What is lacking for captures: tasks run without, and show less.
    without_captures: Mapping[Capability, str]

    @property
    def bytes_up(self) -> int:
        """To the server, headers included."""
        return sum(item.bytes_up for item in self.experiments)

    @property
    def bytes_down(self) -> int:
        """From the server, with its captures."""
        return sum(item.bytes_down for item in self.experiments)

    @property
    def connections(self) -> int:
        """TCP connections with the server's services, the control channel apart."""
        return sum(item.connections for item in self.experiments)

    @property
    def impossible(self) -> int:
        """How many tasks cannot run here."""
        return sum(sum(item.impossible.values()) for item in self.experiments)

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
            "connections": self.connections,
            "expected_s": round(self.expected_s, 1),
            "without_captures": {want.value: reason for want, reason in self.without_captures.items()},
            "experiments": [
                {
                    "name": item.name,
                    "summary": item.summary,
                    "tasks": item.tasks,
                    "bytes_up": item.bytes_up,
                    "bytes_down": item.bytes_down,
                    "connections": item.connections,
                    "expected_s": round(item.expected_s, 1),
                    "impossible": dict(item.impossible),
                }
                for item in self.experiments
            ],
        }


def dry_run(plan: Plan, *, must_answer: bool = False) -> DryRun:
    """Estimate what a run would do; nothing is measured. Raises PlanError.

    Where the server `must_answer` raises ControlError as well, within `CONTACT_S` of a server that is not there.
    """
    tasks = planned_tasks(plan)
    about, address, note = _ask(plan, must_answer=must_answer)
    wanted = required_capabilities(tasks)
    device = network_devices.device_of(network_devices.local_address_towards(address)) if address else None
    lacking = capabilities.lacking_at_mobile(device, address, wanted) if address else {}
    lacking |= {} if about is None else capabilities.lacking_at_server(about)
    captures = (Capability.MOBILE_CAPTURE, Capability.SERVER_CAPTURE)
    return DryRun(
        server=plan.server.host,
        asked_server=about is not None,
        server_note=note,
        experiments=tuple(_costs(plan, tasks, lacking)),
        without_captures={want: lacking[want] for want in captures if want in lacking and want in wanted},
    )


def _ask(plan: Plan, *, must_answer: bool) -> tuple[About | None, str, str]:
    """The server's description, its address, and a sentence where one of them is unavailable."""
    address, begun_s = "", time.monotonic()
    try:
        address = resolve(plan.server.host, 0.0)
        network_devices.local_address_towards(address)
        plan_key(plan)
        address = reach(plan.server.host, plan.server.control_port)
        left_s = max(_LEAST_ANSWER_S, begun_s + CONTACT_S - time.monotonic())
        control: ControlClient
        with connect(plan, address, 0.0, left_s) as control:
            return control.about(), address, ""
    except (ControlError, PlanError) as error:
        if must_answer:
            raise
        return None, address, str(error)
    except OSError as error:
        if must_answer:
            raise UnreachableError(f"there is no way to {plan.server.host}: {error.strerror or error}") from None
        return None, "", f"there is no way to {plan.server.host}: {error.strerror or error}"


def _costs(
    plan: Plan, tasks: list[tuple[Experiment[Any, Any], Task]], lacking: Mapping[Capability, str]
) -> list[ExperimentCost]:
    found = []
    for experiment in dict.fromkeys(experiment for experiment, _ in tasks):
        own = [task for owner, task in tasks if owner is experiment]
        reasons = Counter(reason for task in own if (reason := capabilities.unmet(task.requires, lacking)))
        possible = [task for task in own if not capabilities.unmet(task.requires, lacking)]
        fetched = [_fetched_bytes(plan, task, lacking) for task in possible]
        found.append(
            ExperimentCost(
                name=experiment.name,
                summary=experiment.summary,
                tasks=len(own),
                bytes_up=sum(task.bytes_up for task in possible),
                bytes_down=sum(task.bytes_down for task in possible) + sum(fetched),
                connections=sum(task.connections for task in possible),
                expected_s=sum(
                    task.expected_s + _overhead_s(plan, task, capture_bytes)
                    for task, capture_bytes in zip(possible, fetched, strict=True)
                ),
                impossible=dict(reasons),
            )
        )
    return found


def _fetched_bytes(plan: Plan, task: Task, lacking: Mapping[Capability, str]) -> int:
    """Of the server's capture, which comes over the same path."""
    if not task.captured or Capability.SERVER_CAPTURE in lacking:
        return 0
    return fetched_capture_bytes(task.bytes_up + task.bytes_down, plan.capture.snap_bytes)


def _overhead_s(plan: Plan, task: Task, capture_bytes: int) -> float:
    """What a task takes beside its measurement."""
    if not task.captured:
        return 0.0
    rates = plan.rates
    return _ROUND_TRIPS_A_TASK * rates.round_trip_time_s + _GRACE_S + capture_bytes * 8 / rates.down_bit_s
