"""Plain transfers of every application, in both directions, captured at both ends: what the detector's methods read.

Two rules are its own: TLS that is answered with another certificate than the server's is not end to end; and what
intermediaries leave in HTTP at both ends (`prober.intermediaries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from pepscope.results import Evidence, Outcome
from prober.costs import transfer_cost
from prober.errors import MeasurementError, PlanError
from prober.experiment import Application, Experiment, Json, Measurement, Seen, Task
from prober.intermediaries import added_to_answer, arrivals, declared, intermediary_evidence, optional_entries
from prober.measured import number, table, text, truth
from prober.objects import MOST_PICTURE_BYTES
from prober.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: Applications whose requests and answers have header fields, one request on each of the mobile's connections.
HTTP = frozenset({Application.HTTP_DATA, Application.HTTP_IMAGE, Application.HTTPS})


class Transfers(Experiment):
    """Moves objects as applications do, and keeps what both ends saw."""

    name = "transfers"
    summary = "Move objects by every application, both ways, captured at both ends."
    #: Small objects show what a split does to short transfers; whether it stores them shows only where an object
    #: is larger than what a split's buffers swallow. Linux lets one send buffer grow to 4 MB (tcp(7), tcp_wmem).
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType(
        {"sizes_bytes": (100_000, 4_000_000), "repeats": 2, "upload_share": 0.5}
    )

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """All cells once, then all again: what changes with time touches every cell alike."""
        settings = plan.experiments[self.name]
        for repeat in range(1, int(settings["repeats"]) + 1):
            for application in plan.applications:
                for direction in plan.directions:
                    for size_bytes in _sizes(settings, application, direction):
                        yield _task(plan, repeat, application, direction, size_bytes)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Move one object nobody saw before."""
        assert task.application is not None
        assert task.direction is not None
        before = end.control.last_served_number()
        moved = end.transfer(task.application, task.direction, int(task.parameters["size_bytes"]))
        if not moved.complete:
            raise MeasurementError(
                f"the {task.application} transfer ended with {moved.status} after {moved.moved_bytes} of "
                f"{moved.size_bytes} bytes"
            )
        values = {**moved.to_mapping(), "intact": moved.intact}
        if task.application in HTTP:
            values["arrivals"] = arrivals(end.control.served(before))
        return Measurement(values, moved.flows)

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Findings: `another-certificate` (split): a box in between ends TLS; and what intermediaries leave."""
        measured = [item.observation.measurement.values for item in seen]
        requests = [row for values in measured for row in optional_entries(values, "arrivals")]
        names = [[*table(values, "answer_fields")] for values in measured if "answer_fields" in values]
        answers = [{"proxy_fields": declared(one), "added_fields": added_to_answer(one)} for one in names]
        return (*self._certificates(seen), *intermediary_evidence(self.name, requests, answers))

    def _certificates(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        secured = [item.observation.measurement.values for item in seen]
        secured = [values for values in secured if values.get("certificate_is_the_servers") is not None]
        foreign = sum(not truth(values, "certificate_is_the_servers") for values in secured)
        if not foreign:
            return ()
        return (
            Evidence(
                self.name,
                Outcome.SPLIT,
                "another-certificate",
                1.0,
                f"{foreign} of {len(secured)} TLS connections got another certificate than the server's: "
                "a box in between ends them.",
                {"connections": len(secured), "foreign": foreign},
            ),
        )

    def facts(self, seen: Sequence[Seen]) -> Mapping[str, Json]:
        """Rates and times of each transfer, and how many arrived changed."""
        rows = []
        for item in seen:
            values = item.observation.measurement.values
            total_s = number(values, "total_s")
            rows.append(
                {
                    "size_bytes": number(values, "size_bytes"),
                    "rate_bit_s": number(values, "moved_bytes") * 8 / total_s if total_s > 0 else 0.0,
                    "connect_s": number(values, "connect_s"),
                    "first_byte_s": number(values, "first_byte_s"),
                    "total_s": total_s,
                    "intact": truth(values, "intact"),
                    "status": text(values, "status"),
                }
            )
        return {"transfers": rows, "changed": sum(not row["intact"] for row in rows)} if rows else {}


def _sizes(settings: Mapping[str, Json], application: Application, direction: Direction) -> list[int]:
    """Sizes in rising order; uploads may be smaller, and pictures have bounds of their own."""
    share = float(settings["upload_share"]) if direction is Direction.UP else 1.0
    if not 0 < share <= 1:
        raise PlanError(f"experiments.transfers.upload_share lies above 0 and at most at 1, not at {share:g}")
    sizes = {max(1, round(size * share)) for size in settings["sizes_bytes"]}
    if application is Application.HTTP_IMAGE:
        sizes = {min(max(size, LEAST_PICTURE_BYTES), MOST_PICTURE_BYTES) for size in sizes}
    return sorted(sizes)


def _task(plan: Plan, repeat: int, application: Application, direction: Direction, size_bytes: int) -> Task:
    cost = transfer_cost(application, direction, size_bytes, plan.rates)
    return Task(
        Transfers.name,
        repeat,
        application,
        direction,
        {"size_bytes": size_bytes},
        bytes_up=cost.bytes_up,
        bytes_down=cost.bytes_down,
        expected_s=cost.expected_s,
    )
